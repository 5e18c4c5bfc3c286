// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Where the job's threads spend CPU time: samples of the running address, 49 per second of CPU
// time, counted by mapped file and offset. Names are looked up after the run (run/symbols). The
// only file of the job opened here is /proc/PID/maps, read when an address is in no known mapping.
//
// Bounded: the number of threads followed, objects, addresses per time slice, mappings per process.
// A slice is half a second at first, later a sixteenth of the run so far, so that the steady part
// can be separated from the start, and a run of two days has 150 slices.
//
// Samples are also counted by the phase of the training thread of their process (phase_log.h), over
// the whole run. Marks report phases when a step has ended. Samples wait until then; if too many
// wait, the oldest get an unknown phase.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/file.h"
#include "machine/perf.h"
#include "machine/procfs.h"
#include "machine/tree.h"
#include "record/mark/phase_log.h"
#include "record/sample/source.h"

enum {
	THREADS_MOST = 96, // being sampled: a descriptor and a ring each
	// Pages of a ring. The first thread of a process starts programs: 2048 forks fit. Locked
	// memory is limited per user, so only the first processes have as much.
	FIRST_PAGES = 16,
	FIRST_THREADS = 8,
	LEADER_PAGES = 4,
	OTHER_PAGES = 1,
	OTHERS_MOST = 16, // per process, besides its first thread
	LISTED_MOST = 512, // per process, examined
	FEW = 6, // processes: up to this many are all examined with each reading
	PROGRAMS_MOST = 64,
	MAPPINGS_MOST = 1024, // executable, per process
	OBJECTS_MOST = 512,
	PLACES = 4096, // addresses per slice; a power of two
	PLACES_MOST = PLACES * 3 / 4,
	TAKEN_AT_ONCE = 64,
	WAITING_MOST = 16384, // samples, half a megabyte: 20 s of 16 CPUs
	PATH_MOST = 256,
};
#define YOUNG_NS (200 * NS_PER_MS) // a process that ends before is not sampled
#define LOOK_NS NS_PER_S // interval of searches for new threads, with more processes than FEW
// Interval of reading a process's mappings. It doubles with each reading, because a process loads
// its libraries in its first seconds.
#define MAPS_NS (500 * NS_PER_MS)
#define MAPS_LONGEST_NS (64 * NS_PER_S)
#define SLICE_NS (500 * NS_PER_MS)
#define SLICE_PART 16
#define MANY_ADDRESSES (-1)
// Counts by phase are written when the run has become half as long again. This gives few rows per
// key, and if the recorder is killed, two thirds of the counts remain.
#define PHASES_FIRST_NS ((int64_t)(10 * NS_PER_S))
#define PHASES_GROWTH 1.5

enum { SAMPLES, LOST, THREADS, N_PROFILE };
static const struct metric profile_metrics[N_PROFILE] = {
	[SAMPLES] = {"strain.profile.samples", METRIC_COUNTER, "{sample}", 1,
		"Samples of the job's threads, 49 per second of CPU time (perf_event_open, the "
		"software CPU clock)."},
	[LOST] = {"strain.profile.samples.lost", METRIC_COUNTER, "{sample}", 1,
		"Samples that the kernel dropped because they were not read in time."},
	[THREADS] = {"strain.profile.threads", METRIC_GAUGE, "{thread}", 1,
		"Number of sampled threads, at most 96; main threads of processes take "
		"precedence."},
};

// Most children of a step live for less time than the tree's update interval, and have no row of
// their own.
static const struct metric start_metrics[] = {
	{"strain.process.children.started", METRIC_COUNTER, "{process}", 1,
		"Processes that the sampled threads of the process started; the kernel reports "
		"each fork (perf_event_open)."},
};

static int read_profile(void *state, struct sink *sink, uint64_t now_ns);
static int read_starts(void *state, struct sink *sink, uint64_t now_ns);

