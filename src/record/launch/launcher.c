// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The launcher while the job runs: passes signals on, reaps children, and waits for nothing else.

#include "record/launch/launcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/installation.h"
#include "base/text.h"
#include "machine/cgroup.h"
#include "machine/exit_status.h"
#include "machine/overlay.h"
#include "machine/procfs.h"
#include "record/job/injection.h"
#include "record/job/name.h"
#include "record/launch/child.h"
#include "record/launch/recording.h"
#include "record/launch/say.h"
#include "record/launch/signals.h"
#include "record/mark/marker_directory.h"
#include "record/options.h"
#include "record/output/forwarding.h"
#include "record/protocol.h"

enum { SEND_TIMEOUT_MS = 300 };

struct launcher {
	struct run_options options; // with `force` if the file is reserved
	struct descriptors inherited;
	struct signals signals;
	struct forwarding forwarding;
	struct job_cgroup cgroup;
	bool has_cgroup;
	struct error cgroup_error; // why there is none
	struct limits limits; // of the job
	struct marker_directory markers;
	struct error markers_error; // why there is none
	char *nvtx; // the library that receives NVTX ranges; owned; NULL: none
	struct error nvtx_error; // why there is none
	char *hooks; // first entry of the job's PYTHONPATH; owned; NULL: none
	struct error hooks_error; // why there is none
	struct child child;
	struct recording recording;
	char *path; // of the run file; owned; NULL: not recording
	struct beneath_file
		reserved; // the file that was there, empty, before the recorder; or none
	pid_t job; // 0 before it runs and after it was reaped
	bool ended; // it is still a zombie
	int status; // as waitpid gives it; -1: unknown
	uint64_t end_ns; // CLOCK_MONOTONIC
	int interrupted; // signal received before the job ran
	bool left_nothing; // the job left no processes when closing the file began
	pid_t finisher; // strain finish; 0: none
	int finisher_go; // one byte starts it; closed without a byte, it ends; -1: none
};

static int start_job(struct launcher *l);

// Launcher ----------------------------------------------------------------------------------------

enum { DEATHS_TOLD = 8 }; // one event each; later ones are only counted

static bool is_fatal(const struct signalfd_siginfo *info)
{
	int signal_number = (int)info->ssi_signo;
	return signal_number == SIGINT || signal_number == SIGQUIT || signal_number == SIGTERM ||
	       signal_number == SIGHUP;
}

// A living helper of ours.
static bool is_ours(const struct launcher *l, pid_t pid)
{
	return pid == l->recording.pid || pid == l->signals.witness || pid == l->finisher ||
	       forwarding_owns(&l->forwarding, pid);
}

static void forwarder_ended(struct launcher *l, pid_t pid, int status)
{
	if (forwarding_reaped(&l->forwarding, pid, status) &&
		forwarding_deaths(&l->forwarding) <= DEATHS_TOLD) {
		char how[64], text[192];
		exit_status_describe(status, how, sizeof(how));
		snprintf(text, sizeof(text),
			"the output forwarder %s and was replaced; up to %d bytes of output are "
			"lost",
			how, FORWARDER_BYTES);
		recording_say(&l->recording, "forwarder_died", text);
	}
}

static void reap_other(struct launcher *l, pid_t pid)
{
	struct message message = {.kind = MESSAGE_ORPHAN, .pid = pid};
	struct rusage usage;
	int status;
	if (wait4(pid, &status, WNOHANG, &usage) != pid) {
		return;
	}
	if (pid == l->recording.pid) {
		recording_reaped(&l->recording, status);
	} else if (pid == l->signals.witness) {
		l->signals.witness = 0;
	} else if (pid == l->finisher) {
		l->finisher = 0;
	} else if (forwarding_owns(&l->forwarding, pid)) {
		forwarder_ended(l, pid, status);
	} else {
		message.status = status;
		usage_fill(&message, &usage);
		recording_send(&l->recording, &message);
	}
}

// launcher.c
static void reap(struct launcher *l)
{
	while (!l->ended) {
		siginfo_t info = {0};
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0) {
			return;
		}
		if (info.si_pid != l->job) {
			reap_other(l, info.si_pid);
			continue;
		}
		l->ended = true;
		l->end_ns = clock_monotonic_ns();
		l->status = info.si_code == CLD_EXITED   ? W_EXITCODE(info.si_status, 0)
		            : info.si_code == CLD_DUMPED ? info.si_status | WCOREFLAG
		                                         : info.si_status;
	}
}

