// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Channels between the job and what it writes to, and the process that serves one.

#include "record/forwarder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
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
#include <linux/magic.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/descriptors.h"
#include "record/listener.h"

enum {
	BUFFER_BYTES = 64 * 1024,
	COPY_BYTES = 1024 * 1024, // a second of a very talkative job
	SPLICE_BYTES = 1024 * 1024,
	DRAIN_QUIET_MS = 20, // a terminal hands its bytes on from a kernel thread, a little later
	DRAIN_BYTES = 128 * 1024, // what was in flight when the job ended is less
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

// Opens the job's file a second time, to read what it will append.
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
	// Raw: the real terminal does what is to be done with newlines, once.
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
	fcntl(c->copy_in, F_SETPIPE_SZ, COPY_BYTES); // less where the user may not
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

// A standard stream that was closed holds our own /dev/null, which alone is close-on-exec.
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

int forwarding_open(struct forwarding *f, struct error *e)
{
	static const char *const names[] = {"standard output", "standard error"};
	int rc = 0;
	*f = FORWARDING_NONE;
	for (int i = 0; i < 2; i++) {
		int fd = STDOUT_FILENO + i;
		f->channels[i] = no_channel;
		if (!is_open(fd)) {
			continue;
		}
		if (i == 1 && f->of[0] == 0 && is_same(STDOUT_FILENO, STDERR_FILENO)) {
			f->of[1] = 0;
			continue;
		}
		int opened = open_channel(&f->channels[i], fd);
		if (opened < 0) {
			close_channel(&f->channels[i]);
			rc = error_errno(e, -opened, "cannot look for epochs in %s", names[i]);
			continue;
		}
		f->of[i] = i;
	}
	return rc;
}

int forwarding_job(const struct forwarding *f, int stream)
{
	int index = f->of[stream - STDOUT_FILENO];
	return index < 0 ? -1 : f->channels[index].job;
}

int forwarding_copy(const struct forwarding *f, int stream)
{
	// Two streams into one object are read once.
	int index = f->of[stream - STDOUT_FILENO];
	return index == stream - STDOUT_FILENO ? f->channels[index].copy : -1;
}

// Below here: the forwarder's process.

struct pass {
	struct channel *channel;
	int control; // -1 once the launcher was told that all is through
	int signals; // a terminal's sizes; -1 otherwise
	bool watch_output; // its end can be seen before a write fails
	bool torn; // the copy lacks bytes: what follows is no part of the line before
	bool draining;
	size_t drained;
	bool can_splice; // the output takes pages as they are
	uint64_t second_ns; // since when, and how much, the recorder was given
	size_t second_bytes;
	char buffer[BUFFER_BYTES];
};

// False where the output takes no more.
static bool write_all(int fd, const char *data, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, data, length);
		if (written > 0) {
			data += written;
			length -= (size_t)written;
		} else if (written < 0 && errno == EAGAIN) {
			// Somebody made the shared object non-blocking.
			struct pollfd room = {.fd = fd, .events = POLLOUT};
			poll(&room, 1, -1);
		} else if (written < 0 && errno != EINTR) {
			return false;
		}
	}
	return true;
}

static void lose(struct pass *p, size_t length)
{
	p->torn = true;
	*p->channel->dropped += length;
}

// Whether the recorder has had its share of this second.
static bool is_flooded(struct pass *p)
{
	uint64_t now = clock_monotonic_ns();
	if (now - p->second_ns >= NS_PER_S) {
		p->second_ns = now;
		p->second_bytes = 0;
	}
	return p->second_bytes >= LISTENER_BYTES_PER_S;
}

static void write_copy(struct pass *p, const char *data, size_t length)
{
	struct channel *c = p->channel;
	if (p->torn && write(c->copy_in, "\n", 1) == 1) {
		p->torn = false;
	}
	ssize_t written = p->torn ? -1 : write(c->copy_in, data, length);
	if (written < 0 && errno == EPIPE) {
		close_fd(&c->copy_in); // the recorder is gone
		return;
	}
	size_t copied = written > 0 ? (size_t)written : 0;
	p->second_bytes += copied;
	if (copied < length) {
		lose(p, length - copied);
	}
}

