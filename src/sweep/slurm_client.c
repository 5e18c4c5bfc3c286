// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs commands of Slurm.

#include "sweep/slurm_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/whole_file.h"

enum { OUTPUT_MOST = 16 << 20, COMPLAINT_MOST = 4096, PATIENCE_S = 60 };

extern char **environ;

void slurm_command_add(struct slurm_command *c, const char *format, ...)
{
	char *word = NULL;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&word, format, arguments);
	va_end(arguments);
	if (length < 0 || array_reserve((void **)&c->words, &c->capacity, c->n_words + 2,
				  sizeof(*c->words)) < 0) {
		free(length < 0 ? NULL : word);
		c->failed = true;
		return;
	}
	c->words[c->n_words++] = word;
	c->words[c->n_words] = NULL;
}

void slurm_command_add_words(struct slurm_command *c, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		slurm_command_add(c, "%s", words[i]);
	}
}

void slurm_command_done(struct slurm_command *c)
{
	for (size_t i = 0; i < c->n_words; i++) {
		free(c->words[i]);
	}
	free(c->words);
	*c = (struct slurm_command){0};
}

void slurm_answer_done(struct slurm_answer *a)
{
	text_done(&a->output);
	text_done(&a->complaint);
}

// A file in memory that has the input, at its start.
static int open_input(const char *input, size_t size)
{
	_cleanup_close_ int fd = memfd_create("strain-script", MFD_CLOEXEC);
	int result = fd < 0 ? -errno : whole_file_write_to(fd, input, size);
	if (result < 0 || lseek(fd, 0, SEEK_SET) < 0) {
		return result < 0 ? result : -errno;
	}
	return take_fd(fd);
}

// Whether a variable of the user's environment changes what a command answers: SQUEUE_STATES,
// SCANCEL_INTERACTIVE, ...
static bool changes_answer(const char *program, const char *variable)
{
	static const struct {
		const char *program;
		const char *start;
	} variables[] = {
		{"squeue", "SQUEUE_"},
		{"scancel", "SCANCEL_"},
		{"scontrol", "SCONTROL_"},
		{"sbatch", "SBATCH_WAIT="},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(variables); i++) {
		if (strcmp(program, variables[i].program) == 0 &&
			strncmp(variable, variables[i].start, strlen(variables[i].start)) == 0) {
			return true;
		}
	}
	return false;
}

// The variables themselves are those of `environ`. NULL: out of memory.
static char **make_environment(const char *program)
{
	size_t n = 0, kept = 0;
	while (environ[n]) {
		n++;
	}
	char **copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		if (!changes_answer(program, environ[i])) {
			copy[kept++] = environ[i];
		}
	}
	return copy;
}

// In a process group of its own, with signals as they are by default.
static int spawn(char *const *arguments, const int fds[3], pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	_cleanup_free_ char **environment = make_environment(arguments[0]);
	sigemptyset(&none);
	sigfillset(&all);
	int code = environment ? posix_spawn_file_actions_init(&actions) : ENOMEM;
	if (code != 0) {
		return -code;
	}
	code = posix_spawnattr_init(&attributes);
	for (int i = 0; i < 3 && code == 0; i++) {
		code = posix_spawn_file_actions_adddup2(&actions, fds[i], i);
	}
	if (code == 0) {
		posix_spawnattr_setflags(&attributes,
			POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
		posix_spawnattr_setsigmask(&attributes, &none);
		posix_spawnattr_setsigdefault(&attributes, &all);
		code = posix_spawnp(
			ret, arguments[0], &actions, &attributes, arguments, environment);
	}
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -code;
}

// Reads what is there; the rest beyond `most` is dropped. False: the end.
static bool take(int fd, struct text *t, size_t most)
{
	char buffer[16384];
	ssize_t n = read(fd, buffer, sizeof(buffer));
	if (n < 0) {
		return errno == EINTR || errno == EAGAIN;
	}
	size_t room = t->length < most ? most - t->length : 0;
	text_append(t, buffer, (size_t)n < room ? (size_t)n : room);
	return n > 0;
}

// 0: the end; -ETIME: it took too long; -EINTR.
static int listen_to(int out, int err, struct text *output, struct text *complaint,
	const volatile sig_atomic_t *interrupts)
{
	enum { LOOK_MS = 250 }; // at `interrupts`
	uint64_t until_ns = clock_monotonic_ns() + PATIENCE_S * NS_PER_S;
	struct pollfd fds[] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		uint64_t now_ns = clock_monotonic_ns();
		if (interrupts && *interrupts > 0) {
			return -EINTR;
		}
		if (now_ns >= until_ns) {
			return -ETIME;
		}
		if (poll(fds, ARRAY_LENGTH(fds), LOOK_MS) <= 0) {
			continue;
		}
		if (fds[0].revents && !take(out, output, OUTPUT_MOST + 1)) {
			fds[0].fd = -1;
		}
		if (fds[1].revents && !take(err, complaint, COMPLAINT_MOST)) {
			fds[1].fd = -1;
		}
	}
	return 0;
}

