// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Records a job for a short time, and examines the run file meanwhile.

#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "probe/overlay.h"
#include "run/analysis.h"
#include "run/names.h"
#include "run/rate.h"
#include "runfile/amend.h"
#include "runfile/reader.h"
#include "runfile/still_running.h"

// Least number of iterations for a rate. Batches that loader workers prepare in advance (usually
// two each) are then at most a fifth of them.
#define ITERATIONS_MIN 24
#define ITERATIONS_PER_WORKER 10

#define STEP_NS (100 * NS_PER_MS)
// Examining the run file uses the job's machine: at most 1/LOOK_SHARE of the time.
#define LOOK_SHARE 40
#define LOOK_SOONEST_NS NS_PER_S
#define PATIENCE_NS (10 * NS_PER_S)
#define PIDS_MAX 256u
#define ENOUGH_ITERATIONS 10 // the fewest that have an interval
#define MEMORY_ITERATIONS 3 // steady ones, in two epochs
#define REPORTED_SECONDS 4.0 // after the first iteration: the run has the reports of the hooks,
#define HOOKED_SECONDS 2.5 // and that there are hooks: it is reported when a framework is imported
#define REST_LOOKS 20
#define ENDS_OF_INPUT 1000 // in a terminal's line buffer, which holds 4095

struct watched {
	const struct probe_config *config;
	struct probe *probe;
	pid_t launcher;
	char mark[48]; // of its processes (still_running.h)
	uint64_t start_ns;
	pid_t pids[PIDS_MAX];
	size_t n_pids;
	int input; // of the job
	int terminal; // its other end, if it is a terminal; else -1
};

// Opens the run in its current state. False: it cannot be read yet.
static bool open_run(const char *path, struct reader **reader, struct analysis *a)
{
	struct error e = {0};
	if (reader_open(path, reader, &e) < 0) {
		return false;
	}
	if (analysis_load(*reader, a, &e) < 0) {
		reader_free(*reader);
		return false;
	}
	return true;
}

static void close_run(struct reader *reader, struct analysis *a)
{
	analysis_done(a);
	reader_free(reader);
}

// Finds the processes that still run; their key is "PID:START".
static void find_processes(struct watched *w, const struct analysis *a)
{
	w->n_pids = 0;
	for (size_t i = 0; i < a->tables.entities.n && w->n_pids < PIDS_MAX; i++) {
		const struct entity *entity = &a->tables.entities.items[i];
		struct cursor key = cursor_of(entity->key, strlen(entity->key));
		uint64_t pid, start;
		if (entity->kind == ENTITY_PROCESS && !entity->ended && cursor_u64(&key, &pid) &&
			cursor_literal(&key, ":") && cursor_u64(&key, &start) && pid > 1 &&
			pid <= INT32_MAX) {
			w->pids[w->n_pids++] = (pid_t)pid;
		}
	}
}

// Batches prepared in advance are at most a fifth of the iterations that a rate is based on.
static uint64_t needed_iterations(uint64_t ahead)
{
	return 5 * ahead;
}

bool probe_is_primed(const struct probe *probe)
{
	return probe->rate.iterations < needed_iterations(probe->ahead);
}

static uint64_t find_ahead(struct reader *reader)
{
	int64_t workers = reader_run_i64(reader, "loader_workers", 0);
	int64_t each = reader_run_i64(reader, "loader_prefetch_factor", 2);
	bool known = workers > 0 && workers <= UINT16_MAX && each > 0 && each <= UINT16_MAX;
	return known ? (uint64_t)(workers * each) : 0;
}

// Seconds since the first iteration. Iterations take less of them if validation takes the rest, or
// if the marks of brief ones are lost.
static double seconds_since(const struct watched *w, const struct phases *phases)
{
	double startup = phases->startup_s >= 0 ? phases->startup_s : 0;
	return (double)(clock_monotonic_ns() - w->start_ns) / 1e9 - startup;
}

static size_t ended_epochs(const struct analysis *a)
{
	size_t ended = 0;
	for (size_t i = 0; i < a->tables.epochs.n; i++) {
		ended += !a->tables.epochs.items[i].open;
	}
	return ended;
}

