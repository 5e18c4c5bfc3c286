// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The launcher's view of the recorder.

#include "record/launch/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/parse.h"
#include "base/text.h"
#include "machine/cgroupfs.h"
#include "machine/exit_status.h"
#include "record/mark/marker_directory.h"
#include "runfile/writer.h"

// Oom score ---------------------------------------------------------------------------------------
//
// The kernel kills the process with the largest sum of its memory and oom_score_adj thousandths of
// the limit. With a large limit, such a share exceeds any process of a job that has many: the
// recorder would be killed first and a process of the job next. Therefore the increase is a fixed
// size, ten times what a recorder takes. A larger process has filled the memory, with or without a
// recorder; if there is none, the recorder is killed, and the job may survive.
// or without a recorder; where none is, the recorder goes, and the job may live.

#define PREFERRED_BYTES (UINT64_C(128) << 20)

enum { RAISE_MOST = 300, SCORE_MAX = 1000 };

unsigned recording_raise_oom_score(uint64_t memory_bytes)
{
	uint64_t unit = memory_bytes / SCORE_MAX;
	uint64_t raise = unit > 0 ? (PREFERRED_BYTES + unit - 1) / unit : RAISE_MOST;
	return raise < RAISE_MOST ? (unsigned)raise : RAISE_MOST;
}

// The tightest limit that applies to both recorder and job.
static uint64_t memory_limit(void)
{
	_cleanup_close_ int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sysinfo machine;
	struct cgroup_places places;
	uint64_t of_cgroup;
	uint64_t limit = sysinfo(&machine) == 0 ? machine.totalram * machine.mem_unit : 0;
	if (root_fd < 0 || cgroup_places_find(root_fd, "self", &places, NULL) < 0) {
		return limit;
	}
	if (cgroupfs_memory_limit(root_fd, &places, &of_cgroup, NULL) == 0 &&
		(limit == 0 || of_cgroup < limit)) {
		limit = of_cgroup;
	}
	cgroup_places_done(&places);
	return limit;
}

// Raises the value of this process according to its memory limit. Failures are ignored.
static void oom_score_raise(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";
	int64_t score;
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0) {
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	if (parse_integer(text, -SCORE_MAX, SCORE_MAX, &score, NULL) < 0) {
		return;
	}
	score += recording_raise_oom_score(memory_limit());
	score = score < SCORE_MAX ? score : SCORE_MAX;
	int length = snprintf(text, sizeof(text), "%" PRId64, score);
	(void)!pwrite(fd, text, (size_t)length, 0);
}

// Recording ---------------------------------------------------------------------------------------

// The recorder ignores signals that end or stop the job; the launcher reports the job's end.
static void become_recorder(const struct recorder_config *config)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP, SIGTTIN,
		SIGTTOU, SIGUSR1, SIGUSR2, SIGALRM, SIGXFSZ};
	setsid();
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++) {
		sigaction(ignored[i], &ignore, NULL);
	}
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		descriptors_null(fd);
	}
	int keep[] = {config->socket, config->output[0], config->output[1],
		config->markers ? config->markers->fd : -1};
	descriptors_keep(keep, ARRAY_LENGTH(keep));
	oom_score_raise();
}

int recording_start(struct recording *r, struct recorder_config *config, struct error *e)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		return error_errno(e, errno, "cannot start the recorder: socketpair");
	}
	*r = (struct recording){
		.path = config->path, .start_ns = config->start_ns, .socket = pair[0]};
	config->socket = pair[1];
	pid_t pid = fork();
	if (pid == 0) {
		become_recorder(config);
		_exit(recorder_run(config));
	}
	int code = errno;
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		*r = RECORDING_NONE;
		return error_errno(e, code, "cannot start the recorder: fork");
	}
	r->pid = pid;
	return 0;
}

static void lose_recorder(struct recording *r)
{
	if (r->socket >= 0) {
		close(r->socket);
		r->socket = -1;
	}
	if (!r->done && !r->dead) {
		r->dead = true;
		r->dead_ns = clock_monotonic_ns();
	}
}

