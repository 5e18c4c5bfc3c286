// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Findings of a run file, from which a digest is made: a line for each row, with the number of its
// table, and then, behind tabs, name, number and text.

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "study/digest.h"

static void check(bool holds)
{
	if (!holds) {
		abort();
	}
}

static void add_line(struct findings *f, char *line)
{
	char *name = strchr(line, '\t'), *number = name ? strchr(name + 1, '\t') : NULL;
	char *text = number ? strchr(number + 1, '\t') : NULL;
	if (!number) {
		return;
	}
	*name = *number = '\0';
	if (text) {
		*text++ = '\0';
	}
	check(findings_add(f, (enum findings_table)((unsigned)line[0] % 3), name + 1, text,
		      number[1] ? strtod(number + 1, NULL) : NAN) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct findings findings = {0};
	struct digest run;
	_cleanup_free_ char *lines = strndup((const char *)data, size);
	check(lines);
	char *rest = lines;
	for (char *line; rest && (line = strsep(&rest, "\n"));) {
		add_line(&findings, line);
	}
	findings_sort(&findings);
	if (digest_of(&findings, &run) < 0) {
		return 0;
	}
	size_t length = strlen(run.host) + strlen(run.outcome_text) + strlen(run.memory_kind) +
	                strlen(run.verdict) + strlen(run.headline) +
	                (run.notice ? strlen(run.notice) : 0);
	for (size_t i = 0; i < run.n_labels; i++) {
		length += strlen(run.labels[i].name) + strlen(run.labels[i].value);
	}
	check(length <= size && run.outcome < N_OUTCOMES && strlen(run.command) <= 8 * size + 8);
	for (size_t i = 0; i < N_MEASURES; i++) {
		check(!isinf(run.measures[i]) &&
			(!run.reasons[i] || strlen(run.reasons[i]) <= size));
	}
	digest_label(&run, "machine");
	digest_done(&run);
	return 0;
}
