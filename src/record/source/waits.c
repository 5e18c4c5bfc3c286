// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the first threads of the job's processes wait for: twenty looks per second, counted by kind.
// A look costs about a microsecond (one small read) if the thread is running, and up to three reads
// if it waits for a descriptor. machine/doing.h classifies the waits.
//
// Looks are counters: their rates over any part of the run show the share of time that a thread
// waited for each kind, with a sampling error (of 500 looks, at most 4.5 percentage points).
//
// The waits of a training thread while it takes a batch are counted separately: a training loop
// that sleeps differs from a dataset that sleeps. The marks that tell them apart arrive when a step
// has ended (phase_log.h), so looks are held until then.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/doing.h"
#include "machine/file.h"
#include "machine/procfs.h"
#include "machine/tree.h"
#include "record/mark/phase_log.h"
#include "record/sample/source.h"

enum {
	FOLLOWED_MAX = 64, // processes: the first ones alive
	POLLED_MAX = 4, // descriptors of a poll that are examined
	WAITING_MOST = 1024, // looks at 16 processes for three seconds
};
#define YOUNG_NS (200 * NS_PER_MS) // a process that ends before does not train
#define ROW_NS (500 * NS_PER_MS) // between rows

#define HELP(what) "Samples of the process's main thread that found it " what
#define FROM " (/proc/PID/syscall, otherwise wchan; about 20 samples per second)."

enum { LOOKS = N_DOINGS, N_WAIT_METRICS };
static const struct metric wait_metrics[N_WAIT_METRICS] = {
	[DOING_RUNS] = {"strain.wait.none", METRIC_COUNTER, "{look}", 1,
		HELP("running, or ready to run") FROM},
	[DOING_STORAGE] = {"strain.wait.storage", METRIC_COUNTER, "{look}", 1,
		HELP("reading, writing or opening a file, or in a page fault that reads storage")
			FROM},
	[DOING_FSYNC] = {"strain.wait.fsync", METRIC_COUNTER, "{look}", 1,
		HELP("in fsync, fdatasync, msync or sync") FROM},
	[DOING_NETWORK] = {"strain.wait.network", METRIC_COUNTER, "{look}", 1,
		HELP("waiting at a network socket") FROM},
	[DOING_PIPE] = {"strain.wait.pipe", METRIC_COUNTER, "{look}", 1,
		HELP("waiting at a pipe or a local socket, as idle loader workers do") FROM},
	[DOING_LOCK] = {"strain.wait.lock", METRIC_COUNTER, "{look}", 1,
		HELP("waiting for a lock shared between processes (flock, fcntl, semaphores, "
		     "shared futexes)") FROM},
	[DOING_GIL] = {"strain.wait.gil", METRIC_COUNTER, "{look}", 1,
		HELP("waiting for Python's global interpreter lock (GIL): a timed wait at a "
		     "futex in the interpreter's own variables") FROM},
	[DOING_SLEEP] = {"strain.wait.sleep", METRIC_COUNTER, "{look}", 1,
		HELP("asleep (nanosleep, poll without descriptors)") FROM},
	[DOING_CHILD] = {"strain.wait.child", METRIC_COUNTER, "{look}", 1,
		HELP("waiting for a process that it started") FROM},
	[DOING_OTHER] = {"strain.wait.other", METRIC_COUNTER, "{look}", 1,
		HELP("waiting for something else, such as another thread of the process") FROM},
	[LOOKS] = {"strain.wait.looks", METRIC_COUNTER, "{look}", 1,
		"All samples of the process's main thread" FROM},
};

// Looks in an iteration: each kind while taking a batch, and each kind in the rest of the
// iteration.
enum { IN_STEP = N_DOINGS, PLACED = 2 * N_DOINGS, N_PLACED_METRICS };
#define IN(at, kind, place, what)                                           \
	[at] = {"strain.wait." place "." kind, METRIC_COUNTER, "{look}", 1, \
		"The samples of strain.wait." kind " that found a training thread " what "."}
#define BOTH(doing, kind)                                       \
	IN(doing, kind, "data", "taking a batch (phase data)"), \
		IN(IN_STEP + (doing), kind, "step", "in the rest of an iteration")
