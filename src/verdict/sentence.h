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
// "; then child processes, 16 %": where computing is first, what could be taken away.
void sentence_append_second(struct text *t, const struct facts *f, const struct causes *c);
// All that hold in part beside the first; nothing where the verdict is not made from causes.
void sentence_append_parts(struct text *t, const struct verdict *v);
// Where an iteration's time goes: "data 61 %, forward 12 % ... (+-1 %, 1,430 iterations)".
void sentence_append_shares(struct text *t, const struct facts *f);
// What would make the verdict surer; nothing where nothing would.
void sentence_append_surer(struct text *t, const struct facts *f, const struct causes *c);
// "about 1.9 times faster", "at most 1.3 times faster"; nothing where the gain is not known.
void sentence_append_gain(struct text *t, const struct suggestion *s);
