// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Channels between the job and the destinations of its output, from the launcher's side.

#include "record/output/forwarding.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "record/output/listener.h"

// Forwarder ---------------------------------------------------------------------------------------
//
// The forwarder process.

enum {
	SPLICE_BYTES = 1024 * 1024,
	DRAIN_QUIET_MS = 20, // a terminal delivers bytes from a kernel thread, slightly later
	REST_MS = 200, // output after a pause this long starts a new line, even if bytes before it
	               // were lost
	DRAIN_BYTES = 128 * 1024, // more than can be in flight when the job ends
};

struct pass {
	struct channel *channel;
	int control; // -1 once the launcher was told that everything is forwarded
	int signals; // for the sizes of a terminal; else -1
	bool watch_output; // its end can be detected before a write fails
	bool torn; // the copy lacks bytes: the next ones do not continue the line before
	bool line_begins; // and after the missing bytes a line begins
	bool draining;
	size_t drained;
	bool can_splice; // the output accepts pages by splice
	struct listener_second second; // bytes given to the recorder in this second
	char buffer[FORWARDER_BYTES];
};

// Returns false if the output accepts no more.
static bool write_all(int fd, const char *data, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, data, length);
		if (written > 0) {
			data += written;
			length -= (size_t)written;
		} else if (written < 0 && errno == EAGAIN) {
			// Another process made the shared file description non-blocking.
			struct pollfd room = {.fd = fd, .events = POLLOUT};
			poll(&room, 1, -1);
		} else if (written < 0 && errno != EINTR) {
			return false;
		}
	}
	return true;
}

// last: the last of the bytes missing in the copy, if known; else 0.
static void lose(struct pass *p, size_t length, char last)
{
	p->torn = true;
	p->line_begins = last == '\n' || last == '\r';
	*p->channel->dropped += length;
}

// The job must not forge the sign for missing bytes to the listener.
static void replace_signs(char *data, size_t length)
{
	char *end = data + length, *sign = data;
	while ((sign = memchr(sign, LISTENER_TORN, (size_t)(end - sign)))) {
		*sign++ = '\1';
	}
}

static void write_copy(struct pass *p, char *data, size_t length)
{
	static const char torn[] = {LISTENER_TORN, '\n'};
	struct channel *c = p->channel;
	if (p->torn && write(c->copy_in, torn, p->line_begins ? 2 : 1) > 0) {
		p->torn = false;
	}
	replace_signs(data, length);
	ssize_t written = p->torn ? -1 : write(c->copy_in, data, length);
	if (written < 0 && errno == EPIPE) {
		close(c->copy_in); // the recorder is gone
		c->copy_in = -1;
		return;
	}
	size_t copied = written > 0 ? (size_t)written : 0;
	p->second.bytes += copied;
	if (copied < length) {
		lose(p, length - copied, data[length - 1]);
	}
}

// Forwards data that the recorder need not see. Returns -EAGAIN if it must be read and written
// instead.
static int splice_some(struct pass *p)
{
	if (!p->can_splice) {
		return -EAGAIN;
	}
	ssize_t length = splice(p->channel->input, NULL, p->channel->output, NULL, SPLICE_BYTES, 0);
	if (length < 0) {
		p->can_splice = false;
		return -EAGAIN;
	}
	p->drained += (size_t)length;
	lose(p, (size_t)length, 0);
	return length > 0 ? 0 : -EPIPE;
}

// Returns false at the end of the job's output or of its destination.
static bool pass_some(struct pass *p)
{
	bool unseen = p->channel->copy_in < 0 || listener_second_is_full(&p->second);
	int spliced = unseen ? splice_some(p) : -EAGAIN;
	if (spliced != -EAGAIN) {
		return spliced == 0;
	}
	ssize_t length = read(p->channel->input, p->buffer, sizeof(p->buffer));
	if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
		return true;
	}
	// The master of a terminal that no process has open returns EIO.
	if (length <= 0 || !write_all(p->channel->output, p->buffer, (size_t)length)) {
		return false;
	}
	p->drained += (size_t)length;
	if (unseen) {
		lose(p, (size_t)length, p->buffer[length - 1]);
	} else {
		write_copy(p, p->buffer, (size_t)length);
	}
	return true;
}

