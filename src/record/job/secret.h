// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Arguments that look secret never reach the run file. The rule, as docs/format.md states it: the
// value of an option or variable whose name contains one of a list of words (secret_words in
// secret.c; case and
// '-' against '_' do not matter) becomes "***", be it behind '=' or the next argument, and so does
// the user:password of a URL.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

// Whether a name (of an option, a variable) speaks of a secret.
bool secret_name(const char *name, size_t length);

// Appends NUL-separated arguments (as in /proc/PID/cmdline) as a JSON array, secrets masked.
void secret_append_command(struct text *json, const char *command, size_t length);
