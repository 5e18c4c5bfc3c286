// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Lanes: threads with a timer. A reading that blocks delays only its own lane.

#include "record/sample/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/machine.h"
#include "record/sample/feed.h"
#include "record/sample/node.h"
#include "record/sample/source.h"

// Budget ------------------------------------------------------------------------------------------
//
// Keeps the recorder's cost within its budget by slowing down. The cost is nearly proportional to
// the tick rate, so each step is the ratio of cost to budget. Single expensive seconds are paid
// from earlier savings; only a lasting cost uses them up.

#define SMOOTHING_SECONDS 5.0
// Savings, in seconds of the whole budget: at 1 %, 50 ms of CPU time at first, 0.3 s at most.
#define SAVED_FIRST_SECONDS 5.0
#define SAVED_MAX_SECONDS 30.0
#define RELAX_BELOW 0.7 // of the budget: the rate increases again below it
#define RELAX_STEP 0.95 // at least: large savings allow any cost under the budget
#define STEP_MAX 2.0 // per update, in either direction
#define SLOW_MAX 1000.0
#define WORTH_SAYING 1.25 // factor of change since the last report

void budget_init(struct budget *b, double share)
{
	*b = (struct budget){
		.share = share, .slow = 1, .said = 1, .saved_seconds = share * SAVED_FIRST_SECONDS};
}

