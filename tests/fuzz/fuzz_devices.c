// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// diskstats, net/dev and stat of the machine, line by line; and rows of keys.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "machine/procfs.h"
#include "record/source/keyed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A view must lie within what it was cut from.
static void check_view(struct cursor view, struct cursor whole)
{
	if (view.at < whole.at || view.end > whole.end || view.at >= view.end) {
		abort();
	}
}

static void check_keys(struct cursor text)
{
	enum { SUM, TICKS, N };
	static const struct metric metrics[N] = {
		{"sum", METRIC_GAUGE, "By", 1024, ""}, {"ticks", METRIC_COUNTER, "s", 1e-6, ""}};
	static const struct keyed_row sums[] = {{"cpu", KEYED_ADD, SUM},
		{"ctxt", KEYED_SUBTRACT, SUM}, {"processes", KEYED_ADD_KNOWN, SUM},
		{"btime", KEYED_ELSE, SUM}};
	static const struct keyed_row ticks[] = {{NULL, KEYED_ADD, TICKS}};
	static const struct keyed_file files[] = {
		{"", sums, ARRAY_LENGTH(sums), KEYED_PLAIN}, {"", ticks, 1, KEYED_TICKS}};
	int64_t values[N] = {VALUE_MISSING, VALUE_MISSING};
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		(void)keyed_values(&files[i], text, metrics, values);
	}
	for (size_t i = 0; i < N; i++) {
		if (values[i] < 0 && values[i] != VALUE_MISSING) {
			abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor text = cursor_of((const char *)data, size), line;
	struct system_stat stat;
	(void)system_stat_parse(text, &stat);
	check_keys(text);
	while (cursor_line(&text, &line)) {
		struct disk_line disk;
		struct interface_line interface;
		if (disk_line_parse(line, &disk) == 0) {
			check_view(disk.name, line);
		}
		if (interface_line_parse(line, &interface) == 0) {
			check_view(interface.name, line);
		}
	}
	return 0;
}
