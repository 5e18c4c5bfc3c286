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

// Read from the signalfd; with them every real-time signal. SIGTTIN and SIGTTOU keep their default:
// the terminal stops the whole group. SIGTSTP is ours to read, because it is the job that decides
// whether it stops.
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

int signals_open(struct signals *s, bool supervised, struct error *e)
{
	*s = (struct signals){
		.fd = -1, .question = -1, .pass = supervised || getenv("SLURM_STEP_ID") == NULL};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LENGTH(caught); i++) {
		sigaddset(&set, caught[i]);
	}
	for (int signal_number = SIGRTMIN; signal_number <= SIGRTMAX; signal_number++) {
		sigaddset(&set, signal_number);
	}
	// A parent that ignores SIGCHLD would have our children vanish unread.
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

// A process of ours in the launcher's group that dies with it and holds nothing but `kept` (-1:
// nothing).
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

// How often each signal came since it was asked before: taken from what is pending, one by one.
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
	if (!s->pass || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
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

// The signals that are pending for a whole process, as /proc/PID/status shows them.
static uint64_t pending_signals(pid_t pid)
{
	char status[4096];
	if (!read_proc(pid, "status", status, sizeof(status))) {
		return 0;
	}
	const char *line = strstr(status, "\nShdPnd:");
	return line ? strtoull(line + strlen("\nShdPnd:"), NULL, 16) : 0;
}

// Has the witness take what is pending with it: whatever comes meanwhile is in this answer or the
// next one, never in none or both. Where it does not answer (somebody stopped it), the next
// question hears two answers.
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

// A signal that the witness may have seen waits for us: all but SIGCHLD, of which there are many.
static bool may_be_witnessed(const struct signals *s)
{
	sigset_t pending;
	return s->witness > 0 && sigpending(&pending) == 0 && sigdelset(&pending, SIGCHLD) == 0 &&
	       !sigisemptyset(&pending);
}

// Who signals a group holds the kernel's list of processes until every member has the signal
// (kill_pgrp, kernel/signal.c); setpgid needs that list to itself, also where it changes nothing.
// So after this call what the witness had, we have.
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

// The witness is asked before we take our own: a second signal of a kind that comes in between is
// then one with ours. The other way round the witness had both as one, and ours would seem to be
// another, for the job.
bool signals_take(struct signals *s, struct signalfd_siginfo *ret)
{
	if (may_be_witnessed(s)) {
		ask_witness(s);
		s->asked = true;
	}
	bool taken = read_signal(s, ret);
	if (taken || !s->asked) {
		return taken;
	}
	// What the witness still has, or told and we have not taken, came while ours waited, or
	// comes to us in this moment.
	if (s->witness > 0 && (has_counts(s) || pending_signals(s->witness) != 0)) {
		ask_witness(s);
		wait_for_senders();
		taken = read_signal(s, ret);
	}
	if (!taken) {
		memset(s->group, 0, sizeof(s->group));
		s->asked = false;
	}
	return taken;
}

// Whether the group got it. The kernel signals the youngest member of a group first, so the
// witness has it before the launcher; the milliseconds are for a kernel that does otherwise.
static bool reached_group(struct signals *s, int signal_number)
{
	for (int attempt = 0; attempt < 5 && s->witness > 0; attempt++) {
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

// What the terminal sends goes to the group, but for a hang-up: that goes to the session's leader
// alone (tty_signal_session_leader, drivers/tty/tty_jobctrl.c), as which the job would have had it.
static bool is_hang_up(const struct signalfd_siginfo *info)
{
	int signal_number = (int)info->ssi_signo;
	return info->ssi_code == SI_KERNEL &&
	       (signal_number == SIGHUP || signal_number == SIGCONT) && getsid(0) == getpid();
}

void signals_pass(struct signals *s, const struct signalfd_siginfo *info, pid_t job)
{
	int signal_number = (int)info->ssi_signo;
	if ((!s->pass && !is_hang_up(info)) || job <= 0) {
		return;
	}
	bool group = reached_group(s, signal_number);
	// SI_KERNEL: from the terminal. A signal that the job sends its parent is no signal to the
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
	// The name may hold anything, also parentheses: the state follows the last one.
	const char *name_end = read_proc(pid, "stat", stat, sizeof(stat)) ? strrchr(stat, ')')
	                                                                  : NULL;
	return name_end && name_end[1] == ' ' && (name_end[2] == 'T' || name_end[2] == 't');
}

void signals_stop_with(struct signals *s, pid_t job)
{
	// Somebody may continue the job alone; the shell's `fg` continues the group. Nobody else
	// would wake the launcher then.
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
	prctl(PR_SET_DUMPABLE, 0); // a core_pattern that is a pipe does not ask the limit
	struct sigaction usual = {.sa_handler = SIG_DFL};
	sigaction(signal_number, &usual, NULL);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, signal_number);
	kill(getpid(), signal_number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
