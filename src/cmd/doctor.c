// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain doctor: reports what this machine can measure, and how to enable the rest. It tries
// everything once, as a run would, and records nothing.

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "machine/cgroup.h"
#include "machine/file.h"
#include "machine/machine.h"
#include "machine/tree.h"
#include "record/job/injection.h"
#include "record/job/limits.h"
#include "record/sample/source.h"
#include "record/source/availability.h"
#include "runfile/writer.h"
#include "show/json.h"
#include "show/table.h"

// Checks besides the sources: this machine, this user and this directory.

struct job_cgroup;

enum doctor_state { DOCTOR_AVAILABLE, DOCTOR_PARTLY, DOCTOR_MISSING };

struct doctor_check {
	const char *name;
	enum doctor_state state;
	char detail[600];
};

// One check for each limit.
#define DOCTOR_LIMITS 4

struct source;

struct group;

// Checks ------------------------------------------------------------------------------------------
//
// Each check tries the feature itself: permissions and versions are not reliable.

static const char *doctor_state_name(enum doctor_state state)
{
	static const char *const names[] = {
		[DOCTOR_AVAILABLE] = "available",
		[DOCTOR_PARTLY] = "partly",
		[DOCTOR_MISSING] = "missing",
	};
	return names[state];
}

static void __attribute__((format(printf, 4, 5)))
report(struct doctor_check *ret, const char *name, enum doctor_state state, const char *format, ...)
{
	va_list arguments;
	*ret = (struct doctor_check){.name = name, .state = state};
	va_start(arguments, format);
	vsnprintf(ret->detail, sizeof(ret->detail), format, arguments);
	va_end(arguments);
}

// The precision of the job's CPU time. cgroup: the one that a run would get, or NULL with the
// reason.
static void doctor_check_cpu_time(
	const struct job_cgroup *cgroup, const struct error *why, struct doctor_check *ret)
{
	if (cgroup && cgroup->cpu) {
		report(ret, "cpu time", DOCTOR_AVAILABLE, "exact: own cgroup (v%d) in /%.*s",
			cgroup->version, (int)(strrchr(cgroup->cpu, '/') - cgroup->cpu),
			cgroup->cpu);
	} else {
		report(ret, "cpu time", DOCTOR_PARTLY,
			"exact unless a process ignores SIGCHLD; the job has no cgroup of its own: "
			"%s",
			cgroup ? "cpuacct is not writable" : why->text);
	}
}

// The punctuality of the recorder's ticks.
static void doctor_check_timing(struct doctor_check *ret)
{
	const struct sched_param first = {.sched_priority = 1}, none = {.sched_priority = 0};
	if (sched_setscheduler(0, SCHED_FIFO, &first) == 0) {
		(void)sched_setscheduler(0, SCHED_OTHER, &none);
		report(ret, "timing", DOCTOR_AVAILABLE,
			"real-time priority (SCHED_FIFO) is available: ticks are accurate to about "
			"0.1 ms even next to busy jobs");
	} else {
		report(ret, "timing", DOCTOR_PARTLY,
			"no real-time priority (%s): next to busy jobs, ticks can be some "
			"milliseconds late; enable it with CAP_SYS_NICE, or a limit of at least 1 "
			"(ulimit -r 1)",
			strerrordesc_np(errno));
	}
}

// With the mount option hidepid, /proc does not show the processes of others.
static bool others_are_hidden(void)
{
	return access("/proc/1/stat", R_OK) < 0;
}

// The processes that --pid can record.
static void doctor_check_others(struct doctor_check *ret)
{
	static const char name[] = "other jobs";
	_cleanup_close_ int fd = open("/proc/1/io", O_RDONLY | O_CLOEXEC);
	char buffer[512];
	struct cursor text;
	if (fd >= 0 && file_pread(fd, buffer, sizeof(buffer), &text) == 0) {
		report(ret, name, DOCTOR_AVAILABLE, "--pid can record the processes of every user");
	} else if (geteuid() == 0) {
		report(ret, name, DOCTOR_PARTLY,
			"--pid can record processes with no more privileges than this one (those "
			"of pid 1)");
	} else if (others_are_hidden()) {
		report(ret, name, DOCTOR_PARTLY,
			"--pid can record only your own processes: /proc hides all others "
			"(hidepid)");
	} else {
		report(ret, name, DOCTOR_PARTLY,
			"for other users' processes, --pid measures only CPU time; memory and I/O "
			"need root");
	}
}

