// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// make_run OUT SECONDS [INTERVAL [MAX_SIZE [ITERATIONS [WORKERS [RANKS [OWN]]]]]]: writes a
// synthetic run, to look at and to test with. A SECONDS that begins with '+' leaves it without an
// end.

#include <stdio.h>
#include <stdlib.h>

#include "../unit/synthetic_run.h"
#include "base/parse.h"

int main(int argc, char **argv)
{
	struct error e = {0};
	int64_t seconds;
	if (argc < 3) {
		fprintf(stderr, "Usage: make_run OUT [+]SECONDS [INTERVAL [MAX_SIZE [ITERATIONS "
				"[WORKERS [RANKS [OWN]]]]]]\n");
		return 2;
	}
	struct synthetic_run run = {.unfinished = argv[2][0] == '+'};
	int r = parse_integer(argv[2] + run.unfinished, 1, 1000000, &seconds, &e);
	run.seconds = (double)seconds;
	if (r == 0 && argc > 3) {
		r = parse_duration(argv[3], &run.interval_ns, &e);
	}
	if (r == 0 && argc > 4) {
		r = parse_size(argv[4], &run.max_bytes, &e);
	}
	int64_t iterations = 0, workers = 0, ranks = 0, own = 0;
	if (r == 0 && argc > 5) {
		r = parse_integer(argv[5], 0, 10000000, &iterations, &e);
	}
	if (r == 0 && argc > 6) {
		r = parse_integer(argv[6], 0, 1000, &workers, &e);
	}
	if (r == 0 && argc > 7) {
		r = parse_integer(argv[7], 0, 1000, &ranks, &e);
	}
	if (r == 0 && argc > 8) {
		r = parse_integer(argv[8], 0, 30, &own, &e);
	}
	run.own = (unsigned)own;
	run.iterations = (unsigned)iterations;
	run.workers = (unsigned)workers;
	run.ranks = (unsigned)ranks;
	if (r == 0) {
		r = synthetic_run_write(argv[1], &run, &e);
	}
	if (r < 0) {
		fprintf(stderr, "make_run: %s\n", e.text);
		return 1;
	}
	return 0;
}