static double clamp(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

bool budget_update(struct budget *b, double wall_seconds, double cpu_seconds)
{
	if (wall_seconds <= 0) {
		return false;
	}
	double used = cpu_seconds / wall_seconds;
	// In the first seconds there is nothing earlier for smoothing.
	b->seconds = clamp(b->seconds + wall_seconds, 0, SMOOTHING_SECONDS);
	double weight = clamp(wall_seconds / b->seconds, 0, 1);
	b->recent += weight * (used - b->recent);
	double over = b->share > 0 ? b->recent / b->share : 0;
	double before = b->slow, saved_max = b->share * SAVED_MAX_SECONDS;
	b->saved_seconds = clamp(
		b->saved_seconds + b->share * wall_seconds - cpu_seconds, -saved_max, saved_max);
	if (over > 1 && b->saved_seconds < 0) {
		b->slow = clamp(b->slow * clamp(over, 1, STEP_MAX), 1, SLOW_MAX);
		// Predict the cost at the new rate from that of the last one.
		b->recent *= before / b->slow;
	} else if (b->slow > 1 && (over < RELAX_BELOW || b->saved_seconds > saved_max / 2)) {
		double step = clamp(over / RELAX_BELOW, 1 / STEP_MAX, RELAX_STEP);
		b->slow = clamp(b->slow * step, 1, SLOW_MAX);
		b->recent *= before / b->slow;
	}
	bool far = b->slow > b->said * WORTH_SAYING || b->slow < b->said / WORTH_SAYING;
	bool first = b->said == 1 && b->slow > 1, back = b->said > 1 && b->slow == 1;
	if (far || first || back) {
		b->said = b->slow;
		return true;
	}
	return false;
}

// Pace --------------------------------------------------------------------------------------------
//
// Reasons to read fast are detected each second: two epochs a second, or starting processes. Of
// processes that live less than 50 ms, about half are seen, which is enough to notice them.

#define PACE_EPOCHS_PER_S 2
#define PACE_PROCESSES_PER_S 2

void pace_init(struct pace *p, uint64_t fixed_ns, uint64_t now_ns)
{
	*p = (struct pace){
		.fixed_ns = fixed_ns, .fast_until_ns = now_ns + PACE_FAST_NS, .seen_ns = now_ns};
}

uint64_t pace_update(struct pace *p, uint64_t now_ns, uint64_t epochs, uint64_t processes)
{
	uint64_t elapsed_ns = now_ns - p->seen_ns;
	bool short_epochs = (epochs - p->epochs) * NS_PER_S >= PACE_EPOCHS_PER_S * elapsed_ns;
	bool births = (processes - p->processes) * NS_PER_S >= PACE_PROCESSES_PER_S * elapsed_ns;
	if (elapsed_ns > 0 && (short_epochs || births)) {
		p->fast_until_ns = now_ns + PACE_FAST_NS > p->fast_until_ns ? now_ns + PACE_FAST_NS
		                                                            : p->fast_until_ns;
	}
	p->seen_ns = now_ns;
	p->epochs = epochs;
	p->processes = processes;
	return p->fixed_ns                 ? p->fixed_ns
	       : now_ns < p->fast_until_ns ? PACE_FAST_INTERVAL_NS
	                                   : PACE_INTERVAL_NS;
}

// Clock watch -------------------------------------------------------------------------------------
//
// The offsets of the wall clock, and of the clock that includes suspend, from the monotonic clock.

#define STEP_MIN_NS ((int64_t)(100 * NS_PER_MS))
#define ANCHOR_NS (60 * NS_PER_S)

bool clock_watch_look(struct clock_watch *w, uint64_t monotonic_ns, uint64_t boottime_ns,
	uint64_t realtime_ns, struct clock_change *ret)
{
	int64_t offset_ns = (int64_t)(realtime_ns - monotonic_ns);
	int64_t asleep_ns = (int64_t)(boottime_ns - monotonic_ns);
	int64_t slept_ns = asleep_ns - w->asleep_ns;
	bool slept = w->seen && slept_ns > STEP_MIN_NS;
	int64_t set_ns = offset_ns - w->offset_ns - (slept ? slept_ns : 0);
	bool set = w->seen && (set_ns > STEP_MIN_NS || set_ns < -STEP_MIN_NS);
	w->offset_ns = offset_ns;
	w->asleep_ns = asleep_ns;
	w->suspended_ns += slept ? (uint64_t)slept_ns : 0;
	w->seen = true;
	*ret = (struct clock_change){set ? set_ns : 0, slept ? (uint64_t)slept_ns : 0};
	return set || slept;
}

void clock_watch_tell(struct clock_watch *w, struct sink *sink, uint64_t now_ns)
{
	struct clock_change change;
	uint64_t wall_ns = clock_realtime_ns(), boot_ns = clock_read_ns(CLOCK_BOOTTIME);
	if (clock_watch_look(w, clock_monotonic_ns(), boot_ns, wall_ns, &change)) {
		w->anchor_ns = now_ns;
	}
	if (change.suspended_ns > 0) {
		sink_event(sink, now_ns, "suspended", 0,
			"the machine was suspended for %.1f s; the times of the run exclude this",
			(double)change.suspended_ns / 1e9);
	}
	if (change.set_ns != 0) {
		sink_event(sink, now_ns, "clock_step", 0,
			"the system clock was set by %+.3f s; the times of the run are not "
			"affected",
			(double)change.set_ns / 1e9);
	}
	if (now_ns >= w->anchor_ns) {
		sink_event(sink, now_ns, "wall_clock", 0, "%lld",
			(long long)((int64_t)now_ns + w->offset_ns));
		w->anchor_ns = now_ns + ANCHOR_NS;
	}
}

// Sampler -----------------------------------------------------------------------------------------

#define STRETCHED_FROM_NS NS_PER_S // an --interval from here on applies to every source
#define FASTEST_SLOW_LANE_NS (10 * NS_PER_MS)
#define FLUSH_NS NS_PER_S
// Outside of the tick lane, a slow reading is delayed until it takes at most one part in this many
// of the time.
#define SLOW_LANE_SHARE 5
// What one group of a device may cost, as a part of the budget. A call into a driver can cost
// milliseconds of CPU time (3.4 ms for the energy of an H100): it is made less often, instead of
// slowing everything down.
#define DEVICE_GROUP_PART 0.1
#define DEVICE_INTERVAL_MAX_NS (10 * NS_PER_S) // a driver keeps utilisation for 14 s
#define COST_WEIGHT 0.25 // of the last reading in a group's mean cost
// Of readings that cost more times the mean, so many are single events (while a job's context was
// created, one took 70 ms); later ones are what the group costs.
#define COST_MOST 4
#define COST_EVENTS 2
#define COST_LEAST_NS 50000 // of a mean
// If a real-time tick takes this long, the lane returns to ordinary scheduling.
#define REAL_TIME_TICK_MAX_NS (20 * NS_PER_MS)
#define STOP_TIMEOUT_NS (2 * NS_PER_S)
#define OPENING_TIMEOUT_NS (100 * NS_PER_MS)
#define SLOTS_MAX 64u

// A group in the schedule.
struct slot {
	const struct group *group;
	size_t source; // index into source_list
	void *state;
	uint64_t interval_ns; // 0: the sampler's
	uint64_t next_ns;
	uint64_t read_ns; // time of the last reading
	uint64_t readings;
	unsigned events; // readings of a cost that did not count
	double cpu_ns; // CPU time of a reading, smoothed; in the device lane
	bool dropped;
	size_t number; // of the group among all groups of source_list
	uint64_t foreign, read_foreign; // sums of sink_put_rows: of the last reading, and as of
	                                // this recorder's last own reading
};

struct lane_thread {
	struct sampler *sampler;
	enum lane lane;
	pthread_t thread;
	bool running;
	bool opening; // its sources are being opened; under the mutex
	bool ended; // the thread accesses nothing any more; under the mutex
	int timer_fd;
	struct sink *sink;
	struct slot slots[SLOTS_MAX];
	size_t n_slots;
	uint64_t period_ns;
	uint64_t due_ns; // of the next tick
	uint64_t flush_ns;
	struct node_rows rows; // read for other recorders, or by another
	bool real_time;
	const struct source *_Atomic at; // that is being opened or read
	_Atomic uint64_t at_ns; // since when
	stack_t stack; // for signals, before ours
	_Atomic int crashed; // the signal of a driver's library that crashed; 0: none did
	_Atomic uint64_t due, late, missed;
	_Atomic bool stop;
	_Atomic unsigned asked, answered; // sampler_read_now
	const char *_Atomic scheduling;
};

struct sampler {
	struct source_context context;
	struct registry *registry;
	struct feed *feed;
	uint64_t stretched_ns; // minimum interval of all groups; 0: each as declared
	_Atomic uint64_t interval_ns; // of groups that declare none
	_Atomic uint64_t slow_permille;
	double budget; // of one core; 0: none
	_Atomic uint64_t once_ns; // CPU time of the device lane's opening and first readings
	_Atomic uint64_t source_ns[SLOTS_MAX]; // by index into source_list
	struct lane_thread lanes[N_LANES];
	char crash[96]; // in words
	pthread_mutex_t mutex;
	pthread_cond_t answered; // a lane has answered or ended
};

// Scheduling --------------------------------------------------------------------------------------

// The kernel's struct for sched_setattr(2), which glibc declares only since 2.41.
struct kernel_sched_attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime;
	uint64_t deadline;
	uint64_t period;
};