enum { GROUP_SAMPLES, GROUP_STARTS, N_GROUPS };
static const struct group groups[N_GROUPS] = {
	{"profile", ENTITY_RECORDER, profile_metrics, N_PROFILE, 200 * NS_PER_MS, read_profile,
		SHARED_NOT},
	{"profile.starts", ENTITY_PROCESS, start_metrics, ARRAY_LENGTH(start_metrics),
		200 * NS_PER_MS, read_starts, SHARED_NOT},
};

struct thread {
	int64_t entity; // of its process; 0: free
	pid_t pid, tid;
	bool seen; // in the last search
	struct perf_event event;
};

struct code {
	uint64_t from, to, offset;
	int64_t object; // 0: not yet
	char *path; // NULL: anonymous
};

struct program { // of a process
	int64_t entity; // 0: free
	uint64_t read_ns; // when its mappings were read; 0: not yet
	uint64_t pause_ns; // until they may be read again
	struct code *codes; // sorted by address
	size_t n;
	int64_t started; // number of processes that it started
	struct stream *starts; // the sink's; NULL: it started none
};

struct place {
	int64_t entity; // 0: free
	int64_t object;
	int64_t address;
	bool leader;
	int phase; // of phase_log.h; LOGGED_NONE in samples by time
	int64_t count;
};

struct places {
	struct place items[PLACES]; // a hash table
	size_t n;
};

struct waiting { // a sample whose phase is not known yet
	int64_t t_ns; // since the run's start
	int64_t entity;
	int64_t address;
	int32_t object;
	bool leader;
};

struct profile {
	struct tree *tree;
	int root_fd; // borrowed
	int64_t recorder;
	int most_fd; // higher descriptors are reserved for others
	uint64_t start_ns;
	struct stream *stream;
	int64_t values[N_PROFILE];
	struct tree_member *members;
	size_t n_members, members_capacity;
	uint64_t looked_ns;
	uint64_t slice_ns; // start of the slice; 0: none yet
	struct thread threads[THREADS_MOST];
	struct program programs[PROGRAMS_MOST];
	char *objects[OBJECTS_MOST]; // index: id - 1
	size_t n_objects;
	struct places places;
	struct phase_log *phases; // NULL: no phases are marked
	struct places by_phase;
	int64_t phases_ns; // when they were last written, since the run's start
	struct waiting *waiting; // roughly in order of time
	size_t n_waiting, waiting_capacity;
};

// Objects and addresses ---------------------------------------------------------------------------

static int64_t object_of(struct profile *p, struct sink *sink, const char *path)
{
	for (size_t i = 0; i < p->n_objects; i++) {
		if (strcmp(p->objects[i], path) == 0) {
			return (int64_t)i + 1;
		}
	}
	char *copy = p->n_objects < OBJECTS_MOST ? strdup(path) : NULL;
	if (!copy) {
		return 0;
	}
	p->objects[p->n_objects++] = copy;
	sink_profile_object(sink, (int64_t)p->n_objects, path);
	return (int64_t)p->n_objects;
}

static void forget_codes(struct program *program)
{
	for (size_t i = 0; i < program->n; i++) {
		free(program->codes[i].path);
	}
	free(program->codes);
	program->codes = NULL;
	program->n = 0;
}

static void program_done(struct program *program)
{
	forget_codes(program);
	*program = (struct program){0};
}

static void add_code(struct program *program, const struct mapping *m)
{
	struct code *code = &program->codes[program->n];
	size_t length = (size_t)(m->path.end - m->path.at);
	*code = (struct code){m->from, m->to, m->offset, 0, NULL};
	if (length > 0) {
		code->path = strndup(m->path.at, length < PATH_MOST ? length : PATH_MOST);
	}
	program->n++;
}

