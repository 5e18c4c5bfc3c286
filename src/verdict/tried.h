// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Trials of advice that a run stores (`strain advise --try`): the key `tried` of table run, an
// array in JSON (docs/format.md). The file is not trusted: settings that setting_add() refuses are
// ignored, and so are gains that are not credible.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "verdict/types.h"

enum { TRIED_MAX = 64 }; // stored per run: the last ones

// Reads the value of the key. NULL, or anything but such an array, gives an empty list. Returns 0
// or -ENOMEM.
int tried_read(const char *json, struct tried_list *ret);
// Appends the value of the key; of more than TRIED_MAX trials, the last ones.
void tried_append_json(struct text *t, const struct tried_list *list);
// Adds a copy; replaces a trial of the same settings. Returns 0 or -ENOMEM.
int tried_add(struct tried_list *list, const struct tried *tried);
void tried_done(struct tried_list *list);

// NULL: these settings were not tried.
const struct tried *tried_find(const struct tried_list *list, const struct setting_list *settings);
// Whether the gain is significant: its interval is above 1.
bool tried_gained(const struct tried *tried);
// Whether it is known that there was no significant gain.
bool tried_in_vain(const struct tried *tried);
// "1.48x (1.41 to 1.55), estimated 1.5x"; "no significant gain: 0.98x (0.94 to 1.02)"; "not tried:
// the job failed".
void tried_append_result(struct text *t, const struct tried *tried);
// "measured: 1.48x (1.41 to 1.55), estimated 1.5x".
void tried_append(struct text *t, const struct tried *tried);
// Whether a suggestion of the verdict includes the trial.
bool tried_is_told(const struct verdict *v, const struct tried *tried);

// Attaches to each suggestion of the verdict the best trial of its choices, and moves those whose
// choices were all tried in vain to verdict.in_vain. Then sorts by gain, largest first, measured
// gains before promised ones. Returns 0 or -ENOMEM.
int tried_apply(struct verdict *v);
