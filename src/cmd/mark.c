// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain mark: writes marks from a shell script. Each call is a separate process. Its marks belong
// to its parent, the shell, whose ring the calls use in turn.

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "strain/marker.h"

enum { ARGUMENTS_MAX = 3 };

struct arguments {
	char *words[ARGUMENTS_MAX];
	int n;
};

struct mark {
	const char *name;
	int64_t number;
	int64_t samples;
	double value;
};

static void put_begin(struct strain_marker *marker, const struct mark *mark)
{
	strain_marker_begin(marker, mark->name);
}

static void put_end(struct strain_marker *marker, const struct mark *mark)
{
	(void)mark;
	strain_marker_end(marker);
}

static void put_point(struct strain_marker *marker, const struct mark *mark)
{
	strain_marker_point(marker, mark->name, mark->value);
}

static void put_epoch(struct strain_marker *marker, const struct mark *mark)
{
	strain_marker_put(marker, STRAIN_MARK_EPOCH, 0, 0, mark->number, 0);
}

static void put_epoch_end(struct strain_marker *marker, const struct mark *mark)
{
	(void)mark;
	strain_marker_put(marker, STRAIN_MARK_EPOCH_END, 0, 0, -1, 0);
}

static void put_iteration(struct strain_marker *marker, const struct mark *mark)
{
	strain_marker_put(
		marker, STRAIN_MARK_ITERATION, 0, 0, mark->number, (uint64_t)mark->samples);
}

static int read_name(struct mark *mark, const struct arguments *a, struct error *e)
{
	mark->name = a->words[1];
	return *mark->name ? 0 : error_set(e, EINVAL, "expected a name, found ''");
}

static int read_point(struct mark *mark, const struct arguments *a, struct error *e)
{
	char *end = NULL;
	mark->value = a->n > 2 ? strtod(a->words[2], &end) : NAN;
	if (a->n > 2 && (end == a->words[2] || *end)) {
		return error_set(e, EINVAL, "expected a number, found '%s'", a->words[2]);
	}
	return read_name(mark, a, e);
}

static int read_numbers(struct mark *mark, const struct arguments *a, struct error *e)
{
	int r = parse_integer(a->words[1], 0, INT64_MAX, &mark->number, e);
	return r == 0 && a->n > 2 ? parse_integer(a->words[2], 1, UINT32_MAX, &mark->samples, e)
	                          : r;
}

static int read_nothing(struct mark *mark, const struct arguments *a, struct error *e)
{
	(void)mark;
	(void)a;
	(void)e;
	return 0;
}

static const struct verb {
	const char *name;
	int least, most; // number of words, with the verb
	const char *usage;
	int (*read)(struct mark *mark, const struct arguments *a, struct error *e);
	void (*put)(struct strain_marker *marker, const struct mark *mark);
} verbs[] = {
	{"begin", 2, 2, "begin NAME", read_name, put_begin},
	{"end", 1, 2, "end [NAME]", read_nothing, put_end},
	{"point", 2, 3, "point NAME [VALUE]", read_point, put_point},
	{"epoch", 2, 2, "epoch NUMBER", read_numbers, put_epoch},
	{"epoch-end", 1, 1, "epoch-end", read_nothing, put_epoch_end},
	{"iteration", 2, 3, "iteration NUMBER [SAMPLES]", read_numbers, put_iteration},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	(void)argument;
	(void)state;
	return key == ARGP_KEY_ARG ? 0 : ARGP_ERR_UNKNOWN;
}

// One word too many is counted, but not kept: no verb takes so many.
static void read_words(struct arguments *a, int n, char **words)
{
	for (int i = 0; i < n && i < ARGUMENTS_MAX; i++) {
		a->words[i] = words[i];
	}
	a->n = n;
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(verbs); i++) {
		if (strcmp(verbs[i].name, name) == 0) {
			return &verbs[i];
		}
	}
	return NULL;
}

// Opens the shell's ring, which may be new. Closing the descriptor releases the lock.
static struct strain_ring *open_ring(int fd, pid_t shell)
{
	struct stat status;
	if (flock(fd, LOCK_EX) < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		return NULL;
	}
	if (status.st_size == 0) {
		struct strain_ring *ring = strain_ring_map(fd);
		if (ring) {
			strain_ring_init(ring, (uint32_t)shell, (uint32_t)shell);
		}
		return ring;
	}
	if (status.st_size != STRAIN_RING_BYTES) {
		errno = EBADMSG;
		return NULL;
	}
	void *at = mmap(NULL, STRAIN_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct strain_ring *ring = at == MAP_FAILED ? NULL : at;
	if (ring && ring->magic == 0) { // the process that created it was killed
		strain_ring_init(ring, (uint32_t)shell, (uint32_t)shell);
	}
	return ring;
}

static int put_mark(const char *directory, const struct verb *verb, const struct mark *mark)
{
	char name[32];
	pid_t shell = getppid();
	snprintf(name, sizeof(name), "ring-shell-%d", (int)shell);
	_cleanup_close_ int fd = strain_marker_open(directory, name, O_RDWR);
	struct strain_ring *ring = fd < 0 ? NULL : open_ring(fd, shell);
	if (!ring) {
		return -1;
	}
	struct strain_marker marker = {
		.ring = ring, .written = ring->written, .depth = ring->depth};
	verb->put(&marker, mark);
	ring->depth = marker.depth;
	munmap(ring, STRAIN_RING_BYTES);
	return 0;
}

int command_mark(int argc, char **argv)
{
	static const struct argp argp = {NULL, parse_option,
		"begin NAME\nend [NAME]\npoint NAME [VALUE]\nepoch NUMBER\nepoch-end\n"
		"iteration NUMBER [SAMPLES]",
		"Mark spans, values, epochs and iterations of a shell script in the run that "
		"records it. Outside of strain run it does nothing.",
		NULL, NULL, NULL};
	struct arguments a = {0};
	struct mark mark = {.number = -1, .samples = -1, .value = NAN};
	struct error e = {0};
	// The words are not options: a value can be -1.
	if (argc > 1 && argv[1][0] != '-') {
		read_words(&a, argc - 1, argv + 1);
	} else {
		reading_options(&argp, argc, argv, &a);
	}
	const struct verb *verb = a.n > 0 ? find_verb(a.words[0]) : NULL;
	if (!verb) {
		return command_usage("mark",
			"mark: expected begin, end, point, epoch, epoch-end or iteration%s%s%s",
			a.n > 0 ? ", found '" : "", a.n > 0 ? a.words[0] : "", a.n > 0 ? "'" : "");
	}
	if (a.n < verb->least || a.n > verb->most) {
		return command_usage("mark", "expected strain mark %s", verb->usage);
	}
	if (verb->read(&mark, &a, &e) < 0) {
		return command_usage("mark", "mark %s: %s", verb->name, e.text);
	}
	const char *directory = secure_getenv("STRAIN_MARKERS");
	if (directory && *directory && put_mark(directory, verb, &mark) < 0) {
		// A script must not fail because it cannot be measured.
		command_fail("mark: cannot mark: %s", strerrordesc_np(errno));
	}
	return STATUS_OK;
}