// Whether ranges that a job marks with NVTX can be recorded.
static void doctor_check_nvtx(struct doctor_check *ret)
{
	static const char name[] = "nvtx";
	_cleanup_free_ char *library = NULL;
	struct error e = {0};
	if (injection_nvtx(NULL, &library, &e) == 0) {
		report(ret, name, DOCTOR_AVAILABLE, "NVTX ranges and marks become spans");
	} else {
		report(ret, name, DOCTOR_MISSING, "NVTX ranges are not recorded: %s", e.text);
	}
}

// Whether a run file can be written to the current directory, and how soon it has the readings.
static void doctor_check_run_file(struct doctor_check *ret)
{
	static const char name[] = "run file";
	char path[64], beside[80];
	struct writer *writer = NULL;
	struct error e = {0};
	const struct writer_options options = {.replace = true};
	snprintf(path, sizeof(path), ".strain-doctor-%d.strain", (int)getpid());
	if (writer_create(path, &options, &writer, &e) < 0) {
		report(ret, name, DOCTOR_PARTLY,
			"runs go to $XDG_STATE_HOME/strain unless -o is given: the current "
			"directory is not writable (%s)",
			e.code ? strerrordesc_np(e.code) : "unknown error");
	} else if (writer_uses_wal(writer)) {
		report(ret, name, DOCTOR_AVAILABLE,
			"in the current directory, at most two seconds behind (WAL)");
	} else {
		report(ret, name, DOCTOR_PARTLY,
			"in the current directory, up to ten seconds behind: its file system does "
			"not support WAL; a local disk (-o) is more durable");
	}
	writer_free(writer);
	static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
	for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
		snprintf(beside, sizeof(beside), "%s%s", path, endings[i]);
		(void)unlink(beside);
	}
}

// Hooks -------------------------------------------------------------------------------------------
//
// Whether training jobs will mark themselves. To save seconds, nothing is run or imported: PyTorch
// is searched in the packages of the Pythons in PATH. A job can use another one.

enum { PYTHONS_MAX = 8 };

// Reads the version in "__version__ = '1.13.0'".
static bool read_version(const char *path, char *version, size_t size)
{
	char buffer[4096];
	struct cursor text, line;
	static const char name[] = "__version__ = '";
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || file_pread(fd, buffer, sizeof(buffer), &text) < 0) {
		return false;
	}
	while (cursor_line(&text, &line)) {
		size_t length = (size_t)(line.end - line.at), skip = strlen(name);
		if (length > skip && strncmp(line.at, name, skip) == 0) {
			const char *end = memchr(line.at + skip, '\'', length - skip);
			snprintf(version, size, "%.*s",
				end ? (int)(end - line.at - (ptrdiff_t)skip) : 0, line.at + skip);
			return end != NULL;
		}
	}
	return false;
}

// Searches below a prefix (/usr for /usr/bin/python3), in the layouts of Python itself and of
// Debian.
static bool find_torch(const char *prefix, char *version, size_t size)
{
	static const char *const places[] = {"lib/python3*/site-packages",
		"lib/python3*/dist-packages", "lib64/python3*/site-packages"};
	bool found = false;
	for (size_t i = 0; i < ARRAY_LENGTH(places) && !found; i++) {
		char pattern[PATH_MAX + 64];
		glob_t matches;
		snprintf(pattern, sizeof(pattern), "%s/%s/torch/version.py", prefix, places[i]);
		if (glob(pattern, 0, NULL, &matches) == 0) {
			for (size_t k = 0; k < matches.gl_pathc && !found; k++) {
				found = read_version(matches.gl_pathv[k], version, size);
			}
			globfree(&matches);
		}
	}
	return found;
}

