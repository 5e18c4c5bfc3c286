// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's cgroup: exact CPU time, memory by use, storage, pressure; and the limits that apply to
// it, which cgroups above may set.
//
// Only a cgroup of the job's own tells anything about the job. Limits and throttling are read from
// the cgroup that sets them, even if others share it, because they slow the job in any case. The
// job may move into a cgroup that it creates, so the applicable quota is searched for while it
// runs.

#include "record/source/cgroup.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "machine/cgroup.h"
#include "machine/cgroupfs.h"
#include "machine/file.h"
#include "machine/procfs.h"
#include "machine/tree.h"
#include "record/sample/source.h"
#include "record/source/keyed.h"
#include "runfile/codec.h"

// Cpu quota ---------------------------------------------------------------------------------------
//
// Which quota applies to the job. Of several levels it is the one that throttles: an outer quota
// that others share can be used up before a tighter one inside it. If none throttles, it is the
// tightest.

#define CANDIDATES 16u // processes whose cgroup is read
#define TEXT_MAX 4096u // of proc/PID/cgroup
#define FIRST_NS (200 * NS_PER_MS)
#define RARELY_NS (10 * NS_PER_S)
#define THROTTLES 0.1 // of the periods: less is a burst that any quota would cut

struct candidate {
	pid_t pid;
	uint64_t cpu_ns;
	char *text; // proc/PID/cgroup; NULL: unreadable
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

// Cpu quota: the cgroup of the job ----------------------------------------------------------------

// Returns 0 if it has no clock of its own (tree.c).
static uint64_t cpu_time_of(const struct process *p)
{
	struct timespec t;
	return p->cpu_clock != CLOCK_REALTIME && clock_gettime(p->cpu_clock, &t) == 0
	               ? (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec
	               : 0;
}

// Finds the processes that used the most CPU time, the busiest first. An ended process is in no
// cgroup any more, and the kernel then reports the root.
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
	return file_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL) == 0
	               ? strndup(text.at, (size_t)(text.end - text.at))
	               : NULL;
}

// Finds the content of proc/PID/cgroup that has most of the candidates' CPU time, borrowed from one
// of them. For captured processes, whose clocks are unknown, the content that most of them have.
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

// Uses the places in the text; keeps those of the last search if they cannot be found.
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

// Returns false if the job has no process now.
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

// Cpu quota: its levels ---------------------------------------------------------------------------

static struct cpu_quota_counts parse_counts(struct cursor text)
{
	enum { PERIODS, THROTTLED, TIME_US, TIME_NS, N };
	static const char *const keys[N] = {
		"nr_periods", "nr_throttled", "throttled_usec", "throttled_time"};
	int64_t values[N];
	file_keys_parse(text, keys, N, values);
	if (values[TIME_US] == KEYED_ABSENT && values[TIME_NS] != KEYED_ABSENT) { // v1
		values[TIME_US] = values[TIME_NS] / (int64_t)NS_PER_US;
	}
	return (struct cpu_quota_counts){values[PERIODS], values[THROTTLED], values[TIME_US]};
}

static struct cpu_quota_counts read_counts(int root_fd, const char *directory)
{
	char buffer[1024];
	struct cursor text = cursor_of("", 0);
	(void)cgroupfs_read(root_fd, directory, "cpu.stat", buffer, sizeof(buffer), &text, NULL);
	return parse_counts(text);
}

static int64_t growth(int64_t now, int64_t before)
{
	return now == VALUE_MISSING || before == VALUE_MISSING || now < before ? 0 : now - before;
}

