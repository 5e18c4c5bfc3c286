// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's first process, between fork and exec.

#include "record/launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/command.h"
#include "base/launch_status.h"
#include "base/text.h"
#include "machine/cgroup.h"
#include "machine/overlay.h"
#include "record/job/injection.h"
#include "record/job/limits.h"
#include "record/launch/signals.h"

static int cannot_run(const char *name, int code, struct error *e)
{
	command_cannot_run(name, code, e);
	return code == ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
}

int child_check(char *const *command, struct error *e)
{
	int problem = command_check_program(command[0], getenv("PATH"));
	return problem ? cannot_run(command[0], problem, e) : 0;
}

// Removes strain's own entries (below STRAIN_HOME) from LD_LIBRARY_PATH.
static void clean_library_path(const char *home)
{
	const char *path = getenv("LD_LIBRARY_PATH");
	size_t home_length = strlen(home);
	if (!path || home_length == 0) {
		return;
	}
	_cleanup_text_ struct text kept = {0};
	bool first = true, changed = false;
	for (const char *at = path;; at++) {
		size_t length = strcspn(at, ":");
		bool ours = length >= home_length && memcmp(at, home, home_length) == 0 &&
		            (length == home_length || at[home_length] == '/');
		if (!ours) {
			text_append_string(&kept, first ? "" : ":");
			text_append(&kept, at, length);
			first = false;
		}
		changed = changed || ours;
		at += length;
		if (*at == '\0') {
			break;
		}
	}
	if (changed && !kept.failed) {
		first ? unsetenv("LD_LIBRARY_PATH") : setenv("LD_LIBRARY_PATH", kept.data, 1);
	}
}

static void clean_environment(void)
{
	const char *home = secure_getenv("STRAIN_HOME");
	unsetenv("STRAIN_SWEEP_PID"); // the job is not run by the sweep directly
	if (home) {
		clean_library_path(home);
		unsetenv("STRAIN_HOME");
	}
}

static void report(int fd, int code)
{
	(void)!write(fd, &code, sizeof(code));
}

static _Noreturn void run_child(const struct child_config *config, int go, int report_fd)
{
	report(report_fd, config->cgroup ? job_cgroup_enter(config->cgroup) : 0);
	report(report_fd, limits_enter(config->limits));
	int overlay = config->overlay ? overlay_enter(config->overlay, NULL) : 0;
	report(report_fd, overlay < 0 ? overlay : 0);
	char byte;
	if (read(go, &byte, 1) != 1) {
		_exit(0);
	}
	for (int i = 0; i < 2; i++) {
		if (config->output[i] >= 0 && dup2(config->output[i], STDOUT_FILENO + i) < 0) {
			report(report_fd, -errno);
			_exit(LAUNCH_NOT_EXECUTABLE);
		}
	}
	clean_environment();
	injection_enter(config->markers, config->hooks, config->nvtx, config->lines);
	signals_restore(config->signals);
	execvp(config->command[0], config->command);
	report(report_fd, -errno);
	_exit(LAUNCH_NOT_EXECUTABLE);
}

// Reads the child's report: 0 at the end of the pipe.
static int read_report(int fd)
{
	int code = 0;
	ssize_t length;
	do {
		length = read(fd, &code, sizeof(code));
	} while (length < 0 && errno == EINTR);
	return length == (ssize_t)sizeof(code) ? code : 0;
}

int child_start(const struct child_config *config, struct child *ret, struct error *e)
{
	int go[2], reports[2];
	if (pipe2(go, O_CLOEXEC) < 0) {
		return error_errno(e, errno, "cannot start the job: pipe");
	}
	if (pipe2(reports, O_CLOEXEC) < 0) {
		int code = errno;
		close(go[0]);
		close(go[1]);
		return error_errno(e, code, "cannot start the job: pipe");
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(go[1]);
		close(reports[0]);
		run_child(config, go[0], reports[1]);
	}
	int code = errno;
	close(go[0]);
	close(reports[1]);
	if (pid < 0) {
		close(go[1]);
		close(reports[0]);
		return error_errno(e, code, "cannot start the job: fork");
	}
	*ret = (struct child){.pid = pid, .go = go[1], .report = reports[0]};
	return 0;
}

void child_wait_entry(struct child *c, struct child_entry *ret)
{
	ret->cgroup = read_report(c->report);
	ret->limits = read_report(c->report);
	ret->overlay = read_report(c->report);
}

int child_go(struct child *c, char *const *command, struct error *e)
{
	(void)!write(c->go, "", 1); // a child killed meanwhile is treated as one that ended
	close(c->go);
	int code = read_report(c->report);
	close(c->report);
	c->go = c->report = -1;
	if (code == 0) {
		return 0;
	}
	waitpid(c->pid, NULL, 0);
	c->pid = 0;
	return cannot_run(command[0], -code, e);
}

void child_cancel(struct child *c)
{
	if (c->pid > 0) {
		close(c->go);
		close(c->report);
		waitpid(c->pid, NULL, 0);
	}
	*c = CHILD_NONE;
}
