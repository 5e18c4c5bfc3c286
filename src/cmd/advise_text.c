// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Stalls as a table, as sentences and as JSON.

#include "cmd/advise_text.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "advise/stall_runs.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/command.h"
#include "render/json.h"
#include "render/table.h"

enum { TAIL_BYTES = 2000 };

// In the order in which they are read: what could be, what is, what is at worst.
static const enum trial_kind shown[N_TRIALS] = {TRIAL_COMPUTE, TRIAL_WARM, TRIAL_COLD};

void advise_say(const char *text)
{
	command_note("%s", text);
}

void advise_print_tail(const char *path)
{
	char tail[TAIL_BYTES];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	ssize_t n = size < 0 ? -1
	                     : pread(fd, tail, sizeof(tail),
				       size > TAIL_BYTES ? size - TAIL_BYTES : 0);
	for (char *at = tail, *end = tail + (n > 0 ? n : 0); at < end;) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);
		command_detail("        %.*s", (int)length, at);
		at += length + 1;
	}
}

// Rates -----------------------------------------------------------------------------------------

enum {
	RATE_RUN,
	RATE_RATE,
	RATE_LOW,
	RATE_HIGH,
	RATE_ITERATIONS,
	RATE_SECONDS,
	RATE_CACHED,
	N_RATE
};

static const struct column samples_columns[N_RATE] = {
	[RATE_RUN] = {"run", "RUN", COLUMN_LABEL, 0},
	[RATE_RATE] = {"rate", "SAMPLES/S", COLUMN_NUMBER, 0},
	[RATE_LOW] = {"rate_low", "FROM", COLUMN_NUMBER, 2},
	[RATE_HIGH] = {"rate_high", "TO (95 %)", COLUMN_NUMBER, 2},
	[RATE_ITERATIONS] = {"iterations", "ITERATIONS", COLUMN_WHOLE, 3},
	[RATE_SECONDS] = {"seconds", "TOOK", COLUMN_SECONDS, 4},
	[RATE_CACHED] = {"cached_at_start", "CACHED BEFORE", COLUMN_RATIO, 1},
};

static struct table *rates_table(const struct stall_runs *runs, const struct column *columns)
{
	struct table *table = NULL;
	if (table_new(columns, N_RATE, &table) < 0) {
		return NULL;
	}
	for (size_t i = 0; i < N_TRIALS; i++) {
		const struct trial *p = &runs->trials[shown[i]];
		if (!isfinite(p->rate.rate.value) || table_row(table) < 0) {
			continue;
		}
		table_text(table, RATE_RUN, trial_name(shown[i]));
		table_number(table, RATE_RATE, p->rate.rate.value);
		table_number(table, RATE_LOW, p->rate.rate.low);
		table_number(table, RATE_HIGH, p->rate.rate.high);
		table_number(table, RATE_ITERATIONS, (double)p->rate.iterations);
		table_number(table, RATE_SECONDS, p->seconds);
		table_number(table, RATE_CACHED, runs->cached[shown[i]]);
	}
	return table;
}

static void print_rates(const struct stall_runs *runs)
{
	struct column columns[N_RATE];
	memcpy(columns, samples_columns, sizeof(columns));
	if (!runs->trials[TRIAL_WARM].rate.of_samples) {
		columns[RATE_RATE].title = "ITERATIONS/S";
	}
	struct table *table = rates_table(runs, columns);
	struct table_style style = table_style_for(stdout);
	if (table) {
		table_print(table, stdout, &style);
	}
	table_free(table);
}

// Stalls ----------------------------------------------------------------------------------------

struct saying {
	const char *name;
	const char *of; // what it is a share of
	const char *means;
	const char *slow; // the runs, in which the first should be the slower one
	const char *fast;
};

static void print_interval(const struct estimate *stall)
{
	char low[32], high[32];
	if (isfinite(stall->low)) {
		printf(" (95 %%: %s to %s)", text_percent(low, sizeof(low), stall->low),
			text_percent(high, sizeof(high), stall->high));
	}
}

