// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// "some avg10=3.51 avg60=2.58 avg300=0.94 total=17824653" (Documentation/accounting/psi.rst). Only
// the totals are taken: averages are analysis.

#include "record/host/pressure.h"

#include <errno.h>
#include <string.h>

static int64_t find_total(struct cursor line)
{
	struct cursor word;
	int64_t total;
	while (cursor_word(&line, &word)) {
		if (cursor_literal(&word, "total=") && word.at < word.end && *word.at != ' ' &&
			cursor_i64(&word, &total) && total >= 0) {
			return total;
		}
	}
	return KEYED_ABSENT;
}

int pressure_parse(struct cursor text, struct pressure *ret)
{
	struct pressure p = {KEYED_ABSENT, KEYED_ABSENT};
	struct cursor line;
	while (cursor_line(&text, &line)) {
		if (cursor_literal(&line, "some ")) {
			p.some_us = find_total(line);
		} else if (cursor_literal(&line, "full ")) {
			p.full_us = find_total(line);
		}
	}
	if (p.some_us == KEYED_ABSENT && p.full_us == KEYED_ABSENT) {
		return -EBADMSG;
	}
	*ret = p;
	return 0;
}

const char *pressure_reason(int error)
{
	switch (error) {
	case ENOENT:
		// Newer kernels that are booted with psi=0 do not even have the files.
		return "this kernel keeps no pressure; the boot option psi=1 would switch it on, "
		       "where it has it (Linux 4.20, CONFIG_PSI)";
	case EOPNOTSUPP:
		return "pressure is switched off in this kernel; the boot option psi=1 would "
		       "switch it on";
	default:
		return strerrordesc_np(error);
	}
}