// A late tick misrepresents a busy job. Uses real-time scheduling if permitted; else a short slice,
// which lets the scheduler run the lane sooner (Linux 6.12); else the default.
static void lane_schedule(struct lane_thread *lane, bool real_time)
{
	struct sched_param fifo = {.sched_priority = 1};
	struct kernel_sched_attr attr = {
		.size = sizeof(attr), .policy = SCHED_OTHER, .runtime = 100 * NS_PER_US};
	lane->real_time = real_time &&
	                  sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &fifo) == 0;
	if (lane->real_time) {
		lane->scheduling = "SCHED_FIFO 1";
	} else if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0) {
		lane->scheduling = "slice 0.1 ms";
	} else {
		lane->scheduling = "default";
	}
}

// The schedule ------------------------------------------------------------------------------------

static uint64_t scaled(const struct sampler *s, uint64_t ns)
{
	return ns * atomic_load(&s->slow_permille) / 1000;
}

// The declared interval, but no less than an --interval of a second or more.
static uint64_t group_interval(const struct sampler *s, const struct group *group)
{
	bool stretched = group->interval_ns > 0 && group->interval_ns < s->stretched_ns;
	return stretched ? s->stretched_ns : group->interval_ns;
}

static uint64_t slot_interval(const struct sampler *s, const struct slot *slot)
{
	return slot->interval_ns ? slot->interval_ns : atomic_load(&s->interval_ns);
}

// The first reading costs more than the following ones, and does not count.
static void slot_count_cost(struct sampler *s, struct slot *slot, uint64_t cpu_ns)
{
	double mean_ns = slot->cpu_ns > COST_LEAST_NS ? slot->cpu_ns : COST_LEAST_NS;
	uint64_t most_ns = (uint64_t)(COST_MOST * mean_ns);
	if (slot->readings++ == 0) {
		atomic_fetch_add(&s->once_ns, cpu_ns);
	} else if (slot->readings == 2) {
		slot->cpu_ns = (double)cpu_ns;
	} else {
		bool event = cpu_ns > most_ns && slot->events < COST_EVENTS;
		uint64_t counted_ns = event ? most_ns : cpu_ns;
		slot->events += event;
		atomic_fetch_add(&s->once_ns, cpu_ns - counted_ns);
		slot->cpu_ns += COST_WEIGHT * ((double)counted_ns - slot->cpu_ns);
	}
}

// The interval with which the group stays within its part of the budget.
static uint64_t slot_affordable(const struct sampler *s, const struct slot *slot)
{
	double ns = s->budget > 0 ? slot->cpu_ns / (s->budget * DEVICE_GROUP_PART) : 0;
	return ns < (double)DEVICE_INTERVAL_MAX_NS ? (uint64_t)ns : DEVICE_INTERVAL_MAX_NS;
}

static void lane_enter(struct lane_thread *lane, const struct source *source)
{
	if (source) {
		atomic_store(&lane->at_ns, clock_monotonic_ns());
	}
	atomic_store(&lane->at, source);
}

