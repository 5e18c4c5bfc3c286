// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Trials of advice that a run keeps (`strain advise --try`): the key `tried` of table run, an array
// in JSON, docs/format.md. What is in a run was written by anybody: nothing of it is believed that
// setting_add() refuses, nor a gain that is none.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "verdict/types.h"

enum { TRIED_MAX = 64 }; // that a run keeps: the last

// Reads the key's value; NULL and what is no such array are an empty list. 0 or -ENOMEM.
int tried_read(const char *json, struct tried_list *ret);
// The key's value; of more than TRIED_MAX the last.
void tried_append_json(struct text *t, const struct tried_list *list);
// Adds a copy, in place of the one of the same settings. 0 or -ENOMEM.
int tried_add(struct tried_list *list, const struct tried *tried);
void tried_done(struct tried_list *list);

// NULL: these settings were not tried.
const struct tried *tried_find(const struct tried_list *list, const struct setting_list *settings);
// Whether it is more than chance: the interval is above 1.
bool tried_gained(const struct tried *tried);
// Whether it is known that it gained nothing that could be told from chance.
bool tried_in_vain(const struct tried *tried);
// "1.48x (1.41 to 1.55), promised 1.5x"; "gained nothing: 0.98x (0.94 to 1.02)"; "not tried: the
// job failed".
void tried_append_result(struct text *t, const struct tried *tried);
// "tried: 1.48x (1.41 to 1.55), promised 1.5x".
void tried_append(struct text *t, const struct tried *tried);
// Whether a suggestion of the verdict tells of it.
bool tried_is_told(const struct verdict *v, const struct tried *tried);

// Gives each suggestion of the verdict the trial of it, the best of its choices; moves those of
// which every choice was tried in vain to verdict.in_vain; then the largest gain is the first, one
// that was tried before one that is promised. 0 or -ENOMEM.
int tried_apply(struct verdict *v);
