// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which quota applies to the job. Of several levels the one counts that throttles: an outer one
// that others share can be used up before the tighter one inside it. Where none throttles it is the
// tightest.

#include "record/source/cpu_quota.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "record/host/keyed.h"
#include "record/job/tree.h"
#include "record/source/sink.h"
#include "trace/codec.h"

#define CANDIDATES 16u // processes whose cgroup is read
#define TEXT_MAX 4096u // of proc/PID/cgroup
#define FIRST_NS (200 * NS_PER_MS)
#define RARELY_NS (10 * NS_PER_S)
#define THROTTLES 0.1 // of the periods: less is a burst that any quota cuts

struct candidate {
	pid_t pid;
	uint64_t cpu_ns;
	char *text; // proc/PID/cgroup; NULL: it could not be read
};

void cpu_quota_init(struct cpu_quota *q, int root_fd, struct tree *tree)
{
	*q = (struct cpu_quota){.root_fd = root_fd,
		.tree = tree,
		.cpus = NAN,
		.least_cpus = NAN,
		.stat = HOST_FILE_CLOSED};
}

void cpu_quota_set_base(struct cpu_quota *q, const struct cgroup_places *places)
{
	const struct cgroup_place *place = cgroup_place_of(places, CGROUP_CPU);
	free(q->base);
	q->base = place->version ? strdup(place->path) : NULL;
}

static void drop_levels(struct cpu_quota *q)
{
	for (size_t i = 0; i < q->n_levels; i++) {
		free(q->levels[i].quota.directory);
	}
	q->n_levels = 0;
}

void cpu_quota_done(struct cpu_quota *q)
{
	drop_levels(q);
	host_file_close(&q->stat);
	cgroup_places_done(&q->places);
	free(q->base);
	free(q->text);
	free(q->directory);
}

// The cgroup of the job ---------------------------------------------------------------------------

// 0 where it has no clock of its own (tree.c).
static uint64_t cpu_time_of(const struct process *p)
{
	struct timespec t;
	return p->cpu_clock != CLOCK_REALTIME && clock_gettime(p->cpu_clock, &t) == 0
	               ? (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec
	               : 0;
}

// Those that used the most CPU time, the most first. One that has ended is in no cgroup any more,
// and the kernel says the root.
static size_t find_candidates(const struct tree *tree, struct candidate *ret)
{
	size_t n_members, n = 0;
	struct process *const *members = tree_members(tree, &n_members);
	for (size_t i = 0; i < n_members; i++) {
		struct candidate c = {members[i]->pid, cpu_time_of(members[i]), NULL};
		size_t at = n;
		while (at > 0 && ret[at - 1].cpu_ns < c.cpu_ns) {
			at--;
		}
		if (at == CANDIDATES || members[i]->zombie) {
			continue;
		}
		n += n < CANDIDATES;
		memmove(&ret[at + 1], &ret[at], (n - at - 1) * sizeof(*ret));
		ret[at] = c;
	}
	return n;
}

static char *read_cgroup_text(int root_fd, pid_t pid)
{
	char path[32], buffer[TEXT_MAX];
	struct cursor text;
	snprintf(path, sizeof(path), "proc/%d/cgroup", (int)pid);
	return host_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL) == 0
	               ? strndup(text.at, (size_t)(text.end - text.at))
	               : NULL;
}

// What most of the CPU time of the candidates has in proc/PID/cgroup: borrowed from one of them. Of
// captured processes, whose clocks are not known, what most of them have.
static const char *heaviest_text(const struct candidate *candidates, size_t n)
{
	const char *heaviest = NULL;
	uint64_t most = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t sum = 0;
		for (size_t k = 0; candidates[i].text && k < n; k++) {
			if (candidates[k].text &&
				strcmp(candidates[i].text, candidates[k].text) == 0) {
				sum += candidates[k].cpu_ns + 1;
			}
		}
		if (sum > most) {
			most = sum;
			heaviest = candidates[i].text;
		}
	}
	return heaviest;
}