// Handles signals when there is no job to receive them: it has ended, or is not ours (--pid).
// Reaps, and stops with Ctrl-Z. Returns false if the user at the terminal, or a system that shuts
// down, wants us to end.
static bool take_own_signals(struct launcher *l)
{
	struct signalfd_siginfo info;
	bool patient = true;
	while (signals_take(&l->signals, &info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(l);
		} else if (info.ssi_signo == SIGTSTP) {
			kill(getpid(), SIGSTOP);
		}
		patient = patient && !is_fatal(&info);
	}
	return patient;
}

static void follow_stop(struct launcher *l)
{
	siginfo_t info = {0};
	if (!l->ended && waitid(P_PID, (id_t)l->job, &info, WSTOPPED | WNOHANG) == 0 &&
		info.si_pid == l->job) {
		signals_stop_with(&l->signals, l->job);
	}
}

static void handle_signals(struct launcher *l)
{
	struct signalfd_siginfo info;
	while (signals_take(&l->signals, &info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(l);
			follow_stop(l);
			continue;
		}
		signals_pass(&l->signals, &info, l->ended ? 0 : l->job);
	}
}

static void watch(struct launcher *l)
{
	reap(l); // a signal may have arrived before the descriptor was opened
	while (!l->ended) {
		struct pollfd fds[] = {{.fd = l->signals.fd, .events = POLLIN},
			{.fd = l->recording.socket, .events = POLLIN}};
		poll(fds, ARRAY_LENGTH(fds), forwarding_tend(&l->forwarding));
		recording_hear(&l->recording);
		handle_signals(l);
	}
}

// The launcher's exit status or fatal signal is the job's.
static int job_status(const struct launcher *l)
{
	if (l->status >= 0 && WIFSIGNALED(l->status)) {
		signals_die_of(WTERMSIG(l->status));
		return 128 + WTERMSIG(l->status);
	}
	return WEXITSTATUS(l->status);
}

static int attach(struct launcher *l);

static void finish_run(struct launcher *l);

int launcher_run(const struct run_options *options)
{
	struct launcher l = {
		.options = *options,
		.forwarding = FORWARDING_NONE,
		.child = CHILD_NONE,
		.recording = RECORDING_NONE,
		.markers = MARKER_DIRECTORY_NONE,
		.finisher_go = -1,
	};
	descriptors_inherit(&l.inherited);
	int status = options->pid > 0 ? attach(&l) : start_job(&l);
	if (status == 0) {
		if (options->pid == 0) {
			watch(&l);
		}
		finish_run(&l);
		status = options->pid > 0 ? 0 : job_status(&l);
	}
	free(l.path);
	limits_done(&l.limits);
	descriptors_release(&l.inherited);
	return status;
}

// Start -------------------------------------------------------------------------------------------
//
// Before the job runs. All steps that can fail are here.

enum { READY_TIMEOUT_MS = 10000 };

// The commands that are printed name the file: "-a.strain" would be one of their options.
static int keep_from_options(char **path, struct error *e)
{
	char *given = *path;
	if (given && *given == '-') {
		*path = NULL;
		(void)!asprintf(path, "./%s", given);
		free(given);
	}
	return *path ? 0 : error_errno(e, ENOMEM, "cannot record");
}

static int choose_path(struct launcher *l, struct error *e)
{
	if (l->options.output) {
		l->path = strdup(l->options.output);
		return keep_from_options(&l->path, e);
	}
	char name[128];
	_cleanup_free_ char *notice = NULL;
	if (l->options.pid > 0) {
		name_of_attached(l->options.pid, time(NULL), name, sizeof(name));
	} else {
		name_of_run(l->options.command, time(NULL), name, sizeof(name));
	}
	int rc = name_reserve(name, &l->path, &l->reserved, &notice, e);
	if (notice) {
		say("%s", notice);
	}
	l->options.force = rc == 0 || l->options.force;
	return rc < 0 ? rc : keep_from_options(&l->path, e);
}

