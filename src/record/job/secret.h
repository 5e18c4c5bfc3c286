// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What looks secret in a command line does not reach a run file. The rule, as documented in
// docs/format.md:
//
// A name is secret that contains password, passwd, passphrase, secret, credential, api_key (also
// apikey, api-key), token (but not tokens or tokenize...) or auth (but not author..., unless
// authoriz... or authoris...), in upper or lower case. Of a secret name the value becomes ***:
// NAME=VALUE and --NAME=VALUE anywhere in an argument, --NAME VALUE, also as two arguments,
// "NAME: VALUE" as in a header of HTTP. So does the password of SCHEME://USER:PASSWORD@HOST.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

// Whether a name of `length` bytes is secret.
bool secret_name(const char *name, size_t length);
// Appends `argument` with what is secret in it as ***. `previous` is the argument before it, or
// NULL.
void secret_append(struct text *out, const char *previous, const char *argument);
// Appends a JSON array of the arguments, masked.
void secret_append_arguments(struct text *out, char *const *arguments);
// The same from /proc/PID/cmdline: arguments that end with NUL; the last may lack it.
void secret_append_command(struct text *out, const char *data, size_t length);
