// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Readings that take the job's mmap lock, and therefore have a lane of their own: proportional
// memory (smaps_rollup) and command lines.
//
// smaps_rollup walks all page tables of a process under its mmap lock, for microseconds per MiB. It
// is read in rounds over the whole job, so that the sum is of one moment. The next round waits
// until all rounds together have taken at most a thousandth of the time, whatever requested it. In
// the first half minute of a job without a cgroup of its own, they may take four times as much:
// nothing else shows the pages that processes copied since they were forked.

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/installation.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"
#include "machine/cgroup.h"
#include "machine/file.h"
#include "machine/procfs.h"
#include "machine/tree.h"
#include "record/sample/source.h"
#include "runfile/labels.h"

#define ROUND_SHARE 1000 // upper bound of rounds: one part in this many of the time
#define EPOCH_SHARE 250 // upper bound for an earlier round at the end of an epoch
#define EARLY_SHARE 250 // the same for all rounds of an early job without a cgroup
#define EARLY_NS (30 * NS_PER_S)
#define ROUND_MIN_NS NS_PER_S // minimum interval of rounds
#define FIRST_ROUND_NS (500 * NS_PER_MS)
#define COMMAND_MAX_BYTES 4096u // longer command lines are truncated
#define ENVIRON_MAX_BYTES (128u << 10) // launchers append

enum { PSS, PSS_ANONYMOUS, PSS_FILE, PSS_SHMEM, PSS_SWAP, RSS, USS, N_PSS };
static const struct metric pss_metrics[N_PSS] = {
	[PSS] = {"strain.memory.pss", METRIC_GAUGE, "By", 1024,
		"Proportional set size: each page divided by the number of processes that map "
		"it, so that sums over processes are correct (smaps_rollup; read rarely, "
		"because reading holds the mmap lock)."},
	[PSS_ANONYMOUS] = {"strain.memory.pss.anonymous", METRIC_GAUGE, "By", 1024,
		"The part of PSS that is anonymous memory (Linux 5.4 and later)."},
	[PSS_FILE] = {"strain.memory.pss.file", METRIC_GAUGE, "By", 1024,
		"The part of PSS that maps files."},
	[PSS_SHMEM] = {"strain.memory.pss.shmem", METRIC_GAUGE, "By", 1024,
		"The part of PSS that is shared memory."},
	[PSS_SWAP] = {"strain.memory.pss.swap", METRIC_GAUGE, "By", 1024,
		"Swapped pages, divided in the same way (not part of PSS)."},
	[RSS] = {"strain.memory.rss", METRIC_GAUGE, "By", 1024,
		"Resident memory at the same reading. Shared pages count in full, so it does "
		"not fall when another process maps the same libraries. For a job: the sum "
		"over its processes (smaps_rollup)."},
	[USS] = {"strain.memory.uss", METRIC_GAUGE, "By", 1024,
		"Unique set size: memory that only this process maps, and that its exit would "
		"free. For a job: the sum over its processes (smaps_rollup: Private_Clean, "
		"Private_Dirty)."},
};

enum { COST_READINGS, COST_TIME, N_COST };
static const struct metric cost_metrics[N_COST] = {
	[COST_READINGS] = {"strain.recorder.smaps.readings", METRIC_COUNTER, "{reading}", 1,
		"Number of readings of smaps_rollup; each holds the mmap lock of the process."},
	[COST_TIME] = {"strain.recorder.smaps.time", METRIC_COUNTER, "s", 1e-6,
		"Time spent on these readings."},
};

static int read_pss(void *state, struct sink *sink, uint64_t now_ns);
static int read_job_pss(void *state, struct sink *sink, uint64_t now_ns);
static int read_cost(void *state, struct sink *sink, uint64_t now_ns);

enum { GROUP_PSS, GROUP_JOB_PSS, GROUP_COST, N_GROUPS };
static const struct group groups[N_GROUPS] = {
	[GROUP_PSS] = {"pss", ENTITY_PROCESS, pss_metrics, N_PSS, 100 * NS_PER_MS, read_pss,
		SHARED_NOT},
	[GROUP_JOB_PSS] = {"job_pss", ENTITY_JOB, pss_metrics, N_PSS, 100 * NS_PER_MS, read_job_pss,
		SHARED_NOT},
	[GROUP_COST] = {"cost", ENTITY_RECORDER, cost_metrics, N_COST, NS_PER_S, read_cost,
		SHARED_NOT},
};

