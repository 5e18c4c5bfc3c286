// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Each check tries the feature itself: permissions and versions are not reliable.

#include "record/readiness.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "machine/cgroup.h"
#include "machine/file.h"
#include "machine/tree.h"
#include "record/job/injection.h"
#include "runfile/writer.h"

const char *readiness_state_name(enum readiness_state state)
{
	static const char *const names[] = {
		[READINESS_AVAILABLE] = "available",
		[READINESS_PARTLY] = "partly",
		[READINESS_MISSING] = "missing",
	};
	return names[state];
}

static void __attribute__((format(printf, 4, 5))) report(struct readiness_check *ret,
	const char *name, enum readiness_state state, const char *format, ...)
{
	va_list arguments;
	*ret = (struct readiness_check){.name = name, .state = state};
	va_start(arguments, format);
	vsnprintf(ret->detail, sizeof(ret->detail), format, arguments);
	va_end(arguments);
}

// The precision of the job's CPU time. cgroup: the one that a run would get, or NULL with the
// reason.
static void check_cpu_time(
	const struct job_cgroup *cgroup, const struct error *why, struct readiness_check *ret)
{
	if (cgroup && cgroup->cpu) {
		report(ret, "cpu time", READINESS_AVAILABLE, "exact: own cgroup (v%d) in /%.*s",
			cgroup->version, (int)(strrchr(cgroup->cpu, '/') - cgroup->cpu),
			cgroup->cpu);
	} else {
		report(ret, "cpu time", READINESS_PARTLY,
			"exact unless a process ignores SIGCHLD; the job has no cgroup of its own: "
			"%s",
			cgroup ? "cpuacct is not writable" : why->text);
	}
}