static int try_send(struct recording *r, const struct message *message)
{
	if (r->socket < 0) {
		return 0;
	}
	if (send(r->socket, message, sizeof(*message), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
		return 0;
	}
	// A recorder that is gone is detected when its messages are read.
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? -EAGAIN : 0;
}

static void add_orphan(struct message *sum, const struct message *orphan)
{
	sum->kind = MESSAGE_ORPHAN;
	sum->pid = 0;
	sum->user_us += orphan->user_us;
	sum->system_us += orphan->system_us;
	sum->faults += orphan->faults;
	if (orphan->max_rss_bytes > sum->max_rss_bytes) {
		sum->max_rss_bytes = orphan->max_rss_bytes;
	}
}

static int send_backlog(struct recording *r)
{
	if (r->backlog.kind == 0) {
		return 0;
	}
	int rc = try_send(r, &r->backlog);
	if (rc == 0) {
		r->backlog = (struct message){0};
	}
	return rc;
}

void recording_send(struct recording *r, const struct message *message)
{
	bool sent = send_backlog(r) == 0 && try_send(r, message) == 0;
	if (!sent && message->kind == MESSAGE_ORPHAN) {
		add_orphan(&r->backlog, message);
	}
}

void recording_send_patiently(struct recording *r, const struct message *message, int timeout_ms)
{
	uint64_t deadline = clock_monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	while (send_backlog(r) < 0 || try_send(r, message) < 0) {
		uint64_t now = clock_monotonic_ns();
		struct pollfd room = {.fd = r->socket, .events = POLLOUT};
		if (now >= deadline ||
			poll(&room, 1, (int)((deadline - now) / NS_PER_MS) + 1) <= 0) {
			return;
		}
	}
}

void recording_say(struct recording *r, const char *kind, const char *text)
{
	struct message message = {.kind = MESSAGE_EVENT};
	snprintf(message.text, sizeof(message.text), "%s\t%s", kind, text);
	recording_send_patiently(r, &message, 100);
}

bool recording_take(struct recording *r, struct message *ret)
{
	if (r->socket < 0) {
		return false;
	}
	ssize_t length = recv(r->socket, ret, sizeof(*ret), MSG_DONTWAIT);
	if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
		return false;
	}
	if (length != (ssize_t)sizeof(*ret)) {
		lose_recorder(r);
		return false;
	}
	ret->text[sizeof(ret->text) - 1] = '\0';
	r->ready = r->ready || ret->kind == MESSAGE_READY;
	if (ret->kind == MESSAGE_CREATED) {
		r->created = (struct beneath_file){(dev_t)ret->device, (ino_t)ret->inode};
	}
	r->closing = r->closing || ret->kind == MESSAGE_CLOSING;
	r->done = r->done || ret->kind == MESSAGE_DONE;
	return true;
}

void recording_hear(struct recording *r)
{
	struct message message;
	while (recording_take(r, &message)) {
		// recording_take notes everything relevant.
	}
}

bool recording_wait(struct recording *r, enum message_kind kind, int timeout_ms)
{
	uint64_t deadline = clock_monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	while (r->socket >= 0) {
		struct message message;
		if (recording_take(r, &message)) {
			if (message.kind == kind) {
				return true;
			}
			continue;
		}
		uint64_t now = clock_monotonic_ns();
		struct pollfd readable = {.fd = r->socket, .events = POLLIN};
		if (now >= deadline ||
			(r->socket >= 0 &&
				poll(&readable, 1, (int)((deadline - now) / NS_PER_MS) + 1) == 0)) {
			return false;
		}
	}
	return false;
}

void recording_reaped(struct recording *r, int status)
{
	recording_hear(r); // its last messages, perhaps MESSAGE_DONE
	r->pid = 0;
	r->status = status;
	lose_recorder(r);
}

// Returns false if it has not ended after a second.
static bool end_recorder(struct recording *r)
{
	enum { TRIES = 500 };
	const struct timespec pause = {.tv_nsec = (long)(2 * NS_PER_MS)};
	if (r->pid > 0) {
		kill(r->pid, SIGKILL);
	}
	for (int i = 0; r->pid > 0 && i < TRIES; i++) {
		if (waitpid(r->pid, NULL, WNOHANG) != 0) {
			return true;
		}
		nanosleep(&pause, NULL);
	}
	return r->pid == 0;
}

// Removes the file that the recorder created, never another file with its name.
static void remove_file(const struct recording *r)
{
	static const char *const endings[] = {"", "-wal", "-shm", "-journal", "-reserve", NULL};
	beneath_unlink(r->path, r->created, endings);
}

void recording_discard(struct recording *r)
{
	bool ended = end_recorder(r);
	recording_hear(r); // perhaps the file that it created
	if (r->socket >= 0) {
		close(r->socket);
	}
	if (r->path) {
		remove_file(r);
	}
	pid_t pid = ended ? 0 : r->pid; // while it is known to be ours
	*r = RECORDING_NONE;
	r->pid = pid;
}

int recording_close_file(struct recording *r, uint64_t end_ns, int status, struct error *e)
{
	struct writer *w = NULL;
	char death[128], text[256];
	recording_describe_death(r, death, sizeof(death));
	snprintf(text, sizeof(text), "%s; nothing was recorded after this", death);
	int rc = writer_open(r->path, &w, e);
	if (rc < 0) {
		return rc;
	}
	writer_put_event(w, (int64_t)(r->dead_ns - r->start_ns), "recorder_died", 0, text);
	rc = writer_finish(w, (int64_t)(end_ns - r->start_ns), status, e);
	writer_free(w);
	return rc;
}

void recording_describe_death(const struct recording *r, char *buffer, size_t size)
{
	char how[64];
	exit_status_describe(r->status, how, sizeof(how));
	snprintf(buffer, size, "recorder %s", how);
}
