// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Names of the kinds, as in the run file.

#include "runfile/metric.h"

const char *entity_kind_name(enum entity_kind kind)
{
	static const char *const names[N_ENTITY_KINDS] = {
		[ENTITY_HOST] = "host",
		[ENTITY_JOB] = "job",
		[ENTITY_PROCESS] = "process",
		[ENTITY_GPU] = "gpu",
		[ENTITY_DISK] = "disk",
		[ENTITY_NETWORK] = "network",
		[ENTITY_RECORDER] = "recorder",
	};
	return names[kind];
}

const char *metric_kind_name(enum metric_kind kind)
{
	static const char *const names[] = {
		[METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_STATE] = "state",
	};
	return names[kind];
}