// The punctuality of the recorder's ticks.
static void check_timing(struct readiness_check *ret)
{
	const struct sched_param first = {.sched_priority = 1}, none = {.sched_priority = 0};
	if (sched_setscheduler(0, SCHED_FIFO, &first) == 0) {
		(void)sched_setscheduler(0, SCHED_OTHER, &none);
		report(ret, "timing", READINESS_AVAILABLE,
			"real-time priority (SCHED_FIFO) is available: ticks are accurate to about "
			"0.1 ms even next to busy jobs");
	} else {
		report(ret, "timing", READINESS_PARTLY,
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
static void check_others(struct readiness_check *ret)
{
	static const char name[] = "other jobs";
	_cleanup_close_ int fd = open("/proc/1/io", O_RDONLY | O_CLOEXEC);
	char buffer[512];
	struct cursor text;
	if (fd >= 0 && file_pread(fd, buffer, sizeof(buffer), &text) == 0) {
		report(ret, name, READINESS_AVAILABLE,
			"--pid can record the processes of every user");
	} else if (geteuid() == 0) {
		report(ret, name, READINESS_PARTLY,
			"--pid cannot record processes with more privileges than this one, such as "
			"pid 1");
	} else if (others_are_hidden()) {
		report(ret, name, READINESS_PARTLY,
			"--pid can record only your own processes: /proc hides all others "
			"(hidepid)");
	} else {
		report(ret, name, READINESS_PARTLY,
			"for other users' processes, --pid measures only CPU time; memory and I/O "
			"need root");
	}
}

// Whether ranges that a job marks with NVTX can be recorded.
static void check_nvtx(struct readiness_check *ret)
{
	static const char name[] = "nvtx";
	_cleanup_free_ char *library = NULL;
	struct error e = {0};
	if (injection_nvtx(NULL, &library, &e) == 0) {
		report(ret, name, READINESS_AVAILABLE, "NVTX ranges and marks become spans");
	} else {
		report(ret, name, READINESS_MISSING, "NVTX ranges are not recorded: %s", e.text);
	}
}

// Whether a run file can be written to the current directory, and how soon it has the readings.
static void check_run_file(struct readiness_check *ret)
{
	static const char name[] = "run file";
	char path[64], beside[80];
	struct writer *writer = NULL;
	struct error e = {0};
	const struct writer_options options = {.replace = true};
	snprintf(path, sizeof(path), ".strain-doctor-%d.strain", (int)getpid());
	if (writer_create(path, &options, &writer, &e) < 0) {
		report(ret, name, READINESS_PARTLY,
			"runs go to $XDG_STATE_HOME/strain unless -o is given: the current "
			"directory is not writable (%s)",
			e.code ? strerrordesc_np(e.code) : "unknown error");
	} else if (writer_uses_wal(writer)) {
		report(ret, name, READINESS_AVAILABLE,
			"in the current directory, at most two seconds behind (WAL)");
	} else {
		report(ret, name, READINESS_PARTLY,
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

// --- hooks
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
static void check_hooks(struct readiness_check *ret)
{
	struct error e = {0};
	_cleanup_free_ char *folder = NULL;
	char python[PATH_MAX + 16] = "", version[64] = "";
	*ret = (struct readiness_check){.name = "hooks", .state = READINESS_AVAILABLE};
	if (injection_hooks(NULL, &folder, &e) < 0) {
		ret->state = READINESS_MISSING;
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

// --- limits
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
static void append_how(struct readiness_check *check, enum limit limit, const char *set)
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

static void try_limit(
	enum limit limit, const struct limits_place *place, struct readiness_check *ret)
{
	struct limits_wanted wanted = {0};
	struct limits limits = {0};
	struct error e = {0};
	*ret = (struct readiness_check){
		.name = limit_checks[limit].name, .state = READINESS_AVAILABLE};
	int rc = limits_read(&wanted, limit, limit_checks[limit].least, &e);
	rc = rc < 0 ? rc : limits_set(&wanted, place, &limits, &e);
	if (rc == 0) {
		append_how(ret, limit, limits.set[limit]);
	} else {
		bool none = limit == LIMIT_GPUS; // a limit of 0 GPUs can always be set
		ret->state = none ? READINESS_PARTLY : READINESS_MISSING;
		snprintf(ret->detail, sizeof(ret->detail), "%s%s%s", limit_option(limit),
			none ? " 0 only" : "", e.text + strlen(limit_option(limit)));
	}
	limits_done(&limits);
	limits_wanted_done(&wanted);
}

// Whether `strain run` can limit its job: a check for each limit, in ret[N_LIMITS]. cgroup:
// the one that a run would get, or NULL with the reason.
static void check_limits(
	struct job_cgroup *cgroup, const struct error *why, struct readiness_check *ret)
{
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct limits_place place = {root_fd, cgroup, why};
	for (size_t i = 0; i < N_LIMITS; i++) {
		try_limit((enum limit)i, &place, &ret[i]);
	}
}

// --- words
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
	{"memory", "cost", "cost of these readings"},
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
	{"energy", "energy", "energy"},
	{"network", "io", "bytes and packets"},
	{"connections", "tcp", "traffic, round trips and waits"},
	{"nvml", "utilization", "utilisation"},
	{"nvml", "memory", "memory"},
	{"nvml", "clock", "clocks and throttling"},
	{"nvml", "power", "power"},
	{"nvml", "energy", "energy"},
	{"nvml", "pcie", "PCIe traffic"},
	{"nvml", "nvlink", "NVLink traffic"},
	{"nvml", "gpm", "SM and memory activity"},
	{"nvml", "state", "temperature, power limit and PCIe link"},
	{"nvml", "errors", "errors"},
	{"nvml", "job", "the job's memory"},
	{"nvml", "gpu_processes", "memory and utilisation of each process"},
	{"amdgpu", "utilization", "utilisation"},
	{"amdgpu", "memory", "memory"},
	{"amdgpu", "clock", "clocks and throttling"},
	{"amdgpu", "power", "power"},
	{"amdgpu", "energy", "energy"},
	{"amdgpu", "pcie", "PCIe traffic"},
	{"amdgpu", "state", "temperature, power limit and PCIe link"},
	{"amdgpu", "errors", "errors"},
	{"amdgpu", "job", "the job's memory"},
	{"amdgpu", "gpu_processes", "memory of each process"},
	{"intelgpu", "utilization", "utilisation"},
	{"intelgpu", "memory", "memory"},
	{"intelgpu", "clock", "clocks and throttling"},
	{"intelgpu", "power", "power"},
	{"intelgpu", "energy", "energy"},
	{"intelgpu", "pcie", "PCIe traffic"},
	{"intelgpu", "state", "temperature, power limit and PCIe link"},
	{"intelgpu", "errors", "errors"},
	{"intelgpu", "job", "the job's memory and utilisation"},
	{"intelgpu", "gpu_processes", "memory and utilisation of each process"},
	{"waits", "waits", "waits of main threads"},
	{"threads", "threads", "threads by purpose"},
	{"profile", "profile", "CPU time samples"},
};

const char *readiness_group_words(const struct source *source, const struct group *group)
{
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		if (strcmp(rows[i].source, source->name) == 0 &&
			strcmp(rows[i].group, group->name) == 0) {
			return rows[i].words;
		}
	}
	return group->name;
}

// --- all of it

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
int readiness_find(int root_fd, bool captured, struct readiness *ret, struct error *e)
{
	*ret = (struct readiness){0};
	struct job_cgroup cgroup = {0};
	struct error why = {0};
	struct source_context context = {.root_fd = root_fd, .captured = captured};
	// If this fails, because there is no /proc, the sources report it.
	if (tree_new(root_fd, captured, &context.tree, NULL) == 0) {
		tree_start(context.tree, first_process(root_fd, captured), 0, NULL);
	}
	int made = captured ? job_cgroup_find(root_fd, &cgroup)
	                    : job_cgroup_create(false, &cgroup, &why);
	context.cgroup = made == 0 ? &cgroup : NULL;
	machine_read(root_fd, &ret->machine);
	int r = availability_run(&context, &ret->tried);
	if (!captured) {
		check_cpu_time(context.cgroup, &why, &ret->checks[ret->n_checks++]);
		check_timing(&ret->checks[ret->n_checks++]);
		check_others(&ret->checks[ret->n_checks++]);
		check_nvtx(&ret->checks[ret->n_checks++]);
		check_hooks(&ret->checks[ret->n_checks++]);
		check_run_file(&ret->checks[ret->n_checks++]);
		check_limits(made == 0 ? &cgroup : NULL, &why, &ret->checks[ret->n_checks]);
		ret->n_checks += N_LIMITS;
	}
	tree_free(context.tree);
	if (made == 0 && !captured) {
		(void)job_cgroup_remove(&cgroup);
	}
	job_cgroup_done(&cgroup);
	return r < 0 ? error_errno(e, -r, "cannot try the sources") : 0;
}

void readiness_done(struct readiness *r)
{
	availability_free(r->tried);
}
