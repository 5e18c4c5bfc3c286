// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads copies of the job's output: pipes with poll, regular files with inotify.

#include "record/output/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/secret.h"
#include "record/output/output.h"
#include "record/sample/feed.h"

// Tail --------------------------------------------------------------------------------------------
//
// The end of the job's output, in a bounded buffer.

void tail_open(struct tail *t, int fd)
{
	struct stat st;
	*t = (struct tail){.file = -1};
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		t->file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		t->from = lseek(fd, 0, SEEK_CUR);
	}
}

void tail_close(struct tail *t)
{
	if (t->file >= 0) {
		close(t->file);
	}
	t->file = -1;
}

// Adds copied bytes.
static void tail_add(struct tail *t, const char *data, size_t length)
{
	if (length > sizeof(t->bytes)) {
		data += length - sizeof(t->bytes);
		length = sizeof(t->bytes);
		t->cut = true;
	}
	size_t room = sizeof(t->bytes) - length;
	if (t->kept > room) {
		memmove(t->bytes, t->bytes + t->kept - room, room);
		t->kept = room;
		t->cut = true;
	}
	memcpy(t->bytes + t->kept, data, length);
	t->kept += length;
}

// Bytes are missing here: earlier bytes are not the end of the output.
static void tail_tear(struct tail *t)
{
	t->kept = 0;
	t->cut = true;
}

// A file that was truncated meanwhile is read from its beginning.
static void read_file(struct tail *t)
{
	struct stat st;
	if (fstat(t->file, &st) < 0) {
		return;
	}
	off_t from = t->from > 0 && t->from <= st.st_size ? t->from : 0;
	t->cut = st.st_size - from > (off_t)sizeof(t->bytes);
	from = t->cut ? st.st_size - (off_t)sizeof(t->bytes) : from;
	ssize_t n = pread(t->file, t->bytes, sizeof(t->bytes), from);
	t->kept = n > 0 ? (size_t)n : 0;
}

void tail_append(struct tail *t, struct text *ret)
{
	if (t->file >= 0) {
		read_file(t);
	}
	secret_append_end(ret, t->bytes, t->kept, t->cut);
}

// Listener ----------------------------------------------------------------------------------------

// Interval of checking a file without notifications; with them, too, in case one is lost.
#define LOOK_MS 10
#define TOLD_LOOK_MS 500
// Notifications are requested only after this time: closing inotify takes the kernel 8 to 11 ms,
// which would delay the end of a short run.
#define ASK_NS (2 * NS_PER_S)
// Minimum interval between reads of a job that writes all the time.
#define REST_NS (2 * NS_PER_MS)
#define READ_BYTES 65536

struct listened {
	int fd;
	bool file; // regular: end of file is not the job's end
	struct output_stream *stream;
	struct tail *tail; // borrowed
	struct listener_second second;
};

struct listener {
	struct feed *feed;
	uint64_t start_ns;
	_Atomic unsigned *epochs;
	struct output_pattern *pattern;
	bool counts; // only lines with increasing numbers mark epochs
	struct output_count count;
	struct listened outputs[2];
	pthread_t thread;
	_Atomic bool stop;
	int wake_fd; // eventfd: stop was set; -1: none
	int inotify_fd; // reports growth of files; -1: not requested yet, or unavailable
	bool asked;
	int64_t now_ns; // when the current bytes were read
	char *buffer;
	struct listener_losses losses;
};

// anew: earlier epochs were wrong.
static void put_epoch(struct listener *l, int64_t t_ns, int64_t number, bool anew)
{
	atomic_fetch_add(l->epochs, 1);
	feed_put(l->feed, &(struct item){
				  .kind = ITEM_SPAN,
				  .name = "epoch",
				  .text = "epoch",
				  .key = anew ? ITEM_KEY_ANEW : NULL,
				  .t_ns = t_ns,
				  .last_ns = -1,
				  .number = number,
				  .value = NAN,
			  });
}