// Whether a run says why the source found nothing.
static bool is_wanted(const struct source *source, int root_fd, int why)
{
	if (source->absent && source->absent(root_fd)) {
		return false;
	}
	if (source->pci_vendor && machine_pci_devices(root_fd, source->pci_vendor) > 0) {
		return true;
	}
	for (size_t i = 0; source->device && source_list[i]; i++) {
		const struct source *other = source_list[i];
		if (other != source && other->device && (why == -ENOENT || why == -ENODEV) &&
			strcmp(other->device, source->device) == 0 &&
			!(other->absent && other->absent(root_fd))) {
			return false;
		}
	}
	return true;
}

static void lane_add_source(struct lane_thread *lane, size_t index)
{
	struct sampler *s = lane->sampler;
	const struct source *source = source_list[index];
	struct error e = {0};
	void *state = NULL;
	lane_enter(lane, source);
	int r = source->open(&s->context, lane->sink, &state, &e);
	lane_enter(lane, NULL);
	if (r < 0) {
		bool wanted = is_wanted(source, s->context.root_fd, r);
		for (size_t i = 0; wanted && i < source->n_groups; i++) {
			sink_missing_group(lane->sink, 0, &source->groups[i], e.text);
		}
		return;
	}
	uint64_t now_ns = clock_monotonic_ns();
	size_t number = 0; // of the source's first group
	for (size_t i = 0; i < index; i++) {
		number += source_list[i]->n_groups;
	}
	for (size_t i = 0; i < source->n_groups && lane->n_slots < SLOTS_MAX; i++) {
		lane->slots[lane->n_slots++] = (struct slot){
			.group = &source->groups[i],
			.source = index,
			.state = state,
			.interval_ns = group_interval(s, &source->groups[i]),
			.next_ns = now_ns,
			.number = number + i,
		};
	}
}

// A lane ticks at the rate of its fastest group, and slowly without groups. Only the tick lane may
// be faster than FASTEST_SLOW_LANE_NS.
static uint64_t lane_tick_ns(const struct lane_thread *lane)
{
	bool is_tick = lane->lane == LANE_TICK;
	uint64_t tick_ns = is_tick ? atomic_load(&lane->sampler->interval_ns) : FLUSH_NS;
	for (size_t i = 0; i < lane->n_slots; i++) {
		uint64_t interval_ns = slot_interval(lane->sampler, &lane->slots[i]);
		tick_ns = interval_ns < tick_ns ? interval_ns : tick_ns;
	}
	return is_tick || tick_ns > FASTEST_SLOW_LANE_NS ? tick_ns : FASTEST_SLOW_LANE_NS;
}

static void lane_open_sources(struct lane_thread *lane)
{
	for (size_t i = 0; i < SLOTS_MAX && source_list[i]; i++) {
		if (source_list[i]->lane == lane->lane) {
			lane_add_source(lane, i);
		}
	}
}

static void lane_close_sources(struct lane_thread *lane)
{
	void *closed = NULL; // slots of one source are adjacent
	for (size_t i = 0; i < lane->n_slots; i++) {
		if (lane->slots[i].state != closed) {
			closed = lane->slots[i].state;
			lane_enter(lane, source_list[lane->slots[i].source]);
			source_list[lane->slots[i].source]->close(closed);
			lane_enter(lane, NULL);
		}
	}
	lane->n_slots = 0;
}

// Whether another recorder's reading replaces an own one: it was copied, or the next one is
// awaited. If the other has an entity that this recorder does not have, this one reads once itself,
// because a disk or a GPU may be new.
static bool slot_copy(struct lane_thread *lane, struct slot *slot, uint64_t now_ns)
{
	struct node *node = lane->sampler->context.node;
	uint64_t interval_ns = scaled(lane->sampler, slot_interval(lane->sampler, slot));
	enum node_answer answer = node_take(node, slot->number, now_ns, interval_ns, &lane->rows);
	if (answer != NODE_NEW) {
		return answer == NODE_KNOWN && slot->foreign == slot->read_foreign;
	}
	bool copied = sink_put_rows(lane->sink, slot->group, &lane->rows, &slot->foreign);
	return copied && slot->foreign == slot->read_foreign;
}

static int slot_read_shared(struct lane_thread *lane, struct slot *slot, uint64_t now_ns)
{
	struct node *node = lane->sampler->context.node;
	bool reads = node_reads(node);
	if (reads) {
		sink_collect(lane->sink, slot->group, &lane->rows);
	}
	int result = slot->group->read(slot->state, lane->sink, now_ns);
	slot->read_foreign = slot->foreign;
	if (reads) {
		sink_collect_end(lane->sink);
		node_share(node, slot->number, now_ns, &lane->rows);
	}
	return result;
}