// Checks a few python3 of PATH: `python` is the first one with PyTorch.
static bool search_path(char *python, size_t size, char *version, size_t version_size)
{
	const char *at = getenv("PATH");
	for (unsigned n = 0; at && *at && n < PYTHONS_MAX;) {
		size_t length = strcspn(at, ":");
		char directory[PATH_MAX];
		snprintf(directory, sizeof(directory), "%.*s", (int)length, at);
		snprintf(python, size, "%s/python3", directory);
		char *last = strrchr(directory, '/');
		if (length < PATH_MAX && last && access(python, X_OK) == 0) {
			n++;
			*last = '\0';
			if (find_torch(directory, version, version_size)) {
				return true;
			}
		}
		at += length + (at[length] == ':');
	}
	return false;
}

// Whether the hooks are installed, and PyTorch for them.
static void doctor_check_hooks(struct doctor_check *ret)
{
	struct error e = {0};
	_cleanup_free_ char *folder = NULL;
	char python[PATH_MAX + 16] = "", version[64] = "";
	*ret = (struct doctor_check){.name = "hooks", .state = DOCTOR_AVAILABLE};
	if (injection_hooks(NULL, &folder, &e) < 0) {
		ret->state = DOCTOR_MISSING;
		snprintf(ret->detail, sizeof(ret->detail),
			"training jobs are not marked automatically: %.150s", e.text);
	} else if (search_path(python, sizeof(python), version, sizeof(version))) {
		snprintf(ret->detail, sizeof(ret->detail),
			"epochs and phases are marked in PyTorch %.32s of %.80s, and in other "
			"Pythons with PyTorch 1.13 or newer",
			version, python);
	} else {
		snprintf(ret->detail, sizeof(ret->detail),
			"epochs and phases are marked with PyTorch 1.13 or newer; the python3 of "
			"PATH has none");
	}
}

// Limits ------------------------------------------------------------------------------------------
//
// The limits that `strain run` can set for its job: each is set on an empty cgroup.

// An amount that every machine has.
static const struct {
	const char *name;
	const char *least;
} limit_checks[N_LIMITS] = {
	[LIMIT_CPUS] = {"limit cpus", "1"},
	[LIMIT_MEMORY] = {"limit memory", "1MiB"},
	[LIMIT_DISK_READ] = {"limit disk read", "4KiB/s"},
	[LIMIT_GPUS] = {"limit gpus", "1"},
};

// Appends "(cpuset 0)" of "1 (cpuset 0)", since the amount is arbitrary.
static void append_how(struct doctor_check *check, enum limit limit, const char *set)
{
	const char *open = strchr(set, '('), *close = open ? strrchr(open, ')') : NULL;
	size_t length = close ? (size_t)(close - open) - 1 : 0;
	if (limit == LIMIT_CPUS || limit == LIMIT_GPUS) {
		const char *end = close ? memchr(open, limit == LIMIT_CPUS ? ' ' : '=', length)
		                        : NULL;
		length = end ? (size_t)(end - open) - 1 : length;
	}
	snprintf(check->detail, sizeof(check->detail), "%s can be set: %.*s", limit_option(limit),
		(int)length, open ? open + 1 : "");
}

static void try_limit(enum limit limit, const struct limits_place *place, struct doctor_check *ret)
{
	struct limits_wanted wanted = {0};
	struct limits limits = {0};
	struct error e = {0};
	*ret = (struct doctor_check){.name = limit_checks[limit].name, .state = DOCTOR_AVAILABLE};
	int rc = limits_read(&wanted, limit, limit_checks[limit].least, &e);
	rc = rc < 0 ? rc : limits_set(&wanted, place, &limits, &e);
	if (rc == 0) {
		append_how(ret, limit, limits.set[limit]);
	} else {
		bool none = limit == LIMIT_GPUS; // a limit of 0 GPUs can always be set
		ret->state = none ? DOCTOR_PARTLY : DOCTOR_MISSING;
		snprintf(ret->detail, sizeof(ret->detail), "%s%s%s", limit_option(limit),
			none ? " 0 only" : "", e.text + strlen(limit_option(limit)));
	}
	limits_done(&limits);
	limits_wanted_done(&wanted);
}

