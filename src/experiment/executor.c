// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The list of executors.

#include "experiment/executor.h"

#include <string.h>

#include "base/cleanup.h"
#include "experiment/executor_local.h"

static const struct executor *const executors[] = {&executor_local};

const struct executor *executor_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(executors); i++) {
		if (strcmp(executors[i]->name, name) == 0) {
			return executors[i];
		}
	}
	return NULL;
}
