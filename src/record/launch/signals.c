// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The launcher's signals.

#include "record/launch/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"

enum { ANSWER_TIMEOUT_MS = 1000 };
// How long a signal to the group, and one that Slurm sends to each process of a job, may take to
// reach the witness.
enum { PATIENCE_MS = 5, SLURM_PATIENCE_MS = 300 };

// Signals read from the signalfd, with every real-time signal. SIGTTIN and SIGTTOU keep their
// default: the terminal stops the whole group. SIGTSTP is caught, because the job decides whether
// it stops.
static const int caught[] = {
	SIGHUP,
	SIGINT,
	SIGQUIT,
	SIGUSR1,
	SIGUSR2,
	SIGALRM,
	SIGTERM,
	SIGPWR,
	SIGTSTP,
	SIGCONT,
	SIGCHLD,
};

int signals_open(struct signals *s, struct error *e)
{
	*s = (struct signals){.fd = -1,
		.question = -1,
		.patience_ms = getenv("SLURM_JOB_ID") ? SLURM_PATIENCE_MS : PATIENCE_MS};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LENGTH(caught); i++) {
		sigaddset(&set, caught[i]);
	}
	for (int signal_number = SIGRTMIN; signal_number <= SIGRTMAX; signal_number++) {
		sigaddset(&set, signal_number);
	}
	// If the parent ignores SIGCHLD, the kernel would reap our children before us.
	struct sigaction usual = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
	sigaction(SIGCHLD, &usual, &s->original_child);
	sigaction(SIGPIPE, &ignored, &s->original_pipe);
	sigprocmask(SIG_BLOCK, &set, &s->original_mask);
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->fd < 0 ? error_errno(e, errno, "cannot watch signals") : 0;
}

void signals_restore(const struct signals *s)
{
	sigaction(SIGCHLD, &s->original_child, NULL);
	sigaction(SIGPIPE, &s->original_pipe, NULL);
	sigprocmask(SIG_SETMASK, &s->original_mask, NULL);
}

// Forks a process in the launcher's group that dies with it and keeps only the descriptor `kept`
// (-1: none).
static pid_t fork_watcher(const char *name, int kept)
{
	pid_t parent = getpid(), pid = fork();
	if (pid != 0) {
		return pid;
	}
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	if (getppid() != parent) {
		_exit(0);
	}
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		close(fd);
	}
	descriptors_keep(&kept, 1);
	return 0;
}

static void end_watcher(pid_t pid)
{
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

// Counts the signals since the last count by taking the pending ones one by one.
static void count_pending(unsigned counts[NSIG])
{
	static const struct timespec now = {0};
	sigset_t all;
	sigfillset(&all);
	memset(counts, 0, NSIG * sizeof(*counts));
	for (int signal_number; (signal_number = sigtimedwait(&all, NULL, &now)) > 0;) {
		counts[signal_number]++;
	}
}

static _Noreturn void run_witness(int answer)
{
	unsigned counts[NSIG];
	char byte;
	while (recv(answer, &byte, 1, 0) == 1) {
		count_pending(counts);
		send(answer, counts, sizeof(counts), MSG_NOSIGNAL);
	}
	_exit(0);
}

void signals_watch(struct signals *s)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		return;
	}
	pid_t pid = fork_watcher("strain-witness", pair[1]);
	if (pid == 0) {
		run_witness(pair[1]);
	}
	close(pair[1]);
	s->witness = pid > 0 ? pid : 0;
	s->question = pair[0];
}

static bool read_proc(pid_t pid, const char *name, char *buffer, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, buffer, size - 1);
	buffer[length > 0 ? length : 0] = '\0';
	return length > 0;
}

// The signals pending for a whole process, from /proc/PID/status; all of them if that cannot be
// read.
static uint64_t pending_signals(pid_t pid)
{
	char status[4096];
	if (!read_proc(pid, "status", status, sizeof(status))) {
		return UINT64_MAX;
	}
	const char *line = strstr(status, "\nShdPnd:");
	return line ? strtoull(line + strlen("\nShdPnd:"), NULL, 16) : 0;
}