// Whether `strain run` can limit its job: a check for each limit, in ret[DOCTOR_LIMITS]. cgroup:
// the one that a run would get, or NULL with the reason.
static void doctor_check_limits(
	struct job_cgroup *cgroup, const struct error *why, struct doctor_check *ret)
{
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct limits_place place = {root_fd, cgroup, why};
	for (size_t i = 0; i < N_LIMITS; i++) {
		try_limit((enum limit)i, &place, &ret[i]);
	}
}

// Descriptions ------------------------------------------------------------------------------------
//
// A row for each group of metrics: docs/metrics.md lists their metrics.

static const struct {
	const char *source;
	const char *group;
	const char *words;
} rows[] = {
	{"processes", "cpu", "CPU time and memory"},
	{"processes", "job", "number of processes"},
	{"processes", "stat", "waits, page faults and threads"},
	{"processes", "job_stopped", "stops"},
	{"processes", "io", "I/O"},
	{"processes", "job_io", "the job's I/O"},
	{"processes", "status", "context switches and swap"},
	{"processes", "job_peak", "peak memory of the job"},
	{"memory", "pss", "proportional memory (PSS)"},
	{"memory", "job_pss", "the job's PSS"},
	{"memory", "cost", "its cost"},
	{"cgroup", "cpu", "CPU time"},
	{"cgroup", "throttling", "throttling"},
	{"cgroup", "limits", "CPU and memory limits"},
	{"cgroup", "memory", "memory by use"},
	{"cgroup", "io", "storage"},
	{"cgroup", "pressure", "pressure"},
	{"pressure", "cpu", "CPU"},
	{"pressure", "memory", "memory"},
	{"pressure", "io", "storage"},
	{"host", "cpu", "CPU time by mode"},
	{"host", "memory", "memory by use"},
	{"host", "paging", "paging"},
	{"host", "load", "load"},
	{"disks", "io", "reads, writes and queues"},
	{"network", "io", "bytes and packets"},
	{"nvml", "utilization", "utilization"},
	{"nvml", "memory", "memory"},
	{"nvml", "clock", "clocks and throttling"},
	{"nvml", "power", "power and energy"},
	{"nvml", "pcie", "PCIe traffic"},
	{"nvml", "nvlink", "NVLink traffic"},
	{"nvml", "gpm", "SM and memory activity"},
	{"nvml", "state", "temperature, power limit and PCIe link"},
	{"nvml", "errors", "errors"},
	{"nvml", "job", "the job's memory"},
	{"nvml", "gpu_processes", "memory and utilisation of each process"},
	{"waits", "waits", "waits of first threads"},
	{"threads", "threads", "threads by purpose"},
	{"profile", "profile", "CPU time samples"},
};

// "waits, page faults and threads"; the group's own name if it has no description. Static.
static const char *doctor_group_words(const struct source *source, const struct group *group)
{
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		if (strcmp(rows[i].source, source->name) == 0 &&
			strcmp(rows[i].group, group->name) == 0) {
			return rows[i].words;
		}
	}
	return group->name;
}

// Doctor ------------------------------------------------------------------------------------------

struct options {
	const char *sysroot;
	bool metrics;
	bool json;
};

enum { MAX_CHECKS = 6 + DOCTOR_LIMITS };

// All results.
struct findings {
	bool captured;
	struct machine machine;
	struct doctor_check checks[MAX_CHECKS];
	size_t n_checks;
	struct availability *probe;
};

// Trying ------------------------------------------------------------------------------------------

// The first process; in a captured tree, the one that `self` was.
static pid_t first_process(int root_fd, bool captured)
{
	char buffer[512];
	struct cursor text;
	uint64_t pid;
	if (!captured) {
		return getpid();
	}
	return file_read_once(root_fd, "proc/self/stat", buffer, sizeof(buffer), &text, NULL) ==
	                               0 &&
	                       cursor_u64(&text, &pid) && pid < INT32_MAX
	               ? (pid_t)pid
	               : 1;
}

