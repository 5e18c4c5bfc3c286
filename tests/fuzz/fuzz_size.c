// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Sizes and percentages, as options take them.

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
	uint64_t bytes = 77;
	int r = parse_size(text, &bytes, &e);
	if (r < 0 && (bytes != 77 || e.text[0] == '\0')) {
		abort(); // a failure leaves the result alone and says what was wrong
	}
	double ratio = 77;
	r = parse_percent(text, &ratio, &e);
	if (r == 0 && !(ratio >= 0 && ratio <= 1)) {
		abort();
	}
	return 0;
}