static void make_cgroup(struct launcher *l)
{
	if (l->options.no_cgroup) {
		error_set(&l->cgroup_error, ECANCELED, "--no-cgroup was given");
	} else {
		bool limits_memory = l->options.limits.memory_bytes > 0;
		l->has_cgroup = job_cgroup_create(limits_memory, &l->cgroup, &l->cgroup_error) == 0;
	}
}

static int set_limits(struct launcher *l, struct error *e)
{
	if (!limits_any(&l->options.limits)) {
		return 0;
	}
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct limits_place place = {
		.root_fd = root_fd,
		.cgroup = l->has_cgroup ? &l->cgroup : NULL,
		.why_none = &l->cgroup_error,
	};
	int rc = limits_set(&l->options.limits, &place, &l->limits, e);
	if (rc == 0) {
		limits_set_environment(&l->limits);
	}
	return rc;
}

static void remove_cgroup(struct launcher *l)
{
	if (l->has_cgroup) {
		job_cgroup_remove(&l->cgroup); // processes still in it keep it
		job_cgroup_done(&l->cgroup);
		l->has_cgroup = false;
	}
}

static void make_markers(struct launcher *l)
{
	if (l->options.no_markers) {
		error_set(&l->markers_error, ECANCELED, "--no-markers was given");
	} else {
		marker_directory_make(&l->markers, &l->markers_error);
	}
	if (!l->markers.path) {
		l->nvtx_error = l->markers_error;
	} else {
		injection_nvtx(l->options.command, &l->nvtx, &l->nvtx_error);
	}
}

static void make_hooks(struct launcher *l)
{
	if (l->options.no_hooks) {
		error_set(&l->hooks_error, ECANCELED, "--no-hooks was given");
	} else if (!l->markers.path) {
		error_set(&l->hooks_error, ECANCELED, "no directory for marks: %.400s",
			l->markers_error.text);
	} else {
		injection_hooks(l->options.command, &l->hooks, &l->hooks_error);
	}
}

static void remove_markers(struct launcher *l)
{
	free(take_pointer(l->hooks));
	marker_directory_remove(&l->markers);
	marker_directory_done(&l->markers);
	free(take_pointer(l->nvtx));
}

static void watch_output(struct launcher *l)
{
	struct error e = {0};
	l->forwarding = FORWARDING_NONE;
	if (!l->options.epoch_pattern) {
		forwarding_open_files(&l->forwarding);
		return;
	}
	if (forwarding_open(&l->forwarding, &e) < 0) {
		say("%s", e.text);
	}
	if (forwarding_start(&l->forwarding, &e) < 0) {
		say("%s; epochs will not be detected", e.text);
	}
}

// The folder of a run file requested by name.
static char *folder_of_output(const struct launcher *l)
{
	const char *slash = l->options.output ? strrchr(l->options.output, '/') : NULL;
	_cleanup_free_ char *folder = slash ? strndup(l->options.output,
						      (size_t)(slash - l->options.output + 1))
	                                    : strdup(".");
	return folder ? realpath(folder, NULL) : NULL;
}

// Lines are samples, too.
static const char *lines_mode(const struct launcher *l)
{
	if (!l->hooks) {
		return NULL;
	}
	return l->options.lines ? "all" : l->options.no_profile ? NULL : "few";
}

static int start_child(struct launcher *l, struct error *e)
{
	_cleanup_free_ char *directory = NULL, *folder = NULL;
	struct overlay overlay = {.scratch = l->options.overlay};
	if (l->options.overlay) {
		directory = getcwd(NULL, 0);
		folder = folder_of_output(l);
		if (!directory || !folder) {
			return error_errno(e, errno, "cannot run the job over an overlay");
		}
		overlay.directory = directory;
		overlay.kept[0] = folder;
		overlay.kept[1] = l->markers.path;
	}
	struct child_config config = {
		.command = l->options.command,
		.signals = &l->signals,
		.cgroup = l->has_cgroup ? &l->cgroup : NULL,
		.limits = &l->limits,
		.overlay = l->options.overlay ? &overlay : NULL,
		.markers = l->markers.path,
		.nvtx = l->nvtx,
		.hooks = l->hooks,
		.lines = lines_mode(l),
		.output = {forwarding_job(&l->forwarding, STDOUT_FILENO),
			forwarding_job(&l->forwarding, STDERR_FILENO)},
	};
	return child_start(&config, &l->child, e);
}

