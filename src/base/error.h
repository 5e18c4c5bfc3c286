// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Error handling. Functions return 0 or -errno and fill a struct error. Each caller prefixes its
// context, so that the text becomes a sentence: "cannot open train.strain: not a run file: ...".

#pragma once

#include <stddef.h>

struct error {
	int code; // errno value, positive; 0: no error
	char text[480];
};

// Sets code and text. e may be NULL. Returns -code, so that callers write `return error_set(...)`.
int error_set(struct error *e, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

// Like error_set, and appends ": " and strerror(code).
int error_errno(struct error *e, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

// Puts "context: " before the existing text. Returns -e->code (or -EINVAL if e is NULL).
int error_prefix(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
