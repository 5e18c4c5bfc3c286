// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain-record as a child: in a process group of its own, so that a Ctrl-C at the terminal is the
// sweep's to pass on, and told to end its job where the sweep is killed.

#include "experiment/executor_local.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/part.h"
#include "experiment/children.h"
#include "trace/still_running.h"

#define STEP_MS 5 // between looks, where no descriptor tells the end
#define LEFT_ROUNDS 200

struct execution {
	pid_t launcher;
	int pidfd; // -1: the kernel has none
	char *run;
	struct children others; // that were there before it
	bool ended;
};

static void free_execution(struct execution *x)
{
	children_done(&x->others);
	free(x->run);
	free(x);
}

static _Noreturn void become_recording(
	const struct execution_request *request, const char *program, pid_t parent)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int out = open(request->output, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || null < 0 || out < 0 || dup2(null, STDIN_FILENO) < 0 ||
		dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0) {
		_exit(125);
	}
	setpgid(0, 0);
	static const int usual[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
	for (size_t i = 0; i < ARRAY_LENGTH(usual); i++) {
		signal(usual[i], SIG_DFL);
	}
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; request->environment[i]; i++) {
		char *pair = strdup(request->environment[i]);
		if (!pair || putenv(pair) != 0) {
			_exit(125);
		}
	}
	char sweep[16]; // strain-record may move it out of a cgroup that is to be divided
	snprintf(sweep, sizeof(sweep), "%d", (int)parent);
	setenv("STRAIN_SWEEP_PID", sweep, 1);
	execv(program, (char *const *)request->arguments);
	_exit(125);
}

static int start(const struct execution_request *request, struct execution **ret, struct error *e)
{
	_cleanup_free_ char *program = part_find("strain-record", X_OK);
	if (!program) {
		return error_set(e, ENOENT,
			"cannot record: strain-record is neither in $STRAIN_HOME nor beside strain "
			"nor in ../lib/strain");
	}
	struct execution *x = calloc(1, sizeof(*x));
	char *run = strdup(request->run);
	struct children others;
	if (!x || !run || children_list(&others, e) < 0) {
		free(x);
		free(run);
		return error_errno(e, ENOMEM, "a trial");
	}
	*x = (struct execution){.pidfd = -1, .run = run, .others = others};
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t parent = getpid();
	x->launcher = fork();
	if (x->launcher == 0) {
		become_recording(request, program, parent);
	}
	if (x->launcher < 0) {
		int code = errno;
		free_execution(x);
		return error_errno(e, code, "cannot start a trial: fork");
	}
	x->pidfd = (int)syscall(SYS_pidfd_open, x->launcher, 0);
	*ret = x;
	return 0;
}

static bool wait_execution(struct execution *x, int timeout_ms, int *ret_status)
{
	struct pollfd end = {.fd = x->pidfd, .events = POLLIN};
	poll(&end, 1, x->pidfd >= 0 ? timeout_ms : timeout_ms < STEP_MS ? timeout_ms : STEP_MS);
	pid_t ended = waitpid(x->launcher, ret_status, WNOHANG);
	x->ended = ended == x->launcher || (ended < 0 && errno == ECHILD);
	return x->ended;
}

// The launcher passes a signal on to the job; what it cannot, the job's processes get.
static void send(struct execution *x, int signal_number)
{
	if (signal_number == SIGKILL) {
		// The run does not know them yet, or nobody records any more.
		if (still_running_signal(x->run, SIGKILL) == 0) {
			descendants_kill(x->launcher, still_running_recorder(x->run));
		}
	} else {
		kill(x->launcher, signal_number);
	}
}

// What is left ---------------------------------------------------------------------------------

// Of what a container's first process adopts, only what the run knows is the trial's.
static size_t kill_left(const struct execution *x)
{
	size_t n = children_kill(&x->others, x->launcher);
	return getpid() == 1 ? n + still_running_signal(x->run, SIGKILL) : n;
}

// What lost its parent became our child: it would disturb the next trial.
static void close_execution(struct execution *x)
{
	pid_t pid;
	if (!x->ended) {
		still_running_signal(x->run, SIGKILL);
		kill(x->launcher, SIGKILL);
	}
	for (unsigned round = 0; round < LEFT_ROUNDS; round++) {
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		}
		if (pid < 0 || kill_left(x) == 0) {
			break;
		}
		const struct timespec pause = {.tv_nsec = STEP_MS * (long)NS_PER_MS};
		nanosleep(&pause, NULL);
	}
	if (x->pidfd >= 0) {
		close(x->pidfd);
	}
	free_execution(x);
}

const struct executor executor_local = {
	.name = "local",
	.start = start,
	.wait = wait_execution,
	.signal = send,
	.close = close_execution,
};