static int start_recorder(struct launcher *l, struct error *e)
{
	struct recorder_config config = {
		.options = &l->options,
		.path = l->path,
		.cgroup = l->has_cgroup ? &l->cgroup : NULL,
		.limits = &l->limits,
		.markers = l->markers.path ? &l->markers : NULL,
		.hooks = l->hooks ? l->markers.fd : -1,
		.missing = {{"cgroup_missing", l->has_cgroup ? NULL : l->cgroup_error.text},
			{"markers_missing", l->markers.path ? NULL : l->markers_error.text},
			{"nvtx_missing", l->nvtx ? NULL : l->nvtx_error.text},
			{"hooks_missing", l->hooks ? NULL : l->hooks_error.text}},
		.start_ns = clock_monotonic_ns(),
		.launcher = getpid(),
		.output = {forwarding_copy(&l->forwarding, STDOUT_FILENO),
			forwarding_copy(&l->forwarding, STDERR_FILENO)},
	};
	return recording_start(&l->recording, &config, e);
}

// A signal received before anything ran ends the run before it begins.
static bool was_interrupted(struct launcher *l)
{
	struct signalfd_siginfo info;
	while (l->interrupted == 0 && signals_take(&l->signals, &info)) {
		l->interrupted = is_fatal(&info) ? (int)info.ssi_signo : 0;
	}
	return l->interrupted != 0;
}

// Returns 0 when the recorder is ready; else -errno with its error, or a timeout.
static int wait_ready(struct launcher *l, struct error *e)
{
	uint64_t deadline = clock_monotonic_ns() + READY_TIMEOUT_MS * NS_PER_MS;
	while (!was_interrupted(l)) {
		struct message message;
		uint64_t now = clock_monotonic_ns();
		if (recording_take(&l->recording, &message)) {
			if (message.kind == MESSAGE_READY) {
				return 0;
			}
			if (message.kind == MESSAGE_FAILED) {
				return error_set(
					e, message.status ? EIO : EPIPE, "%s", message.text);
			}
		} else if (l->recording.socket < 0) {
			return error_set(e, EPIPE, "the recorder ended before it was ready");
		} else if (now >= deadline) {
			return error_set(e, ETIMEDOUT, "the recorder was not ready within %d s",
				READY_TIMEOUT_MS / 1000);
		} else {
			struct pollfd fds[] = {{.fd = l->recording.socket, .events = POLLIN},
				{.fd = l->signals.fd, .events = POLLIN}};
			poll(fds, ARRAY_LENGTH(fds), (int)((deadline - now) / NS_PER_MS) + 1);
		}
	}
	return error_set(e, EINTR, "interrupted");
}

// Ends the recorder, which never saw the job, and removes its file.
static void drop_recording(struct launcher *l)
{
	recording_discard(&l->recording);
	if (l->path) {
		beneath_unlink(l->path, l->reserved, (const char *const[]){"", NULL});
	}
	l->reserved = (struct beneath_file){0};
	free(take_pointer(l->path));
}

// Undoes everything: the job will not run.
static int give_up(struct launcher *l, int status)
{
	child_cancel(&l->child);
	drop_recording(l);
	forwarding_release(&l->forwarding);
	remove_cgroup(l);
	remove_markers(l);
	signals_close(&l->signals);
	if (l->interrupted) {
		signals_die_of(l->interrupted);
		return 128 + l->interrupted;
	}
	return status;
}

// Chooses the file, starts the recorder, and waits until it is ready. Returns -errno with a text if
// the run must not continue: -o cannot be written, or a signal arrived. If recording is impossible
// for another reason, it prints the reason, leaves path NULL, and returns 0.
static int start_recording(struct launcher *l, struct error *e)
{
	if (choose_path(l, e) < 0) {
		say("not recording: %s", e->text);
		return 0;
	}
	int rc = start_recorder(l, e);
	if (rc == 0) {
		rc = wait_ready(l, e);
	}
	// Only a file requested by name is a reason not to run the job.
	if (rc == 0 || l->interrupted || (l->options.output && rc == -EIO)) {
		return rc;
	}
	say("not recording: %s", e->text);
	drop_recording(l);
	return 0;
}

