// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Each check tries the thing itself: asking for permissions and versions guesses wrong.

#include "cmd/doctor_checks.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "record/host/file.h"
#include "record/job/cgroup.h"
#include "record/job/injection.h"
#include "trace/writer.h"

const char *doctor_state_name(enum doctor_state state)
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

void doctor_check_cpu_time(
	const struct job_cgroup *cgroup, const struct error *why, struct doctor_check *ret)
{
	if (cgroup && cgroup->cpu) {
		report(ret, "cpu time", DOCTOR_AVAILABLE, "exact: own cgroup (v%d) in /%.*s",
			cgroup->version, (int)(strrchr(cgroup->cpu, '/') - cgroup->cpu),
			cgroup->cpu);
	} else {
		report(ret, "cpu time", DOCTOR_PARTLY,
			"exact unless a process ignores SIGCHLD; no cgroup of the job's own: %s",
			cgroup ? "cpuacct is not writable" : why->text);
	}
}

void doctor_check_timing(struct doctor_check *ret)
{
	const struct sched_param first = {.sched_priority = 1}, none = {.sched_priority = 0};
	if (sched_setscheduler(0, SCHED_FIFO, &first) == 0) {
		(void)sched_setscheduler(0, SCHED_OTHER, &none);
		report(ret, "timing", DOCTOR_AVAILABLE,
			"real-time priority (SCHED_FIFO) is allowed: ticks come within about "
			"0.1 ms, also beside busy jobs");
	} else {
		report(ret, "timing", DOCTOR_PARTLY,
			"no real-time priority (%s): beside busy jobs ticks can be some "
			"milliseconds late; CAP_SYS_NICE, or a limit of at least 1 (ulimit -r 1), "
			"would allow it",
			strerrordesc_np(errno));
	}
}

// Mounted with hidepid, /proc shows nobody else's processes.
static bool others_are_hidden(void)
{
	return access("/proc/1/stat", R_OK) < 0;
}

void doctor_check_others(struct doctor_check *ret)
{
	static const char name[] = "other jobs";
	_cleanup_close_ int fd = open("/proc/1/io", O_RDONLY | O_CLOEXEC);
	char buffer[512];
	struct cursor text;
	if (fd >= 0 && host_pread(fd, buffer, sizeof(buffer), &text) == 0) {
		report(ret, name, DOCTOR_AVAILABLE, "--pid can record anybody's processes");
	} else if (geteuid() == 0) {
		report(ret, name, DOCTOR_PARTLY,
			"--pid can record processes that have no more privileges than this one "
			"(pid 1 has)");
	} else if (others_are_hidden()) {
		report(ret, name, DOCTOR_PARTLY,
			"--pid can record your own processes only: /proc hides all others "
			"(hidepid)");
	} else {
		report(ret, name, DOCTOR_PARTLY,
			"--pid measures other users' CPU time only; memory and I/O of their "
			"processes need root");
	}
}

void doctor_check_nvtx(struct doctor_check *ret)
{
	static const char name[] = "nvtx";
	_cleanup_free_ char *library = NULL;
	struct error e = {0};
	if (injection_nvtx(NULL, &library, &e) == 0) {
		report(ret, name, DOCTOR_AVAILABLE, "ranges and marks of NVTX become spans");
	} else {
		report(ret, name, DOCTOR_MISSING, "ranges of NVTX are not taken: %s", e.text);
	}
}

void doctor_check_run_file(struct doctor_check *ret)
{
	static const char name[] = "run file";
	char path[64], beside[80];
	struct writer *writer = NULL;
	struct error e = {0};
	const struct writer_options options = {.replace = true};
	snprintf(path, sizeof(path), ".strain-doctor-%d.strain", (int)getpid());
	if (writer_create(path, &options, &writer, &e) < 0) {
		report(ret, name, DOCTOR_PARTLY,
			"the current directory cannot hold one, so it goes to "
			"$XDG_STATE_HOME/strain "
			"unless -o says else (%s)",
			e.code ? strerrordesc_np(e.code) : "unknown error");
	} else if (writer_uses_wal(writer)) {
		report(ret, name, DOCTOR_AVAILABLE,
			"in the current directory, at most two seconds behind (WAL)");
	} else {
		report(ret, name, DOCTOR_PARTLY,
			"in the current directory, up to ten seconds behind: its file system "
			"allows no WAL; -o on a local disk would be more durable");
	}
	writer_free(writer);
	static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
	for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
		snprintf(beside, sizeof(beside), "%s%s", path, endings[i]);
		(void)unlink(beside);
	}
}