static const struct metric placed_metrics[N_PLACED_METRICS] = {
	BOTH(DOING_RUNS, "none"),
	BOTH(DOING_STORAGE, "storage"),
	BOTH(DOING_FSYNC, "fsync"),
	BOTH(DOING_NETWORK, "network"),
	BOTH(DOING_PIPE, "pipe"),
	BOTH(DOING_LOCK, "lock"),
	BOTH(DOING_GIL, "gil"),
	BOTH(DOING_SLEEP, "sleep"),
	BOTH(DOING_CHILD, "child"),
	BOTH(DOING_OTHER, "other"),
	[PLACED] = {"strain.wait.placed", METRIC_COUNTER, "{look}", 1,
		"Samples of a training thread that found it in an iteration."},
};

static int read_waits(void *state, struct sink *sink, uint64_t now_ns);
static int read_placed(void *state, struct sink *sink, uint64_t now_ns);

enum { GROUP_WAITS, GROUP_PLACED, N_GROUPS };
static const struct group groups[N_GROUPS] = {
	{"waits", ENTITY_PROCESS, wait_metrics, N_WAIT_METRICS, 50 * NS_PER_MS, read_waits,
		SHARED_NOT},
	{"waits.placed", ENTITY_PROCESS, placed_metrics, N_PLACED_METRICS, ROW_NS, read_placed,
		SHARED_NOT},
};

struct followed {
	int64_t entity; // 0: free
	pid_t pid;
	bool seen; // in this round
	bool calls; // syscall is readable
	bool failed; // neither is readable, and that was reported
	bool sought; // Python's variables were searched for
	unsigned renamed; // the process's count then: after an exec they are elsewhere
	int fd; // of syscall, else of wchan; -1: not open
	uint64_t gil_from, gil_to;
	uint64_t major_faults; // at the last question for them
	bool asked_faults;
	uint64_t row_ns;
	int64_t counts[N_WAIT_METRICS];
	int64_t placed[N_PLACED_METRICS];
	struct stream *stream, *placed_stream;
};

struct waiting { // a look whose phase is not known yet
	int64_t t_ns; // since the run's start
	int64_t entity;
	enum doing doing;
};

struct waits {
	struct tree *tree;
	int root_fd; // borrowed
	uint64_t start_ns;
	struct phase_log *phases; // NULL: no phases are marked
	struct followed followed[FOLLOWED_MAX];
	size_t n; // slots in use, including holes
	struct waiting waiting[WAITING_MOST];
	size_t n_waiting;
};

// One process -------------------------------------------------------------------------------------

static void follow_done(struct waits *w, struct followed *f)
{
	if (f->fd >= 0) {
		tree_close(w->tree, &f->fd);
	}
	*f = (struct followed){.fd = -1};
}

static struct followed *find(struct waits *w, const struct process *p)
{
	struct followed *hole = NULL;
	for (size_t i = 0; i < w->n; i++) {
		if (w->followed[i].entity == p->entity) {
			return &w->followed[i];
		}
		hole = !hole && w->followed[i].entity == 0 ? &w->followed[i] : hole;
	}
	if (!hole && w->n < FOLLOWED_MAX) {
		hole = &w->followed[w->n++];
	}
	if (hole) {
		*hole = (struct followed){
			.entity = p->entity, .pid = p->pid, .fd = -1, .calls = true};
	}
	return hole;
}

static void seek_interpreter(struct waits *w, struct followed *f, const struct process *p)
{
	struct host_file file = HOST_FILE_CLOSED;
	char path[64];
	struct cursor maps;
	f->sought = true;
	f->renamed = p->renamed;
	f->gil_from = f->gil_to = 0;
	snprintf(path, sizeof(path), "proc/%d/maps", (int)f->pid);
	if (host_file_open(&file, w->root_fd, path, NULL) == 0 &&
		host_file_read_to_end(&file, &maps) == 0) { // libpython is among the last
		doing_find_interpreter(maps, &f->gil_from, &f->gil_to);
	}
	host_file_close(&file);
}

static void wchan_of(struct waits *w, pid_t pid, char *buffer, size_t size, struct cursor *ret)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/wchan", (int)pid);
	if (file_read_once(w->root_fd, path, buffer, size, ret, NULL) < 0) {
		*ret = cursor_of("", 0);
	}
}

