// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Command lines as /proc gives them: always a JSON array, whatever is in them.

#include <stdint.h>
#include <stdlib.h>

#include "record/job/secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_text_ struct text out = {0};
	secret_append_command(&out, (const char *)data, size);
	if (!out.failed &&
		(out.length < 2 || out.data[0] != '[' || out.data[out.length - 1] != ']')) {
		abort();
	}
	return 0;
}