// The epoch of iterations after so many of them; -1: it has not ended.
static ptrdiff_t find_warm_epoch(const struct analysis *a, const struct phases *p, unsigned before)
{
	size_t iterated = 0;
	for (size_t i = 0; i < p->n_epochs && i < a->tables.epochs.n; i++) {
		if (p->epochs[i].iterations > 0 && iterated++ == before) {
			return a->tables.epochs.items[i].open ? -1 : (ptrdiff_t)i;
		}
	}
	return -1;
}

// Whether the job has reached the end of so many epochs, if these are shortened: those of a loader
// or of Keras' fit. Iterations over batches that the script forms itself are not. What the hooks
// report comes some time after the iterations.
static bool has_epochs(const struct watched *w, struct reader *reader, const struct analysis *a,
	double since_first_s)
{
	const char *hooks = reader_run(reader, "hooks");
	double reported_s = hooks ? REPORTED_SECONDS : HOOKED_SECONDS;
	bool shortened = hooks && strstr(hooks, "short") &&
	                 (reader_run(reader, "loader_workers") ||
				 reader_run(reader, "loader_fit_at"));
	return ended_epochs(a) >= w->config->epochs || (!shortened && since_first_s >= reported_s);
}

static bool knows_rate(const struct watched *w, struct reader *reader, const struct analysis *a,
	const struct phases *phases)
{
	if (w->config->warm_epochs > 0) {
		return find_warm_epoch(a, phases, w->config->warm_epochs) >= 0;
	}
	double seconds = w->config->seconds > 0 ? w->config->seconds : PROBE_SECONDS;
	bool known = probe_rate_is_known(phases, w->config->error, seconds) ||
	             (w->config->enough > 0 && seconds_since(w, phases) >= w->config->enough &&
			     phases->steady >= ENOUGH_ITERATIONS);
	return known && phases->steady >= needed_iterations(find_ahead(reader));
}

// Whether a run that is not made for its rate shows the peak of memory: after the epochs asked for,
// or enough iterations of a job whose epochs are not shortened.
static bool knows_memory(
	const struct watched *w, const struct analysis *a, const struct phases *phases)
{
	bool epochs = w->config->epochs > 0 && ended_epochs(a) >= w->config->epochs;
	return phases->steady >= (epochs ? MEMORY_ITERATIONS : ENOUGH_ITERATIONS);
}

// Whether the run is known well enough.
static bool look(struct watched *w)
{
	struct reader *reader;
	struct analysis a;
	struct phases phases;
	struct error e = {0};
	if (!open_run(w->config->run, &reader, &a)) {
		return false;
	}
	find_processes(w, &a);
	bool known = false;
	const struct phases_input input = {&a.tables, &a.stops, true};
	if (phases_load(&input, &phases, &e) == 0) {
		known = w->config->error < 1 ? knows_rate(w, reader, &a, &phases)
		                             : knows_memory(w, &a, &phases);
		known = known && has_epochs(w, reader, &a, seconds_since(w, &phases));
		phases_done(&phases);
	}
	close_run(reader, &a);
	if (w->config->look) {
		w->config->look(w->config->context, w->pids, w->n_pids);
	}
	return known;
}

// Ending ------------------------------------------------------------------------------------------

static bool wait_end(const struct watched *w, uint64_t until_ns)
{
	do {
		pid_t ended = waitpid(w->launcher, &w->probe->status, WNOHANG);
		if (ended == w->launcher || (ended < 0 && errno != EINTR)) {
			return true;
		}
		const struct timespec pause = {.tv_nsec = STEP_NS / 10};
		nanosleep(&pause, NULL);
	} while (clock_monotonic_ns() < until_ns);
	return false;
}

// The launcher passes signals on to the job. If the job ignores them, its processes are found by
// their mark and killed.
static void end_job(struct watched *w)
{
	static const int signals[] = {SIGINT, SIGTERM};
	for (size_t i = 0; i < ARRAY_LENGTH(signals); i++) {
		kill(w->launcher, signals[i]);
		if (wait_end(w, clock_monotonic_ns() + PATIENCE_NS)) {
			return;
		}
	}
	still_running_signal(w->mark, 0, SIGKILL);
	while (!wait_end(w, clock_monotonic_ns() + PATIENCE_NS)) {
	}
}

// Processes that outlive the job's first one, such as loader workers, which look for their parent
// every five seconds. They get a second to end by themselves.
static void end_rest(const struct watched *w)
{
	for (int i = 0; i < 2 * REST_LOOKS; i++) {
		const struct timespec pause = {.tv_nsec = STEP_NS / 2};
		if (still_running_signal(w->mark, 0, i < REST_LOOKS ? 0 : SIGKILL) <= 0) {
			return;
		}
		nanosleep(&pause, NULL);
	}
}