static bool read_stat(struct waits *w, pid_t pid, struct proc_stat *ret)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
	return proc_stat_read(w->root_fd, path, ret) == 0;
}

// Whether the process waited for a page to be read since the last question.
static bool has_faulted(struct followed *f, const struct proc_stat *stat)
{
	bool more = f->asked_faults && stat->major_faults > f->major_faults;
	f->major_faults = stat->major_faults;
	f->asked_faults = true;
	return more;
}

// A wait that wchan does not show, because it is short.
static enum doing of_state(struct waits *w, struct followed *f, struct cursor wchan)
{
	struct proc_stat stat;
	if (!read_stat(w, f->pid, &stat) || (stat.state != 'D' && stat.state != 'S')) {
		return DOING_RUNS;
	}
	return doing_of_blocked(wchan, has_faulted(f, &stat) && stat.state == 'D');
}

// A socket may connect processes of this machine: the kernel function shows which.
static enum doing of_descriptor(struct waits *w, pid_t pid, uint64_t number)
{
	char path[64], target[64], name[64];
	struct cursor function;
	snprintf(path, sizeof(path), "proc/%d/fd/%u", (int)pid, (unsigned)number);
	ssize_t length = readlinkat(w->root_fd, path, target, sizeof(target) - 1);
	if (length <= 0) {
		return DOING_OTHER;
	}
	target[length] = '\0';
	enum doing kind = doing_of_descriptor(target);
	if (kind == DOING_NETWORK) {
		wchan_of(w, pid, name, sizeof(name), &function);
		kind = doing_of_wchan(function) == DOING_PIPE && cursor_literal(&function, "unix_")
		               ? DOING_PIPE
		               : DOING_NETWORK;
	}
	return kind;
}

// A poll of a socket is a wait for the network: clients with a time limit poll before they read.
static enum doing of_poll(struct waits *w, pid_t pid, const struct doing_call *call, bool array)
{
	struct pollfd polled[POLLED_MAX];
	uint64_t n = call->arguments[1] < POLLED_MAX ? call->arguments[1] : POLLED_MAX;
	if (!array) {
		return DOING_PIPE;
	}
	struct iovec ours = {polled, (size_t)n * sizeof(polled[0])};
	struct iovec theirs = {(void *)(uintptr_t)call->arguments[0], ours.iov_len};
	ssize_t got = process_vm_readv(pid, &ours, 1, &theirs, 1, 0);
	for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(polled[0]); i++) {
		char path[64], target[32];
		snprintf(path, sizeof(path), "proc/%d/fd/%d", (int)pid, polled[i].fd);
		ssize_t length = readlinkat(w->root_fd, path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		if (doing_of_descriptor(target) == DOING_NETWORK && n == 1) {
			return DOING_NETWORK;
		}
	}
	return DOING_PIPE;
}

static enum doing of_call(
	struct waits *w, struct followed *f, const struct process *p, const struct doing_call *call)
{
	char name[64];
	struct cursor function;
	const struct doing_rule *rule = doing_rule_of(call);
	if (call->runs) {
		return DOING_RUNS;
	}
	if (!rule) { // a page fault, or a call whose purpose only the kernel knows
		struct proc_stat stat;
		wchan_of(w, f->pid, name, sizeof(name), &function);
		bool faults = call->number < 0 && read_stat(w, f->pid, &stat);
		return doing_of_blocked(function, faults && has_faulted(f, &stat));
	}
	if (doing_polls_nothing(rule, call)) {
		return DOING_SLEEP;
	}
	switch (rule->clue) {
	case CLUE_KIND:
		return rule->kind;
	case CLUE_FD:
		return of_descriptor(w, f->pid, call->arguments[rule->argument]);
	case CLUE_POLL:
		return of_poll(w, f->pid, call, rule->argument == 1);
	case CLUE_FUTEX:
		break;
	}
	if (!f->sought || f->renamed != p->renamed) {
		seek_interpreter(w, f, p);
	}
	return doing_of_futex(call, f->gil_from, f->gil_to);
}

// Phases ------------------------------------------------------------------------------------------

// Drops every second look of iterations too long for the space.
static void make_room(struct waits *w)
{
	for (size_t i = 0; i < WAITING_MOST / 2; i++) {
		w->waiting[i] = w->waiting[2 * i];
	}
	w->n_waiting = WAITING_MOST / 2;
}

