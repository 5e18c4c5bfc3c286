// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Secrets in command lines and other text become ***. docs/secrets.md has the rule:
// names that are secret by their parts, values that are secret by their shape, options that are
// secret by their program, and the passwords of URLs. tests/unit/secrets.txt has a line for each
// case.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

// Whether a name of `length` bytes is a secret's: "HF_TOKEN", "--db-password".
bool secret_name(const char *name, size_t length);
// Appends text in which anything may be secret: shell commands, JSON, URLs, lines of output.
void secret_append_text(struct text *out, const char *data, size_t length);
// The last that a job printed, as valid UTF-8 without NUL. torn: there was more before it. Then the
// first line, whose beginning is lost, is left out, and so is a private key whose first line is
// lost.
void secret_append_end(struct text *out, const char *data, size_t length, bool torn);
// Appends text whose secrets are found by their shape alone, not by a name in front of them.
void secret_append_value(struct text *out, const char *data, size_t length);
// The arguments of a command, masked: one after the other, as calls of `append`.
void secret_each_argument(char *const *arguments,
	void (*append)(void *context, const char *masked, size_t length), void *context,
	bool *ret_failed);
// Appends a JSON array of the arguments, masked.
void secret_append_arguments(struct text *out, char *const *arguments);
// The same from /proc/PID/cmdline: arguments that end with NUL; the last may lack it.
void secret_append_command(struct text *out, const char *data, size_t length);