// Gives the job a cgroup as a run would, so that sources can read it.
static int find_out(int root_fd, struct findings *f, struct error *e)
{
	struct job_cgroup cgroup = {0};
	struct error why = {0};
	struct source_context context = {.root_fd = root_fd, .captured = f->captured};
	// If this fails, because there is no /proc, the sources report it.
	if (tree_new(root_fd, f->captured, &context.tree, NULL) == 0) {
		tree_start(context.tree, first_process(root_fd, f->captured), 0, NULL);
	}
	int made = f->captured ? job_cgroup_find(root_fd, &cgroup)
	                       : job_cgroup_create(&cgroup, &why);
	context.cgroup = made == 0 ? &cgroup : NULL;
	machine_read(root_fd, &f->machine);
	int r = availability_run(&context, &f->probe);
	if (!f->captured) {
		doctor_check_cpu_time(context.cgroup, &why, &f->checks[f->n_checks++]);
		doctor_check_timing(&f->checks[f->n_checks++]);
		doctor_check_others(&f->checks[f->n_checks++]);
		doctor_check_nvtx(&f->checks[f->n_checks++]);
		doctor_check_hooks(&f->checks[f->n_checks++]);
		doctor_check_run_file(&f->checks[f->n_checks++]);
		doctor_check_limits(made == 0 ? &cgroup : NULL, &why, &f->checks[f->n_checks]);
		f->n_checks += DOCTOR_LIMITS;
	}
	tree_free(context.tree);
	if (made == 0 && !f->captured) {
		(void)job_cgroup_remove(&cgroup);
	}
	job_cgroup_done(&cgroup);
	return r < 0 ? error_errno(e, -r, "cannot try the sources") : 0;
}

// Descriptions of sources -------------------------------------------------------------------------

static bool has_value(const struct availability_value *v)
{
	return v->value != VALUE_MISSING;
}

static enum doctor_state state_of(const struct availability_result *r)
{
	size_t values = 0, reasons = 0;
	for (size_t i = 0; i < r->n_values; i++) {
		values += has_value(&r->values[i]);
		reasons += r->values[i].reason != NULL;
	}
	return values == 0 ? DOCTOR_MISSING : reasons ? DOCTOR_PARTLY : DOCTOR_AVAILABLE;
}

// Adds a word to an array, once.
static void add_word(json_t *list, const char *word)
{
	size_t i;
	json_t *other;
	json_array_foreach(list, i, other)
	{
		if (strcmp(json_string_value(other), word) == 0) {
			return;
		}
	}
	json_array_append_new(list, json_string(word));
}

// Returns "a, b", owned by the caller; takes the list.
static char *join_words(json_t *list)
{
	struct text joined = {0};
	size_t i;
	json_t *word;
	json_array_foreach(list, i, word)
	{
		text_format(&joined, "%s%s", i ? ", " : "", json_string_value(word));
	}
	json_decref(list);
	return text_steal(&joined);
}

static bool stands_for_itself(enum entity_kind kind)
{
	return kind == ENTITY_DISK || kind == ENTITY_NETWORK || kind == ENTITY_GPU;
}

// The groups with values; if each entity is a device, the devices.
static char *describe_measured(const struct availability_result *r)
{
	json_t *list = json_array();
	for (size_t i = 0; i < r->n_values; i++) {
		const struct availability_value *v = &r->values[i];
		if (has_value(v)) {
			add_word(list, stands_for_itself(v->group->entity_kind)
					       ? v->entity
					       : doctor_group_words(r->source, v->group));
		}
	}
	return join_words(list);
}

// Whether every metric of the group has this reason, for the entity or (NULL) for all.
static bool is_reason_of_all(const struct availability_result *r, const struct group *group,
	const char *entity, const char *reason)
{
	for (size_t i = 0; i < r->n_values; i++) {
		const struct availability_value *v = &r->values[i];
		if (v->group == group && (!entity || strcmp(v->entity, entity) == 0) &&
			(!v->reason || strcmp(v->reason, reason) != 0)) {
			return false;
		}
	}
	return true;
}

