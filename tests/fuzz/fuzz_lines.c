// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fuzzes what is read of the hooks' counts of lines.

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/mark/hooks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What is taken is within its bounds, and its texts end.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_process process = {0};
	if (line_counts_parse((const char *)data, size, &process) < 0) {
		return 0;
	}
	for (size_t i = 0; i < process.n; i++) {
		const struct line_count *count = &process.counts[i];
		bool whole = memchr(count->phase, '\0', sizeof(count->phase)) &&
		             memchr(count->file, '\0', sizeof(count->file)) &&
		             memchr(count->function, '\0', sizeof(count->function));
		if (!whole || count->samples < 1 || count->line < 0 || !*count->file) {
			abort();
		}
	}
	line_process_done(&process);
	return 0;
}