// A process as this lane knows it.
struct known {
	int64_t entity;
	unsigned renamed; // its value when the command line was read
	bool strain; // it runs one of strain's programs
	bool described; // the command line was read
	struct stream *stream;
};

struct memory_source {
	struct tree *tree;
	int root_fd;
	int64_t job, recorder;
	bool captured;
	bool charged; // the job has a cgroup of its own that counts its memory
	struct tree_member *members;
	size_t n_members, members_capacity;
	struct known *known; // of members[i]
	struct own_program {
		dev_t device;
		ino_t inode; // 0: unknown
	} own[2]; // strain's programs
	size_t n_known;
	struct stream *job_stream, *cost_stream;
	uint64_t next_round_ns;
	uint64_t spent_ns; // in all rounds
	uint64_t early_ns; // of these, in early ones
	uint64_t began_ns;
	uint64_t epoch_round_ns; // from then on the end of an epoch may request a round
	const _Atomic unsigned *epochs;
	unsigned epochs_seen;
	uint64_t readings;
	bool round_done; // a complete round was just read: its sums are fresh
	int64_t sums[N_PSS];
	char *buffer; // [ENVIRON_MAX_BYTES]
};

// Who is there ------------------------------------------------------------------------------------

// Adds new processes and removes those that left. Members are in the order of joining, and so of
// their entities: two sorted lists are merged.
static int update_known(struct memory_source *s)
{
	if (tree_snapshot(s->tree, &s->members, &s->n_members, &s->members_capacity) < 0) {
		return -ENOMEM;
	}
	struct known *merged = calloc(s->n_members + 1, sizeof(*merged));
	if (!merged) {
		return -ENOMEM;
	}
	size_t k = 0;
	for (size_t i = 0; i < s->n_members; i++) {
		int64_t entity = s->members[i].entity;
		for (; k < s->n_known && s->known[k].entity < entity; k++) {
			stream_close(s->known[k].stream);
		}
		merged[i] = k < s->n_known && s->known[k].entity == entity
		                    ? s->known[k++]
		                    : (struct known){.entity = entity};
	}
	for (; k < s->n_known; k++) {
		stream_close(s->known[k].stream);
	}
	free(s->known);
	s->known = merged;
	s->n_known = s->n_members;
	return 0;
}