static enum probe_end watch(struct watched *w)
{
	const struct probe_config *config = w->config;
	uint64_t next_ns = w->start_ns + LOOK_SOONEST_NS;
	for (;;) {
		if (wait_end(w, clock_monotonic_ns() + STEP_NS)) {
			bool well = WIFEXITED(w->probe->status) &&
			            WEXITSTATUS(w->probe->status) == 0;
			return well ? PROBE_JOB_ENDED : PROBE_JOB_FAILED;
		}
		uint64_t now_ns = clock_monotonic_ns();
		if (*config->interrupted) {
			return PROBE_INTERRUPTED;
		}
		if (now_ns >= w->start_ns + config->limit_ns) {
			return PROBE_TIME;
		}
		if (now_ns < next_ns) {
			continue;
		}
		if (look(w)) {
			return PROBE_KNOWN;
		}
		uint64_t took_ns = clock_monotonic_ns() - now_ns;
		uint64_t pause_ns = took_ns * LOOK_SHARE;
		next_ns = now_ns + (pause_ns > LOOK_SOONEST_NS ? pause_ns : LOOK_SOONEST_NS);
	}
}

// Life --------------------------------------------------------------------------------------------

// "strain run -o RUN --overlay DIR OPTIONS -- COMMAND". NULL: out of memory.
static char **make_arguments(const struct probe_config *config)
{
	const char *own[] = {
		config->strain, "run", "-o", config->run, "--overlay", config->overlay->scratch};
	const size_t n_own = ARRAY_LENGTH(own) - (config->overlay->scratch ? 0 : 2);
	size_t n_options = 0, n = 0, k = 0;
	while (config->options && config->options[n_options]) {
		n_options++;
	}
	while (config->command[n]) {
		n++;
	}
	char **arguments = calloc(n_own + n_options + 1 + n + 1, sizeof(*arguments));
	for (size_t i = 0; arguments && i < n_own; i++) {
		arguments[k++] = strdup(own[i]);
	}
	for (size_t i = 0; arguments && i < n_options; i++) {
		arguments[k++] = strdup(config->options[i]);
	}
	if (arguments) {
		arguments[k++] = strdup("--");
		memcpy(arguments + k, config->command, n * sizeof(*arguments));
	}
	return arguments;
}

static bool set_environment(const char *const *environment)
{
	bool set = true;
	for (size_t i = 0; environment[i]; i++) {
		char *pair = strdup(environment[i]);
		set = set && pair && (strchr(pair, '=') ? putenv(pair) : unsetenv(pair)) == 0;
	}
	return set;
}

// Adds CPUs to this process's affinity, which its parent may have restricted. If the kernel
// refuses, the recording shows that the job may not use them.
static void add_cpus(const char *list)
{
	cpu_set_t cpus;
	struct cursor at = cursor_of(list, strlen(list));
	uint64_t first, last;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0) {
		return;
	}
	while (cursor_u64(&at, &first)) {
		if (!cursor_literal(&at, "-") || !cursor_u64(&at, &last)) {
			last = first;
		}
		for (uint64_t cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++) {
			CPU_SET(cpu, &cpus);
		}
		if (!cursor_literal(&at, ",")) {
			break;
		}
	}
	(void)!sched_setaffinity(0, sizeof(cpus), &cpus);
}

// A terminal as large as ours, whose input has ended: each end of input is one more read that
// returns 0. Ours would stop a job that reads from it. False: we have none.
static bool open_terminal(struct watched *w)
{
	static const char end = 4; // Ctrl-D
	struct winsize size;
	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0) {
		return false;
	}
	w->terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (w->terminal < 0 || unlockpt(w->terminal) < 0) {
		return false;
	}
	w->input = ioctl(w->terminal, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (w->input < 0) {
		return false;
	}
	ioctl(w->terminal, TIOCSWINSZ, &size);
	for (int i = 0; i < ENDS_OF_INPUT && write(w->terminal, &end, 1) == 1; i++) {
	}
	return true;
}