// Takes over the places of the text; those of the last look where they cannot be found.
static void take_text(struct cpu_quota *q, const char *text)
{
	struct host_file mounts_file = HOST_FILE_CLOSED;
	struct cursor mounts;
	char *copy = q->text && strcmp(q->text, text) == 0 ? NULL : strdup(text);
	if (copy && host_file_open(&mounts_file, q->root_fd, "proc/self/mountinfo", NULL) == 0 &&
		host_file_read_to_end(&mounts_file, &mounts) == 0) {
		cgroup_places_done(&q->places);
		cgroup_places_parse(cursor_of(copy, strlen(copy)), mounts, &q->places);
		q->found = true;
		free(q->text);
		q->text = take_pointer(copy);
	}
	free(copy);
	host_file_close(&mounts_file);
}

// False where the job has no process now.
static bool find_cgroup(struct cpu_quota *q)
{
	struct candidate candidates[CANDIDATES] = {0};
	size_t n = q->tree ? find_candidates(q->tree, candidates) : 0;
	for (size_t i = 0; i < n; i++) {
		candidates[i].text = read_cgroup_text(q->root_fd, candidates[i].pid);
	}
	const char *text = heaviest_text(candidates, n);
	if (text) {
		take_text(q, text);
	}
	for (size_t i = 0; i < n; i++) {
		free(candidates[i].text);
	}
	return n > 0;
}

// Its quotas --------------------------------------------------------------------------------------

static struct cpu_quota_counts parse_counts(struct cursor text)
{
	enum { PERIODS, THROTTLED, TIME_US, TIME_NS, N };
	static const char *const keys[N] = {
		"nr_periods", "nr_throttled", "throttled_usec", "throttled_time"};
	int64_t values[N];
	keyed_parse(text, keys, N, values);
	if (values[TIME_US] == KEYED_ABSENT && values[TIME_NS] != KEYED_ABSENT) { // v1
		values[TIME_US] = values[TIME_NS] / (int64_t)NS_PER_US;
	}
	return (struct cpu_quota_counts){values[PERIODS], values[THROTTLED], values[TIME_US]};
}

static struct cpu_quota_counts read_counts(int root_fd, const char *directory)
{
	char buffer[1024];
	struct cursor text = cursor_of("", 0);
	(void)cgroup_read(root_fd, directory, "cpu.stat", buffer, sizeof(buffer), &text, NULL);
	return parse_counts(text);
}

static int64_t growth(int64_t now, int64_t before)
{
	return now == VALUE_MISSING || before == VALUE_MISSING || now < before ? 0 : now - before;
}

static void find_levels(struct cpu_quota *q, const struct cgroup_places *places)
{
	struct cgroup_quota quotas[CPU_QUOTA_LEVELS];
	struct cpu_quota_level levels[CPU_QUOTA_LEVELS];
	size_t n = cgroup_cpu_quotas(q->root_fd, places, quotas, CPU_QUOTA_LEVELS);
	q->least_cpus = NAN;
	for (size_t i = 0; i < n; i++) {
		levels[i] = (struct cpu_quota_level){
			quotas[i], read_counts(q->root_fd, quotas[i].directory), 0};
		q->least_cpus = fmin(q->least_cpus, quotas[i].cpus);
		for (size_t k = 0; k < q->n_levels; k++) {
			const struct cpu_quota_level *before = &q->levels[k];
			if (strcmp(before->quota.directory, quotas[i].directory) == 0) {
				int64_t all = growth(levels[i].last.periods, before->last.periods);
				int64_t cut = growth(
					levels[i].last.throttled, before->last.throttled);
				levels[i].share = all > 0 ? (double)cut / (double)all : 0;
			}
		}
	}
	drop_levels(q);
	memcpy(q->levels, levels, n * sizeof(*levels));
	q->n_levels = n;
}

// The one that throttles most, else the tightest; NULL where no quota applies.
static const struct cpu_quota_level *choose_level(const struct cpu_quota *q)
{
	const struct cpu_quota_level *chosen = NULL;
	for (size_t i = 0; i < q->n_levels; i++) {
		const struct cpu_quota_level *level = &q->levels[i];
		double share = level->share >= THROTTLES ? level->share : 0;
		double best = chosen && chosen->share >= THROTTLES ? chosen->share : 0;
		if (!chosen || share > best ||
			(share == best && level->quota.cpus < chosen->quota.cpus)) {
			chosen = level;
		}
	}
	return chosen;
}