// The terminal sent SIGWINCH to the job's group, perhaps before the size was passed on here.
static void pass_size(struct pass *p)
{
	struct signalfd_siginfo info;
	struct winsize real, ours;
	while (read(p->signals, &info, sizeof(info)) > 0) {
		// Only its arrival matters.
	}
	if (ioctl(p->channel->output, TIOCGWINSZ, &real) == 0 &&
		ioctl(p->channel->input, TIOCGWINSZ, &ours) == 0 &&
		memcmp(&real, &ours, sizeof(real)) != 0) {
		ioctl(p->channel->input, TIOCSWINSZ, &real);
		kill(0, SIGWINCH);
	}
}

// Everything that the job had written when it ended was forwarded.
static void tell_through(struct pass *p)
{
	send(p->control, "", 1, MSG_NOSIGNAL); // a launcher that was killed needs no answer
	close(p->control);
	p->control = -1;
}

static void forward(struct pass *p)
{
	enum { INPUT, OUTPUT, CONTROL, SIGNALS, N };
	for (;;) {
		struct pollfd fds[N] = {
			[INPUT] = {.fd = p->channel->input, .events = POLLIN},
			[OUTPUT] = {.fd = p->watch_output ? p->channel->output : -1},
			[CONTROL] = {.fd = p->draining ? -1 : p->control, .events = POLLIN},
			[SIGNALS] = {.fd = p->signals, .events = POLLIN},
		};
		bool unknown = p->torn && !p->line_begins;
		int ready = poll(fds, N, p->draining ? DRAIN_QUIET_MS : unknown ? REST_MS : -1);
		p->line_begins = p->line_begins || (ready == 0 && !p->draining);
		if (fds[SIGNALS].revents) {
			pass_size(p);
		}
		if (fds[OUTPUT].revents || (fds[INPUT].revents && !pass_some(p))) {
			return;
		}
		if (fds[CONTROL].revents) {
			p->draining = true;
			p->drained = 0;
		}
		if (p->draining && (ready == 0 || p->drained > DRAIN_BYTES)) {
			p->draining = false;
			tell_through(p);
		}
	}
}

// A signal that ends or stops the job's group must not end the forwarder of its output. Of the
// terminal's signals only SIGTTIN and SIGTTOU are accepted: writing in the background stops the
// forwarder, as it would have stopped the job.
static int block_signals(bool terminal)
{
	static const int left[] = {SIGTTIN, SIGTTOU, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	sigset_t set, sizes;
	sigfillset(&set);
	for (size_t i = 0; i < ARRAY_LENGTH(left); i++) {
		sigdelset(&set, left[i]);
	}
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&sizes);
	sigaddset(&sizes, SIGWINCH);
	sigaddset(&sizes, SIGCONT); // the size may have changed while stopped
	return terminal ? signalfd(-1, &sizes, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
}

// A named pipe may get a new reader. An unnamed pipe, a socket and a terminal never come back.
static bool ends_for_good(int fd)
{
	struct statfs fs;
	struct stat st;
	return isatty(fd) || (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode)) ||
	       (fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC);
}

// The forwarder process, from fork to end. control: its end of the pair. After the launcher shuts
// down its own end, the forwarder reports when everything is forwarded. again: the previous
// forwarder was killed while forwarding. Exits with 0 when the job's output or its destination has
// ended.
static _Noreturn void forwarder_run(struct channel *c, int control, bool again)
{
	struct pass *pass = calloc(1, sizeof(*pass));
	if (!pass) {
		_exit(1);
	}
	pass->channel = c;
	pass->control = control;
	pass->torn = again;
	pass->can_splice = c->kind == CHANNEL_PIPE;
	pass->watch_output = ends_for_good(c->output);
	pass->signals = block_signals(c->kind == CHANNEL_TERMINAL);
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		descriptors_null(fd);
	}
	int keep[] = {c->input, c->output, c->copy_in, control, pass->signals};
	descriptors_keep(keep, ARRAY_LENGTH(keep));
	c->job = c->copy = c->control = -1;
	prctl(PR_SET_NAME, "strain-forward");
	if (again && pass->signals >= 0) {
		pass_size(pass); // the size may have changed while there was no forwarder
	}
	forward(pass);
	free(pass);
	_exit(0);
}

// Forwarding --------------------------------------------------------------------------------------

enum {
	COPY_BYTES = 1024 * 1024, // a second of a very talkative job
	// Up to this many forwarders are restarted at once, later ones a second apart. After the
	// job's end no later ones are started, because nobody needs them.
	DEATHS_AT_ONCE = 8,
};

static const struct channel no_channel = CHANNEL_CLOSED;

static void close_fd(int *fd)
{
	if (*fd >= 0) {
		close(*fd);
		*fd = -1;
	}
}

