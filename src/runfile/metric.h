// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Metrics and entities. Each source declares its metrics as const tables of struct metric.
// docs/metrics.md, tooltips and doctor use the same rows.

#pragma once

#include <stddef.h>
#include <stdint.h>

enum entity_kind {
	ENTITY_HOST,
	ENTITY_JOB,
	ENTITY_PROCESS,
	ENTITY_GPU,
	ENTITY_DISK,
	ENTITY_NETWORK,
	ENTITY_RECORDER,
	N_ENTITY_KINDS,
};

enum metric_kind {
	METRIC_COUNTER, // only grows; rates are computed by the analysis
	METRIC_GAUGE,
	METRIC_STATE, // a code or a set of bits, described in `help`
};

struct metric {
	const char *name; // the OpenTelemetry name if it exists, else strain.*
	enum metric_kind kind;
	const char *unit; // UCUM: "s", "By", "1" (a ratio), "{fault}"
	double scale; // value in `unit` = stored integer * scale
	const char *help; // one sentence: what it counts, its trap, its source in the kernel
};

// The stored integer for a value that could not be read. Never a real value.
#define VALUE_MISSING INT64_MIN

// "host", "job", ...: the names in the run file.
const char *entity_kind_name(enum entity_kind kind);
const char *metric_kind_name(enum metric_kind kind);