// Whether the directory is the base or above it.
static bool is_around(const char *directory, const char *base)
{
	size_t length = strlen(directory);
	return base && strncmp(directory, base, length) == 0 &&
	       (base[length] == '/' || !base[length]);
}

static void tell(const struct cpu_quota *q, struct sink *sink, int64_t job, uint64_t now_ns)
{
	if (sink && q->directory) {
		sink_event(sink, now_ns, "cpu_quota", job, "%.4g CPUs, set %s by cgroup /%s",
			q->cpus, q->own ? "inside the job" : "around strain", q->directory);
	} else if (sink) {
		sink_event(sink, now_ns, "cpu_quota", job, "no CPU quota applies any more");
	}
}

// Counts of the new level begin where those of the last one were.
static void switch_to(struct cpu_quota *q, const struct cpu_quota_level *level)
{
	char path[PATH_MAX];
	host_file_close(&q->stat);
	free(q->directory);
	q->directory = level ? strdup(level->quota.directory) : NULL;
	q->own = q->directory && !is_around(q->directory, q->base);
	if (q->directory &&
		snprintf(path, sizeof(path), "%s/cpu.stat", q->directory) < (int)sizeof(path)) {
		(void)host_file_open(&q->stat, q->root_fd, path, NULL);
	}
}

static int64_t gap(int64_t last, int64_t now)
{
	return last == VALUE_MISSING || now == VALUE_MISSING ? 0 : last - now;
}

// Whether another level, or another quota of it, applies than before.
static bool apply(struct cpu_quota *q, const struct cpu_quota_level *level)
{
	bool had = q->directory != NULL;
	bool other = !level != !had || (level && strcmp(level->quota.directory, q->directory) != 0);
	bool changed = other || (level && level->quota.cpus != q->cpus);
	bool counted = q->last.periods > 0;
	if (other) {
		switch_to(q, level);
	}
	if (other && level && counted) {
		q->offset = (struct cpu_quota_counts){gap(q->last.periods, level->last.periods),
			gap(q->last.throttled, level->last.throttled),
			gap(q->last.throttled_us, level->last.throttled_us)};
	}
	q->cpus = level ? level->quota.cpus : NAN;
	return changed;
}

static bool is_due(struct cpu_quota *q, uint64_t now_ns)
{
	if (now_ns < q->next_ns) {
		return false;
	}
	if (!find_cgroup(q)) {
		return false;
	}
	q->first_ns = q->first_ns ? q->first_ns : now_ns;
	uint64_t age_ns = now_ns - q->first_ns;
	q->next_ns = now_ns + (age_ns < FIRST_NS           ? FIRST_NS
				      : age_ns < RARELY_NS ? age_ns
							   : RARELY_NS);
	return true;
}

bool cpu_quota_look(struct cpu_quota *q, const struct cgroup_places *places, struct sink *sink,
	int64_t job, uint64_t now_ns)
{
	if (!places && !is_due(q, now_ns)) {
		return false;
	}
	if (places || q->found) {
		find_levels(q, places ? places : &q->places);
		if (apply(q, choose_level(q))) {
			tell(q, sink, job, now_ns);
		}
	}
	return true;
}

static int64_t added(int64_t value, int64_t offset)
{
	return value == VALUE_MISSING ? VALUE_MISSING : value + offset;
}

bool cpu_quota_read(struct cpu_quota *q, struct cpu_quota_counts *ret)
{
	struct cursor text;
	if (q->stat.fd < 0 || host_file_read(&q->stat, &text) < 0) {
		return false; // its cgroup may be gone: the next look tells
	}
	struct cpu_quota_counts counts = parse_counts(text);
	q->last = (struct cpu_quota_counts){added(counts.periods, q->offset.periods),
		added(counts.throttled, q->offset.throttled),
		added(counts.throttled_us, q->offset.throttled_us)};
	*ret = q->last;
	return true;
}