static void let_wait(struct waits *w, const struct followed *f, enum doing doing, uint64_t now_ns)
{
	if (w->n_waiting == WAITING_MOST) {
		make_room(w);
	}
	if (w->phases && phase_log_iterates(w->phases, f->entity)) {
		w->waiting[w->n_waiting++] = (struct waiting){
			(int64_t)(now_ns - w->start_ns), f->entity, doing};
	}
}

static void place(struct waits *w, const struct waiting *look, int phase)
{
	if (phase == LOGGED_UNKNOWN || phase == LOGGED_NONE || phase_log_stands_apart(phase)) {
		return;
	}
	for (size_t i = 0; i < w->n; i++) {
		struct followed *f = &w->followed[i];
		if (f->entity == look->entity) {
			f->placed[(phase == LOGGED_DATA ? 0 : IN_STEP) + look->doing]++;
			f->placed[PLACED]++;
		}
	}
}

static void settle(struct waits *w, uint64_t now_ns, bool final)
{
	size_t left = 0;
	for (size_t i = 0; i < w->n_waiting; i++) {
		const struct waiting look = w->waiting[i];
		int phase = LOGGED_UNKNOWN;
		if (phase_log_at(w->phases, look.entity, look.t_ns, (int64_t)(now_ns - w->start_ns),
			    final, &phase)) {
			place(w, &look, phase);
		} else {
			w->waiting[left++] = look;
		}
	}
	w->n_waiting = left;
}

static void put_placed(struct waits *w, struct sink *sink, uint64_t now_ns)
{
	for (size_t i = 0; i < w->n; i++) {
		struct followed *f = &w->followed[i];
		if (f->entity && f->placed[PLACED] > 0 && !f->placed_stream) {
			f->placed_stream = sink_stream(sink, f->entity, &groups[GROUP_PLACED]);
		}
		stream_row(f->placed_stream, now_ns, f->placed);
	}
}

static int read_placed(void *state, struct sink *sink, uint64_t now_ns)
{
	struct waits *w = state;
	settle(w, now_ns, false);
	put_placed(w, sink, now_ns);
	return 0;
}

// The job has ended, and all marks are read.
static void end_waits(void *state, struct sink *sink, uint64_t now_ns)
{
	struct waits *w = state;
	settle(w, now_ns, true);
	put_placed(w, sink, now_ns);
	for (size_t i = 0; i < w->n; i++) {
		stream_row(w->followed[i].stream, now_ns, w->followed[i].counts);
	}
}

// Looking -----------------------------------------------------------------------------------------

static int open_file(struct waits *w, struct followed *f, const struct process *p)
{
	if (f->fd < 0) {
		f->fd = tree_open(w->tree, p, f->calls ? "syscall" : "wchan");
	}
	return f->fd;
}

// Returns 0, or -errno if the file is not usable.
static int look(struct waits *w, struct followed *f, const struct process *p, enum doing *ret)
{
	char buffer[256];
	struct cursor text;
	struct doing_call call;
	int r = open_file(w, f, p);
	r = r < 0 ? r : file_pread(f->fd, buffer, sizeof(buffer), &text);
	if (r < 0) {
		return r;
	}
	if (!f->calls) {
		*ret = doing_of_wchan(text);
		*ret = *ret == DOING_RUNS ? of_state(w, f, text) : *ret;
		return 0;
	}
	if (!doing_parse_call(text, &call)) {
		return -EBADMSG;
	}
	*ret = of_call(w, f, p, &call);
	return 0;
}

// syscall may be forbidden even if wchan is not.
static int look_somehow(
	struct waits *w, struct followed *f, const struct process *p, enum doing *ret)
{
	int r = look(w, f, p, ret);
	bool forbidden = r == -EACCES || r == -EPERM || r == -ENOENT || r == -ENOSYS;
	if (forbidden && f->calls) {
		f->calls = false;
		if (f->fd >= 0) {
			tree_close(w->tree, &f->fd);
		}
		f->fd = -1;
		r = look(w, f, p, ret);
	}
	return r;
}