static void matched(void *context, const struct output_match *match)
{
	struct listener *l = context;
	int64_t first_ns = 0;
	enum output_told told = l->counts
	                                ? output_count_line(&l->count, match, l->now_ns, &first_ns)
	                                : OUTPUT_TOLD_NEXT;
	if (told == OUTPUT_TOLD_NOTHING) {
		return;
	}
	if (told == OUTPUT_TOLD_ANEW) {
		put_epoch(l, first_ns, match->number - 1, true);
	}
	put_epoch(l, l->now_ns, match->number, false);
	for (size_t i = 0; i < match->n_points; i++) {
		feed_put(l->feed, &(struct item){
					  .kind = ITEM_SPAN,
					  .name = match->points[i].name,
					  .text = "point",
					  .t_ns = l->now_ns,
					  .last_ns = l->now_ns,
					  .number = match->number,
					  .value = match->points[i].value,
				  });
	}
}

bool listener_second_is_full(struct listener_second *second)
{
	uint64_t now_ns = clock_monotonic_ns();
	if (now_ns - second->since_ns >= NS_PER_S) {
		*second = (struct listener_second){.since_ns = now_ns};
	}
	return second->bytes >= LISTENER_BYTES_PER_S;
}

// Skips the content of a file except its end, which may be the last output. The copy of a pipe is
// reduced by the forwarder.
static void skip_to_tail(struct listener *l, struct listened *output)
{
	off_t at = lseek(output->fd, 0, SEEK_CUR);
	off_t tail = lseek(output->fd, 0, SEEK_END) - READ_BYTES;
	tail = lseek(output->fd, tail > at ? tail : at, SEEK_SET);
	if (tail > at) {
		l->losses.skipped_bytes += (uint64_t)(tail - at);
		output_stream_reset(output->stream);
	}
}

static void search_bytes(
	struct listener *l, struct listened *output, const char *data, size_t length)
{
	const char *torn;
	while (!output->file && (torn = memchr(data, LISTENER_TORN, length))) {
		size_t before = (size_t)(torn - data);
		output_stream_feed(output->stream, data, before, matched, l);
		output_stream_reset(output->stream);
		tail_tear(output->tail);
		data = torn + 1;
		length -= before + 1;
	}
	output_stream_feed(output->stream, data, length, matched, l);
	if (!output->file) {
		tail_add(output->tail, data, length);
	}
}

// Reads the available data. last: there are no more reads. Returns false if no more will come.
static bool listen_now(struct listener *l, struct listened *output, bool last)
{
	for (;;) {
		if (output->file && listener_second_is_full(&output->second)) {
			skip_to_tail(l, output);
			if (!last) {
				return true;
			}
			last = false;
			output->second.bytes = 0;
		}
		ssize_t n = read(output->fd, l->buffer, READ_BYTES);
		if (n < 0) {
			return errno == EAGAIN || errno == EINTR;
		}
		if (n == 0) {
			return output->file;
		}
		l->now_ns = (int64_t)(clock_monotonic_ns() - l->start_ns);
		output->second.bytes += (size_t)n;
		search_bytes(l, output, l->buffer, (size_t)n);
	}
}

// Whether reading can wait for a notification: no file grows unnoticed.
static bool is_told(const struct listener *l)
{
	bool file = (l->outputs[0].fd >= 0 && l->outputs[0].file) ||
	            (l->outputs[1].fd >= 0 && l->outputs[1].file);
	return l->wake_fd >= 0 && (!file || l->inotify_fd >= 0);
}

// Requests notifications for a file. If one file cannot be watched, all are polled.
static void watch_file(struct listener *l, int fd)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (l->inotify_fd >= 0 && inotify_add_watch(l->inotify_fd, path, IN_MODIFY) < 0) {
		close(l->inotify_fd);
		l->inotify_fd = -1;
	}
}

// Returns true once: earlier output is to be read before relying on notifications.
static bool ask_in_time(struct listener *l)
{
	if (l->asked || clock_monotonic_ns() - l->start_ns < ASK_NS) {
		return false;
	}
	l->asked = true;
	l->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	for (size_t i = 0; i < 2; i++) {
		if (l->outputs[i].fd >= 0 && l->outputs[i].file) {
			watch_file(l, l->outputs[i].fd);
		}
	}
	return true;
}

