// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Durations, as options take them.

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[256];
	if (size >= sizeof(text)) {
		return 0;
	}
	memcpy(text, data, size);
	text[size] = '\0';
	struct error e = {0};
	uint64_t ns = 77;
	int r = parse_duration(text, &ns, &e);
	if (r < 0 && (ns != 77 || e.text[0] == '\0')) {
		abort(); // a failure leaves the result alone and says what was wrong
	}
	return 0;
}
