// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Figures of metrics beyond the measures: "strain.memory.pss:max", from the runs' summaries. A file
// is opened for those that the index does not know.

#pragma once

#include <stddef.h>

#include "analyze/catalogue.h"
#include "base/error.h"

struct catalogue_metric {
	double *numbers; // [n] NAN: missing
	const char **reasons; // [n] why; they live for ever
	char unit[48]; // UCUM; rates of counters are per second
};

// name: METRIC:AGGREGATE, of the job where it has that metric, else of the host, of GPUs, disks,
// networks or the recorder: totals added up, the greatest maximum, else their mean. Errors: an
// aggregate that there is none of, a metric that no run has.
int catalogue_metric_read(const struct catalogue_run *const *runs, size_t n, const char *name,
	struct catalogue_metric *ret, struct error *e);
void catalogue_metric_done(struct catalogue_metric *metric);