// Adds the name of a missing value: the group if all of it is missing; the group and the entity if
// other entities have it; else the metric.
static void add_missing(
	json_t *list, const struct availability_result *r, const struct availability_value *v)
{
	const char *words = doctor_group_words(r->source, v->group);
	if (is_reason_of_all(r, v->group, NULL, v->reason)) {
		add_word(list, words);
	} else if (v->group->n_metrics > 1 && is_reason_of_all(r, v->group, v->entity, v->reason)) {
		struct text word = {0};
		text_format(&word, "%s of %s", words, v->entity);
		add_word(list, word.data ? word.data : words);
		text_done(&word);
	} else {
		add_word(list, v->group->metrics[v->metric].name);
	}
}

static bool has_reason(const struct availability_value *v, const char *reason)
{
	return v->reason && strcmp(v->reason, reason) == 0;
}

// Whether value i is the first with its reason.
static bool is_first_with_reason(const struct availability_result *r, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (r->values[i].reason && has_reason(&r->values[k], r->values[i].reason)) {
			return false;
		}
	}
	return r->values[i].reason;
}

// All that is missing for a reason: "storage, pressure".
static char *describe_missing(const struct availability_result *r, const char *reason)
{
	json_t *list = json_array();
	for (size_t k = 0; k < r->n_values; k++) {
		if (has_reason(&r->values[k], reason)) {
			add_missing(list, r, &r->values[k]);
		}
	}
	return join_words(list);
}

// For people --------------------------------------------------------------------------------------

static void print_words(const char *before, const char *words, const char *after)
{
	_cleanup_text_ struct text shown = {0};
	text_append_printable(&shown, words, strlen(words));
	printf("%s%s%s", before, shown.data ? shown.data : "", after);
}

static void print_machine(const struct machine *m)
{
	char buffer[32];
	print_words("", *m->name ? m->name : "this machine", ": ");
	if (m->cpus) {
		printf("%u CPUs", m->cpus);
	} else {
		printf("CPUs unknown");
	}
	if (*m->cpu_model) {
		print_words(" (", m->cpu_model, ")");
	}
	if (m->nodes > 1) {
		printf(", %u NUMA nodes", m->nodes);
	}
	if (m->memory_bytes) {
		printf(", %s", text_bytes(buffer, sizeof(buffer), (double)m->memory_bytes));
	}
	if (*m->kernel) {
		print_words(", Linux ", m->kernel, "");
	}
	if (m->cpus_allowed && m->cpus_allowed < m->cpus) {
		printf("; affinity: %u CPUs", m->cpus_allowed);
	}
	if (m->cpu_quota > 0) {
		printf("; quota: %.4g CPUs", m->cpu_quota);
	}
	if (m->memory_limit_bytes) {
		double limit = (double)m->memory_limit_bytes;
		printf("; limit: %s", text_bytes_beside(buffer, sizeof(buffer), limit, limit));
	}
	printf("\n\n");
}

static void add_row(struct table *t, const char *name, const char *state, const char *detail)
{
	table_row(t);
	table_text(t, 0, name);
	table_text(t, 1, state);
	table_text(t, 2, detail);
}

static void add_source(struct table *t, const struct availability_result *r)
{
	enum doctor_state state = state_of(r);
	_cleanup_free_ char *measured = describe_measured(r);
	const char *name = r->source->name, *word = doctor_state_name(state);
	if (state == DOCTOR_MISSING) {
		bool nothing_said = r->n_values == 0 || !r->values[0].reason;
		add_row(t, name, word,
			r->failed.code ? r->failed.text
			: nothing_said ? "nothing to measure here"
				       : r->values[0].reason);
		return;
	}
	add_row(t, name, word, measured);
	for (size_t i = 0; i < r->n_values; i++) {
		if (is_first_with_reason(r, i)) {
			const char *reason = r->values[i].reason;
			_cleanup_free_ char *missing = describe_missing(r, reason);
			_cleanup_text_ struct text line = {0};
			text_format(&line, "%s missing: %s", missing ? missing : "", reason);
			add_row(t, "", "", line.data ? line.data : reason);
		}
	}
}