static void read_maps(struct profile *p, struct program *program, pid_t pid, uint64_t now_ns)
{
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text, line;
	struct mapping m;
	char path[64];
	uint64_t pause_ns = program->read_ns == 0 ? MAPS_NS : 2 * program->pause_ns;
	forget_codes(program);
	program->read_ns = now_ns;
	program->pause_ns = pause_ns < MAPS_LONGEST_NS ? pause_ns : MAPS_LONGEST_NS;
	program->codes = calloc(MAPPINGS_MOST, sizeof(*program->codes));
	snprintf(path, sizeof(path), "proc/%d/maps", (int)pid);
	if (program->codes && host_file_open(&file, p->root_fd, path, NULL) == 0 &&
		host_file_read_to_end(&file, &text) == 0) {
		while (program->n < MAPPINGS_MOST && cursor_line(&text, &line)) {
			if (procfs_take_maps_line(line, &m) && m.runs) {
				add_code(program, &m);
			}
		}
	}
	host_file_close(&file);
}

static struct program *program_of(struct profile *p, int64_t entity)
{
	struct program *hole = NULL;
	for (size_t i = 0; i < PROGRAMS_MOST; i++) {
		if (p->programs[i].entity == entity) {
			return &p->programs[i];
		}
		hole = !hole && p->programs[i].entity == 0 ? &p->programs[i] : hole;
	}
	if (hole) {
		*hole = (struct program){.entity = entity};
	}
	return hole;
}

static struct code *code_at(struct program *program, uint64_t address)
{
	size_t low = 0, high = program->n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		struct code *code = &program->codes[middle];
		if (address < code->from) {
			high = middle;
		} else if (address >= code->to) {
			low = middle + 1;
		} else {
			return code;
		}
	}
	return NULL;
}

// "/usr/lib/x.so" with its offset; "[jit]" is memory without a file, "[unknown]" is not mapped.
static int64_t place_of(struct profile *p, struct sink *sink, const struct thread *thread,
	uint64_t address, uint64_t now_ns, int64_t *ret_address)
{
	struct program *program = program_of(p, thread->entity);
	struct code *code = program ? code_at(program, address) : NULL;
	bool again = program &&
	             (program->read_ns == 0 || now_ns >= program->read_ns + program->pause_ns);
	if (!code && again) {
		read_maps(p, program, thread->pid, now_ns);
		code = code_at(program, address);
	}
	*ret_address = MANY_ADDRESSES;
	if (!code) {
		return object_of(p, sink, "[unknown]");
	}
	if (code->object == 0) {
		code->object = object_of(p, sink, code->path ? code->path : "[jit]");
	}
	if (code->path && code->path[0] == '/') {
		*ret_address = (int64_t)((address - code->from + code->offset) & INT64_MAX);
	}
	return code->object;
}

// Counting ----------------------------------------------------------------------------------------

static bool is_same(const struct place *a, const struct place *b)
{
	return a->entity == b->entity && a->leader == b->leader && a->object == b->object &&
	       a->address == b->address && a->phase == b->phase;
}

static void count(struct places *p, struct place place)
{
	place.address = p->n < PLACES_MOST ? place.address : MANY_ADDRESSES;
	uint64_t hash = (uint64_t)place.address * 0x9e3779b97f4a7c15u;
	hash ^= (uint64_t)(place.entity * 2 + place.leader) * 0xc2b2ae3d27d4eb4fu;
	hash ^= (uint64_t)(place.object * 16 + place.phase) * 0x165667b19e3779f9u;
	for (size_t i = 0; i < PLACES; i++) {
		struct place *at = &p->items[((hash >> 32) + i) & (PLACES - 1)];
		if (at->entity == 0) {
			*at = place;
			at->count = 0;
			p->n++;
		}
		if (is_same(at, &place)) {
			at->count++;
			return;
		}
	}
}

static int place_compare(const void *left, const void *right)
{
	const struct place *a = left, *b = right;
	const int64_t keys[][2] = {{a->entity, b->entity}, {a->phase, b->phase},
		{a->leader, b->leader}, {a->object, b->object}, {a->address, b->address}};
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		if (keys[i][0] != keys[i][1]) {
			return keys[i][0] < keys[i][1] ? -1 : 1;
		}
	}
	return 0;
}

static bool is_one_row(const struct place *a, const struct place *b)
{
	return a->entity == b->entity && a->phase == b->phase && a->leader == b->leader &&
	       a->object == b->object;
}