// A recorder configured with a cgroup that does not contain the job would measure nothing.
static int record_without_cgroup(struct launcher *l, int code, struct error *e)
{
	error_errno(&l->cgroup_error, code, "the job cannot enter its cgroup");
	if (l->limits.in_cgroup) {
		return error_set(e, code, "%s, which limits it", l->cgroup_error.text);
	}
	remove_cgroup(l);
	if (!l->path) {
		return 0;
	}
	drop_recording(l);
	return start_recording(l, e);
}

// Whether a retry might succeed: not if the cause is a property of the machine.
static bool may_pass(int code)
{
	return code == EAGAIN || code == EINTR || code == EMFILE || code == ENFILE ||
	       code == ENOMEM || code == ETIMEDOUT;
}

// A limit could not be set. A sweep needs to know whether a retry is useful.
static int limit_status(const struct launcher *l, int code)
{
	return l->options.supervised && !may_pass(code) ? LAUNCH_REFUSED : LAUNCHER_FAILED;
}

// The child enters its cgroup while the recorder starts.
static int finish_entry(struct launcher *l, struct error *e)
{
	struct child_entry entry;
	child_wait_entry(&l->child, &entry);
	if (entry.limits < 0) {
		return error_errno(e, -entry.limits, "%s: the job cannot be bound to its CPUs",
			limit_option(LIMIT_CPUS));
	}
	if (entry.overlay < 0) {
		return error_errno(e, -entry.overlay, "the job cannot run over an overlay");
	}
	return entry.cgroup < 0 ? record_without_cgroup(l, -entry.cgroup, e) : 0;
}

// A launcher that leads a session, or is a container's first process, takes the job with it when it
// ends.
static void say_dependence(struct launcher *l)
{
	if (getpid() == 1 || getsid(0) == getpid()) {
		recording_say(&l->recording, "launcher",
			getpid() == 1
				? "strain is the first process of its pid namespace: if strain "
				  "dies, the job ends"
				: "strain is the session leader: if strain dies, the job ends");
	}
}

// Closes the job's descriptors here: when the job closes a pipe, the pipe is closed.
static void let_go(struct launcher *l)
{
	forwarding_let_go(&l->forwarding);
	descriptors_release(&l->inherited);
	descriptors_null(STDIN_FILENO);
	descriptors_null(STDOUT_FILENO);
}

// Returns 0 when the job runs; else the exit status, and everything is undone.
static int start_job(struct launcher *l)
{
	struct error e = {0};
	int status = child_check(l->options.command, &e);
	if (status != 0) {
		say("%s", e.text);
		return status;
	}
	if (signals_open(&l->signals, &e) < 0) {
		say("%s", e.text);
		return LAUNCHER_FAILED;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	make_cgroup(l);
	if (set_limits(l, &e) < 0) {
		say("%s", e.text);
		return give_up(l, limit_status(l, e.code));
	}
	make_markers(l);
	make_hooks(l);
	watch_output(l);
	bool ready = start_child(l, &e) == 0 && start_recording(l, &e) == 0;
	if (!ready || finish_entry(l, &e) < 0) {
		if (!l->interrupted) {
			say("%s", e.text);
		}
		// EIO is about the run file.
		bool limit = ready && e.code != EIO;
		return give_up(l, limit ? limit_status(l, e.code) : LAUNCHER_FAILED);
	}
	signals_watch(&l->signals);
	const uint64_t start_ns = clock_monotonic_ns();
	status = child_go(&l->child, l->options.command, &e);
	if (status != 0) {
		say("%s", e.text);
		return give_up(l, status);
	}
	l->job = l->child.pid;
	const struct message started = {.kind = MESSAGE_STARTED, .pid = l->job, .at_ns = start_ns};
	recording_send_patiently(&l->recording, &started, SEND_TIMEOUT_MS);
	say_dependence(l);
	let_go(l);
	return 0;
}

// Attach ------------------------------------------------------------------------------------------
//
// --pid: records a running process until it ends or the user presses Ctrl-C.

enum { REAPED_TIMEOUT_MS = 200 };

static int open_process(pid_t pid, struct error *e)
{
	char path[32];
	struct stat st;
	int fd = pidfd_open(pid, 0);
	if (fd < 0) {
		return errno == ESRCH || errno == EINVAL
		               ? error_set(e, ESRCH, "no process %d", (int)pid)
		               : error_errno(e, errno, "cannot watch process %d", (int)pid);
	}
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st) == 0 && st.st_uid != geteuid() && geteuid() != 0) {
		close(fd);
		return error_set(e, EPERM, "process %d belongs to another user (uid %u)", (int)pid,
			st.st_uid);
	}
	return fd;
}