static int print_overview(const struct findings *f)
{
	static const struct column columns[] = {
		{"source", "SOURCE", COLUMN_LABEL, 0},
		{"state", "STATE", COLUMN_LABEL, 0},
		{"detail", "", COLUMN_PROSE, 0},
	};
	struct table *t;
	size_t n;
	const struct availability_result *results = availability_results(f->probe, &n);
	int r = table_new(columns, ARRAY_LENGTH(columns), &t);
	if (r < 0) {
		return r;
	}
	for (size_t i = 0; i < n; i++) {
		add_source(t, &results[i]);
	}
	for (size_t i = 0; i < f->n_checks; i++) {
		const struct doctor_check *c = &f->checks[i];
		add_row(t, c->name, doctor_state_name(c->state), c->detail);
	}
	struct table_style style = table_style_for(stdout);
	print_machine(&f->machine);
	r = table_print(t, stdout, &style);
	table_free(t);
	return r;
}

// "25,276,514,304 B", "70.44 s", "12": all digits, for comparison.
static void format_value(char *buffer, size_t size, const struct metric *metric, int64_t value)
{
	double scaled = (double)value * metric->scale;
	if (metric->unit[0] == '{' || strcmp(metric->unit, "1") == 0) {
		snprintf(buffer, size, "%.12g", scaled);
	} else {
		bool bytes = strcmp(metric->unit, "By") == 0;
		snprintf(buffer, size, "%.15g %s", scaled, bytes ? "B" : metric->unit);
	}
}

static void add_metric(struct table *t, const char *source, const struct availability_value *v)
{
	const struct metric *metric = &v->group->metrics[v->metric];
	char value[64] = "";
	if (has_value(v)) {
		format_value(value, sizeof(value), metric, v->value);
	}
	table_row(t);
	table_text(t, 0, source);
	table_text(t, 1, *v->entity ? v->entity : entity_kind_name(v->group->entity_kind));
	table_text(t, 2, metric->name);
	table_text(t, 3, has_value(v) ? value : v->reason ? v->reason : "no value yet");
}

static int print_metrics(const struct findings *f)
{
	static const struct column columns[] = {
		{"source", "SOURCE", COLUMN_LABEL, 0},
		{"entity", "ENTITY", COLUMN_LABEL, 0},
		{"metric", "METRIC", COLUMN_LABEL, 0},
		{"value", "VALUE, OR WHY NOT", COLUMN_PROSE, 0},
	};
	struct table *t;
	size_t n;
	const struct availability_result *results = availability_results(f->probe, &n);
	int r = table_new(columns, ARRAY_LENGTH(columns), &t);
	if (r < 0) {
		return r;
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < results[i].n_values; k++) {
			add_metric(t, results[i].source->name, &results[i].values[k]);
		}
	}
	struct table_style style = table_style_for(stdout);
	r = table_print(t, stdout, &style);
	table_free(t);
	return r;
}

// For programs ------------------------------------------------------------------------------------

static json_t *metric_to_json(const struct availability_value *v)
{
	const struct metric *metric = &v->group->metrics[v->metric];
	json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "metric", metric->name, "entity_kind",
		entity_kind_name(v->group->entity_kind), "entity", v->entity, "unit", metric->unit);
	if (has_value(v)) {
		json_object_set_new(o, "value", json_real((double)v->value * metric->scale));
	} else {
		json_object_set_new(o, "value", json_null());
		json_object_set_new(o, "reason", v->reason ? json_string(v->reason) : json_null());
	}
	return o;
}

// Names of the metrics with a value (reason NULL), or missing for a reason.
static json_t *metric_names(const struct availability_result *r, const char *reason)
{
	json_t *names = json_array();
	for (size_t i = 0; i < r->n_values; i++) {
		const struct availability_value *v = &r->values[i];
		if (reason ? has_reason(v, reason) : has_value(v)) {
			add_word(names, v->group->metrics[v->metric].name);
		}
	}
	return names;
}