// Writes the counts, an object at a time, and clears them. `row` has the fields common to all.
static void hand_on(
	struct profile *p, struct places *places, struct sink *sink, const struct sink_samples *row)
{
	_cleanup_free_ int64_t *pairs = malloc(2 * (places->n + 1) * sizeof(*pairs));
	qsort(places->items, PLACES, sizeof(places->items[0]), place_compare);
	size_t first = PLACES - places->n; // free ones have entity 0, and come first
	for (size_t i = first, n = 0; pairs && i < PLACES; i++) {
		const struct place *place = &places->items[i];
		bool kept = !row->by_phase || phase_log_iterates(p->phases, place->entity);
		pairs[2 * n] = place->address;
		pairs[2 * n + 1] = place->count;
		n += kept;
		if (n > 0 && (i + 1 == PLACES || !is_one_row(place, place + 1))) {
			struct sink_samples samples = *row;
			samples.entity = place->entity;
			samples.leader = place->leader;
			samples.object = place->object;
			samples.phase = row->by_phase ? phase_log_name(place->phase) : NULL;
			samples.pairs = pairs;
			samples.n = n;
			sink_profile(sink, &samples);
			n = 0;
		}
	}
	*places = (struct places){0};
}

// Writes the counts of the slice.
static void end_slice(struct profile *p, struct sink *sink, uint64_t now_ns)
{
	hand_on(p, &p->places, sink,
		&(struct sink_samples){.from_ns = p->slice_ns, .to_ns = now_ns});
	p->slice_ns = now_ns;
}

// Phases ------------------------------------------------------------------------------------------

static void count_in(struct profile *p, const struct waiting *w, int phase)
{
	count(&p->by_phase, (struct place){w->entity, w->object, w->address, w->leader, phase, 0});
}

// Drops the oldest samples, whose phases have not become known in time.
static void make_room(struct profile *p)
{
	size_t gone = p->n_waiting / 8 + 1;
	for (size_t i = 0; i < gone && i < p->n_waiting; i++) {
		count_in(p, &p->waiting[i], LOGGED_UNKNOWN);
	}
	gone = gone < p->n_waiting ? gone : p->n_waiting;
	p->n_waiting -= gone;
	memmove(p->waiting, p->waiting + gone, p->n_waiting * sizeof(*p->waiting));
}

static void let_wait(struct profile *p, struct waiting waiting)
{
	void *items = p->waiting;
	if (p->n_waiting == WAITING_MOST) {
		make_room(p);
	}
	if (array_reserve(&items, &p->waiting_capacity, p->n_waiting + 1, sizeof(*p->waiting)) ==
		0) {
		p->waiting = items;
		p->waiting[p->n_waiting++] = waiting;
	}
}

// Counts the samples whose phase is known. final: or will never be known.
static void settle_phases(struct profile *p, uint64_t now_ns, bool final)
{
	size_t left = 0;
	for (size_t i = 0; i < p->n_waiting; i++) {
		const struct waiting waiting = p->waiting[i];
		int phase = LOGGED_UNKNOWN;
		if (phase_log_at(p->phases, waiting.entity, waiting.t_ns,
			    (int64_t)(now_ns - p->start_ns), final, &phase)) {
			count_in(p, &waiting, phase);
		} else {
			p->waiting[left++] = waiting;
		}
	}
	p->n_waiting = left;
}

// Writes samples of training processes; others have no phases.
static void hand_on_phases(struct profile *p, struct sink *sink)
{
	if (phase_log_iterates(p->phases, 0)) {
		hand_on(p, &p->by_phase, sink, &(struct sink_samples){.by_phase = true});
	}
}

static void keep_phases(struct profile *p, struct sink *sink, uint64_t now_ns)
{
	int64_t elapsed_ns = (int64_t)(now_ns - p->start_ns);
	double due_ns = PHASES_GROWTH * (double)p->phases_ns;
	due_ns = p->phases_ns > 0 ? due_ns : (double)PHASES_FIRST_NS;
	settle_phases(p, now_ns, false);
	if ((double)elapsed_ns >= due_ns) {
		hand_on_phases(p, sink);
		p->phases_ns = elapsed_ns;
	}
}