// Opens a file of a member. The pid may belong to another process by now: the directory is opened
// once, and the file is used only if the process in it has the member's start time.
static int open_of(const struct memory_source *s, const struct tree_member *member,
	const char *name, int flags)
{
	char path[64];
	struct proc_stat stat;
	snprintf(path, sizeof(path), "proc/%d", (int)member->pid);
	_cleanup_close_ int directory = openat(s->root_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0) {
		return errno == ENOENT ? -ESRCH : -errno;
	}
	int r = proc_stat_read(directory, "stat", &stat);
	if (r < 0 || stat.start_ticks != member->start_ticks) {
		return r < 0 ? r : -ESRCH;
	}
	int fd = openat(directory, name, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

// Command lines -----------------------------------------------------------------------------------

static void note_own_program(struct own_program *ret, const char *path)
{
	struct stat st;
	if (path && stat(path, &st) == 0) {
		*ret = (struct own_program){st.st_dev, st.st_ino};
	}
}

// Whether it runs the very file of one of strain's programs; the name alone could be forged.
static bool runs_own_program(const struct memory_source *s, const struct tree_member *member)
{
	struct stat st;
	_cleanup_close_ int fd = open_of(s, member, "exe", O_PATH);
	if (fd < 0 || fstat(fd, &st) < 0) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(s->own); i++) {
		if (s->own[i].inode != 0 && s->own[i].device == st.st_dev &&
			s->own[i].inode == st.st_ino) {
			return true;
		}
	}
	return false;
}

// The rank that a launcher gave this process, or one above it; -1: none.
static int read_rank(const struct memory_source *s, const struct tree_member *member)
{
	_cleanup_close_ int fd = open_of(s, member, "environ", O_RDONLY);
	struct cursor text;
	int64_t rank;
	if (fd < 0 || file_pread(fd, s->buffer, ENVIRON_MAX_BYTES, &text) < 0) {
		return -1;
	}
	for (size_t i = 0; labels_of_rank[i]; i++) {
		const char *value = procfs_environ_value(text, labels_of_rank[i]);
		if (value && parse_integer(value, 0, INT32_MAX, &rank, NULL) == 0) {
			return (int)rank;
		}
	}
	return -1;
}

// The process's attributes: its pid, its parent, its arguments with secrets masked, its rank (-1:
// none). strain: NULL to leave it out.
static char *attributes_of(
	const struct tree_member *member, struct cursor command, const char *strain, int rank)
{
	struct text json = {0};
	text_format(&json, "{\"pid\":%d,\"parent_pid\":%d,\"command\":", (int)member->pid,
		(int)member->parent);
	secret_append_command(&json, command.at, (size_t)(command.end - command.at));
	if (strain) {
		text_format(&json, ",\"strain\":%s", strain);
	}
	if (rank >= 0) {
		text_format(&json, ",\"rank\":%d", rank);
	}
	text_append(&json, "}", 1);
	return text_steal(&json);
}

static void describe(struct memory_source *s, struct sink *sink, const struct tree_member *member,
	struct known *k)
{
	k->described = true;
	k->renamed = member->renamed;
	int rank = read_rank(s, member);
	_cleanup_close_ int fd = open_of(s, member, "cmdline", O_RDONLY);
	struct cursor text;
	if (fd < 0 || file_pread(fd, s->buffer, COMMAND_MAX_BYTES, &text) < 0) {
		return;
	}
	// A fork of the launcher becomes the job: then it is no longer strain's.
	bool was = k->strain;
	k->strain = runs_own_program(s, member);
	const char *strain = k->strain ? "true" : was ? "false" : NULL;
	_cleanup_free_ char *attributes = attributes_of(member, text, strain, rank);
	char key[64];
	snprintf(key, sizeof(key), "%d:%llu", (int)member->pid,
		(unsigned long long)member->start_ticks);
	sink_entity_update(sink, member->entity,
		&(struct sink_entity){
			.kind = ENTITY_PROCESS,
			.key = key,
			.name = member->name,
			.parent = member->parent_entity ? member->parent_entity : s->job,
			.first_ns = member->first_ns,
			.attributes = attributes,
		});
}

// Proportional memory -----------------------------------------------------------------------------

static int64_t kib(int64_t bytes)
{
	return bytes < 0 ? VALUE_MISSING : bytes / 1024;
}

static int read_smaps(
	struct memory_source *s, const struct tree_member *member, int64_t values[N_PSS])
{
	_cleanup_close_ int fd = open_of(s, member, "smaps_rollup", O_RDONLY);
	struct cursor text;
	struct proc_smaps_rollup smaps;
	if (fd < 0) {
		return fd;
	}
	s->readings++;
	int r = file_pread(fd, s->buffer, COMMAND_MAX_BYTES, &text);
	r = r < 0 ? r : proc_smaps_rollup_parse(text, &smaps);
	if (r == 0) {
		values[PSS] = kib(smaps.pss_bytes);
		values[PSS_ANONYMOUS] = kib(smaps.pss_anonymous_bytes);
		values[PSS_FILE] = kib(smaps.pss_file_bytes);
		values[PSS_SHMEM] = kib(smaps.pss_shmem_bytes);
		values[PSS_SWAP] = kib(smaps.swap_pss_bytes);
		values[RSS] = kib(smaps.rss_bytes);
		bool parts = smaps.private_clean_bytes >= 0 && smaps.private_dirty_bytes >= 0;
		values[USS] = parts ? kib(smaps.private_clean_bytes + smaps.private_dirty_bytes)
		                    : VALUE_MISSING;
	}
	return r;
}

static void add_sums(int64_t sums[N_PSS], const int64_t values[N_PSS])
{
	for (size_t i = 0; i < N_PSS; i++) {
		bool known = sums[i] != VALUE_MISSING && values[i] != VALUE_MISSING;
		sums[i] = known ? sums[i] + values[i] : VALUE_MISSING;
	}
}

static void read_round(struct memory_source *s, struct sink *sink, uint64_t now_ns)
{
	bool whole = s->n_members > 0;
	memset(s->sums, 0, sizeof(s->sums));
	for (size_t i = 0; i < s->n_members; i++) {
		const struct tree_member *member = &s->members[i];
		struct known *k = &s->known[i];
		int64_t values[N_PSS];
		int r = read_smaps(s, member, values);
		if (r == -ESRCH || r == -ENODATA) {
			continue; // ended, or a zombie: it has no memory
		}
		if (r < 0) {
			char reason[160];
			snprintf(reason, sizeof(reason), "smaps_rollup: %s%s", strerrordesc_np(-r),
				r == -EACCES || r == -EPERM
					? " (needs the right to trace the process)"
				: r == -ENOENT ? " (needs Linux 4.14)"
					       : "");
			sink_missing_group(sink, member->entity, &groups[GROUP_PSS], reason);
			whole = false;
			continue;
		}
		if (!k->stream) {
			k->stream = sink_stream(sink, member->entity, &groups[GROUP_PSS]);
		}
		stream_row(k->stream, now_ns, values);
		add_sums(s->sums, values);
	}
	s->round_done = whole;
}

static bool epoch_ended(const struct memory_source *s)
{
	return s->epochs && atomic_load(s->epochs) != s->epochs_seen;
}

static int read_pss(void *state, struct sink *sink, uint64_t now_ns)
{
	struct memory_source *s = state;
	if (update_known(s) < 0) {
		return 0;
	}
	for (size_t i = 0; i < s->n_members && !s->captured; i++) {
		struct known *k = &s->known[i];
		if (!k->described || k->renamed != s->members[i].renamed) {
			describe(s, sink, &s->members[i], k);
		}
	}
	if (s->n_members > 0 && s->began_ns == 0) {
		s->began_ns = now_ns;
		s->next_round_ns = now_ns + (s->captured ? 0 : FIRST_ROUND_NS);
	}
	if (s->began_ns == 0 || now_ns < (epoch_ended(s) ? s->epoch_round_ns : s->next_round_ns)) {
		return 0;
	}
	s->epochs_seen = s->epochs ? atomic_load(s->epochs) : 0;
	read_round(s, sink, now_ns);
	uint64_t after_ns = clock_monotonic_ns();
	s->spent_ns += after_ns > now_ns ? after_ns - now_ns : 0;
	bool early = !s->charged && after_ns < s->began_ns + EARLY_NS;
	s->early_ns = early ? s->spent_ns : s->early_ns;
	uint64_t owed_ns = s->early_ns * EARLY_SHARE + (s->spent_ns - s->early_ns) * ROUND_SHARE;
	uint64_t earned_ns = s->began_ns + owed_ns;
	s->next_round_ns = after_ns + ROUND_MIN_NS;
	s->epoch_round_ns = after_ns + (after_ns - now_ns) * EPOCH_SHARE;
	s->next_round_ns = earned_ns > s->next_round_ns ? earned_ns : s->next_round_ns;
	return 0;
}

static int read_job_pss(void *state, struct sink *sink, uint64_t now_ns)
{
	struct memory_source *s = state;
	if (!s->round_done || !s->job) {
		return 0;
	}
	s->round_done = false;
	if (!s->job_stream) {
		s->job_stream = sink_stream(sink, s->job, &groups[GROUP_JOB_PSS]);
	}
	stream_row(s->job_stream, now_ns, s->sums);
	return 0;
}

static int read_cost(void *state, struct sink *sink, uint64_t now_ns)
{
	struct memory_source *s = state;
	const int64_t values[N_COST] = {
		[COST_READINGS] = (int64_t)s->readings,
		[COST_TIME] = (int64_t)(s->spent_ns / NS_PER_US),
	};
	if (!s->cost_stream && s->recorder) {
		s->cost_stream = sink_stream(sink, s->recorder, &groups[GROUP_COST]);
	}
	stream_row(s->cost_stream, now_ns, values);
	return 0;
}

// Opening -----------------------------------------------------------------------------------------

static void memory_source_close(void *state)
{
	struct memory_source *s = state;
	if (!s) {
		return;
	}
	free(s->members);
	free(s->known);
	free(s->buffer);
	free(s);
}

static int memory_source_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	(void)sink;
	if (!context->tree) {
		return error_set(e, ENOENT, "no job");
	}
	struct memory_source *s = calloc(1, sizeof(*s));
	char *buffer = malloc(ENVIRON_MAX_BYTES);
	if (!s || !buffer) {
		free(s);
		free(buffer);
		return error_set(e, ENOMEM, "out of memory");
	}
	*s = (struct memory_source){
		.tree = context->tree,
		.root_fd = context->root_fd,
		.job = context->job,
		.recorder = context->recorder,
		.captured = context->captured,
		.charged = context->cgroup && context->cgroup->memory,
		.epochs = context->epochs,
		.buffer = buffer,
	};
	if (!context->captured) {
		_cleanup_free_ char *strain = installation_find("strain", X_OK, NULL);
		note_own_program(&s->own[0], "/proc/self/exe");
		note_own_program(&s->own[1], strain);
	}
	*ret_state = s;
	return 0;
}

const struct source source_memory = {
	.name = "memory",
	.help = "proportional memory and command lines of the job's processes",
	.lane = LANE_MEMORY,
	.groups = groups,
	.n_groups = N_GROUPS,
	.open = memory_source_open,
	.close = memory_source_close,
};