// One line, in which the lines are joined by "; ".
static void append_line(struct text *t, const struct text *lines)
{
	size_t from = 0;
	for (size_t i = 0; i <= lines->length; i++) {
		if (i < lines->length && lines->data[i] != '\n') {
			continue;
		}
		if (i > from) {
			text_append_string(t, t->length > 0 ? "; " : "");
			text_append_printable(t, lines->data + from, i - from);
		}
		from = i + 1;
	}
}

static int wait_for(pid_t pid)
{
	int status = -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	return status;
}

static int fail(char *const *arguments, int code, const char *what, const struct text *complaint,
	struct error *e)
{
	return error_set(e, code, "%s %s%s%.300s", arguments[0], what,
		complaint->length > 0 ? ": " : "", complaint->data ? complaint->data : "");
}

static int start(char *const *arguments, const char *input, size_t input_size, int ret_fds[2],
	pid_t *ret_pid, struct error *e)
{
	int out[2] = {-1, -1}, err[2] = {-1, -1};
	_cleanup_close_ int script = open_input(input, input_size);
	int result = script < 0 ? script : 0;
	if (result == 0 && (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)) {
		result = -errno;
	}
	if (result == 0) {
		result = spawn(arguments, (const int[]){script, out[1], err[1]}, ret_pid);
	}
	cleanup_close(&out[1]);
	cleanup_close(&err[1]);
	if (result < 0) {
		cleanup_close(&out[0]);
		cleanup_close(&err[0]);
		return result == -ENOENT
		               ? error_set(e, ENOENT,
					 "cannot run %s: not found in PATH (executor: slurm "
					 "needs the commands of Slurm)",
					 arguments[0])
		               : error_errno(e, -result, "cannot run %s", arguments[0]);
	}
	ret_fds[0] = out[0];
	ret_fds[1] = err[0];
	return 0;
}

static int run(const struct slurm_command *command, const char *input, size_t input_size,
	struct slurm_answer *ret, struct error *e)
{
	char *const *arguments = command->words;
	_cleanup_text_ struct text complaint = {0};
	int fds[2] = {-1, -1};
	pid_t pid = -1;
	int result = start(arguments, input, input_size, fds, &pid, e);
	if (result < 0) {
		return result;
	}
	int ended = listen_to(fds[0], fds[1], &ret->output, &complaint, command->interrupts);
	if (ended < 0) {
		kill(-pid, SIGKILL); // a script of the site may have started it
	}
	close(fds[0]);
	close(fds[1]);
	int status = wait_for(pid);
	append_line(&ret->complaint, &complaint);
	if (ret->output.failed || ret->complaint.failed || complaint.failed) {
		return error_errno(e, ENOMEM, "%s", arguments[0]);
	}
	if (ended == -EINTR) {
		return fail(arguments, EINTR, "was interrupted", &ret->complaint, e);
	}
	if (ended < 0) {
		return fail(arguments, ETIME, "did not end within a minute", &ret->complaint, e);
	}
	if (status == 0 && ret->output.length > OUTPUT_MOST) {
		return error_set(e, EFBIG, "%s printed more than the %d MiB that strain reads",
			arguments[0], OUTPUT_MOST >> 20);
	}
	return status == 0 ? 0 : fail(arguments, EIO, "failed", &ret->complaint, e);
}

int slurm_client_run(struct slurm_command *command, const char *input, size_t input_size,
	struct slurm_answer *ret, struct error *e)
{
	*ret = (struct slurm_answer){0};
	int result = command->failed ? error_errno(e, ENOMEM, "a command of Slurm")
	                             : run(command, input, input_size, ret, e);
	slurm_command_done(command);
	return result;
}
