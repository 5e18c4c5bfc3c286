// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Starts strain-record under a keeper, in a process group of its own, so that the sweep decides
// whether a Ctrl-C at the terminal is passed on.

#include "sweep/execution.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/installation.h"
#include "runfile/still_running.h"
#include "sweep/keeper.h"

enum { STEP_MS = 5, LEFT_ROUNDS = 200 };

struct execution {
	pid_t keeper;
	int socket; // to the keeper; -1: the keeper has ended
	char *mark;
	bool ended; // the job has ended
	int status;
	struct keeper_message left; // n_left 0: no processes left, as far as is known
};

// What the keeper's child needs to become the launcher.
struct launch {
	const struct execution_request *request;
	const char *program;
	pid_t sweep;
};

static void become_launcher(const void *context)
{
	const struct launch *l = context;
	const struct execution_request *request = l->request;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(request->output, STDOUT_FILENO) < 0 ||
		dup2(request->output, STDERR_FILENO) < 0) {
		return;
	}
	for (size_t i = 0; request->environment[i]; i++) {
		char *pair = strdup(request->environment[i]);
		if (!pair || putenv(pair) != 0) {
			return;
		}
	}
	char sweep[16]; // strain-record may move the sweep out of a cgroup that is to be divided
	snprintf(sweep, sizeof(sweep), "%d", (int)l->sweep);
	if (setenv("STRAIN_SWEEP_PID", sweep, 1) < 0 ||
		setenv(STILL_RUNNING_VARIABLE, request->mark, 1) < 0) {
		return;
	}
	execv(l->program, (char *const *)request->arguments);
}

static void free_execution(struct execution *x)
{
	if (x->socket >= 0) {
		close(x->socket);
	}
	free(x->mark);
	free(x);
}

static int start_keeper(
	struct execution *x, const struct execution_request *request, const char *program)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		return -errno;
	}
	const struct launch launch = {request, program, getpid()};
	const struct keeper_config config = {
		.socket = pair[1],
		.run = request->run,
		.mark = request->mark,
		.grace_ns = (uint64_t)(request->grace_s * 1e9),
		.become = become_launcher,
		.context = &launch,
	};
	x->keeper = fork();
	if (x->keeper == 0) {
		close(pair[0]);
		keeper_run(&config);
	}
	int result = x->keeper < 0 ? -errno : 0;
	close(pair[1]);
	x->socket = pair[0];
	return result;
}

int execution_start(
	const struct execution_request *request, struct execution **ret, struct error *e)
{
	_cleanup_free_ char *program = installation_find("strain-record", X_OK, e);
	if (!program) {
		return error_prefix(e, "cannot record");
	}
	struct execution *x = calloc(1, sizeof(*x));
	char *mark = strdup(request->mark);
	if (!x || !mark) {
		free(x);
		free(mark);
		return error_errno(e, ENOMEM, "a trial");
	}
	*x = (struct execution){.socket = -1, .mark = mark, .status = SIGKILL};
	int result = start_keeper(x, request, program);
	if (result < 0) {
		free_execution(x);
		return error_errno(e, -result, "cannot start a trial");
	}
	*ret = x;
	return 0;
}

// Receives messages of the keeper, until it has ended.
static void hear(struct execution *x, int timeout_ms)
{
	struct keeper_message message;
	struct pollfd news = {.fd = x->socket, .events = POLLIN};
	if (x->socket < 0 || poll(&news, 1, timeout_ms) <= 0) {
		return;
	}
	ssize_t n = recv(x->socket, &message, sizeof(message), MSG_DONTWAIT);
	if (n == (ssize_t)sizeof(message) && message.n_left > 0) {
		x->left = message;
	} else if (n == (ssize_t)sizeof(message)) {
		x->ended = true;
		x->status = message.error ? -message.error : message.status;
	} else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		close(x->socket);
		x->socket = -1;
		waitpid(x->keeper, NULL, 0);
	}
}

// A killed keeper sends no end: its death sent a signal to strain-record.
bool execution_wait(struct execution *x, int timeout_ms, int *ret_status)
{
	hear(x, timeout_ms);
	*ret_status = x->status;
	return x->ended || x->socket < 0;
}

bool execution_wait_left(struct execution *x, int timeout_ms)
{
	hear(x, timeout_ms);
	return x->socket < 0;
}

size_t execution_left(const struct execution *x, pid_t *pids, size_t most)
{
	size_t known = x->left.n_left < KEEPER_LEFT_MOST ? x->left.n_left : KEEPER_LEFT_MOST;
	memcpy(pids, x->left.left, (known < most ? known : most) * sizeof(*pids));
	return x->left.n_left;
}

void execution_end(struct execution *x, bool at_once)
{
	const char command = at_once ? KEEPER_KILL : KEEPER_ASK;
	if (x->socket >= 0) {
		send(x->socket, &command, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

void execution_close(struct execution *x)
{
	if (x->socket >= 0) {
		execution_end(x, true);
		while (!execution_wait_left(x, -1)) {
		}
	}
	// The keeper was killed: the mark is the only way to find the processes.
	for (int i = 0; !x->ended && i < LEFT_ROUNDS; i++) {
		if (still_running_signal(x->mark, 0, SIGKILL) == 0) {
			break;
		}
		const struct timespec pause = {.tv_nsec = STEP_MS * (long)NS_PER_MS};
		nanosleep(&pause, NULL);
	}
	free_execution(x);
}