// Taking ------------------------------------------------------------------------------------------

static void take_sample(struct profile *p, struct sink *sink, const struct thread *thread,
	const struct perf_sample *sample, uint64_t now_ns)
{
	int64_t address = MANY_ADDRESSES;
	int64_t object = sample->kernel
	                         ? object_of(p, sink, "[kernel]")
	                         : place_of(p, sink, thread, sample->address, now_ns, &address);
	bool leader = thread->pid == thread->tid;
	if (object <= 0) {
		return;
	}
	count(&p->places, (struct place){thread->entity, object, address, leader, LOGGED_NONE, 0});
	if (p->phases && sample->time_ns > p->start_ns) {
		let_wait(p, (struct waiting){(int64_t)(sample->time_ns - p->start_ns),
				    thread->entity, address, (int32_t)object, leader});
	}
}

static void take_samples(
	struct profile *p, struct sink *sink, struct thread *thread, uint64_t now_ns)
{
	struct perf_sample samples[TAKEN_AT_ONCE];
	struct perf_counts counts = {0};
	uint64_t taken = 0;
	size_t n;
	do {
		n = perf_take(&thread->event, samples, TAKEN_AT_ONCE, &counts);
		for (size_t i = 0; i < n; i++) {
			take_sample(p, sink, thread, &samples[i], now_ns);
		}
		taken += n;
	} while (n == TAKEN_AT_ONCE);
	p->values[SAMPLES] += (int64_t)taken;
	p->values[LOST] += (int64_t)counts.lost;
	// Lost records are divided in the proportion of those read.
	uint64_t read = taken + counts.children;
	counts.children += read > 0 ? counts.lost * counts.children / read : 0;
	struct program *program = counts.children > 0 ? program_of(p, thread->entity) : NULL;
	if (program) {
		program->started += (int64_t)counts.children;
	}
}

// Threads -----------------------------------------------------------------------------------------

static struct thread *thread_find(struct profile *p, pid_t tid)
{
	for (size_t i = 0; i < THREADS_MOST; i++) {
		if (p->threads[i].entity && p->threads[i].tid == tid) {
			return &p->threads[i];
		}
	}
	return NULL;
}

// A loader's worker may have ended before its first samples are read, so its mappings are read now.
static void know_code(struct profile *p, const struct thread *thread, uint64_t now_ns)
{
	struct program *program = program_of(p, thread->entity);
	if (program && program->read_ns == 0) {
		read_maps(p, program, thread->pid, now_ns);
	}
}

// Uses a smaller ring if no more memory may be locked.
static int open_ring(struct profile *p, struct thread *hole, pid_t tid, bool leader)
{
	size_t pages = !leader                              ? OTHER_PAGES
	               : p->values[THREADS] < FIRST_THREADS ? FIRST_PAGES
	                                                    : LEADER_PAGES;
	int r = perf_open(&hole->event, tid, pages);
	while (r == -ENOMEM && pages > 1) {
		pages /= 4;
		r = perf_open(&hole->event, tid, pages);
	}
	return r;
}

static void follow(struct profile *p, const struct tree_member *member, pid_t tid, uint64_t now_ns)
{
	struct thread *thread = thread_find(p, tid);
	if (thread && thread->entity == member->entity) {
		thread->seen = true;
		return;
	}
	for (size_t i = 0; i < THREADS_MOST; i++) {
		struct thread *hole = &p->threads[i];
		if (hole->entity == 0) {
			if (open_ring(p, hole, tid, tid == member->pid) == 0 &&
				hole->event.fd > p->most_fd) {
				perf_close(&hole->event);
			} else if (hole->event.fd >= 0) {
				hole->entity = member->entity;
				hole->pid = member->pid;
				hole->tid = tid;
				hole->seen = true;
				p->values[THREADS]++;
				know_code(p, hole, now_ns);
			}
			return;
		}
	}
}