// Returns the wait status, or -1: unknown. It is available only after the parent has reaped the
// process.
static int read_status(int fd)
{
	struct pollfd reaped = {.fd = fd};
	int status;
	poll(&reaped, 1, REAPED_TIMEOUT_MS);
	return exit_status_of(fd, &status) ? status : -1;
}

static void watch_process(struct launcher *l, int fd)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			{.fd = l->signals.fd, .events = POLLIN},
			{.fd = l->recording.socket, .events = POLLIN}};
		poll(fds, ARRAY_LENGTH(fds), -1);
		recording_hear(&l->recording);
		if (!take_own_signals(l) || l->recording.socket < 0) {
			return; // without its recorder there is nothing to wait for
		}
		if (fds[0].revents) {
			l->status = read_status(fd);
			return;
		}
	}
}

// The process continues unaffected.
static int attach_give_up(struct launcher *l, const struct error *e)
{
	drop_recording(l);
	if (l->interrupted) {
		signals_die_of(l->interrupted);
		return 128 + l->interrupted;
	}
	say("%s", e->text);
	return LAUNCHER_FAILED;
}

// Records a running process until it ends. Returns 0, or the exit status of a failure.
static int attach(struct launcher *l)
{
	struct error e = {0};
	_cleanup_close_ int fd = open_process(l->options.pid, &e);
	error_set(&l->cgroup_error, ECANCELED, "strain attached to a running process");
	l->hooks_error = l->nvtx_error = l->markers_error = l->cgroup_error;
	l->status = -1;
	if (fd < 0 || signals_open(&l->signals, &e) < 0 || start_recording(l, &e) < 0) {
		return attach_give_up(l, &e);
	}
	if (!l->path) {
		return LAUNCHER_FAILED; // start_recording printed the reason
	}
	l->job = l->options.pid;
	recording_send_patiently(&l->recording,
		&(struct message){.kind = MESSAGE_STARTED, .pid = l->job}, SEND_TIMEOUT_MS);
	say("recording process %d to %s until it ends (Ctrl-C stops recording)", (int)l->job,
		l->path);
	watch_process(l, fd);
	l->end_ns = clock_monotonic_ns();
	return 0;
}

// Finish ------------------------------------------------------------------------------------------
//
// After the job has ended: its last output, the end of the file, remaining processes, the verdict.

enum {
	LAST_READ_TIMEOUT_MS = 300,
	DONE_TIMEOUT_MS = 20000,
	DONE_NOTICE_MS = 2000,
	RECORDER_EXIT_MS = 1000,
	LEFT_NAMED = 4,
};

enum waited { WAITED_DONE, WAITED_TIME, WAITED_INTERRUPTED };

static bool output_is_through(struct launcher *l)
{
	return forwarding_is_through(&l->forwarding);
}

static bool recorder_has_answered(struct launcher *l)
{
	return l->recording.done || l->recording.socket < 0;
}

static bool recorder_measures_no_more(struct launcher *l)
{
	return l->recording.closing || recorder_has_answered(l);
}

static bool recorder_is_gone(struct launcher *l)
{
	return l->recording.pid == 0;
}

static bool finisher_is_gone(struct launcher *l)
{
	return l->finisher == 0;
}

// timeout_ms -1: no limit. A sweep's signal was meant for the job, which had just ended by itself:
// waits with a limit continue.
static enum waited wait_until(
	struct launcher *l, bool (*is_done)(struct launcher *l), int timeout_ms)
{
	uint64_t deadline = clock_monotonic_ns() + (uint64_t)(timeout_ms + 1) * NS_PER_MS;
	while (!is_done(l)) {
		uint64_t now = clock_monotonic_ns();
		int due_ms = forwarding_tend(&l->forwarding);
		if (timeout_ms >= 0 && now >= deadline) {
			return WAITED_TIME;
		}
		struct pollfd fds[] = {
			{.fd = l->signals.fd, .events = POLLIN},
			{.fd = l->recording.socket, .events = POLLIN},
			{.fd = l->forwarding.channels[0].control, .events = POLLIN},
			{.fd = l->forwarding.channels[1].control, .events = POLLIN},
		};
		int wait_ms = timeout_ms < 0 ? -1 : (int)((deadline - now) / NS_PER_MS) + 1;
		wait_ms = due_ms >= 0 && (wait_ms < 0 || due_ms < wait_ms) ? due_ms : wait_ms;
		poll(fds, ARRAY_LENGTH(fds), wait_ms);
		recording_hear(&l->recording);
		if (!take_own_signals(l) && !(l->options.supervised && timeout_ms >= 0)) {
			return WAITED_INTERRUPTED;
		}
	}
	return WAITED_DONE;
}