// What the job reads is empty. If we have a terminal, the job has one, too: some ask for its width.
static void open_input(struct watched *w)
{
	w->input = w->terminal = -1;
	if (!open_terminal(w)) {
		w->input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
}

static void close_input(struct watched *w)
{
	if (w->input >= 0) {
		close(w->input);
	}
	if (w->terminal >= 0) {
		close(w->terminal);
	}
}

static void become_recording(const struct watched *w)
{
	const struct probe_config *config = w->config;
	int out = open(config->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (w->input < 0 || out < 0 || dup2(w->input, STDIN_FILENO) < 0 ||
		dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0) {
		_exit(125);
	}
	char **arguments = make_arguments(config);
	if (!arguments || !set_environment(config->environment) ||
		setenv(STILL_RUNNING_VARIABLE, w->mark, 1) < 0) {
		_exit(125);
	}
	if (config->directory &&
		(chdir(config->directory) < 0 || setenv("PWD", config->directory, 1) < 0)) {
		dprintf(STDERR_FILENO, "strain: %s: %s\n", config->directory,
			strerrordesc_np(errno));
		_exit(125);
	}
	if (config->cpus) {
		add_cpus(config->cpus);
	}
	setpgid(0, 0); // this process passes Ctrl-C on
	prctl(PR_SET_PDEATHSIG, SIGINT); // if it is killed, the job ends, too
	// SIGINT ends the job. A shell's & may have set it to be ignored.
	signal(SIGINT, SIG_DFL);
	execv(config->strain, arguments);
	_exit(125);
}

// The same share of the bytes of an epoch; of the whole run if there is none.
static double fetched_of(const struct analysis *a, const struct epoch *epoch)
{
	static const char *const names[] = {"process.disk.io.read", "strain.io.read"};
	const struct entity *job = entity_first(&a->tables.entities, ENTITY_JOB);
	double bytes[ARRAY_LENGTH(names)];
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		bytes[i] = !job    ? NAN
		           : epoch ? tables_epoch_figure(&a->tables, job->id, names[i],
					     epoch->number, FIGURE_TOTAL)
		                   : tables_figure(&a->tables, job->id, names[i], FIGURE_TOTAL);
	}
	return bytes[0] / bytes[1];
}

// Replaces the rate of steady iterations by that of a whole epoch.
static void read_epoch(struct watched *w, const struct analysis *a, const struct phases *phases)
{
	struct probe *p = w->probe;
	ptrdiff_t at = -1;
	for (unsigned before = w->config->warm_epochs; at < 0 && before > 0; before--) {
		at = find_warm_epoch(a, phases, before);
	}
	p->fetched = NAN;
	p->rate.rate = (struct estimate){NAN, NAN, NAN};
	if (at < 0) {
		free(p->no_rate);
		p->no_rate = strdup("its second epoch did not end");
		return;
	}
	const struct epoch_phases *epoch = &phases->epochs[at];
	p->rate.iterations = epoch->iterations;
	p->rate.of_samples = isfinite(epoch->samples_per_s);
	p->rate.rate.value = p->rate.of_samples ? epoch->samples_per_s
	                                        : (double)epoch->iterations / epoch->iteration_s;
	p->fetched = fetched_of(a, &a->tables.epochs.items[at]);
}

// Reads what the job fetched while it iterated: what it fetches before, such as its program, does
// not slow its iterations.
static void read_fetches(struct probe *p, const struct analysis *a, const struct phases *phases)
{
	int64_t job = tables_first(&a->tables, ENTITY_JOB);
	struct stretch stretch = {0};
	bool any = false;
	for (size_t i = 0; i < phases->n_iterations; i++) {
		const struct iteration *at = &phases->iterations[i];
		if (!at->warm_up) {
			stretch.from_us = any ? stretch.from_us : at->start_ns / 1000;
			stretch.to_us = at->end_ns / 1000;
			any = true;
		}
	}
	p->stored_rate = p->asked_rate = NAN;
	if (any && job > 0) {
		p->stored_rate = rate_over(
			a->tables.reader, &a->stops, job, NAME_READ_STORAGE, &stretch);
		p->asked_rate = rate_over(
			a->tables.reader, &a->stops, job, NAME_READ_ASKED, &stretch);
	}
}

// Reads the rate from the finished recording.
static int read_rate(struct watched *w, struct error *e)
{
	struct reader *reader;
	struct analysis a;
	struct phases phases;
	struct probe *p = w->probe;
	p->rate.rate = (struct estimate){NAN, NAN, NAN};
	if (!open_run(w->config->run, &reader, &a)) {
		return error_set(e, ENODATA, "nothing was recorded");
	}
	const struct phases_input input = {&a.tables, &a.stops, true};
	int result = phases_load(&input, &phases, e);
	if (result == 0) {
		probe_rate_of(&phases, &p->rate);
		p->no_rate = phases.missing ? strdup(phases.missing) : NULL;
		p->fetched = fetched_of(&a, NULL);
		read_fetches(p, &a, &phases);
		if (w->config->warm_epochs > 0) {
			read_epoch(w, &a, &phases);
		}
		phases_done(&phases);
	}
	p->ahead = find_ahead(reader);
	const char *missing = reader_run(reader, "hooks_missing");
	p->hooks_missing = missing ? strdup(missing) : NULL;
	const char *hooks = reader_run(reader, "hooks");
	p->hooked = hooks != NULL;
	p->replayed = hooks && strstr(hooks, "replay");
	p->edited = hooks && strstr(hooks, "replay of copies");
	close_run(reader, &a);
	return result;
}

// Makes a mark that no other probe has.
static int make_mark(char *mark, size_t size)
{
	uint64_t number[2];
	if (getrandom(number, sizeof(number), 0) != sizeof(number)) {
		return -EIO;
	}
	snprintf(mark, size, "%016" PRIx64 "%016" PRIx64, number[0], number[1]);
	return 0;
}

int probe_run(const struct probe_config *config, struct probe *ret, struct error *e)
{
	struct watched w = {.config = config, .probe = ret, .start_ns = clock_monotonic_ns()};
	*ret = (struct probe){0};
	int result = make_mark(w.mark, sizeof(w.mark));
	if (result < 0) {
		return error_errno(e, -result, "cannot start a recording");
	}
	if (config->overlay->scratch && probe_overlay_begin(config->overlay, e) < 0) {
		return error_prefix(e, "no overlay for the job");
	}
	open_input(&w);
	w.launcher = fork();
	if (w.launcher < 0) {
		close_input(&w);
		return error_errno(e, errno, "cannot start a recording: fork");
	}
	if (w.launcher == 0) {
		become_recording(&w);
	}
	ret->end = watch(&w);
	ret->seconds = (double)(clock_monotonic_ns() - w.start_ns) / 1e9;
	if (ret->end != PROBE_JOB_ENDED && ret->end != PROBE_JOB_FAILED) {
		end_job(&w);
	}
	end_rest(&w);
	close_input(&w);
	if (config->overlay->scratch) {
		probe_overlay_end(config->overlay);
	}
	result = read_rate(&w, e);
	if (result < 0) {
		probe_done(ret);
	}
	return result;
}

void probe_note_end(const struct probe *p, const char *run)
{
	static const struct amendment items[] = {
		{AMEND_KEY, "outcome", "interrupted"},
		{AMEND_KEY, "outcome_text", "ended by strain advise"},
	};
	if (p->end == PROBE_KNOWN || p->end == PROBE_TIME) {
		(void)amend_run(run, items, ARRAY_LENGTH(items), NULL);
	}
}

void probe_done(struct probe *p)
{
	free(p->no_rate);
	free(p->hooks_missing);
	*p = (struct probe){0};
}

void probe_rate_of(const struct phases *p, struct probe_rate *ret)
{
	ret->iterations = p->steady;
	ret->of_samples = isfinite(p->samples_per_s.value);
	ret->rate = p->samples_per_s;
	if (!ret->of_samples) {
		ret->rate = (struct estimate){
			1 / p->length_s.value, 1 / p->length_s.high, 1 / p->length_s.low};
	}
}

bool probe_rate_is_known(const struct phases *p, double error, double seconds)
{
	struct probe_rate rate;
	uint64_t needed = ITERATIONS_PER_WORKER * p->n_workers;
	probe_rate_of(p, &rate);
	return p->iterations_s >= seconds && p->steady >= ITERATIONS_MIN && p->steady >= needed &&
	       (rate.rate.high - rate.rate.low) / 2 / rate.rate.value <= error;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)status;
	(void)at;
	(void)!(type == FTW_DP ? rmdir(path) : unlink(path)); // whatever cannot be removed stays
	return 0;
}

void probe_remove_folder(const char *folder)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
