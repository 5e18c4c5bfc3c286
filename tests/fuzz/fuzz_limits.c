// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Values of --cpus, --memory, --disk-read and --gpus, and, behind the first NUL, what
// CUDA_VISIBLE_DEVICES says.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/job/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct gpu_cards cards = {
	.n = 3, .uuids = {"GPU-8932f937-d72c", "GPU-8932aaaa-0000", "GPU-11112222-3333"}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	size_t length = text ? strlen(text) : 0;
	char *visible = text && length < size
	                        ? strndup((const char *)data + length + 1, size - length - 1)
	                        : NULL;
	for (int i = 0; text && i < N_LIMITS; i++) {
		struct limits_wanted wanted = {0};
		struct error e = {0};
		char *list = NULL;
		unsigned n = 0;
		if (limits_read(&wanted, (enum limit)i, text, &e) < 0 && !*e.text) {
			abort();
		}
		if (limits_choose_gpus(&wanted, &cards, visible, &list, &n, &e) == 0 &&
			(!list || n > LIMIT_GPUS_MAX)) {
			abort();
		}
		free(list);
		limits_wanted_done(&wanted);
	}
	free(text);
	free(visible);
	return 0;
}
