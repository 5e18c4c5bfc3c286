// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// bench_trace [MINUTES [ENTITIES]]: what writing and compacting cost: 64 processes, two groups of
// six metrics each, 100 rows a second. CPU time is given as a share of one core over the time that
// the run would have lasted. Half of the processes are idle, as loader workers and helpers are.

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "runfile/writer.h"

enum { N_METRICS = 6, RATE = 100, N_GROUPS = 2 };

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

struct bench {
	struct writer *writer;
	int64_t n_entities;
	uint64_t random;
	int64_t totals[N_GROUPS][N_METRICS];
	int64_t t[RATE];
	int64_t values[N_METRICS][RATE];
};

// Counters of a busy process: microseconds that vary, kernel ticks, pages; a gauge; a constant.
static void fill_row(struct bench *b, int group, int row, bool busy)
{
	int64_t *total = b->totals[group];
	int64_t noise = (int64_t)(next_random(&b->random) % 400);
	total[0] += busy ? 9600 + noise : 0;
	total[1] += busy && noise < 380 ? 10000 : 0;
	total[2] += busy ? (noise / 100) * 4096 : 0;
	total[3] += busy ? noise / 50 : 0;
	for (int i = 0; i < 4; i++) {
		b->values[i][row] = total[i];
	}
	b->values[4][row] = 900000000 + (busy ? (noise / 20) * 4096 : 0);
	b->values[5][row] = 6;
}

static int put_second(struct bench *b, int64_t second)
{
	uint32_t ids[N_METRICS];
	int64_t *columns[N_METRICS];
	for (int row = 0; row < RATE; row++) {
		b->t[row] = second * 1000000 + row * 10000 +
		            (int64_t)(next_random(&b->random) % 120);
	}
	for (int64_t entity = 1; entity <= b->n_entities; entity++) {
		for (uint32_t group = 0; group < N_GROUPS; group++) {
			for (uint32_t i = 0; i < N_METRICS; i++) {
				ids[i] = group * N_METRICS + i + 1;
				columns[i] = b->values[i];
			}
			for (int row = 0; row < RATE; row++) {
				fill_row(b, (int)group, row, entity % 2);
			}
			struct block block = {RATE, N_METRICS, ids, NULL, b->t, columns};
			int r = writer_put_block(b->writer, entity, "processes", &block);
			if (r < 0) {
				return r;
			}
		}
	}
	return 0;
}

static double cpu_s(void)
{
	return (double)clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

static int run(struct bench *b, int64_t minutes, struct error *e)
{
	double put = 0, compact = 0;
	for (int64_t second = 0; second < minutes * 60; second++) {
		double start = cpu_s();
		int r = put_second(b, second);
		r = r == 0 ? writer_commit(b->writer, e) : r;
		put += cpu_s() - start;
		start = cpu_s();
		if (r == 0 && second % 60 == 59) {
			r = writer_compact(b->writer, (second + 1) * 1000000000, e);
		}
		compact += cpu_s() - start;
		if (r < 0) {
			return r;
		}
	}
	int r = writer_finish(b->writer, minutes * 60000000000, 0, e);
	double values = (double)(minutes * 60 * RATE * N_GROUPS * N_METRICS * b->n_entities);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("put and commit %.3f %% of a core, compact %.3f %%; %.2f byte per value; "
	       "%.1f MiB resident at most\n",
		100 * put / (double)(minutes * 60), 100 * compact / (double)(minutes * 60),
		(double)writer_file_bytes(b->writer) / values, (double)usage.ru_maxrss / 1024);
	return r;
}

int main(int argc, char **argv)
{
	struct error e = {0};
	struct bench b = {.n_entities = 64, .random = 88172645463325252};
	int64_t minutes = 5;
	char path[] = "/tmp/strain-bench-XXXXXX";
	if ((argc > 1 && parse_integer(argv[1], 1, 10000, &minutes, &e) < 0) ||
		(argc > 2 && parse_integer(argv[2], 1, 100000, &b.n_entities, &e) < 0)) {
		fprintf(stderr, "bench_trace: %s\n", e.text);
		return 2;
	}
	_cleanup_close_ int fd = mkstemp(path);
	struct writer_options options = {.replace = true};
	int r = fd < 0 ? -1 : writer_create(path, &options, &b.writer, &e);
	if (r == 0) {
		r = run(&b, minutes, &e);
	}
	if (r < 0) {
		fprintf(stderr, "bench_trace: %s\n", e.text);
	}
	writer_free(b.writer);
	unlink(path);
	return r < 0;
}