static void look_failed(struct followed *f, struct sink *sink, int error)
{
	if (error == -ESRCH || error == -ENODATA || error == -EMFILE) {
		return; // the process ended, or no descriptor is free this time
	}
	f->failed = true;
	char reason[128];
	snprintf(reason, sizeof(reason), "syscall, wchan: %s", strerrordesc_np(-error));
	sink_missing_group(sink, f->entity, &groups[GROUP_WAITS], reason);
}

static void look_at(struct waits *w, struct sink *sink, const struct process *p, uint64_t now_ns)
{
	struct followed *f = find(w, p);
	enum doing doing = DOING_OTHER;
	if (!f) {
		return;
	}
	f->seen = true;
	if (f->failed) {
		return;
	}
	int r = look_somehow(w, f, p, &doing);
	if (r < 0) {
		look_failed(f, sink, r);
		return;
	}
	f->counts[doing]++;
	f->counts[LOOKS]++;
	let_wait(w, f, doing, now_ns);
	if (!f->stream) {
		f->stream = sink_stream(sink, f->entity, &groups[GROUP_WAITS]);
	}
	if (now_ns >= f->row_ns + ROW_NS) {
		f->row_ns = now_ns;
		stream_row(f->stream, now_ns, f->counts);
	}
}

static int read_waits(void *state, struct sink *sink, uint64_t now_ns)
{
	struct waits *w = state;
	size_t n = 0;
	struct process *const *members = tree_members(w->tree, &n);
	for (size_t i = 0; i < w->n; i++) {
		w->followed[i].seen = false;
	}
	for (size_t i = 0; i < n; i++) {
		if (!members[i]->zombie && now_ns >= members[i]->first_ns + YOUNG_NS) {
			look_at(w, sink, members[i], now_ns);
		}
	}
	for (size_t i = 0; i < w->n; i++) {
		struct followed *f = &w->followed[i];
		if (f->entity && !f->seen) {
			stream_close(f->stream);
			stream_close(f->placed_stream);
			follow_done(w, f);
		}
	}
	return 0;
}

// Opening -----------------------------------------------------------------------------------------

static void waits_close(void *state)
{
	struct waits *w = state;
	for (size_t i = 0; w && i < w->n; i++) {
		follow_done(w, &w->followed[i]);
	}
	free(w); // the sink owns the streams
}

// Under Yama's ptrace_scope, only an ancestor may read a system call; the recorder is not one.
static void say_what_yama_hides(const struct source_context *context, struct sink *sink)
{
	char buffer[16];
	struct cursor text;
	uint64_t scope;
	if (geteuid() != 0 &&
		file_read_once(context->root_fd, "proc/sys/kernel/yama/ptrace_scope", buffer,
			sizeof(buffer), &text, NULL) == 0 &&
		cursor_u64(&text, &scope) && scope > 0) {
		sink_missing(sink, 0, &groups[GROUP_WAITS], DOING_GIL,
			"Yama forbids reading the system calls of other processes, and wchan "
			"does not show this wait; enable it with sysctl "
			"kernel.yama.ptrace_scope=0");
	}
}

static int waits_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	char buffer[256];
	struct cursor text;
	if (context->captured) {
		return error_set(e, ENOENT, "a captured machine runs no threads");
	}
	if (!context->tree) {
		return error_set(e, ENOENT, "needs a running job");
	}
	if (file_read_once(context->root_fd, "proc/self/syscall", buffer, sizeof(buffer), &text,
		    NULL) < 0 &&
		file_read_once(context->root_fd, "proc/self/wchan", buffer, sizeof(buffer), &text,
			NULL) < 0) {
		return error_set(
			e, ENOENT, "/proc/self/syscall, /proc/self/wchan: this kernel has neither");
	}
	struct waits *w = calloc(1, sizeof(*w));
	if (!w) {
		return error_set(e, ENOMEM, "out of memory");
	}
	say_what_yama_hides(context, sink);
	w->tree = context->tree;
	w->root_fd = context->root_fd;
	w->start_ns = context->start_ns;
	w->phases = context->phases;
	*ret_state = w;
	return 0;
}

const struct source source_waits = {
	.name = "waits",
	.help = "what processes wait for: storage, locks, sleep, network, children",
	.lane = LANE_TICK,
	.groups = groups,
	.n_groups = N_GROUPS,
	.open = waits_open,
	.close = waits_close,
	.end = end_waits,
};