// all: a reading of everything, which no other recorder makes at this moment.
static void slot_read(struct lane_thread *lane, struct slot *slot, uint64_t now_ns, bool all)
{
	struct sampler *s = lane->sampler;
	uint64_t before_ns = clock_monotonic_ns();
	uint64_t cpu_ns = lane->lane == LANE_DEVICE ? clock_read_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
	bool shared = s->context.node && slot->group->sharing != SHARED_NOT;
	lane_enter(lane, source_list[slot->source]);
	if (!shared) {
		slot->dropped = slot->group->read(slot->state, lane->sink, now_ns) < 0;
	} else if (all || node_reads(s->context.node) || !slot_copy(lane, slot, now_ns)) {
		slot->dropped = slot_read_shared(lane, slot, now_ns) < 0;
	}
	lane_enter(lane, NULL);
	uint64_t after_ns = clock_monotonic_ns();
	uint64_t cost_ns = after_ns - before_ns;
	atomic_fetch_add(&s->source_ns[slot->source], cost_ns);
	uint64_t interval_ns = scaled(s, slot_interval(s, slot));
	slot->read_ns = now_ns;
	if (lane->lane == LANE_DEVICE) {
		slot_count_cost(s, slot, clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
		uint64_t affordable_ns = slot_affordable(s, slot);
		interval_ns = affordable_ns > interval_ns ? affordable_ns : interval_ns;
	}
	slot->next_ns += interval_ns;
	if (slot->next_ns <= now_ns) {
		slot->next_ns = now_ns + interval_ns; // ticks were missed: do not catch up
	}
	if (lane->lane != LANE_TICK && slot->next_ns < after_ns + SLOW_LANE_SHARE * cost_ns) {
		slot->next_ns = after_ns + SLOW_LANE_SHARE * cost_ns;
	}
}

// Reads the groups due at now_ns; all: every group.
static void lane_read(struct lane_thread *lane, uint64_t now_ns, bool all)
{
	for (size_t i = 0; i < lane->n_slots; i++) {
		struct slot *slot = &lane->slots[i];
		bool due = slot->next_ns <= now_ns + lane->period_ns / 2;
		if (!slot->dropped && (due || all)) {
			slot_read(lane, slot, now_ns, all);
		}
	}
	if (now_ns >= lane->flush_ns || all) {
		sink_flush(lane->sink);
		lane->flush_ns = now_ns + FLUSH_NS;
		if (lane->lane == LANE_TICK) {
			feed_wake(lane->sampler->feed); // pass rows on to be written at once
		}
	}
}

// Ticks -------------------------------------------------------------------------------------------

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

// Arms the timer for the next tick, with the period that the budget requires now.
static void lane_arm(struct lane_thread *lane)
{
	uint64_t period_ns = scaled(lane->sampler, lane_tick_ns(lane));
	uint64_t now_ns = clock_monotonic_ns();
	if (period_ns != lane->period_ns || lane->due_ns <= now_ns) {
		lane->due_ns = now_ns + period_ns;
	}
	lane->period_ns = period_ns;
	struct itimerspec timer = {
		.it_value = timespec_of(lane->due_ns), .it_interval = timespec_of(period_ns)};
	timerfd_settime(lane->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

static bool lane_is_asked(struct lane_thread *lane)
{
	return atomic_load(&lane->stop) ||
	       atomic_load(&lane->asked) != atomic_load(&lane->answered);
}

// Reads everything if sampler_read_now requests it. Returns false if there is no request.
static bool lane_answer(struct lane_thread *lane)
{
	struct sampler *s = lane->sampler;
	unsigned asked = atomic_load(&lane->asked);
	if (asked == atomic_load(&lane->answered)) {
		return false;
	}
	lane_read(lane, clock_monotonic_ns(), true);
	pthread_mutex_lock(&s->mutex);
	atomic_store(&lane->answered, asked);
	pthread_cond_broadcast(&s->answered);
	pthread_mutex_unlock(&s->mutex);
	return true;
}

static void lane_tick(struct lane_thread *lane, uint64_t expirations)
{
	uint64_t now_ns = clock_monotonic_ns();
	// The tick being read is the first one due; those due since are skipped.
	atomic_fetch_add(&lane->due, expirations);
	atomic_fetch_add(&lane->missed, expirations - 1);
	atomic_fetch_add(&lane->late, now_ns > lane->due_ns + lane->period_ns);
	lane->due_ns += expirations * lane->period_ns;
	lane_read(lane, now_ns, false);
	if (lane->real_time && clock_monotonic_ns() - now_ns > REAL_TIME_TICK_MAX_NS) {
		lane_schedule(lane, false);
	}
	if (scaled(lane->sampler, lane_tick_ns(lane)) != lane->period_ns) {
		lane_arm(lane);
	}
}

// One blocking read per tick: each further system call would cost as much as a reading. To wake the
// lane, others let its timer expire (lane_wake).
static void lane_loop(struct lane_thread *lane)
{
	lane_arm(lane);
	while (!atomic_load(&lane->stop)) {
		uint64_t expirations;
		// Arming can overwrite a wake. Earlier requests are noticed here; later ones wake
		// the lane.
		if (lane_answer(lane)) {
			lane_arm(lane);
			continue;
		}
		ssize_t n = read(lane->timer_fd, &expirations, sizeof(expirations));
		// If there is a request, the expiration was for it, not a tick.
		if (n == sizeof(expirations) && !lane_is_asked(lane)) {
			lane_tick(lane, expirations);
		}
	}
}

static bool counts(const struct group *group)
{
	for (size_t i = 0; i < group->n_metrics; i++) {
		if (group->metrics[i].kind == METRIC_COUNTER) {
			return true;
		}
	}
	return false;
}

// What a device counted or kept since a reading that is old by now is read once more when the job
// ends. Its errors are often the reason for the end.
static void lane_read_last(struct lane_thread *lane)
{
	for (size_t i = 0; i < lane->n_slots && lane->lane == LANE_DEVICE; i++) {
		struct slot *slot = &lane->slots[i];
		uint64_t now_ns = clock_monotonic_ns();
		bool old = slot->interval_ns >= NS_PER_S || now_ns - slot->read_ns >= NS_PER_S;
		bool kept = counts(slot->group) || slot->group->sharing == SHARED_BUFFER;
		if (!slot->dropped && old && kept) {
			slot_read(lane, slot, now_ns, true);
		}
	}
}

// Takes rows that sources held back.
static void lane_end_sources(struct lane_thread *lane)
{
	void *ended = NULL; // slots of one source are adjacent
	for (size_t i = 0; i < lane->n_slots; i++) {
		struct slot *slot = &lane->slots[i];
		const struct source *source = source_list[slot->source];
		if (source->end && slot->state != ended) {
			lane_enter(lane, source);
			source->end(slot->state, lane->sink, clock_monotonic_ns());
			lane_enter(lane, NULL);
		}
		ended = slot->state;
	}
}

// Crashes -----------------------------------------------------------------------------------------
//
// A driver's library that crashes must not end the recording. Its thread stays where it is, for
// ever, as with a driver that does not answer: nothing of the library is called again. What it
// locked remains locked; if others wait for that, the recorder ends by its own alarm after the job
// (recorder.c), and the launcher closes the file. The handlers are the process's, hence globals;
// one sampler calls drivers at a time.

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction crash_before[ARRAY_LENGTH(crash_signals)];
static _Thread_local struct lane_thread *guarded; // this thread, if it calls drivers

static void crash_handle(int number)
{
	if (guarded && atomic_load(&guarded->at)) {
		atomic_store(&guarded->crashed, number);
		for (;;) {
			pause();
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(crash_signals); i++) {
		if (crash_signals[i] == number) {
			sigaction(number, &crash_before[i], NULL);
			raise(number);
		}
	}
}

static void crash_guard(struct lane_thread *lane)
{
	enum { STACK_BYTES = 64 << 10 }; // a library may have used up the thread's own
	stack_t stack = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
	struct sigaction handle = {.sa_handler = crash_handle, .sa_flags = SA_NODEFER | SA_ONSTACK};
	if (!stack.ss_sp) {
		return;
	}
	if (sigaltstack(&stack, &lane->stack) < 0) {
		free(stack.ss_sp);
		return;
	}
	guarded = lane;
	for (size_t i = 0; i < ARRAY_LENGTH(crash_signals); i++) {
		sigaction(crash_signals[i], &handle, &crash_before[i]);
	}
}

static void crash_guard_end(struct lane_thread *lane)
{
	stack_t ours;
	if (!guarded) {
		return;
	}
	guarded = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(crash_signals); i++) {
		sigaction(crash_signals[i], &crash_before[i], NULL);
	}
	if (sigaltstack(&lane->stack, &ours) == 0) {
		free(ours.ss_sp);
	}
}

static const char *crash_words(struct sampler *s, int number)
{
	const char *name = sigabbrev_np(number);
	snprintf(s->crash, sizeof(s->crash), "the driver's library crashed (SIG%s)",
		name ? name : "?");
	return s->crash;
}

// Threads -----------------------------------------------------------------------------------------

static void *lane_main(void *context)
{
	static const char *const names[N_LANES] = {"strain-tick", "strain-memory", "strain-device"};
	struct lane_thread *lane = context;
	prctl(PR_SET_NAME, names[lane->lane]);
	prctl(PR_SET_TIMERSLACK, 1);
	if (lane->lane == LANE_TICK) {
		lane_schedule(lane, true);
	} else {
		if (lane->lane == LANE_DEVICE) {
			crash_guard(lane);
		}
		lane_open_sources(lane);
		if (lane->lane == LANE_DEVICE) {
			atomic_store(
				&lane->sampler->once_ns, clock_read_ns(CLOCK_THREAD_CPUTIME_ID));
		}
		pthread_mutex_lock(&lane->sampler->mutex);
		lane->opening = false;
		pthread_cond_broadcast(&lane->sampler->answered);
		pthread_mutex_unlock(&lane->sampler->mutex);
	}
	lane_loop(lane);
	lane_answer(lane); // requests made in time are answered, however late
	lane_read_last(lane);
	lane_end_sources(lane);
	sink_flush(lane->sink);
	lane_close_sources(lane);
	sink_flush(lane->sink);
	crash_guard_end(lane);
	pthread_mutex_lock(&lane->sampler->mutex);
	lane->ended = true;
	pthread_cond_broadcast(&lane->sampler->answered);
	pthread_mutex_unlock(&lane->sampler->mutex);
	return NULL;
}

// Life --------------------------------------------------------------------------------------------

static int lane_init(struct sampler *s, enum lane kind, struct error *e)
{
	struct lane_thread *lane = &s->lanes[kind];
	lane->sampler = s;
	lane->lane = kind;
	lane->scheduling = "default";
	lane->opening = kind != LANE_TICK;
	lane->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (lane->timer_fd < 0) {
		return error_errno(e, errno, "timer");
	}
	if (sink_new(s->registry, s->feed, s->context.start_ns, &lane->sink) < 0) {
		return error_set(e, ENOMEM, "out of memory");
	}
	return 0;
}

int sampler_new(const struct source_context *context, struct registry *registry, struct feed *feed,
	uint64_t interval_ns, double budget, struct sampler **ret, struct error *e)
{
	struct sampler *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_set(e, ENOMEM, "out of memory");
	}
	s->context = *context;
	s->registry = registry;
	s->feed = feed;
	s->budget = budget;
	s->stretched_ns = interval_ns >= STRETCHED_FROM_NS ? interval_ns : 0;
	atomic_store(&s->interval_ns, interval_ns);
	atomic_store(&s->slow_permille, 1000);
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&s->mutex, NULL);
	pthread_cond_init(&s->answered, &attributes);
	pthread_condattr_destroy(&attributes);
	for (enum lane kind = 0; kind < N_LANES; kind++) {
		s->lanes[kind].timer_fd = -1;
	}
	for (enum lane kind = 0; kind < N_LANES; kind++) {
		int r = lane_init(s, kind, e);
		if (r < 0) {
			sampler_free(s);
			return r;
		}
	}
	*ret = s;
	return 0;
}

static int lane_start(struct lane_thread *lane, struct error *e)
{
	int r = pthread_create(&lane->thread, NULL, lane_main, lane);
	lane->running = r == 0;
	return r == 0 ? 0 : error_errno(e, r, "cannot start a thread");
}

int sampler_start(struct sampler *s, struct error *e)
{
	lane_open_sources(&s->lanes[LANE_TICK]);
	int r = lane_start(&s->lanes[LANE_TICK], e);
	return r < 0 ? r : lane_start(&s->lanes[LANE_MEMORY], e);
}

int sampler_start_devices(struct sampler *s, struct error *e)
{
	return lane_start(&s->lanes[LANE_DEVICE], e);
}

void sampler_set_interval(struct sampler *s, uint64_t interval_ns)
{
	atomic_store(&s->interval_ns, interval_ns);
}

void sampler_set_slow(struct sampler *s, double slow)
{
	atomic_store(&s->slow_permille, (uint64_t)(slow * 1000));
}

// Lets the timer expire now. If the lane is just arming it, the lane checks its flags one tick
// later.
static void lane_wake(struct lane_thread *lane)
{
	struct itimerspec now = {.it_value = {.tv_nsec = 1}};
	timerfd_settime(lane->timer_fd, 0, &now, NULL);
}

void sampler_read_now(struct sampler *s, uint64_t timeout_ns)
{
	struct lane_thread *lane = &s->lanes[LANE_TICK];
	if (!lane->running) {
		return;
	}
	struct timespec deadline = timespec_of(clock_monotonic_ns() + timeout_ns);
	pthread_mutex_lock(&s->mutex);
	unsigned asked = atomic_fetch_add(&lane->asked, 1) + 1;
	lane_wake(lane);
	while ((int)(atomic_load(&lane->answered) - asked) < 0 &&
		pthread_cond_timedwait(&s->answered, &s->mutex, &deadline) == 0) {
	}
	pthread_mutex_unlock(&s->mutex);
}

// Returns NULL once the lane has ended; else a message about a lane that has not. One that is still
// opening its sources has read nothing yet and is not waited for long.
static const char *lane_wait_end(struct lane_thread *lane, const struct timespec *deadline)
{
	struct sampler *s = lane->sampler;
	pthread_mutex_lock(&s->mutex);
	struct timespec soon = timespec_of(clock_monotonic_ns() + OPENING_TIMEOUT_NS);
	while (!lane->ended && lane->opening && !atomic_load(&lane->crashed) &&
		pthread_cond_timedwait(&s->answered, &s->mutex, &soon) == 0) {
	}
	while (!lane->ended && !lane->opening && !atomic_load(&lane->crashed) &&
		pthread_cond_timedwait(&s->answered, &s->mutex, deadline) == 0) {
	}
	int crashed = atomic_load(&lane->crashed);
	const char *left =
		lane->ended     ? NULL
		: crashed       ? crash_words(s, crashed)
		: lane->opening ? "the job ended before a device driver was ready; its devices "
				  "were not read"
				: "a device driver did not answer; its last readings are missing";
	pthread_mutex_unlock(&s->mutex);
	return left;
}

const char *sampler_stop(struct sampler *s)
{
	const char *left = NULL;
	struct timespec deadline = timespec_of(clock_monotonic_ns() + STOP_TIMEOUT_NS);
	for (enum lane kind = 0; kind < N_LANES; kind++) {
		atomic_store(&s->lanes[kind].stop, true);
		lane_wake(&s->lanes[kind]);
	}
	for (enum lane kind = 0; kind < N_LANES; kind++) {
		struct lane_thread *lane = &s->lanes[kind];
		const char *why = lane->running ? lane_wait_end(lane, &deadline) : NULL;
		if (why) {
			pthread_detach(lane->thread);
			left = why;
		} else if (lane->running) {
			pthread_join(lane->thread, NULL);
			lane->running = false;
		}
	}
	return left;
}

void sampler_say_hung(struct sampler *s, struct sink *sink)
{
	for (enum lane kind = 0; kind < N_LANES; kind++) {
		struct lane_thread *lane = &s->lanes[kind];
		const struct source *source = lane->running ? atomic_load(&lane->at) : NULL;
		int crashed = atomic_load(&lane->crashed);
		const char *why = crashed         ? crash_words(s, crashed)
		                  : lane->opening ? "the driver was not ready when the job ended"
		                                  : "the driver did not answer";
		for (size_t i = 0; source && i < source->n_groups; i++) {
			for (size_t k = 0; k < source->groups[i].n_metrics; k++) {
				sink_missing_since(sink, 0, &source->groups[i], k,
					atomic_load(&lane->at_ns), why);
			}
		}
	}
}

void sampler_free(struct sampler *s)
{
	if (!s) {
		return;
	}
	for (enum lane kind = 0; kind < N_LANES; kind++) {
		struct lane_thread *lane = &s->lanes[kind];
		if (lane->running) {
			return; // it may still access everything: the process's end frees it
		}
	}
	for (enum lane kind = 0; kind < N_LANES; kind++) {
		struct lane_thread *lane = &s->lanes[kind];
		lane_close_sources(lane);
		sink_free(lane->sink);
		node_rows_done(&lane->rows);
		if (lane->timer_fd >= 0) {
			close(lane->timer_fd);
		}
	}
	pthread_cond_destroy(&s->answered);
	pthread_mutex_destroy(&s->mutex);
	free(s);
}

struct sampler_ticks sampler_ticks(const struct sampler *s)
{
	const struct lane_thread *lane = &s->lanes[LANE_TICK];
	return (struct sampler_ticks){.due = atomic_load(&lane->due),
		.late = atomic_load(&lane->late),
		.missed = atomic_load(&lane->missed)};
}

bool sampler_crashed(const struct sampler *s)
{
	return atomic_load(&s->lanes[LANE_DEVICE].crashed) != 0;
}

uint64_t sampler_hung_ns(const struct sampler *s)
{
	for (enum lane kind = 0; kind < N_LANES; kind++) {
		const struct lane_thread *lane = &s->lanes[kind];
		if (lane->running && atomic_load(&lane->at)) {
			return atomic_load(&lane->at_ns);
		}
	}
	return clock_monotonic_ns();
}

uint64_t sampler_once_ns(const struct sampler *s)
{
	return atomic_load(&s->once_ns);
}

uint64_t sampler_source_ns(const struct sampler *s, size_t source)
{
	return atomic_load(&s->source_ns[source]);
}

const char *sampler_scheduling(const struct sampler *s)
{
	return s->lanes[LANE_TICK].scheduling;
}