// A blocked reader of the job's output blocks us as it would have blocked the job.
static void drain_output(struct launcher *l)
{
	take_own_signals(l); // the Ctrl-C that ended the job is not meant for us
	forwarding_finish(&l->forwarding);
	wait_until(l, output_is_through, -1);
	uint64_t dropped = forwarding_dropped(&l->forwarding);
	if (dropped > 0) {
		char text[96];
		snprintf(text, sizeof(text), "%" PRIu64 " bytes of output not searched for epochs",
			dropped);
		recording_say(&l->recording, "lost", text);
	}
}

// Reports that lines may be missing from the job's output.
static void say_lost_output(struct launcher *l)
{
	unsigned deaths = forwarding_deaths(&l->forwarding);
	if (deaths > 0) {
		say("the output forwarder was killed %u time%s and restarted; up to %d bytes of "
		    "output are missing%s",
			deaths, deaths > 1 ? "s" : "", FORWARDER_BYTES,
			deaths > 1 ? " each time" : "");
	}
}

static void end_job(struct launcher *l)
{
	struct message message = {.kind = MESSAGE_EXITED, .pid = l->job, .status = l->status};
	struct rusage usage = {0};
	recording_send_patiently(&l->recording, &message, SEND_TIMEOUT_MS);
	recording_wait(&l->recording, MESSAGE_LAST_READ, LAST_READ_TIMEOUT_MS);
	if (l->options.pid > 0) {
		message.user_us = message.system_us = message.max_rss_bytes = message.faults =
			UINT64_MAX; // unknown
	} else {
		wait4(l->job, &l->status, 0, &usage);
		usage_fill(&message, &usage);
	}
	l->job = 0;
	l->ended = false;
	reap(l);
	drain_output(l);
	say_lost_output(l);
	message.kind = MESSAGE_END;
	message.status = l->status;
	message.at_ns = l->end_ns;
	recording_send_patiently(&l->recording, &message, SEND_TIMEOUT_MS);
}

static void close_for_recorder(struct launcher *l)
{
	struct recording *r = &l->recording;
	struct error e = {0};
	char death[128], at[32];
	recording_describe_death(r, death, sizeof(death));
	text_seconds(at, sizeof(at), (double)(r->dead_ns - r->start_ns) / 1e9);
	say("%s; the recording stops at %s", death, at);
	if (recording_close_file(r, l->end_ns, l->status, &e) < 0) {
		say("cannot close %s: %s", l->path, e.text);
	}
}

// Starts strain finish, which waits on its standard input.
static void start_finisher(struct launcher *l)
{
	_cleanup_free_ char *strain = installation_find("strain", X_OK, NULL);
	int go[2];
	if (!strain || pipe2(go, O_CLOEXEC) < 0) {
		return;
	}
	l->finisher = fork();
	if (l->finisher == 0) {
		char name[] = "strain", command[] = "finish", wait[] = "--wait";
		char *arguments[] = {name, command, wait, l->path, NULL};
		signals_restore(&l->signals);
		dup2(go[0], STDIN_FILENO);
		dup2(STDERR_FILENO, STDOUT_FILENO); // standard output belongs to the job
		fcntl(STDERR_FILENO, F_SETFD, 0); // our /dev/null, too: no file may become 2
		execv(strain, arguments);
		_exit(1);
	}
	close(go[0]);
	if (l->finisher < 0) {
		l->finisher = 0;
		close(go[1]);
	} else {
		l->finisher_go = go[1];
	}
}

// ---- processes that the job left running

static pid_t read_parent(int proc, const char *pid, char *name, size_t size)
{
	char path[32];
	struct proc_stat stat;
	snprintf(path, sizeof(path), "%.16s/stat", pid);
	if (proc_stat_read(proc, path, &stat) < 0 || stat.state == 'Z') {
		return 0;
	}
	snprintf(name, size, "%s", stat.name);
	return stat.parent;
}