static void close_channel(struct channel *c)
{
	int *const all[] = {&c->output, &c->input, &c->job, &c->copy_in, &c->copy};
	for (size_t i = 0; i < ARRAY_LENGTH(all); i++) {
		close_fd(all[i]);
	}
}

// Opens the job's file a second time, to read the data that it will append.
static int open_file(struct channel *c, int fd)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	c->copy = open(path, O_RDONLY | O_CLOEXEC);
	if (c->copy < 0) {
		return -errno;
	}
	bool append = fcntl(fd, F_GETFL) & O_APPEND;
	off_t from = lseek(fd, 0, append ? SEEK_END : SEEK_CUR);
	lseek(c->copy, from > 0 ? from : 0, SEEK_SET);
	c->kind = CHANNEL_FILE;
	return 0;
}

static int open_pipe(struct channel *c)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0) {
		return -errno;
	}
	c->input = ends[0];
	c->job = ends[1];
	c->kind = CHANNEL_PIPE;
	return 0;
}

static int open_terminal(struct channel *c, int fd)
{
	struct termios modes;
	struct winsize size;
	char name[64];
	c->input = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (c->input < 0 || grantpt(c->input) < 0 || unlockpt(c->input) < 0 ||
		ptsname_r(c->input, name, sizeof(name)) != 0) {
		return -errno;
	}
	c->job = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (c->job < 0 || tcgetattr(fd, &modes) < 0) {
		return -errno;
	}
	// Raw: the real terminal processes newlines, once.
	cfmakeraw(&modes);
	if (tcsetattr(c->job, TCSANOW, &modes) < 0) {
		return -errno;
	}
	if (ioctl(fd, TIOCGWINSZ, &size) == 0) {
		ioctl(c->input, TIOCSWINSZ, &size);
	}
	c->kind = CHANNEL_TERMINAL;
	return 0;
}

static int open_copy(struct channel *c, int fd)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		return -errno;
	}
	c->copy = ends[0];
	c->copy_in = ends[1];
	fcntl(c->copy_in, F_SETPIPE_SZ, COPY_BYTES); // less if the user may not
	c->output = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (c->output < 0) {
		return -errno;
	}
	void *shared = mmap(NULL, sizeof(*c->dropped), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	c->dropped = shared != MAP_FAILED ? shared : NULL;
	return c->dropped ? 0 : -ENOMEM;
}

static int open_channel(struct channel *c, int fd)
{
	struct stat st;
	*c = no_channel;
	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	if (S_ISREG(st.st_mode)) {
		return open_file(c, fd);
	}
	int rc = isatty(fd) ? open_terminal(c, fd) : open_pipe(c);
	return rc == 0 ? open_copy(c, fd) : rc;
}

// A standard stream that was closed now has our own /dev/null, which alone is close-on-exec.
static bool is_open(int fd)
{
	int flags = fcntl(fd, F_GETFD);
	return flags >= 0 && !(flags & FD_CLOEXEC);
}

static bool is_same(int a, int b)
{
	struct stat x, y;
	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static bool is_regular(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static int open_channels(struct forwarding *f, bool only_files, struct error *e)
{
	static const char *const names[] = {"standard output", "standard error"};
	int rc = 0;
	*f = FORWARDING_NONE;
	for (int i = 0; i < 2; i++) {
		int fd = STDOUT_FILENO + i;
		f->channels[i] = no_channel;
		if (!is_open(fd) || (only_files && !is_regular(fd))) {
			continue;
		}
		if (i == 1 && f->of[0] == 0 && is_same(STDOUT_FILENO, STDERR_FILENO)) {
			f->of[1] = 0;
			continue;
		}
		int opened = open_channel(&f->channels[i], fd);
		if (opened < 0) {
			close_channel(&f->channels[i]);
			rc = error_errno(e, -opened, "cannot search %s for epochs", names[i]);
			continue;
		}
		f->of[i] = i;
	}
	return rc;
}

int forwarding_open(struct forwarding *f, struct error *e)
{
	return open_channels(f, false, e);
}

void forwarding_open_files(struct forwarding *f)
{
	open_channels(f, true, NULL); // streams that cannot be read are not observed
}

int forwarding_job(const struct forwarding *f, int stream)
{
	int index = f->of[stream - STDOUT_FILENO];
	return index < 0 ? -1 : f->channels[index].job;
}

int forwarding_copy(const struct forwarding *f, int stream)
{
	// Two streams to the same file are read once.
	int index = f->of[stream - STDOUT_FILENO];
	return index == stream - STDOUT_FILENO ? f->channels[index].copy : -1;
}

static int start_channel(struct channel *c, bool again)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		return -errno;
	}
	pid_t pid = fork();
	if (pid == 0) {
		forwarder_run(c, pair[1], again);
	}
	int code = errno;
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -code;
	}
	c->pid = pid;
	c->control = pair[0];
	return 0;
}

