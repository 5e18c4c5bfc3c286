// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Pressure files.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pressure p = {77, 78};
	int r = pressure_parse(cursor_of((const char *)data, size), &p);
	if (r < 0 && (r != -EBADMSG || p.some_us != 77 || p.full_us != 78)) {
		abort(); // a failure leaves the result alone
	}
	if (r == 0 && p.some_us == KEYED_ABSENT && p.full_us == KEYED_ABSENT) {
		abort(); // nothing found is a failure
	}
	if ((p.some_us < 0 && p.some_us != KEYED_ABSENT) ||
		(p.full_us < 0 && p.full_us != KEYED_ABSENT)) {
		abort();
	}
	return 0;
}