static void follow_others(struct profile *p, const struct tree_member *member, uint64_t now_ns)
{
	char path[64];
	unsigned others = 0, listed = 0;
	snprintf(path, sizeof(path), "proc/%d/task", (int)member->pid);
	int fd = openat(p->root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *tasks = fd >= 0 ? fdopendir(fd) : NULL;
	if (!tasks) {
		if (fd >= 0) {
			close(fd);
		}
		return;
	}
	const struct dirent *entry;
	while ((entry = readdir(tasks)) && others < OTHERS_MOST && listed++ < LISTED_MOST) {
		struct cursor name = cursor_of(entry->d_name, strlen(entry->d_name));
		int64_t tid;
		if (cursor_i64(&name, &tid) && tid > 0 && tid <= INT32_MAX && tid != member->pid) {
			follow(p, member, (pid_t)tid, now_ns);
			others++;
		}
	}
	closedir(tasks);
}

static void thread_end(struct profile *p, struct thread *thread)
{
	perf_close(&thread->event);
	*thread = (struct thread){.event = PERF_CLOSED};
	p->values[THREADS]--;
}

static bool is_old_enough(const struct tree_member *member, uint64_t now_ns)
{
	return now_ns >= member->first_ns + YOUNG_NS;
}

// Follows the first threads of all processes, then others while there is space; threads that end
// make space.
static void look_for_threads(struct profile *p, struct sink *sink, uint64_t now_ns)
{
	if (tree_snapshot(p->tree, &p->members, &p->n_members, &p->members_capacity) < 0) {
		return;
	}
	for (size_t i = 0; i < THREADS_MOST; i++) {
		p->threads[i].seen = false;
	}
	for (size_t i = 0; i < p->n_members; i++) {
		if (is_old_enough(&p->members[i], now_ns)) {
			follow(p, &p->members[i], p->members[i].pid, now_ns);
		}
	}
	for (size_t i = 0; i < p->n_members; i++) {
		if (is_old_enough(&p->members[i], now_ns)) {
			follow_others(p, &p->members[i], now_ns);
		}
	}
	for (size_t i = 0; i < THREADS_MOST; i++) {
		struct thread *thread = &p->threads[i];
		if (thread->entity && !thread->seen) {
			take_samples(p, sink, thread, now_ns);
			thread_end(p, thread);
		}
	}
	for (size_t i = 0; i < PROGRAMS_MOST; i++) {
		struct program *program = &p->programs[i];
		bool there = false;
		for (size_t k = 0; program->entity && k < p->n_members && !there; k++) {
			there = p->members[k].entity == program->entity;
		}
		if (program->entity && !there) {
			stream_close(program->starts);
			program_done(program);
		}
	}
}

static int read_starts(void *state, struct sink *sink, uint64_t now_ns)
{
	struct profile *p = state;
	for (size_t i = 0; i < PROGRAMS_MOST; i++) {
		struct program *program = &p->programs[i];
		if (program->entity && !program->starts && program->started > 0) {
			program->starts = sink_stream(sink, program->entity, &groups[GROUP_STARTS]);
		}
		if (program->starts) {
			stream_row(program->starts, now_ns, &program->started);
		}
	}
	return 0;
}

static int read_profile(void *state, struct sink *sink, uint64_t now_ns)
{
	struct profile *p = state;
	if (p->slice_ns == 0) {
		p->slice_ns = now_ns;
	}
	// Threads and workers created for an epoch live for less than a second.
	if (p->n_members <= FEW || now_ns >= p->looked_ns + LOOK_NS) {
		p->looked_ns = now_ns;
		look_for_threads(p, sink, now_ns);
	}
	for (size_t i = 0; i < THREADS_MOST; i++) {
		if (p->threads[i].entity) {
			take_samples(p, sink, &p->threads[i], now_ns);
		}
	}
	uint64_t elapsed_ns = now_ns > p->start_ns ? now_ns - p->start_ns : 0;
	uint64_t slice_ns = elapsed_ns / SLICE_PART > SLICE_NS ? elapsed_ns / SLICE_PART : SLICE_NS;
	if (now_ns + SLICE_NS / 4 >= p->slice_ns + slice_ns) {
		end_slice(p, sink, now_ns);
	}
	if (p->phases) {
		keep_phases(p, sink, now_ns);
	}
	if (!p->stream && p->recorder) {
		p->stream = sink_stream(sink, p->recorder, &groups[GROUP_SAMPLES]);
	}
	stream_row(p->stream, now_ns, p->values);
	return 0;
}

// The job has ended, and all marks are read.
static void end_profile(void *state, struct sink *sink, uint64_t now_ns)
{
	struct profile *p = state;
	for (size_t i = 0; i < THREADS_MOST; i++) {
		if (p->threads[i].entity) {
			take_samples(p, sink, &p->threads[i], now_ns);
		}
	}
	read_starts(p, sink, now_ns);
	end_slice(p, sink, now_ns);
	if (p->phases) {
		settle_phases(p, now_ns, true);
		hand_on_phases(p, sink);
	}
}

// Opening -----------------------------------------------------------------------------------------

static void profile_close(void *state)
{
	struct profile *p = state;
	for (size_t i = 0; p && i < THREADS_MOST; i++) {
		perf_close(&p->threads[i].event);
	}
	for (size_t i = 0; p && i < PROGRAMS_MOST; i++) {
		program_done(&p->programs[i]);
	}
	for (size_t i = 0; p && i < p->n_objects; i++) {
		free(p->objects[i]);
	}
	if (p) {
		free(p->members);
		free(p->waiting);
	}
	free(p); // the sink owns the streams
}

static int say_why_not(int error, struct error *e)
{
	return error == -EACCES ? error_set(e, EACCES,
					  "perf_event_open is not allowed; enable it with sysctl "
					  "kernel.perf_event_paranoid=2")
	       : error == -EPERM
	               ? error_set(e, EPERM,
				 "perf_event_open is forbidden here; enable it with docker run "
				 "--security-opt seccomp=..., or kernel.perf_event_paranoid=2")
	       : error == -ENOSYS || error == -ENOENT
	               ? error_set(e, ENOSYS, "this kernel has no perf_event_open")
	               : error_errno(e, -error, "perf_event_open");
}

static int profile_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	struct perf_event probe = PERF_CLOSED;
	(void)sink;
	if (context->no_profile) {
		return error_set(e, ECANCELED, "turned off (--no-profile)");
	}
	if (context->captured) {
		return error_set(e, ENOENT, "a captured machine runs no threads");
	}
	if (!context->tree) {
		return error_set(e, ENOENT, "needs a running job");
	}
	int r = perf_open(&probe, 0, 1);
	if (r < 0) {
		return say_why_not(r, e);
	}
	perf_close(&probe);
	struct profile *p = calloc(1, sizeof(*p));
	if (!p) {
		return error_set(e, ENOMEM, "out of memory");
	}
	p->tree = context->tree;
	p->root_fd = context->root_fd;
	p->recorder = context->recorder;
	p->start_ns = context->start_ns;
	p->phases = context->phases;
	struct rlimit descriptors = {.rlim_cur = 256};
	getrlimit(RLIMIT_NOFILE, &descriptors);
	p->most_fd = (int)(descriptors.rlim_cur < 4096 ? descriptors.rlim_cur / 2 : 2048);
	for (size_t i = 0; i < THREADS_MOST; i++) {
		p->threads[i].event = PERF_CLOSED;
	}
	*ret_state = p;
	return 0;
}

const struct source source_profile = {
	.name = "profile",
	.help = "where CPU time is spent: samples of the running code",
	.lane = LANE_MEMORY,
	.groups = groups,
	.n_groups = N_GROUPS,
	.open = profile_open,
	.close = profile_close,
	.end = end_profile,
};