int forwarding_start(struct forwarding *f, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LENGTH(f->channels); i++) {
		struct channel *c = &f->channels[i];
		int rc = c->output >= 0 ? start_channel(c, false) : 0;
		if (rc < 0) {
			forwarding_release(f);
			return error_errno(e, -rc, "cannot forward the job's output: fork");
		}
	}
	return 0;
}

void forwarding_let_go(struct forwarding *f)
{
	for (size_t i = 0; i < ARRAY_LENGTH(f->channels); i++) {
		close_fd(&f->channels[i].job);
		close_fd(&f->channels[i].copy);
	}
}

void forwarding_release(struct forwarding *f)
{
	for (size_t i = 0; i < ARRAY_LENGTH(f->channels); i++) {
		close_channel(&f->channels[i]);
		f->of[i] = -1;
	}
}

// Returns its index in `channels`; 2 if it is not ours.
static size_t find_channel(const struct forwarding *f, pid_t pid)
{
	size_t i = 0;
	while (i < ARRAY_LENGTH(f->channels) && (pid <= 0 || f->channels[i].pid != pid)) {
		i++;
	}
	return i;
}

bool forwarding_owns(const struct forwarding *f, pid_t pid)
{
	return find_channel(f, pid) < ARRAY_LENGTH(f->channels);
}

// The next forwarder starts at once, or a little later if they keep dying.
static void expect_next(const struct forwarding *f, struct channel *c)
{
	bool often = ++c->deaths > DEATHS_AT_ONCE;
	if (often && f->finishing) {
		close_channel(c);
	} else {
		c->due_ns = clock_monotonic_ns() + (often ? NS_PER_S : 0);
	}
}

bool forwarding_reaped(struct forwarding *f, pid_t pid, int status)
{
	struct channel *c = &f->channels[find_channel(f, pid)];
	bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	c->pid = 0;
	close_fd(&c->control);
	if (done || c->input < 0) {
		close_channel(c);
		return false;
	}
	expect_next(f, c);
	return true;
}

static void ask_for_the_rest(struct channel *c)
{
	if (c->control >= 0) {
		shutdown(c->control, SHUT_WR);
	}
}

int forwarding_tend(struct forwarding *f)
{
	int wait_ms = -1;
	for (size_t i = 0; i < ARRAY_LENGTH(f->channels); i++) {
		struct channel *c = &f->channels[i];
		uint64_t now = clock_monotonic_ns();
		if (c->due_ns != 0 && now >= c->due_ns) {
			c->due_ns = 0;
			if (start_channel(c, true) < 0) {
				expect_next(f, c);
			} else if (f->finishing) {
				ask_for_the_rest(c);
			}
		}
		if (c->due_ns != 0) {
			int due_ms = c->due_ns > now ? (int)((c->due_ns - now) / NS_PER_MS) + 1 : 0;
			wait_ms = wait_ms < 0 || due_ms < wait_ms ? due_ms : wait_ms;
		}
	}
	return wait_ms;
}

void forwarding_finish(struct forwarding *f)
{
	f->finishing = true;
	for (size_t i = 0; i < ARRAY_LENGTH(f->channels); i++) {
		ask_for_the_rest(&f->channels[i]);
	}
}

// A control that ends without the byte belongs to a forwarder that has ended; reaping it gives the
// reason.
static void hear_control(struct channel *c)
{
	char byte;
	ssize_t length = c->control >= 0 ? recv(c->control, &byte, 1, MSG_DONTWAIT) : -1;
	if (length >= 0) {
		c->through = c->through || length > 0;
		close_fd(&c->control);
	}
}

bool forwarding_is_through(struct forwarding *f)
{
	bool through = true;
	for (size_t i = 0; i < ARRAY_LENGTH(f->channels); i++) {
		struct channel *c = &f->channels[i];
		hear_control(c);
		through = through && (c->through || (c->pid == 0 && c->due_ns == 0));
	}
	return through;
}

uint64_t forwarding_dropped(const struct forwarding *f)
{
	uint64_t dropped = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(f->channels); i++) {
		dropped += f->channels[i].dropped ? *f->channels[i].dropped : 0;
	}
	return dropped;
}

unsigned forwarding_deaths(const struct forwarding *f)
{
	return f->channels[0].deaths + f->channels[1].deaths;
}