// Orphans became our children: each is the root of a remaining tree. Returns their number.
static unsigned find_left(const struct launcher *l, struct text *names)
{
	DIR *proc = opendir("/proc");
	unsigned n = 0;
	for (struct dirent *entry; proc && (entry = readdir(proc));) {
		int64_t pid;
		char name[64];
		if (parse_integer(entry->d_name, 1, INT_MAX, &pid, NULL) < 0 ||
			read_parent(dirfd(proc), entry->d_name, name, sizeof(name)) != getpid() ||
			is_ours(l, (pid_t)pid)) {
			continue;
		}
		if (n++ < LEFT_NAMED) {
			text_format(names, "%s%s (%d)", n > 1 ? ", " : "", name, (int)pid);
		}
	}
	if (proc) {
		closedir(proc);
	}
	if (n > LEFT_NAMED) {
		text_format(names, " and %u more", n - LEFT_NAMED);
	}
	return n;
}

static bool names_left(const struct launcher *l)
{
	return l->options.pid == 0 && !l->options.supervised && // a sweep ends it
	       procfs_is_own();
}

// Checks again, if any processes remained before the file was closed, because they may have ended
// since. If none remained then, none can have appeared, because every process that the job left is
// below a child of ours.
static void name_left(struct launcher *l)
{
	_cleanup_text_ struct text names = {0};
	if (l->left_nothing) {
		return;
	}
	if (find_left(l, &names) > 0 && !names.failed) {
		say("processes that the job left running: %s", names.data);
	}
}

// ---- the end of the file

// Returns whether the file is closed.
static bool finish_recording(struct launcher *l)
{
	struct recording *r = &l->recording;
	enum waited waited = wait_until(l, recorder_measures_no_more, DONE_NOTICE_MS);
	if (waited == WAITED_DONE && !l->options.no_verdict) {
		start_finisher(l); // starting it takes as long as closing the file of a short run
	}
	if (waited == WAITED_DONE && names_left(l)) {
		_cleanup_text_ struct text names = {0};
		l->left_nothing = find_left(l, &names) == 0; // while there is time
	}
	if (waited == WAITED_DONE) {
		waited = wait_until(l, recorder_has_answered, DONE_NOTICE_MS);
	}
	if (waited == WAITED_TIME) {
		say("finishing %s (Ctrl-C to stop waiting)", l->path);
		waited = wait_until(l, recorder_has_answered, DONE_TIMEOUT_MS - DONE_NOTICE_MS);
	}
	if (waited != WAITED_DONE) {
		say("no longer waiting: the recorder is still writing %s", l->path);
		return false;
	}
	// The recorder may have been reaped during the wait even if a signal ended the wait.
	if (wait_until(l, recorder_is_gone, RECORDER_EXIT_MS) != WAITED_DONE && r->dead &&
		r->pid > 0) {
		kill(r->pid, SIGKILL); // it closed the socket without ending
		wait_until(l, recorder_is_gone, RECORDER_EXIT_MS);
	}
	if (r->dead) {
		close_for_recorder(l);
	}
	return true;
}

// ---- the verdict

// The file is closed.
static void let_finisher_go(struct launcher *l)
{
	if (l->finisher_go >= 0) {
		(void)!write(l->finisher_go, "", 1); // one that was killed is reaped like any other
	}
}

static void wait_for_verdict(struct launcher *l)
{
	if (l->finisher_go >= 0) {
		close(l->finisher_go); // if the file was not closed, it ends
		l->finisher_go = -1;
	}
	if (wait_until(l, finisher_is_gone, -1) != WAITED_DONE && l->finisher > 0) {
		kill(l->finisher, SIGTERM);
		waitpid(l->finisher, NULL, 0);
	}
}

// Reaps the job, forwards its last output, has the file closed, names remaining processes, and
// starts `strain finish`.
static void finish_run(struct launcher *l)
{
	end_job(l);
	bool closed = l->path && finish_recording(l);
	signals_close(&l->signals);
	reap(l);
	if (names_left(l)) {
		name_left(l);
	}
	if (closed) {
		let_finisher_go(l);
	}
	remove_cgroup(l); // takes its time, too
	remove_markers(l);
	wait_for_verdict(l);
}