// Passes on what the recorder is not to see. -EAGAIN where it has to be read and written.
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
	lose(p, (size_t)length);
	return length > 0 ? 0 : -EPIPE;
}

// False at the end: of the job's output, or of what takes it.
static bool pass_some(struct pass *p)
{
	bool unseen = p->channel->copy_in < 0 || is_flooded(p);
	int spliced = unseen ? splice_some(p) : -EAGAIN;
	if (spliced != -EAGAIN) {
		return spliced == 0;
	}
	ssize_t length = read(p->channel->input, p->buffer, sizeof(p->buffer));
	if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
		return true;
	}
	// The master of a terminal that nobody has open any more answers EIO.
	if (length <= 0 || !write_all(p->channel->output, p->buffer, (size_t)length)) {
		return false;
	}
	p->drained += (size_t)length;
	if (unseen) {
		lose(p, (size_t)length);
	} else {
		write_copy(p, p->buffer, (size_t)length);
	}
	return true;
}

// The job's group had SIGWINCH from the terminal, perhaps before the size was passed on here.
static void pass_size(struct pass *p)
{
	struct signalfd_siginfo info;
	struct winsize real, ours;
	while (read(p->signals, &info, sizeof(info)) > 0) {
		// Only that it came matters.
	}
	if (ioctl(p->channel->output, TIOCGWINSZ, &real) == 0 &&
		ioctl(p->channel->input, TIOCGWINSZ, &ours) == 0 &&
		memcmp(&real, &ours, sizeof(real)) != 0) {
		ioctl(p->channel->input, TIOCSWINSZ, &real);
		kill(0, SIGWINCH);
	}
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
		int ready = poll(fds, N, p->draining ? DRAIN_QUIET_MS : -1);
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
			close_fd(&p->control);
		}
	}
}

// What ends or stops the job's group must not end what passes its output on. Of the signals of the
// terminal only SIGTTIN and SIGTTOU are for us: whoever writes in the background stops, as it was.
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

// A named pipe may get a new reader; a pipe without a name, a socket and a terminal are lost for
// good.
static bool ends_for_good(int fd)
{
	struct statfs fs;
	struct stat st;
	return isatty(fd) || (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode)) ||
	       (fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC);
}

static _Noreturn void run_forwarder(struct channel *c, int control)
{
	struct pass *pass = calloc(1, sizeof(*pass));
	if (!pass) {
		_exit(1);
	}
	pass->channel = c;
	pass->control = control;
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
	forward(pass);
	free(pass);
	_exit(0);
}

static int start_channel(struct channel *c)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		return -errno;
	}
	pid_t pid = fork();
	if (pid == 0) {
		run_forwarder(c, pair[1]);
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
		int rc = f->channels[i].output >= 0 ? start_channel(&f->channels[i]) : 0;
		if (rc < 0) {
			return error_errno(e, -rc, "cannot pass the job's output on: fork");
		}
	}
	return 0;
}

void forwarding_release(struct forwarding *f)
{
	for (size_t i = 0; i < ARRAY_LENGTH(f->channels); i++) {
		close_channel(&f->channels[i]);
	}
}

void forwarding_finish(struct forwarding *f)
{
	for (size_t i = 0; i < ARRAY_LENGTH(f->channels); i++) {
		if (f->channels[i].control >= 0) {
			shutdown(f->channels[i].control, SHUT_WR);
		}
	}
}

uint64_t forwarding_dropped(const struct forwarding *f)
{
	uint64_t dropped = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(f->channels); i++) {
		dropped += f->channels[i].dropped ? *f->channels[i].dropped : 0;
	}
	return dropped;
}
