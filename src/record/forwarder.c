// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The forwarder's process.

#include "record/forwarder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/descriptors.h"
#include "record/listener.h"

enum {
	SPLICE_BYTES = 1024 * 1024,
	DRAIN_QUIET_MS = 20, // a terminal hands its bytes on from a kernel thread, a little later
	REST_MS = 200, // a job that paused for so long begins a line, whatever of it was lost
	DRAIN_BYTES = 128 * 1024, // what was in flight when the job ended is less
};

struct pass {
	struct channel *channel;
	int control; // -1 once the launcher was told that all is through
	int signals; // a terminal's sizes; -1 otherwise
	bool watch_output; // its end can be seen before a write fails
	bool torn; // the copy lacks bytes: what follows is no part of the line before
	bool line_begins; // and after them a line begins
	bool draining;
	size_t drained;
	bool can_splice; // the output takes pages as they are
	struct listener_second second; // of what the recorder was given
	char buffer[FORWARDER_BYTES];
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

// last: of the bytes that the copy lacks, where it is known; else 0.
static void lose(struct pass *p, size_t length, char last)
{
	p->torn = true;
	p->line_begins = last == '\n' || last == '\r';
	*p->channel->dropped += length;
}

// The listener's sign that bytes are missing must not come from the job.
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
	lose(p, (size_t)length, 0);
	return length > 0 ? 0 : -EPIPE;
}

// False at the end: of the job's output, or of what takes it.
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
	// The master of a terminal that nobody has open any more answers EIO.
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

// What the job had written when it ended has been passed on.
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

_Noreturn void forwarder_run(struct channel *c, int control, bool again)
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
		pass_size(pass); // there was nobody to see it change
	}
	forward(pass);
	free(pass);
	_exit(0);
}