static void find_levels(struct cpu_quota *q, const struct cgroup_places *places)
{
	struct cgroup_limit quotas[CPU_QUOTA_LEVELS];
	struct cpu_quota_level levels[CPU_QUOTA_LEVELS];
	size_t n = cgroupfs_cpu_quotas(q->root_fd, places, quotas, CPU_QUOTA_LEVELS);
	q->least_cpus = NAN;
	for (size_t i = 0; i < n; i++) {
		levels[i] = (struct cpu_quota_level){
			quotas[i], read_counts(q->root_fd, quotas[i].directory), 0};
		q->least_cpus = fmin(q->least_cpus, quotas[i].value);
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

// Chooses the level that throttles most, else the tightest; NULL if no quota applies.
static const struct cpu_quota_level *choose_level(const struct cpu_quota *q)
{
	const struct cpu_quota_level *chosen = NULL;
	for (size_t i = 0; i < q->n_levels; i++) {
		const struct cpu_quota_level *level = &q->levels[i];
		double share = level->share >= THROTTLES ? level->share : 0;
		double best = chosen && chosen->share >= THROTTLES ? chosen->share : 0;
		if (!chosen || share > best ||
			(share == best && level->quota.value < chosen->quota.value)) {
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

// The counts of the new level continue those of the last one.
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

// Whether another level, or another quota of the same level, applies than before.
static bool apply(struct cpu_quota *q, const struct cpu_quota_level *level)
{
	bool had = q->directory != NULL;
	bool other = !level != !had || (level && strcmp(level->quota.directory, q->directory) != 0);
	bool changed = other || (level && level->quota.value != q->cpus);
	bool counted = q->last.periods > 0;
	if (other) {
		switch_to(q, level);
	}
	if (other && level && counted) {
		q->offset = (struct cpu_quota_counts){gap(q->last.periods, level->last.periods),
			gap(q->last.throttled, level->last.throttled),
			gap(q->last.throttled_us, level->last.throttled_us)};
	}
	q->cpus = level ? level->quota.value : NAN;
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
		return false; // its cgroup may be gone; the next search will show
	}
	struct cpu_quota_counts counts = parse_counts(text);
	q->last = (struct cpu_quota_counts){added(counts.periods, q->offset.periods),
		added(counts.throttled, q->offset.throttled),
		added(counts.throttled_us, q->offset.throttled_us)};
	*ret = q->last;
	return true;
}

// Out of memory -----------------------------------------------------------------------------------
//
// The kernel counts kills in the cgroup of the victim: the job's own, else the one that the job
// shares. The limit that caused them can be that of any cgroup above: two steps of a job of Slurm
// may reach the job's together, and neither its own. Each counts how often it reached its limit (v2
// also those below, so that the innermost is the one); if no count has changed, the machine itself
// had no memory left.
//
// v1 can limit memory and swap together (memory.memsw), and checks that limit first: where both are
// the same (Slurm's ConstrainSwapSpace), the count of the memory alone does not change. Linux 6.18
// counts neither, so the high-water mark tells whether the limit was reached. The page cache counts
// too: a job that has filled it reached its limit before, and a kill because the machine's memory
// was used up is then taken for one at the limit.

#define NEAR_LIMIT (INT64_C(2) << 20) // a huge page, the largest that can be refused

#define LIMIT_LEVELS 8 // of memory; further ones are left out

struct out_of_memory {
	int root_fd;
	bool can_limit_swap; // memory and swap together: v1
	struct host_file kills_file;
	const char *hits_key; // in the files of hits; NULL: they have only the number
	struct memory_level {
		struct cgroup_limit limit;
		struct host_file hits_file; // closed: there is none
		int64_t hits; // first value, or VALUE_MISSING
	} levels[LIMIT_LEVELS]; // the innermost first
	size_t n_levels;
	size_t tightest; // of the levels
	int64_t kills; // last value, or VALUE_MISSING
	bool shared; // the kills are of a cgroup that others share
};

static bool open_kills_in(struct host_file *f, int root_fd, const char *directory, const char *name)
{
	char path[PATH_MAX];
	return snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path) &&
	       host_file_open(f, root_fd, path, NULL) == 0;
}

// Reads the number after a key, or of a file that contains only a number.
static int64_t read_value(struct host_file *f, const char *key)
{
	struct cursor text;
	int64_t number;
	if (f->fd < 0 || host_file_read(f, &text) < 0) {
		return VALUE_MISSING;
	}
	if (key) {
		return file_keys_parse(text, &key, 1, &number) == 1 ? number : VALUE_MISSING;
	}
	return cursor_i64(&text, &number) ? number : VALUE_MISSING;
}

static int64_t read_kills(struct out_of_memory *o)
{
	return read_value(&o->kills_file, "oom_kill");
}

// Number of times that memory reached the tightest limit.
static int64_t out_of_memory_limit_hits(struct out_of_memory *o)
{
	return o->n_levels > 0 ? read_value(&o->levels[o->tightest].hits_file, o->hits_key)
	                       : VALUE_MISSING;
}

static int64_t read_number(int root_fd, const char *directory, const char *name)
{
	char buffer[64];
	struct cursor text;
	int64_t number;
	return cgroupfs_read(root_fd, directory, name, buffer, sizeof(buffer), &text, NULL) == 0 &&
	                       cursor_i64(&text, &number)
	               ? number
	               : VALUE_MISSING;
}

static void watch_limits(
	struct out_of_memory *o, int root_fd, int version, const struct cgroup_places *places)
{
	struct cgroup_limit limits[LIMIT_LEVELS];
	o->n_levels = cgroupfs_memory_limits(root_fd, places, limits, LIMIT_LEVELS);
	for (size_t i = 0; i < o->n_levels; i++) {
		struct memory_level *level = &o->levels[i];
		*level = (struct memory_level){limits[i], HOST_FILE_CLOSED, VALUE_MISSING};
		(void)open_kills_in(&level->hits_file, root_fd, limits[i].directory,
			version == 2 ? "memory.events" : "memory.failcnt");
		level->hits = read_value(&level->hits_file, o->hits_key);
		o->tightest = limits[i].value < limits[o->tightest].value ? i : o->tightest;
	}
}

// Starts watching the limits of `places`, and the kills in `directory` (the job's own cgroup of
// this version) or, if that is NULL, in the cgroup that the job shares. Files that cannot be opened
// give VALUE_MISSING from then on.
static void out_of_memory_open(struct out_of_memory *o, int root_fd, const char *directory,
	int version, const struct cgroup_places *places)
{
	const struct cgroup_place *place = cgroup_place_of(places, CGROUP_MEMORY);
	*o = (struct out_of_memory){.root_fd = root_fd,
		.can_limit_swap = place->version == 1,
		.kills_file = HOST_FILE_CLOSED,
		.shared = !directory,
		.hits_key = place->version == 2 ? "max" : NULL};
	if (!directory) {
		directory = place->path;
		version = place->version;
	}
	if (directory) {
		(void)open_kills_in(&o->kills_file, root_fd, directory,
			version == 2 ? "memory.events" : "memory.oom_control");
	}
	watch_limits(o, root_fd, place->version, places);
	o->kills = read_kills(o);
}

static void out_of_memory_close(struct out_of_memory *o)
{
	host_file_close(&o->kills_file);
	for (size_t i = 0; i < o->n_levels; i++) {
		host_file_close(&o->levels[i].hits_file);
		free(o->levels[i].limit.directory);
	}
	o->n_levels = 0;
}

// Whether memory and swap together have reached their limit, in a cgroup that limits the memory.
static bool has_reached_swap_limit(const struct out_of_memory *o, const struct memory_level *level)
{
	const char *directory = level->limit.directory;
	if (!o->can_limit_swap) {
		return false;
	}
	int64_t limit = read_number(o->root_fd, directory, "memory.memsw.limit_in_bytes");
	int64_t most = read_number(o->root_fd, directory, "memory.memsw.max_usage_in_bytes");
	return limit >= 0 && most >= 0 && limit - most <= NEAR_LIMIT;
}

static void append_why(struct out_of_memory *o, struct text *t)
{
	bool known = o->n_levels > 0;
	char limit[32];
	for (size_t i = 0; i < o->n_levels; i++) {
		struct memory_level *level = &o->levels[i];
		int64_t hits = read_value(&level->hits_file, o->hits_key);
		bool counted = hits != VALUE_MISSING && level->hits != VALUE_MISSING;
		known = known && counted;
		if ((counted && hits != level->hits) || has_reached_swap_limit(o, level)) {
			double bytes = level->limit.value;
			text_format(t, " at the limit of %s, set by /%s",
				text_bytes_beside(limit, sizeof(limit), bytes, bytes),
				level->limit.directory);
			return;
		}
	}
	text_append_string(t, known ? ": the machine's memory was used up" : " for lack of memory");
}

static void say_kills(
	struct out_of_memory *o, struct sink *sink, int64_t job, uint64_t now_ns, int64_t kills)
{
	struct text text = {0};
	if (o->shared) {
		text_format(&text,
			"the kernel killed %lld process%s in the cgroup that the "
			"job shares",
			(long long)kills, kills > 1 ? "es" : "");
	} else {
		text_format(
			&text, "the kernel killed %lld of the job's processes", (long long)kills);
	}
	append_why(o, &text);
	sink_event(sink, now_ns, o->shared ? "oom_kill_nearby" : "oom_kill", job, "%s",
		text.data ? text.data : "out of memory");
	text_done(&text);
}

// Returns the number of kills in the watched cgroup since it was created. An increase is reported
// by an event: "oom_kill", or "oom_kill_nearby" if others share the cgroup.
static int64_t out_of_memory_kills(
	struct out_of_memory *o, struct sink *sink, int64_t job, uint64_t now_ns)
{
	int64_t kills = read_kills(o);
	if (kills != VALUE_MISSING && o->kills != VALUE_MISSING && kills > o->kills) {
		say_kills(o, sink, job, now_ns, kills - o->kills);
	}
	o->kills = kills != VALUE_MISSING ? kills : o->kills;
	return kills;
}

// Metrics -----------------------------------------------------------------------------------------

enum { CPU_TOTAL, CPU_TIME_USER, CPU_TIME_SYSTEM, N_CPU };
static const struct metric cpu_metrics[N_CPU] = {
	[CPU_TOTAL] = {"strain.cgroup.cpu.time", METRIC_COUNTER, "s", 1e-6,
		"Exact CPU time of all processes that ever ran in the job's own cgroup "
		"(cpu.stat, cpuacct.usage)."},
	[CPU_TIME_USER] = {"strain.cgroup.cpu.time.user", METRIC_COUNTER, "s", 1e-6,
		"The part of it in user mode; on cgroup v1 in hundredths of a second (cpu.stat, "
		"cpuacct.stat)."},
	[CPU_TIME_SYSTEM] = {"strain.cgroup.cpu.time.system", METRIC_COUNTER, "s", 1e-6,
		"The part of it in the kernel; on cgroup v1 in hundredths of a second (cpu.stat, "
		"cpuacct.stat)."},
};

enum { THROTTLE_PERIODS, THROTTLE_THROTTLED, THROTTLE_TIME, N_THROTTLE };
static const struct metric throttle_metrics[N_THROTTLE] = {
	[THROTTLE_PERIODS] = {"strain.cgroup.cpu.periods", METRIC_COUNTER, "{period}", 1,
		"Periods of the CPU quota with runnable threads, in the cgroup that sets the "
		"quota: of several levels the one that throttles, otherwise the tightest. "
		"Other programs may share it (cpu.stat: nr_periods)."},
	[THROTTLE_THROTTLED] = {"strain.cgroup.cpu.periods.throttled", METRIC_COUNTER, "{period}",
		1,
		"Periods that ended early because the CPU quota was used up (cpu.stat: "
		"nr_throttled)."},
	[THROTTLE_TIME] = {"strain.cgroup.cpu.throttled_time", METRIC_COUNTER, "s", 1e-6,
		"CPU-seconds in which the quota stopped runnable threads. It is summed over "
		"CPUs and can exceed the duration of the run. Linux 6.18 was seen to count "
		"about half (cpu.stat: throttled_usec, throttled_time)."},
};

enum { LIMIT_CPUS, LIMIT_MEMORY, LIMIT_HITS, LIMIT_INSIDE, N_LIMIT };
static const struct metric limit_metrics[N_LIMIT] = {
	[LIMIT_CPUS] = {"strain.cgroup.cpu.limit", METRIC_GAUGE, "{cpu}", 0.001,
		"CPUs allowed by the tightest quota of the cgroup in which the job spends most "
		"of its CPU time, and of its parents (cpu.max, cpu.cfs_quota_us)."},
	[LIMIT_MEMORY] = {"strain.cgroup.memory.limit", METRIC_GAUGE, "By", 1024,
		"Memory allowed by the tightest limit of the job's cgroup and its parents "
		"(memory.max, memory.limit_in_bytes)."},
	[LIMIT_HITS] = {"strain.cgroup.memory.limit.hits", METRIC_COUNTER, "{hit}", 1,
		"Number of times that memory reached that limit, so that pages were reclaimed "
		"or processes killed. Other programs may share the limit (memory.events: max; "
		"memory.failcnt)."},
	[LIMIT_INSIDE] = {"strain.cgroup.cpu.limit.inside", METRIC_GAUGE, "1", 1,
		"Location of the quota whose periods are counted: 1, a cgroup that contains "
		"the job but not strain; 0, a cgroup that contains both."},
};

enum {
	MEMORY_USAGE,
	MEMORY_ANONYMOUS,
	MEMORY_FILE,
	MEMORY_SHMEM,
	MEMORY_KERNEL,
	MEMORY_SWAP,
	MEMORY_REFAULTS,
	MEMORY_MAJOR,
	MEMORY_OOM,
	N_MEMORY,
};
static const struct metric memory_metrics[N_MEMORY] = {
	[MEMORY_USAGE] = {"strain.cgroup.memory.usage", METRIC_GAUGE, "By", 1024,
		"Memory charged to the job's own cgroup, including page cache, but not pages "
		"that other programs had cached before (memory.current, memory.usage_in_bytes)."},
	[MEMORY_ANONYMOUS] = {"strain.memory.anonymous", METRIC_GAUGE, "By", 1024,
		"Anonymous memory of the job; each page counts once (memory.stat: anon, "
		"total_rss)."},
	[MEMORY_FILE] = {"strain.memory.file", METRIC_GAUGE, "By", 1024,
		"Page cache charged to the job, without shared memory. It can be dropped "
		"(memory.stat: file minus shmem)."},
	[MEMORY_SHMEM] = {"strain.memory.shmem", METRIC_GAUGE, "By", 1024,
		"Shared memory and tmpfs of the job, such as batches from loader workers "
		"(memory.stat: shmem)."},
	[MEMORY_KERNEL] = {"strain.memory.kernel", METRIC_GAUGE, "By", 1024,
		"Kernel memory for the job: page tables, stacks, sockets, inodes (memory.stat: "
		"kernel; memory.kmem.usage_in_bytes)."},
	[MEMORY_SWAP] = {"strain.memory.swap", METRIC_GAUGE, "By", 1024,
		"The job's memory in swap (memory.swap.current; memory.stat: total_swap)."},
	[MEMORY_REFAULTS] = {"strain.memory.refaults", METRIC_COUNTER, "{page}", 1,
		"File pages that the job read again soon after their eviction: the limit or "
		"the machine is too small for its working set (memory.stat: "
		"workingset_refault_file)."},
	[MEMORY_MAJOR] = {"strain.cgroup.paging.faults.major", METRIC_COUNTER, "{fault}", 1,
		"Page faults of the job that read from storage (memory.stat: pgmajfault)."},
	[MEMORY_OOM] = {"strain.cgroup.oom_kills", METRIC_COUNTER, "{kill}", 1,
		"Processes of the job that the kernel killed for lack of memory (memory.events, "
		"memory.oom_control)."},
};

enum { IO_READ, IO_WRITE, IO_READS, IO_WRITES, N_IO };
static const struct metric io_metrics[N_IO] = {
	[IO_READ] = {"strain.cgroup.io.read", METRIC_COUNTER, "By", 1,
		"Bytes that the job's cgroup read from all disks. Disks on top of other disks "
		"(device mapper, RAID) are not counted twice (io.stat)."},
	[IO_WRITE] = {"strain.cgroup.io.write", METRIC_COUNTER, "By", 1,
		"Bytes that the job's cgroup wrote to all disks, including writeback of its "
		"page cache (io.stat)."},
	[IO_READS] = {"strain.cgroup.io.operations.read", METRIC_COUNTER, "{operation}", 1,
		"Reads of the job's cgroup from all disks (io.stat)."},
	[IO_WRITES] = {"strain.cgroup.io.operations.write", METRIC_COUNTER, "{operation}", 1,
		"Writes of the job's cgroup to all disks (io.stat)."},
};

enum { PRESSURE_CPU, PRESSURE_MEMORY, PRESSURE_IO, N_PRESSURES };
static const struct metric pressure_metrics[2 * N_PRESSURES] = {
	{"strain.cgroup.pressure.cpu.some", METRIC_COUNTER, "s", 1e-6,
		"Time in which at least one task of the job was ready to run but had no CPU, "
		"including throttling (cpu.pressure)."},
	{"strain.cgroup.pressure.cpu.full", METRIC_COUNTER, "s", 1e-6,
		"Time in which all runnable tasks of the job had no CPU (cpu.pressure, Linux "
		"5.13)."},
	{"strain.cgroup.pressure.memory.some", METRIC_COUNTER, "s", 1e-6,
		"Time in which at least one task of the job waited for memory "
		"(memory.pressure)."},
	{"strain.cgroup.pressure.memory.full", METRIC_COUNTER, "s", 1e-6,
		"Time in which all non-idle tasks of the job waited for memory at once "
		"(memory.pressure)."},
	{"strain.cgroup.pressure.io.some", METRIC_COUNTER, "s", 1e-6,
		"Time in which at least one task of the job waited for storage (io.pressure)."},
	{"strain.cgroup.pressure.io.full", METRIC_COUNTER, "s", 1e-6,
		"Time in which all non-idle tasks of the job waited for storage at once "
		"(io.pressure)."},
};

static int read_cpu(void *state, struct sink *sink, uint64_t now_ns);
static int read_throttle(void *state, struct sink *sink, uint64_t now_ns);
static int read_limit(void *state, struct sink *sink, uint64_t now_ns);
static int read_memory(void *state, struct sink *sink, uint64_t now_ns);
static int read_io(void *state, struct sink *sink, uint64_t now_ns);
static int read_pressure(void *state, struct sink *sink, uint64_t now_ns);

enum { GROUP_CPU, GROUP_THROTTLE, GROUP_LIMIT, GROUP_MEMORY, GROUP_IO, GROUP_PRESSURE, N_GROUPS };
static const struct group groups[N_GROUPS] = {
	[GROUP_CPU] = {"cpu", ENTITY_JOB, cpu_metrics, N_CPU, 100 * NS_PER_MS, read_cpu,
		SHARED_NOT},
	[GROUP_THROTTLE] = {"throttling", ENTITY_JOB, throttle_metrics, N_THROTTLE, 100 * NS_PER_MS,
		read_throttle, SHARED_NOT},
	[GROUP_LIMIT] = {"limits", ENTITY_JOB, limit_metrics, N_LIMIT, 10 * NS_PER_S, read_limit,
		SHARED_NOT},
	[GROUP_MEMORY] = {"memory", ENTITY_JOB, memory_metrics, N_MEMORY, 100 * NS_PER_MS,
		read_memory, SHARED_NOT},
	[GROUP_IO] = {"io", ENTITY_JOB, io_metrics, N_IO, 100 * NS_PER_MS, read_io, SHARED_NOT},
	[GROUP_PRESSURE] = {"pressure", ENTITY_JOB, pressure_metrics, 2 * N_PRESSURES,
		100 * NS_PER_MS, read_pressure, SHARED_NOT},
};

// Files -------------------------------------------------------------------------------------------

static const struct keyed_row v2_cpu[] = {
	{"usage_usec", KEYED_ADD, CPU_TOTAL},
	{"user_usec", KEYED_ADD, CPU_TIME_USER},
	{"system_usec", KEYED_ADD, CPU_TIME_SYSTEM},
};
static const struct keyed_row v1_cpu_total[] = {{NULL, KEYED_ADD, CPU_TOTAL}};
static const struct keyed_row v1_cpu_modes[] = {
	{"user", KEYED_ADD, CPU_TIME_USER},
	{"system", KEYED_ADD, CPU_TIME_SYSTEM},
};
static const struct keyed_row v2_memory[] = {
	{"anon", KEYED_ADD, MEMORY_ANONYMOUS}, {"file", KEYED_ADD, MEMORY_FILE},
	{"kernel", KEYED_ADD, MEMORY_KERNEL}, // Linux 5.18
	{"shmem", KEYED_ADD, MEMORY_SHMEM}, {"shmem", KEYED_SUBTRACT, MEMORY_FILE},
	{"workingset_refault_file", KEYED_ADD, MEMORY_REFAULTS},
	{"pgmajfault", KEYED_ADD, MEMORY_MAJOR},
	{"workingset_refault", KEYED_ELSE, MEMORY_REFAULTS}, // before Linux 5.9
};
static const struct keyed_row v1_memory[] = {
	{"total_cache", KEYED_ADD, MEMORY_FILE},
	{"total_rss", KEYED_ADD, MEMORY_ANONYMOUS},
	{"total_shmem", KEYED_ADD, MEMORY_SHMEM},
	{"total_shmem", KEYED_SUBTRACT, MEMORY_FILE},
	{"total_swap", KEYED_ADD, MEMORY_SWAP},
	{"total_pgmajfault", KEYED_ADD, MEMORY_MAJOR},
	{"total_workingset_refault_file", KEYED_ADD, MEMORY_REFAULTS},
	{"total_workingset_refault", KEYED_ELSE, MEMORY_REFAULTS},
};
static const struct keyed_row memory_usage[] = {{NULL, KEYED_ADD, MEMORY_USAGE}};
static const struct keyed_row memory_swap[] = {{NULL, KEYED_ADD, MEMORY_SWAP}};
static const struct keyed_row memory_kernel[] = {{NULL, KEYED_ADD, MEMORY_KERNEL}};

#define ROWS(rows) rows, ARRAY_LENGTH(rows)
// A group is missing if its first file cannot be opened.
static const struct cgroup_file {
	int group;
	int version;
	struct keyed_file file;
} files[] = {
	{GROUP_CPU, 2, {"cpu.stat", ROWS(v2_cpu), KEYED_MICROSECONDS}},
	{GROUP_CPU, 1, {"cpuacct.usage", ROWS(v1_cpu_total), KEYED_NANOSECONDS}},
	{GROUP_CPU, 1, {"cpuacct.stat", ROWS(v1_cpu_modes), KEYED_TICKS}},
	{GROUP_MEMORY, 2, {"memory.stat", ROWS(v2_memory), KEYED_PLAIN}},
	{GROUP_MEMORY, 2, {"memory.current", ROWS(memory_usage), KEYED_PLAIN}},
	{GROUP_MEMORY, 2, {"memory.swap.current", ROWS(memory_swap), KEYED_PLAIN}},
	{GROUP_MEMORY, 1, {"memory.stat", ROWS(v1_memory), KEYED_PLAIN}},
	{GROUP_MEMORY, 1, {"memory.usage_in_bytes", ROWS(memory_usage), KEYED_PLAIN}},
	{GROUP_MEMORY, 1, {"memory.kmem.usage_in_bytes", ROWS(memory_kernel), KEYED_PLAIN}},
};
#undef ROWS

// Limits that the job has not met by this time are reported as missing.
#define SETTLED_NS (3 * NS_PER_S)

struct cgroup_source {
	int root_fd;
	int64_t job;
	int version;
	struct cgroup_places places; // of the job
	struct host_file files[ARRAY_LENGTH(files)]; // of this version; the others are closed
	bool counted[N_GROUPS]; // its first file is open
	struct cpu_quota quota;
	struct sink *sink;
	uint64_t first_ns; // when a process of the job first existed; 0: none so far
	bool ran; // the job ran before us, or there is none: no waiting
	bool told; // missing limits were reported
	bool limits_missing[N_LIMIT];
	double limit_told; // CPUs in the last row
	struct host_file io;
	struct host_file pressures[N_PRESSURES];
	struct stream *streams[N_GROUPS];
	struct out_of_memory oom;
	struct iostat_disks disks; // seen in io.stat so far
};

// Reading -----------------------------------------------------------------------------------------

// Reads the files of a group into values[], the rest of which is missing.
static void read_files(struct cgroup_source *s, int group, int64_t *values)
{
	for (size_t i = 0; i < groups[group].n_metrics; i++) {
		values[i] = VALUE_MISSING;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		struct cursor text;
		if (files[i].group == group && s->files[i].fd >= 0 &&
			host_file_read(&s->files[i], &text) == 0) {
			keyed_values(&files[i].file, text, groups[group].metrics, values);
		}
	}
}

// Writes the row. Values that the first row lacks are reported as missing for good.
static void put_row(struct cgroup_source *s, struct sink *sink, int group, uint64_t now_ns,
	const int64_t *values, const char *reason)
{
	if (!s->streams[group]) {
		s->streams[group] = sink_stream(sink, s->job, &groups[group]);
		for (size_t i = 0; i < groups[group].n_metrics; i++) {
			if (values[i] == VALUE_MISSING) {
				sink_missing(sink, s->job, &groups[group], i, reason);
			}
		}
	}
	stream_row(s->streams[group], now_ns, values);
}

static int read_cpu(void *state, struct sink *sink, uint64_t now_ns)
{
	struct cgroup_source *s = state;
	int64_t values[N_CPU];
	if (!s->counted[GROUP_CPU]) {
		return -ENOENT; // reported when the source was opened
	}
	read_files(s, GROUP_CPU, values);
	put_row(s, sink, GROUP_CPU, now_ns, values, "the cgroup's files do not contain it");
	return 0;
}

static void tell_no_quota(const struct cgroup_source *s)
{
	if (!s->quota.directory || s->quota.stat.fd < 0) {
		sink_missing_group(s->sink, s->job, &groups[GROUP_THROTTLE],
			s->quota.directory ? "the cgroup of the quota has no cpu.stat"
					   : "no CPU quota applies to the job");
	}
}

static void tell_missing_limits(struct cgroup_source *s)
{
	const char *reason = cgroup_places_hidden(&s->places) ? CGROUP_HIDDEN_REASON
	                                                      : "no cgroup limits the job";
	for (size_t i = 0; i < N_LIMIT; i++) {
		if (s->limits_missing[i]) {
			sink_missing(s->sink, s->job, &groups[GROUP_LIMIT], i, reason);
		}
	}
}

// A job that has just begun may still move to a cgroup with a quota or a limit. Missing limits are
// therefore reported after a while, or at its end.
static void settle(struct cgroup_source *s)
{
	if (!s->told) {
		s->told = true;
		tell_no_quota(s);
		tell_missing_limits(s);
	}
}

static void put_limits(struct cgroup_source *s, struct sink *sink, uint64_t now_ns)
{
	const struct cpu_quota *q = &s->quota;
	int64_t values[N_LIMIT] = {VALUE_MISSING, VALUE_MISSING, VALUE_MISSING, VALUE_MISSING};
	uint64_t bytes;
	s->limit_told = q->least_cpus;
	if (q->directory) {
		values[LIMIT_CPUS] = (int64_t)llround(q->least_cpus * 1000);
		values[LIMIT_INSIDE] = q->own;
	}
	if (cgroupfs_memory_limit(s->root_fd, q->found ? &q->places : &s->places, &bytes, NULL) ==
		0) {
		values[LIMIT_MEMORY] = (int64_t)(bytes / 1024);
		values[LIMIT_HITS] = out_of_memory_limit_hits(&s->oom);
	}
	if (!s->streams[GROUP_LIMIT]) {
		s->streams[GROUP_LIMIT] = sink_stream(sink, s->job, &groups[GROUP_LIMIT]);
	}
	for (size_t i = 0; i < N_LIMIT; i++) {
		s->limits_missing[i] = s->limits_missing[i] && values[i] == VALUE_MISSING;
	}
	stream_row(s->streams[GROUP_LIMIT], now_ns, values);
}

static int read_throttle(void *state, struct sink *sink, uint64_t now_ns)
{
	struct cgroup_source *s = state;
	struct cpu_quota_counts counts;
	if (cpu_quota_look(&s->quota, NULL, sink, s->job, now_ns)) {
		s->first_ns = s->first_ns ? s->first_ns : now_ns;
		if (s->streams[GROUP_LIMIT] && s->quota.least_cpus != s->limit_told &&
			!(isnan(s->quota.least_cpus) && isnan(s->limit_told))) {
			put_limits(s, sink, now_ns);
		}
		if (now_ns - s->first_ns >= SETTLED_NS) {
			settle(s);
		}
	}
	if (cpu_quota_read(&s->quota, &counts)) {
		const int64_t values[N_THROTTLE] = {[THROTTLE_PERIODS] = counts.periods,
			[THROTTLE_THROTTLED] = counts.throttled,
			[THROTTLE_TIME] = counts.throttled_us};
		put_row(s, sink, GROUP_THROTTLE, now_ns, values, "cpu.stat does not contain it");
	}
	return s->quota.directory || s->quota.tree ? 0 : -ENOENT;
}

static int read_limit(void *state, struct sink *sink, uint64_t now_ns)
{
	struct cgroup_source *s = state;
	put_limits(s, sink, now_ns);
	if (s->ran) {
		settle(s);
	}
	return 0;
}

static int read_memory(void *state, struct sink *sink, uint64_t now_ns)
{
	struct cgroup_source *s = state;
	int64_t values[N_MEMORY], kills = out_of_memory_kills(&s->oom, sink, s->job, now_ns);
	if (!s->counted[GROUP_MEMORY]) {
		return kills == VALUE_MISSING ? -ENOENT : 0;
	}
	read_files(s, GROUP_MEMORY, values);
	values[MEMORY_OOM] = kills;
	put_row(s, sink, GROUP_MEMORY, now_ns, values,
		"the memory controller of this kernel does not provide it");
	return 0;
}

static void sum_io(struct cgroup_source *s, struct cursor text, int64_t *sums)
{
	struct iostat_line line;
	while (procfs_next_iostat(&text, &line)) {
		const int64_t values[N_IO] = {
			[IO_READ] = line.read_bytes,
			[IO_WRITE] = line.write_bytes,
			[IO_READS] = line.reads,
			[IO_WRITES] = line.writes,
		};
		bool counted = procfs_iostat_counts(&s->disks, s->root_fd, line.device);
		for (size_t i = 0; counted && i < N_IO; i++) {
			if (__builtin_add_overflow(sums[i], values[i], &sums[i])) {
				sums[i] = INT64_MAX;
			}
		}
	}
}

static int read_io(void *state, struct sink *sink, uint64_t now_ns)
{
	struct cgroup_source *s = state;
	struct cursor text;
	int64_t values[N_IO] = {0};
	if (s->io.fd < 0) {
		return -ENOENT;
	}
	if (host_file_read(&s->io, &text) == 0) {
		sum_io(s, text, values);
		put_row(s, sink, GROUP_IO, now_ns, values, "");
	}
	return 0;
}

static int read_pressure(void *state, struct sink *sink, uint64_t now_ns)
{
	struct cgroup_source *s = state;
	int64_t values[2 * N_PRESSURES];
	bool any = false;
	for (size_t i = 0; i < N_PRESSURES; i++) {
		struct pressure p = {KEYED_ABSENT, KEYED_ABSENT};
		struct cursor text;
		if (s->pressures[i].fd >= 0) {
			any = true;
			if (host_file_read(&s->pressures[i], &text) == 0) {
				(void)pressure_parse(text, &p);
			}
		}
		values[2 * i] = p.some_us;
		values[2 * i + 1] = p.full_us;
	}
	if (!any) {
		return -ENOENT;
	}
	put_row(s, sink, GROUP_PRESSURE, now_ns, values, "this kernel does not provide it");
	return 0;
}

// Opening -----------------------------------------------------------------------------------------

static int open_in(struct cgroup_source *s, struct host_file *f, const char *directory,
	const char *name, struct error *e)
{
	char path[PATH_MAX];
	if (!directory || snprintf(path, sizeof(path), "%s/%s", directory, name) >= PATH_MAX) {
		return error_errno(e, ENOENT, "%s", name);
	}
	return host_file_open(f, s->root_fd, path, e);
}

// Opens the files of a group. Returns the error of the first one.
static int open_files(struct cgroup_source *s, int group, const char *directory, struct error *e)
{
	int first = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(files) && first == 0; i++) {
		if (files[i].group == group && files[i].version == s->version) {
			int r = open_in(s, &s->files[i], directory, files[i].file.path,
				s->counted[group] ? NULL : e);
			first = s->counted[group] ? 0 : r;
			s->counted[group] = first == 0;
		}
	}
	return first;
}

static void open_cpu(struct cgroup_source *s, const char *directory, struct sink *sink)
{
	struct error e = {0};
	if (open_files(s, GROUP_CPU, directory, &e) < 0) {
		sink_missing_group(sink, s->job, &groups[GROUP_CPU],
			directory ? e.text
				  : "the job has no cgroup of its own in the cpuacct controller");
	}
}

static void open_memory(struct cgroup_source *s, const struct job_cgroup *cgroup, struct sink *sink)
{
	static const char v2_reason[] =
		"on cgroup v2, measuring memory needs a cgroup that strain can write and that "
		"contains only strain: systemd-run --user --scope -p Delegate=yes strain run "
		"...";
	static const char v1_reason[] = "the job has no cgroup of its own in the memory controller";
	struct error e = {0};
	if (open_files(s, GROUP_MEMORY, cgroup->memory, &e) < 0) {
		sink_missing_group(sink, s->job, &groups[GROUP_MEMORY],
			cgroup->memory          ? e.text
			: cgroup->memory_reason ? cgroup->memory_reason
			: s->version == 2       ? v2_reason
						: v1_reason);
	}
}

static void open_io(struct cgroup_source *s, const char *directory, struct sink *sink)
{
	if (s->version == 1) {
		sink_missing_group(sink, s->job, &groups[GROUP_IO],
			"only cgroup v2 measures the storage I/O of a job, including its page "
			"cache");
	} else if (open_in(s, &s->io, directory, "io.stat", NULL) < 0) {
		sink_missing_group(sink, s->job, &groups[GROUP_IO],
			"on cgroup v2, measuring storage needs a cgroup with the io controller "
			"that strain can write and that contains only strain");
	}
}

static void open_pressure(struct cgroup_source *s, const char *directory, struct sink *sink)
{
	static const char *const names[N_PRESSURES] = {
		"cpu.pressure", "memory.pressure", "io.pressure"};
	for (size_t i = 0; i < N_PRESSURES; i++) {
		struct cursor text;
		int r = s->version == 2 ? open_in(s, &s->pressures[i], directory, names[i], NULL)
		                        : -ENOTSUP;
		if (r == 0 && (r = host_file_read(&s->pressures[i], &text)) < 0) {
			host_file_close(&s->pressures[i]);
		}
		if (r < 0) {
			const char *reason = s->version == 1
			                             ? "only cgroup v2 measures the pressure of a "
			                               "job"
			                             : pressure_reason(-r);
			sink_missing(sink, s->job, &groups[GROUP_PRESSURE], 2 * i, reason);
			sink_missing(sink, s->job, &groups[GROUP_PRESSURE], 2 * i + 1, reason);
		}
	}
}

// The job's limits begin at its own cgroup, which need not be below ours: if processes had to move
// aside for it (machine/cgroup.c), it is beside ours.
static void go_down(struct cgroup_source *s, const struct job_cgroup *cgroup)
{
	struct cgroup_place *place = cgroup->version == 2 ? &s->places.unified
	                                                  : &s->places.legacy[CGROUP_MEMORY];
	const char *own = cgroup->version == 2 ? cgroup->procs : cgroup->memory;
	char *path = own && place->version ? strdup(own) : NULL;
	if (path) {
		free(place->path);
		place->path = path;
	}
}

// Finds the cgroups of the job: those of one of its processes if it already runs, else ours, which
// are above the job's own.
static int find_places(
	struct cgroup_source *s, const struct source_context *context, struct error *e)
{
	char pid[16] = "self";
	struct tree_member *members = NULL;
	size_t n = 0, capacity = 0;
	if (context->tree && tree_snapshot(context->tree, &members, &n, &capacity) == 0 && n > 0) {
		snprintf(pid, sizeof(pid), "%d", (int)members[0].pid);
	}
	free(members);
	s->ran = n > 0 || !context->tree;
	return cgroup_places_find(s->root_fd, pid, &s->places, e);
}

// Cgroups around strain are around its job; for a job that ran before us, those around that job.
static void open_quota(struct cgroup_source *s, const struct source_context *context)
{
	struct cgroup_places around = {0};
	bool started = context->reaper || context->captured;
	if (!started || cgroup_places_find(s->root_fd, "self", &around, NULL) < 0) {
		cpu_quota_set_base(&s->quota, &s->places);
	} else {
		cpu_quota_set_base(&s->quota, &around);
	}
	cgroup_places_done(&around);
	(void)cpu_quota_look(&s->quota, &s->places, context->captured ? NULL : s->sink, s->job,
		context->start_ns);
}

static void cgroup_close(void *state)
{
	struct cgroup_source *s = state;
	if (!s) {
		return;
	}
	settle(s);
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		host_file_close(&s->files[i]);
	}
	for (size_t i = 0; i < N_PRESSURES; i++) {
		host_file_close(&s->pressures[i]);
	}
	host_file_close(&s->io);
	out_of_memory_close(&s->oom);
	cpu_quota_done(&s->quota);
	cgroup_places_done(&s->places);
	free(s);
}

static struct cgroup_source *cgroup_new(const struct source_context *context, struct sink *sink)
{
	struct cgroup_source *s = calloc(1, sizeof(*s));
	if (s) {
		s->root_fd = context->root_fd;
		s->job = context->job;
		s->sink = sink;
		s->version = context->cgroup ? context->cgroup->version : 0;
		for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
			s->files[i] = HOST_FILE_CLOSED;
		}
		s->io = HOST_FILE_CLOSED;
		s->limit_told = NAN;
		memset(s->limits_missing, true, sizeof(s->limits_missing));
		cpu_quota_init(&s->quota, context->root_fd, context->tree);
		s->oom.kills_file = HOST_FILE_CLOSED;
		s->pressures[0] = s->pressures[1] = s->pressures[2] = HOST_FILE_CLOSED;
	}
	return s;
}

