// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Replaces secrets in command lines and other text by ***. docs/secrets.md has the rules: names
// with a secret part, values with the shape of a secret, options that a program uses for secrets,
// and passwords in URLs. tests/unit/secrets.txt has a line for each case.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

// Whether a name of `length` bytes denotes a secret: "HF_TOKEN", "--db-password".
bool secret_name(const char *name, size_t length);
// Appends text that may contain any kind of secret: shell commands, JSON, URLs, lines of output.
void secret_append_text(struct text *out, const char *data, size_t length);
// Appends the end of a job's output as valid UTF-8 without NUL. torn: the beginning of the first
// line is missing. The first line is then left out, and so is a private key without its first line.
void secret_append_end(struct text *out, const char *data, size_t length, bool torn);
// Appends text and masks only secrets found by their shape, not by a name before them.
void secret_append_value(struct text *out, const char *data, size_t length);
// Calls `append` once for each masked argument of a command.
void secret_each_argument(char *const *arguments,
	void (*append)(void *context, const char *masked, size_t length), void *context,
	bool *ret_failed);
// Appends a JSON array of the arguments, masked.
void secret_append_arguments(struct text *out, char *const *arguments);
// The same for the content of /proc/PID/cmdline: NUL-terminated arguments. The last NUL may be
// missing.
void secret_append_command(struct text *out, const char *data, size_t length);
