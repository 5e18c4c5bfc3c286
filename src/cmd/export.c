// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain export: prints the readings of a run as CSV or JSON.

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "show/samples_write.h"

enum { OPTION_JSON = 256 };

#define WIDE_BUCKET_US 1000000 // default of --every

struct export_options {
	const char *run; // NULL: the newest
	struct samples_request samples;
};

static const struct argp_option options[] = {
	{"format", 'f', "FORMAT", 0,
		"print csv (RFC 4180 quoting, LF line ends), json (one array of rows) or jsonl "
		"(one row per line)",
		0},
	{"json", OPTION_JSON, NULL, 0, "same as --format json", 0},
	{"metric", 'm', "NAME", 0, "print only this metric; may be repeated", 0},
	{"entity", 'e', "KIND", 0,
		"print only entities of this kind: host, job, process, gpu, disk, network, "
		"recorder",
		0},
	{"every", 't', "DURATION", 0,
		"print one value per DURATION: the time-weighted mean of a gauge, the last "
		"value of a counter; t_s is the start of the interval",
		0},
	{"wide", 'w', NULL, 0,
		"print a column for each metric and a row for each time of each entity, one "
		"per interval of --every (1s)",
		0},
	{0},
};

static void parse_format(
	struct samples_request *x, const char *argument, const struct argp_state *state)
{
	x->format = samples_format_find(argument);
	if (!x->format) {
		reading_option_error(
			state, "--format: expected csv, json or jsonl, found '%s'", argument);
	}
}

static void parse_every(struct samples_request *x, const char *argument, struct argp_state *state)
{
	uint64_t ns;
	struct error e = {0};
	if (parse_duration(argument, &ns, &e) < 0) {
		reading_option_error(state, "--every: %s", e.text);
	} else if (ns < 1000000) {
		reading_option_error(state, "--every: expected at least 1ms, found '%s'", argument);
	} else {
		x->bucket_us = (int64_t)(ns / 1000);
	}
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct export_options *export = state->input;
	struct samples_request *x = &export->samples;
	switch (key) {
	case 'f':
		parse_format(x, argument, state);
		return 0;
	case OPTION_JSON:
		parse_format(x, "json", state);
		return 0;
	case 'w':
		x->wide = true;
		return 0;
	case 'm':
		if (x->n_metrics == SAMPLES_METRICS_MAX) {
			reading_option_error(state, "--metric: expected at most %d metrics",
				SAMPLES_METRICS_MAX);
		}
		x->metrics[x->n_metrics++] = argument;
		return 0;
	case 'e':
		x->every_kind = false;
		if (!entity_kind_parse(argument, &x->kind)) {
			reading_option_error(state, "--entity: no kind '%s'", argument);
		}
		return 0;
	case 't':
		parse_every(x, argument, state);
		return 0;
	case ARGP_KEY_END:
		x->bucket_us = x->wide && x->bucket_us == 0 ? WIDE_BUCKET_US : x->bucket_us;
		return 0;
	case ARGP_KEY_ARG:
		if (export->run) {
			reading_option_error(state, "expected one run, also found '%s'", argument);
		}
		export->run = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int command_export(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "[RUN]",
		"Print the samples of a run as CSV or JSON: seconds since its start, and the value "
		"in the metric's unit. A missing value is an empty field, or null.",
		NULL, NULL, NULL};
	struct export_options x = {
		.samples = {.format = samples_format_find("csv"), .every_kind = true}};
	reading_options(&argp, argc, argv, &x);
	_cleanup_reader_ struct reader *reader = reading_open(x.run);
	if (!reader) {
		return STATUS_FAILURE;
	}
	struct progress progress = {0};
	if (!isatty(STDOUT_FILENO)) { // progress would appear between the rows
		progress_start(&progress, reader, PROGRESS_BLOCKS);
	}
	struct error e = {0};
	int status = samples_write(reader, &x.samples, stdout, &e) < 0 ? command_fail("%s", e.text)
	                                                               : command_flush();
	progress_end(&progress);
	reading_damaged_blocks(reader);
	return status;
}