static int cgroup_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	static const int own_groups[] = {GROUP_CPU, GROUP_MEMORY, GROUP_IO, GROUP_PRESSURE};
	struct cgroup_source *s = cgroup_new(context, sink);
	if (!s) {
		return error_errno(e, ENOMEM, "cgroup");
	}
	int r = find_places(s, context, e);
	if (r == 0 && context->cgroup) {
		go_down(s, context->cgroup);
	}
	if (r == 0 && !cgroup_place_of(&s->places, CGROUP_MEMORY)->version &&
		!cgroup_place_of(&s->places, CGROUP_CPU)->version) {
		r = error_set(e, ENOENT, "%s",
			cgroup_places_hidden(&s->places) ? CGROUP_HIDDEN_REASON
							 : "no cgroup file system is mounted");
	}
	if (r < 0) {
		s->told = true; // the sampler reports why there are none
		cgroup_close(s);
		return r;
	}
	out_of_memory_open(&s->oom, s->root_fd, context->cgroup ? context->cgroup->memory : NULL,
		s->version, &s->places);
	if (context->cgroup) {
		open_cpu(s, context->cgroup->cpu, sink);
		open_memory(s, context->cgroup, sink);
		open_io(s, context->cgroup->io, sink);
		open_pressure(s, context->cgroup->procs, sink);
	}
	for (size_t i = 0; !context->cgroup && i < ARRAY_LENGTH(own_groups); i++) {
		sink_missing_group(sink, s->job, &groups[own_groups[i]],
			"the job shares a cgroup, whose values would not describe the job");
	}
	open_quota(s, context);
	if (s->ran && !s->quota.directory) {
		tell_no_quota(s);
	}
	*ret_state = s;
	return 0;
}

const struct source source_cgroup = {
	.name = "cgroup",
	.help = "the job's cgroup: exact CPU time, memory by use, limits, throttling",
	.lane = LANE_TICK,
	.groups = groups,
	.n_groups = N_GROUPS,
	.open = cgroup_open,
	.close = cgroup_close,
};