// Waits until there may be data to read, or the end has come.
static void listener_wait(struct listener *l, struct pollfd polled[2])
{
	struct pollfd fds[] = {{.fd = l->wake_fd, .events = POLLIN},
		{.fd = l->inotify_fd, .events = POLLIN}, polled[0], polled[1]};
	int timeout_ms = is_told(l) ? TOLD_LOOK_MS : LOOK_MS;
	poll(fds, ARRAY_LENGTH(fds), ask_in_time(l) ? 0 : timeout_ms);
	polled[0] = fds[2];
	polled[1] = fds[3];
	if (fds[1].revents) {
		while (read(l->inotify_fd, l->buffer, READ_BYTES) > 0) {
			// Only the fact of a write matters.
		}
	}
}

static void listener_rest(uint64_t since_ns)
{
	uint64_t now_ns = clock_monotonic_ns();
	if (now_ns < since_ns + REST_NS) {
		struct timespec rest = {.tv_nsec = (long)(since_ns + REST_NS - now_ns)};
		nanosleep(&rest, NULL);
	}
}

static void *listener_main(void *context)
{
	struct listener *l = context;
	prctl(PR_SET_NAME, "strain-listener");
	bool stopping = false;
	while (!stopping) {
		uint64_t looked_ns = clock_monotonic_ns();
		stopping = atomic_load(&l->stop); // one more pass after that
		struct pollfd polled[2];
		for (size_t i = 0; i < 2; i++) {
			struct listened *output = &l->outputs[i];
			polled[i] = (struct pollfd){
				.fd = output->file ? -1 : output->fd, .events = POLLIN};
		}
		listener_wait(l, polled);
		for (size_t i = 0; i < 2; i++) {
			struct listened *output = &l->outputs[i];
			bool look = output->fd >= 0 &&
			            (output->file || stopping || polled[i].revents);
			if (look && !listen_now(l, output, stopping)) {
				close(output->fd);
				output->fd = -1;
			}
		}
		if (!stopping) {
			listener_rest(looked_ns);
		}
	}
	return NULL;
}

static int listened_init(struct listener *l, size_t i, int fd, struct error *e)
{
	struct stat status;
	l->outputs[i].fd = fd;
	if (fd < 0) {
		return 0;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	l->outputs[i].file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
	return output_stream_new(l->pattern, &l->outputs[i].stream) < 0
	               ? error_set(e, ENOMEM, "out of memory")
	               : 0;
}

static void listener_free(struct listener *l)
{
	for (size_t i = 0; i < 2; i++) {
		output_stream_free(l->outputs[i].stream);
		if (l->outputs[i].fd >= 0) {
			close(l->outputs[i].fd);
		}
	}
	if (l->wake_fd >= 0) {
		close(l->wake_fd);
	}
	if (l->inotify_fd >= 0) {
		close(l->inotify_fd);
	}
	output_pattern_free(l->pattern);
	free(l->buffer);
	free(l);
}

int listener_start(const char *pattern, const int fds[2], struct feed *feed, uint64_t start_ns,
	_Atomic unsigned *epochs, struct tail *tails, struct listener **ret, struct error *e)
{
	struct listener *l = calloc(1, sizeof(*l));
	if (!l) {
		return error_set(e, ENOMEM, "out of memory");
	}
	l->feed = feed;
	l->start_ns = start_ns;
	l->epochs = epochs;
	l->counts = strcmp(pattern, OUTPUT_PATTERN_AUTO) == 0;
	l->buffer = malloc(READ_BYTES);
	l->outputs[0].fd = l->outputs[1].fd = -1;
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->inotify_fd = -1;
	int r = l->buffer ? output_pattern_new(pattern, &l->pattern, e)
	                  : error_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < 2 && r == 0; i++) {
		l->outputs[i].tail = &tails[i];
		r = listened_init(l, i, fds[i], e);
	}
	if (r == 0) {
		int failed = pthread_create(&l->thread, NULL, listener_main, l);
		r = failed ? error_errno(e, failed, "cannot start a thread") : 0;
	}
	if (r < 0) {
		listener_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

struct listener_losses listener_stop(struct listener *l)
{
	if (!l) {
		return (struct listener_losses){0};
	}
	atomic_store(&l->stop, true);
	if (l->wake_fd >= 0) {
		eventfd_write(l->wake_fd, 1);
	}
	pthread_join(l->thread, NULL);
	struct listener_losses losses = l->losses;
	for (size_t i = 0; i < 2; i++) {
		losses.limited_lines += output_stream_limited(l->outputs[i].stream);
	}
	listener_free(l);
	return losses;
}
