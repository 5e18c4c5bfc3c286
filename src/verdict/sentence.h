// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A verdict from phases, in words.

#pragma once

#include "base/text.h"
#include "verdict/causes.h"
#include "verdict/types.h"

// "input-bound (preparation on the CPU): each iteration waits 61 % of its time for batches ..."
void sentence_append_headline(struct text *t, const struct facts *f, const struct cause *cause);
// If computing is first, appends the largest cause that could be removed: "; next cause: child
// processes, 16 %".
void sentence_append_second(struct text *t, const struct facts *f, const struct causes *c);
// Appends all causes beside the first; nothing if the verdict does not come from causes.
void sentence_append_parts(struct text *t, const struct verdict *v);
// Appends the shares of an iteration: "data 61 %, forward 12 % ... (+-1 %, 1,430 iterations)".
void sentence_append_shares(struct text *t, const struct facts *f);
// Appends how to raise the confidence; nothing if that is not possible.
void sentence_append_surer(struct text *t, const struct facts *f, const struct causes *c);
// "about 1.9 times faster", "at most 1.3 times faster"; nothing if the gain is not known.
void sentence_append_gain(struct text *t, const struct suggestion *s);
