// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// CUDA_VISIBLE_DEVICES, as a job's environment may have it.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "record/source/gpu_visible.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct gpu_identity gpus[] = {
		{.uuid = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", .name = "A100", .mig = true},
		{.uuid = "GPU-89aaaaaa-0000-0000-0000-000000000000", .name = "A100", .mig = false},
		{.uuid = "",
			.name = "T4",
			.mig = true,
			.instances = {"MIG-6f5e", "MIG-6f00"},
			.n_instances = 2},
	};
	enum gpu_visible verdicts[ARRAY_LENGTH(gpus)];
	// Exactly as long as it is, so that a read past the end is seen.
	_cleanup_free_ char *list = malloc(size + 1);
	if (!list) {
		return 0;
	}
	memcpy(list, data, size);
	list[size] = '\0';
	for (size_t n = 0; n <= ARRAY_LENGTH(gpus); n++) {
		memset(verdicts, 0xff, sizeof(verdicts));
		gpu_visible(list, n % 2 ? "PCI_BUS_ID" : NULL, gpus, n, verdicts);
		for (size_t i = 0; i < n; i++) {
			int instance = gpu_visible_instance(list, &gpus[i]);
			if (instance < -1 || instance >= (int)GPU_MAX_INSTANCES) {
				abort();
			}
			if (verdicts[i] != GPU_HIDDEN && verdicts[i] != GPU_VISIBLE &&
				verdicts[i] != GPU_VISIBLE_UNKNOWN) {
				abort(); // each GPU gets a verdict
			}
		}
	}
	return 0;
}