// Makes the witness take its pending signals. A signal that arrives meanwhile is in this answer or
// the next, never in none or both. If the witness does not answer (it was stopped), the next
// request reads two answers.
static void ask_witness(struct signals *s)
{
	unsigned counts[NSIG];
	if (pending_signals(s->witness) == 0) {
		return;
	}
	struct pollfd answer = {.fd = s->question, .events = POLLIN};
	send(s->question, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	poll(&answer, 1, ANSWER_TIMEOUT_MS);
	while (recv(s->question, counts, sizeof(counts), MSG_DONTWAIT) == sizeof(counts)) {
		for (int i = 1; i < NSIG; i++) {
			s->group[i] += counts[i];
		}
	}
}

static bool read_signal(const struct signals *s, struct signalfd_siginfo *ret)
{
	return read(s->fd, ret, sizeof(*ret)) == (ssize_t)sizeof(*ret);
}

// Whether a signal that the witness may have received is pending here: any but SIGCHLD, which is
// frequent.
static bool may_be_witnessed(const struct signals *s)
{
	sigset_t pending;
	return s->witness > 0 && sigpending(&pending) == 0 && sigdelset(&pending, SIGCHLD) == 0 &&
	       !sigisemptyset(&pending);
}

// Signalling a group holds the kernel's list of processes until every member has the signal
// (kill_pgrp, kernel/signal.c). setpgid needs that list exclusively, even if it changes nothing.
// After this call, the launcher therefore has every signal that the witness had.
static void wait_for_senders(void)
{
	setpgid(0, getpgrp());
}

static bool has_counts(const struct signals *s)
{
	for (int i = 1; i < NSIG; i++) {
		if (s->group[i] > 0) {
			return true;
		}
	}
	return false;
}

// Asks the witness before taking our own signals: a second signal of the same kind that arrives in
// between then merges with the pending one here. In the other order, the witness would have merged
// both into one, and ours would look like another one, meant for the job.
bool signals_take(struct signals *s, struct signalfd_siginfo *ret)
{
	if (may_be_witnessed(s)) {
		ask_witness(s);
		s->asked = true;
		s->asked_ns = clock_monotonic_ns();
	}
	bool taken = read_signal(s, ret);
	if (taken || !s->asked) {
		return taken;
	}
	// Signals still pending in the witness, or reported by it but not yet taken here, arrived
	// while ours were waiting, or arrive here at this moment.
	if (s->witness > 0 && (has_counts(s) || pending_signals(s->witness) != 0)) {
		ask_witness(s);
		wait_for_senders();
		taken = read_signal(s, ret);
	}
	// Slurm may have signalled the witness before the launcher.
	bool wait = s->patience_ms > PATIENCE_MS && has_counts(s) &&
	            clock_monotonic_ns() - s->asked_ns < s->patience_ms * NS_PER_MS;
	if (!taken && !wait) {
		memset(s->group, 0, sizeof(s->group));
		s->asked = false;
	}
	return taken;
}

// Whether the group received it. The kernel signals the youngest member of a group first, so the
// witness has it before the launcher. The wait of some milliseconds is for kernels with another
// order.
static bool reached_group(struct signals *s, int signal_number)
{
	for (unsigned attempt = 0; attempt < s->patience_ms && s->witness > 0; attempt++) {
		ask_witness(s);
		if (s->group[signal_number] > 0) {
			s->group[signal_number]--;
			return true;
		}
		struct timespec pause = {.tv_nsec = (long)NS_PER_MS};
		nanosleep(&pause, NULL);
	}
	return false;
}

// The terminal's signals go to the group, except a hang-up, which goes only to the session's leader
// (tty_signal_session_leader, drivers/tty/tty_jobctrl.c): as the leader, the job would have
// received it.
static bool is_hang_up(const struct signalfd_siginfo *info)
{
	int signal_number = (int)info->ssi_signo;
	return info->ssi_code == SI_KERNEL &&
	       (signal_number == SIGHUP || signal_number == SIGCONT) && getsid(0) == getpid();
}

void signals_pass(struct signals *s, const struct signalfd_siginfo *info, pid_t job)
{
	int signal_number = (int)info->ssi_signo;
	if (job <= 0) {
		return;
	}
	bool group = reached_group(s, signal_number);
	// SI_KERNEL: from the terminal. A signal from the job to its parent is not meant for the
	// job.
	if (group || (info->ssi_code == SI_KERNEL && !is_hang_up(info)) ||
		(pid_t)info->ssi_pid == job || (s->guard > 0 && (pid_t)info->ssi_pid == s->guard)) {
		return;
	}
	if (info->ssi_code == SI_QUEUE) {
		sigqueue(job, signal_number, (union sigval){.sival_ptr = (void *)info->ssi_ptr});
	} else {
		kill(job, signal_number);
	}
}

static bool is_stopped(pid_t pid)
{
	char stat[512];
	// The name may contain anything, including parentheses: the state follows the last one.
	const char *name_end = read_proc(pid, "stat", stat, sizeof(stat)) ? strrchr(stat, ')')
	                                                                  : NULL;
	return name_end && name_end[1] == ' ' && (name_end[2] == 'T' || name_end[2] == 't');
}

void signals_stop_with(struct signals *s, pid_t job)
{
	// Somebody may continue only the job; the shell's `fg` continues the group. In the first
	// case nothing else would wake the launcher.
	pid_t launcher = getpid(), guard = fork_watcher("strain-guard", -1);
	if (guard == 0) {
		do {
			struct timespec pause = {.tv_nsec = (long)(50 * NS_PER_MS)};
			nanosleep(&pause, NULL);
		} while (is_stopped(job));
		kill(launcher, SIGCONT);
		_exit(0);
	}
	s->guard = guard;
	if (guard > 0) {
		kill(launcher, SIGSTOP);
	}
	end_watcher(guard);
}

void signals_close(struct signals *s)
{
	end_watcher(s->witness);
	s->witness = 0;
	if (s->question >= 0) {
		close(s->question);
		s->question = -1;
	}
}

void signals_die_of(int signal_number)
{
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0); // a core_pattern that is a pipe ignores the core size limit
	struct sigaction usual = {.sa_handler = SIG_DFL};
	sigaction(signal_number, &usual, NULL);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, signal_number);
	kill(getpid(), signal_number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