static json_t *device_names(const struct availability_result *r)
{
	json_t *names = json_array();
	for (size_t i = 0; i < r->n_values; i++) {
		const struct availability_value *v = &r->values[i];
		if (has_value(v) && stands_for_itself(v->group->entity_kind)) {
			add_word(names, v->entity);
		}
	}
	return names;
}

static json_t *missing_to_json(const struct availability_result *r, const char *reason)
{
	_cleanup_free_ char *what = describe_missing(r, reason);
	return json_pack("{s:s?, s:o, s:s}", "what", what, "metrics", metric_names(r, reason),
		"reason", reason);
}

static json_t *source_to_json(const struct availability_result *r, bool metrics)
{
	json_t *missing = json_array(), *list = json_array();
	for (size_t i = 0; i < r->n_values; i++) {
		if (is_first_with_reason(r, i)) {
			json_array_append_new(missing, missing_to_json(r, r->values[i].reason));
		}
		if (metrics) {
			json_array_append_new(list, metric_to_json(&r->values[i]));
		}
	}
	json_t *o = json_pack("{s:s, s:s, s:s, s:o, s:o, s:s?, s:o}", "source", r->source->name,
		"help", r->source->help, "state", doctor_state_name(state_of(r)), "measured",
		metric_names(r, NULL), "devices", device_names(r), "reason",
		r->failed.code ? r->failed.text : NULL, "missing", missing);
	if (metrics) {
		json_object_set(o, "metrics", list);
	}
	json_decref(list);
	return o;
}

static int print_json(const struct findings *f, bool metrics)
{
	size_t n;
	const struct availability_result *results = availability_results(f->probe, &n);
	json_t *sources = json_array(), *checks = json_array();
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(sources, source_to_json(&results[i], metrics));
	}
	for (size_t i = 0; i < f->n_checks; i++) {
		const struct doctor_check *c = &f->checks[i];
		json_array_append_new(
			checks, json_pack("{s:s, s:s, s:s}", "check", c->name, "state",
					doctor_state_name(c->state), "detail", c->detail));
	}
	_cleanup_free_ char *attributes = machine_attributes(&f->machine);
	json_t *machine = attributes ? json_loads(attributes, 0, NULL) : NULL;
	json_t *all = json_pack(
		"{s:o?, s:o, s:o}", "machine", machine, "sources", sources, "checks", checks);
	return json_write(all, stdout);
}

// Options -----------------------------------------------------------------------------------------

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case 's':
		o->sysroot = argument;
		return 0;
	case 'm':
		o->metrics = true;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case ARGP_KEY_ARG:
		reading_option_error(state, "unexpected argument '%s'", argument);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int command_doctor(int argc, char **argv)
{
	static const struct argp_option argp_options[] = {
		{"metrics", 'm', NULL, 0,
			"show each metric with its value, or the reason why it "
			"is missing",
			0},
		{"json", 'j', NULL, 0, "print JSON", 0},
		{"sysroot", 's', "DIR", 0,
			"examine a captured machine instead: a folder with proc "
			"and sys",
			0},
		{0},
	};
	static const struct argp argp = {argp_options, parse_option, NULL,
		"Report what this machine can measure, and how to enable the rest.", NULL, NULL,
		NULL};
	struct options options = {0};
	reading_options(&argp, argc, argv, &options);
	const char *root = options.sysroot ? options.sysroot : "/";
	_cleanup_close_ int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0) {
		return command_fail("cannot examine %s: %s", root, strerrordesc_np(errno));
	}
	struct findings findings = {.captured = options.sysroot != NULL};
	struct error e = {0};
	if (find_out(root_fd, &findings, &e) < 0) {
		return command_fail("%s", e.text);
	}
	int r = options.json      ? print_json(&findings, options.metrics)
	        : options.metrics ? print_metrics(&findings)
	                          : print_overview(&findings);
	availability_free(findings.probe);
	if (r < 0 || fflush(stdout) != 0) {
		return command_fail("cannot print: %s", strerrordesc_np(r < 0 ? -r : errno));
	}
	return STATUS_OK;
}