static void print_stall(
	const struct saying *says, const struct estimate *stall, const char *missing)
{
	char value[32];
	printf("%-11s  ", says->name);
	if (!isfinite(stall->value)) {
		printf("missing: %s\n", missing ? missing : "a rate is missing");
		return;
	}
	text_percent(value, sizeof(value), fabs(stall->value));
	if (stall->value < 0) {
		printf("none found, the %s run was %s faster than the %s run", says->slow, value,
			says->fast);
	} else {
		printf("%s of %s", value, says->of);
	}
	print_interval(stall);
	if (stall_is_sure(stall)) {
		printf(": %s\n", says->means);
	} else if (isfinite(stall->low)) {
		printf(": less than %s cannot be told from noise\n",
			text_percent(value, sizeof(value), stall_noise(stall)));
	} else {
		puts(": too few iterations to tell it from noise");
	}
}

static const char *first_missing(const struct stall_runs *runs, enum trial_kind kind)
{
	return runs->missing[kind] ? runs->missing[kind] : runs->missing[TRIAL_WARM];
}

void advise_stalls_print(const struct stall_runs *runs)
{
	static const struct saying prep = {"prep stall", "the time, data cached",
		"the job waits for batches to be prepared", "warm", "compute"};
	static const struct saying fetch = {"fetch stall", "the time, data on storage",
		"the job waits for storage", "cold", "warm"};
	char bytes[32], files[32];
	print_rates(runs);
	putchar('\n');
	print_stall(&prep, &runs->stalls.prep, first_missing(runs, TRIAL_COMPUTE));
	print_stall(&fetch, &runs->stalls.fetch, first_missing(runs, TRIAL_COLD));
	if (runs->stalls.contention) {
		puts("note         a run with more to do was faster: the machine was busy with "
		     "something else; intervals allow for that");
	}
	if (runs->dataset.n > 0) {
		printf("data         %s in %s file%s%s\n",
			text_bytes(bytes, sizeof(bytes), (double)runs->dataset.bytes),
			text_count(files, sizeof(files), runs->dataset.n),
			runs->dataset.n > 1 ? "s" : "",
			runs->dataset.too_many ? " (there are more)" : "");
	}
	if (runs->trials[TRIAL_COMPUTE].edited) {
		puts("note         the job edits its batches in place: in the compute run each was "
		     "copied, which is in its time");
	}
}

// JSON ------------------------------------------------------------------------------------------

static json_t *estimate_json(const struct estimate *e, const char *missing)
{
	json_t *json = json_object();
	json_object_set_new(json, "value", json_from_number(e->value));
	json_object_set_new(json, "low", json_from_number(e->low));
	json_object_set_new(json, "high", json_from_number(e->high));
	json_object_set_new(json, "noise", json_from_number(stall_noise(e)));
	if (!isfinite(e->value)) {
		json_object_set_new(json, "missing", json_from_text(missing));
	}
	return json;
}

json_t *advise_stalls_json(const struct stall_runs *runs)
{
	json_t *json = json_object(), *stalls = json_object(), *data = json_object();
	struct table *table = rates_table(runs, samples_columns);
	json_object_set_new(json, "unit",
		json_string(
			runs->trials[TRIAL_WARM].rate.of_samples ? "samples/s" : "iterations/s"));
	json_object_set_new(json, "runs", table ? table_to_json(table) : json_null());
	table_free(table);
	json_object_set_new(stalls, "prep",
		estimate_json(&runs->stalls.prep, first_missing(runs, TRIAL_COMPUTE)));
	json_object_set_new(stalls, "fetch",
		estimate_json(&runs->stalls.fetch, first_missing(runs, TRIAL_COLD)));
	json_object_set_new(stalls, "contention", json_boolean(runs->stalls.contention));
	json_object_set_new(json, "stalls", stalls);
	json_object_set_new(data, "files", json_integer((json_int_t)runs->dataset.n));
	json_object_set_new(data, "bytes", json_integer((json_int_t)runs->dataset.bytes));
	json_object_set_new(json, "data", data);
	json_object_set_new(
		json, "batches_edited_in_place", json_boolean(runs->trials[TRIAL_COMPUTE].edited));
	return json;
}
