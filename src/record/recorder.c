// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The recorder process. Its main thread receives the launcher's messages, keeps the budget and ends
// the recording. Lanes (sampler.c) read, the scribe writes, the listener finds epochs. If it is
// killed at any moment, the run file can be opened and the job is unaffected.

#include "record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/command.h"
#include "base/hash.h"
#include "base/secret.h"
#include "base/text.h"
#include "machine/cgroup.h"
#include "machine/cgroupfs.h"
#include "machine/exit_status.h"
#include "machine/file.h"
#include "machine/machine.h"
#include "machine/procfs.h"
#include "machine/tree.h"
#include "record/job/limits.h"
#include "record/job/name.h"
#include "record/mark/hooks.h"
#include "record/mark/marks.h"
#include "record/mark/phase_log.h"
#include "record/output/listener.h"
#include "record/own_cost.h"
#include "record/protocol.h"
#include "record/sample/feed.h"
#include "record/sample/node.h"
#include "record/sample/sampler.h"
#include "record/sample/source.h"
#include "record/scribe.h"
#include "runfile/labels.h"
#include "runfile/writer.h"

static int describe_run(struct writer *w, const struct recorder_config *config);
static void describe_job_times(
	struct writer *w, uint64_t run_ns, uint64_t start_ns, uint64_t end_ns);

// Recorder ----------------------------------------------------------------------------------------

#define QUEUE_MAX_BYTES ((size_t)6 << 20) // a part of the 16 MiB allowed for the recorder
#define LAST_READ_NS (250 * NS_PER_MS)
// The final reading gives the job's total CPU time, so it is worth waiting for, even on a machine
// with slow ticks.
#define FINAL_READ_NS (2 * NS_PER_S)
#define BEAT_MS 1000
#define STATUS_UNKNOWN (-1)
#define REAPED_TRIES 30 // of 10 ms
// After a driver's crash something may stay locked: a recorder that has not ended by then is
// killed.
#define CRASHED_END_S 10

struct recorder {
	const struct recorder_config *config;
	struct writer *writer; // owned by the scribe while it runs
	struct registry registry;
	struct feed *feed;
	struct sink *sink; // of the main thread
	struct tree *tree;
	struct self *self;
	struct sampler *sampler;
	struct node *node; // NULL: this recorder shares nothing
	char reader[256]; // the run whose recorder reads the machine, as last reported
	bool reader_is_self; // runs in several folders may have one name
	struct scribe *scribe;
	struct listener *listener;
	struct tail tails[2]; // of the job's standard output and error
	struct marks *marks;
	struct phase_log *phases;
	_Atomic unsigned epochs; // epochs begun: found in the output or marked by the job
	struct budget budget;
	struct pace pace;
	uint64_t interval_ns; // current interval of ticks
	int root_fd;
	int64_t host, job, recorder;
	pid_t first; // the job's first process; 0 until it is started
	int first_fd; // its pidfd; -1: none
	uint64_t first_ns, last_ns; // its start and end as the launcher observed them, else 0
	int status; // as waitpid gives it
	bool file_failed; // why nothing is recorded: the run file
	bool ended;
	bool launcher; // the launcher is alive
	uint64_t beat_ns; // of the last beat
	int64_t lasting_ns; // CPU time at the last beat, without what devices cost once
	struct clock_watch clocks;
};

// Words with the launcher -------------------------------------------------------------------------

static void tell(const struct recorder *r, enum message_kind kind, const char *text)
{
	struct message message = {.kind = kind, .pid = r->first, .status = r->status};
	snprintf(message.text, sizeof(message.text), "%s", text ? text : "");
	// A vanished launcher is noticed when the socket is read.
	send(r->config->socket, &message, sizeof(message), MSG_NOSIGNAL);
}

// Setting up --------------------------------------------------------------------------------------

// Many processes need many descriptors. The job's own limit is not changed.
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void settle_process(void)
{
	prctl(PR_SET_NAME, "strain-record");
	mallopt(M_ARENA_MAX, 2);
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	mallopt(M_TRIM_THRESHOLD, 512 * 1024);
	raise_descriptor_limit();
}

// Reports the file, which the launcher may remove if the job does not run.
static void tell_file(void *context, struct beneath_file made)
{
	const struct recorder *r = context;
	const struct message message = {.kind = MESSAGE_CREATED,
		.device = (uint64_t)made.device,
		.inode = (uint64_t)made.inode};
	send(r->config->socket, &message, sizeof(message), MSG_NOSIGNAL);
}

static int open_file(struct recorder *r, struct error *e)
{
	const struct run_options *options = r->config->options;
	struct writer_options writer = {.replace = options->force,
		.max_bytes = options->max_bytes,
		.made = tell_file,
		.context = r};
	int rc = writer_create(r->config->path, &writer, &r->writer, e);
	return rc == -EEXIST && !options->force
	               ? error_set(e, EEXIST, "%s exists (--force overwrites it)", r->config->path)
	               : rc;
}

static void put_number(struct recorder *r, const char *key, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	writer_put_run(r->writer, key, text);
}

// Identifies the recorder, so that a reader can tell a live run from one that was cut off.
static void put_identity(struct recorder *r)
{
	char buffer[64];
	struct proc_stat stat;
	put_number(r, "recorder_pid", (uint64_t)getpid());
	if (proc_stat_read(r->root_fd, "proc/self/stat", &stat) == 0) {
		put_number(r, "recorder_start_ticks", stat.start_ticks);
	}
	// The pid is meaningless to a reader in another namespace: a container or its host.
	ssize_t length = readlink("/proc/self/ns/pid", buffer, sizeof(buffer) - 1);
	if (length > 0) {
		buffer[length] = '\0';
		writer_put_run(r->writer, "pid_namespace", buffer);
	}
	const struct job_cgroup *cgroup = r->config->cgroup;
	writer_put_run(r->writer, "cpu_time_source",
		cgroup && cgroup->cpu ? (cgroup->version == 2 ? "cgroup v2" : "cgroup v1")
				      : "processes");
}

// Registers every group of every source, and the recorder's own, in the table of metrics.
static int register_metrics(struct recorder *r)
{
	for (size_t i = 0; source_list[i]; i++) {
		for (size_t k = 0; k < source_list[i]->n_groups; k++) {
			if (registry_add(&r->registry, source_list[i]->name,
				    &source_list[i]->groups[k]) < 0) {
				return -ENOMEM;
			}
		}
	}
	if (own_cost_new(&r->registry, &r->self) < 0) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < r->registry.n_rows; i++) {
		const struct registry_row *row = &r->registry.rows[i];
		for (size_t k = 0; !row->again && k < row->group->n_metrics; k++) {
			writer_put_metric(r->writer, row->ids[k], &row->group->metrics[k],
				row->group->entity_kind, row->source);
		}
	}
	return 0;
}

static void announce_entities(struct recorder *r)
{
	uint64_t start_ns = r->config->start_ns;
	char name[256] = "host";
	gethostname(name, sizeof(name) - 1);
	struct machine machine;
	machine_read(r->root_fd, &machine);
	_cleanup_free_ char *attributes = machine_attributes(&machine);
	r->host = sink_entity(r->sink, &(struct sink_entity){.kind = ENTITY_HOST,
					       .key = name,
					       .name = name,
					       .first_ns = start_ns,
					       .attributes = attributes});
	r->job = sink_entity(r->sink, &(struct sink_entity){.kind = ENTITY_JOB,
					      .key = "job",
					      .name = "job",
					      .parent = r->host,
					      .first_ns = start_ns});
	r->recorder = own_cost_announce(r->self, r->sink, clock_monotonic_ns());
}

static uint64_t add_text(uint64_t hash, const char *text)
{
	return hash_add(hash, text, strlen(text) + 1);
}

// Recorders with the same metrics and the same program share.
static uint64_t readings_version(const struct registry *registry)
{
	uint64_t hash = HASH_START;
	for (size_t i = 0; i < registry->n_rows; i++) {
		const struct group *group = registry->rows[i].group;
		for (size_t k = 0; k < group->n_metrics; k++) {
			char how[64];
			snprintf(how, sizeof(how), "%d %d %.17g", (int)group->metrics[k].kind,
				(int)group->sharing, group->metrics[k].scale);
			hash = add_text(add_text(hash, group->metrics[k].name), how);
		}
		hash = add_text(hash, registry->rows[i].source);
	}
	return add_text(hash, STRAIN_VERSION);
}

// Several ranks of one job on this machine: one recorder reads it for all. Without, each reads.
static void join_node(struct recorder *r)
{
	const struct run_options *options = r->config->options;
	const char *label = NULL, *file = strrchr(r->config->path, '/');
	_cleanup_free_ char *job = labels_job(options->labels, options->n_labels, &label);
	_cleanup_free_ size_t *columns = calloc(r->registry.n_rows + 1, sizeof(*columns));
	bool named = label && strcmp(label, "job") == 0;
	// PMIx has no variable for the number of ranks.
	bool several = labels_world(options->labels, options->n_labels) > 1 ||
	               labels_find(options->labels, options->n_labels, "PMIX_RANK");
	if (!job || !columns || !(named || several)) {
		return;
	}
	for (size_t i = 0; i < r->registry.n_rows; i++) {
		columns[i] = r->registry.rows[i].group->n_metrics;
	}
	struct error e = {0};
	const struct node_config config = {
		.folder = "/dev/shm",
		.job = job,
		.run = file ? file + 1 : r->config->path,
		.columns = columns,
		.n_groups = r->registry.n_rows,
		.version = readings_version(&r->registry),
	};
	uint64_t now_ns = clock_monotonic_ns();
	if (node_join(&config, &r->node, &e) < 0) {
		sink_event(r->sink, now_ns, "machine_reader", r->recorder,
			"each rank reads the machine: %s", e.text);
	}
}

static int start_sampler(struct recorder *r, struct error *e)
{
	join_node(r);
	int result = tree_new(r->root_fd, false, &r->tree, e);
	if (result < 0) {
		return result;
	}
	pace_init(&r->pace, r->config->options->interval_ns, clock_monotonic_ns());
	uint64_t interval_ns = pace_update(&r->pace, clock_monotonic_ns(), 0, 0);
	const struct source_context context = {
		.root_fd = r->root_fd,
		.tree = r->tree,
		.cgroup = r->config->cgroup,
		.host = r->host,
		.job = r->job,
		.recorder = r->recorder,
		.reaper = r->config->options->pid ? 0 : r->config->launcher,
		.start_ns = r->config->start_ns,
		.interval_ns = interval_ns,
		.epochs = &r->epochs,
		.no_profile = r->config->options->no_profile,
		.phases = r->config->markers ? r->phases : NULL,
		.node = r->node,
	};
	r->interval_ns = interval_ns;
	result = sampler_new(&context, &r->registry, r->feed, interval_ns,
		r->config->options->overhead, &r->sampler, e);
	return result < 0 ? result : sampler_start(r->sampler, e);
}

static void start_listener(struct recorder *r)
{
	const struct run_options *options = r->config->options;
	struct error e = {0};
	bool any = r->config->output[0] >= 0 || r->config->output[1] >= 0;
	for (size_t i = 0; i < ARRAY_LENGTH(r->tails); i++) {
		tail_open(&r->tails[i], r->config->output[i]);
	}
	if (options->epoch_pattern && any &&
		listener_start(options->epoch_pattern, r->config->output, r->feed,
			r->config->start_ns, &r->epochs, r->tails, &r->listener, &e) < 0) {
		sink_event(r->sink, clock_monotonic_ns(), "source_dropped", 0,
			"the job's output is not searched for epochs: %s", e.text);
	}
}

static void start_marks(struct recorder *r)
{
	const struct recorder_config *config = r->config;
	struct error e = {0};
	if (config->markers &&
		marks_start(&(struct marks_config){config->markers, r->root_fd, r->tree, r->feed,
				    config->start_ns, config->options->max_bytes, &r->epochs,
				    r->phases},
			&r->marks, &e) < 0) {
		sink_event(r->sink, clock_monotonic_ns(), "source_dropped", 0,
			"the job's marks are not read: %s", e.text);
	}
}

// The last thread to start, because no other thread can start while a driver's library is loading.
static void start_devices(struct recorder *r)
{
	struct error e = {0};
	if (sampler_start_devices(r->sampler, &e) < 0) {
		sink_event(r->sink, clock_monotonic_ns(), "source_dropped", 0,
			"devices are not read: %s", e.text);
	}
}

// In a PID namespace without a /proc of its own, the job's numbers are those of other processes
// there.
static int check_proc(struct error *e)
{
	return procfs_is_own()
	               ? 0
	               : error_set(e, ENOTSUP,
				 "/proc shows another PID namespace; mount its own (unshare "
				 "--mount-proc)");
}

// Creates the run file with what is known already.
static int begin_file(struct recorder *r, struct error *e)
{
	int result = open_file(r, e);
	if (result < 0) {
		return result;
	}
	put_identity(r);
	if (describe_run(r->writer, r->config) < 0 || register_metrics(r) < 0 ||
		feed_new(QUEUE_MAX_BYTES, &r->feed) < 0 || phase_log_new(&r->phases) < 0 ||
		sink_new(&r->registry, r->feed, r->config->start_ns, &r->sink) < 0) {
		return error_set(e, ENOMEM, "cannot create %s: out of memory or disk space",
			r->config->path);
	}
	announce_entities(r);
	return writer_commit(r->writer, e);
}

static int set_up(struct recorder *r, struct error *e)
{
	r->root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->root_fd < 0) {
		return error_errno(e, errno, "/");
	}
	int result = check_proc(e);
	if (result == 0) {
		result = begin_file(r, e);
		r->file_failed = result < 0;
	}
	if (result == 0) {
		result = start_sampler(r, e);
	}
	if (result == 0) {
		start_listener(r);
		start_marks(r);
		result = scribe_start(
			r->writer, r->feed, r->config->start_ns, r->config->hooks, &r->scribe, e);
	}
	if (result == 0) {
		start_devices(r);
	}
	return result;
}

// While it runs -----------------------------------------------------------------------------------

static void job_started(struct recorder *r, pid_t pid)
{
	const struct job_cgroup *cgroup = r->config->cgroup;
	char procs[4200];
	bool listed = cgroup && cgroup->procs;
	if (listed) {
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", cgroup->procs);
	}
	r->first = pid;
	r->first_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	tree_start(r->tree, pid, r->config->options->pid ? 0 : r->config->launcher,
		listed ? procs : NULL);
}

static void job_exited(struct recorder *r, const struct message *message)
{
	r->status = message->status;
	sampler_read_now(r->sampler, LAST_READ_NS);
	tell(r, MESSAGE_LAST_READ, NULL);
}

// The text is kind, a tab, text.
static void launcher_event(struct recorder *r, const char *text)
{
	const char *tab = strchr(text, '\t');
	if (tab) {
		_cleanup_free_ char *kind = strndup(text, (size_t)(tab - text));
		sink_event(
			r->sink, clock_monotonic_ns(), kind ? kind : "launcher", 0, "%s", tab + 1);
	}
}

static void reaped(struct recorder *r, const struct message *message)
{
	struct usage usage;
	if (usage_take(message, &usage)) { // --pid: the launcher was not the one to reap it
		reaped_add(tree_reaped(r->tree), &usage, message->kind == MESSAGE_END);
	}
}

static void hear(struct recorder *r, const struct message *message)
{
	switch (message->kind) {
	case MESSAGE_STARTED:
		r->first_ns = message->at_ns;
		job_started(r, message->pid);
		break;
	case MESSAGE_ORPHAN:
		reaped(r, message);
		break;
	case MESSAGE_EXITED:
		job_exited(r, message);
		break;
	case MESSAGE_END:
		reaped(r, message);
		r->status = message->status;
		r->last_ns = message->at_ns;
		r->ended = true;
		break;
	case MESSAGE_EVENT:
		launcher_event(r, message->text);
		break;
	default:
		break; // from a newer launcher; not needed for recording
	}
}

// Returns false once the launcher is gone.
static bool hear_launcher(struct recorder *r)
{
	struct message message;
	ssize_t n;
	while ((n = recv(r->config->socket, &message, sizeof(message), MSG_DONTWAIT)) > 0) {
		message.text[sizeof(message.text) - 1] = '\0';
		if (n == sizeof(message)) {
			hear(r, &message);
		}
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

// The job's first process ended, and nobody reports it. Takes its last readings, then its status,
// which is available after its parent has reaped it.
static void first_ended(struct recorder *r)
{
	sampler_read_now(r->sampler, LAST_READ_NS);
	for (int i = 0; i < REAPED_TRIES && !exit_status_of(r->first_fd, &r->status); i++) {
		usleep(10000);
	}
	r->ended = true;
}

static void keep_budget(struct recorder *r, double wall_seconds, double cpu_seconds)
{
	bool tell_it = budget_update(&r->budget, wall_seconds, cpu_seconds);
	sampler_set_slow(r->sampler, r->budget.slow);
	if (!tell_it) {
		return;
	}
	char budget[32], interval[32];
	// In the user's precision: text_percent would turn 0.05 % into 0.1 %.
	snprintf(budget, sizeof(budget), "%.3g %%", r->budget.share * 100);
	text_seconds(interval, sizeof(interval), (double)r->interval_ns * r->budget.slow / 1e9);
	sink_event(r->sink, clock_monotonic_ns(), "interval", r->recorder,
		"the interval is now %s, to stay within %s of one CPU", interval, budget);
}

// Takes over if no recorder reads the machine, and reports who does when that changes.
static void watch_node(struct recorder *r, uint64_t now_ns)
{
	char run[sizeof(r->reader)] = "";
	(void)node_elect(r->node);
	node_reader(r->node, run, sizeof(run));
	bool reads = node_reads(r->node);
	bool alone = reads && *r->reader == '\0' && !node_has_others(r->node);
	bool told = strcmp(run, r->reader) == 0 && reads == r->reader_is_self;
	if (*run == '\0' || alone || told) {
		return;
	}
	snprintf(r->reader, sizeof(r->reader), "%s", run);
	r->reader_is_self = reads;
	if (reads) {
		sink_event(r->sink, now_ns, "machine_reader", r->recorder,
			"this recorder reads the machine for the job's other ranks here");
	} else {
		sink_event(r->sink, now_ns, "machine_reader", r->recorder,
			"the machine is read by the recorder of %s", run);
	}
}

// Runs once a second: the recorder's own row, its budget, the clocks.
static void beat(struct recorder *r)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t cpu_ns = own_cost_read(
		r->self, r->sampler, r->feed, r->budget.slow, r->interval_ns, now_ns);
	// The cost of starting and ending does not predict the cost of recording.
	int64_t lasting_ns = (int64_t)(cpu_ns - sampler_once_ns(r->sampler));
	if (r->beat_ns != 0 && !r->ended && lasting_ns > r->lasting_ns) {
		keep_budget(r, (double)(now_ns - r->beat_ns) / 1e9,
			(double)(lasting_ns - r->lasting_ns) / 1e9);
	}
	r->beat_ns = now_ns;
	r->lasting_ns = lasting_ns;
	r->interval_ns = pace_update(&r->pace, now_ns, atomic_load(&r->epochs), tree_seen(r->tree));
	sampler_set_interval(r->sampler, r->interval_ns);
	clock_watch_tell(&r->clocks, r->sink, now_ns);
	if (r->node && !r->ended) {
		watch_node(r, now_ns);
	}
	sink_flush(r->sink);
}

static void run(struct recorder *r)
{
	uint64_t next_ns = clock_monotonic_ns();
	while (!r->ended) {
		uint64_t now_ns = clock_monotonic_ns();
		if (now_ns >= next_ns) {
			beat(r);
			next_ns = now_ns + BEAT_MS * NS_PER_MS;
		}
		// The launcher reports the job's end. The recorder looks itself only if there is no
		// launcher.
		bool alone = !r->launcher || r->config->options->pid;
		struct pollfd polled[] = {
			{.fd = r->launcher ? r->config->socket : -1, .events = POLLIN},
			{.fd = alone ? r->first_fd : -1, .events = POLLIN},
		};
		if (!r->launcher && r->first_fd < 0) {
			return; // nothing will ever report the status
		}
		now_ns = clock_monotonic_ns();
		int wait_ms = next_ns > now_ns ? (int)((next_ns - now_ns) / NS_PER_MS) + 1 : 0;
		poll(polled, ARRAY_LENGTH(polled), wait_ms);
		if (polled[0].revents && !hear_launcher(r)) {
			r->launcher = false;
			sink_event(r->sink, clock_monotonic_ns(), "launcher", 0,
				"the launcher is gone; recording continues");
		}
		if (polled[1].revents && !r->ended) {
			first_ended(r);
		}
	}
}

// The end -----------------------------------------------------------------------------------------

// Names the processes that the job leaves behind; they are not touched.
static void note_left_running(struct recorder *r)
{
	_cleanup_free_ struct tree_member *members = NULL;
	size_t n = 0, capacity = 0, left = 0;
	struct text names = {0};
	if (tree_snapshot(r->tree, &members, &n, &capacity) < 0) {
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (members[i].pid != r->first) {
			if (left++ < 8) {
				text_format(&names, "%s%s (%d)", left > 1 ? ", " : "",
					members[i].name, (int)members[i].pid);
			}
		}
	}
	if (left > 0 && names.data) {
		sink_event(r->sink, clock_monotonic_ns(), "left_running", r->job,
			"%zu of the job's processes were still running when it ended: %s%s", left,
			names.data, left > 8 ? ", ..." : "");
	}
	text_done(&names);
}

static void stop_listener(struct recorder *r)
{
	struct listener_losses losses = listener_stop(r->listener);
	if (losses.skipped_bytes > 0) {
		sink_event(r->sink, clock_monotonic_ns(), "lost", 0,
			"%llu bytes of output not searched for epochs",
			(unsigned long long)losses.skipped_bytes);
	}
	if (losses.limited_lines > 0) {
		sink_event(r->sink, clock_monotonic_ns(), "lost", 0,
			"%llu lines of output not searched for epochs: the pattern backtracks too "
			"much",
			(unsigned long long)losses.limited_lines);
	}
}

// The end of the output of a job that failed. A sweep takes it from its log.
static void put_output(struct recorder *r, int64_t end_ns)
{
	_cleanup_text_ struct text output = {0};
	bool failed = r->status != STATUS_UNKNOWN && r->status != 0;
	for (size_t i = 0; i < ARRAY_LENGTH(r->tails); i++) {
		if (failed && !r->config->options->supervised) {
			tail_append(&r->tails[i], &output);
		}
		tail_close(&r->tails[i]);
	}
	if (output.length > 0 && output.data) {
		writer_put_event(r->writer, end_ns, "output", 0, output.data);
	}
}

// For processes that the recorder knows.
static void put_lines(struct recorder *r, struct line_counts *lines)
{
	for (size_t i = 0; i < lines->n; i++) {
		struct identity who;
		if (tree_identify(r->tree, &lines->processes[i].who, &who) == 1) {
			line_counts_put(&lines->processes[i], who.entity, r->writer);
		}
	}
	line_counts_done(lines);
}

static void finish(struct recorder *r)
{
	int64_t end_ns = (int64_t)(clock_monotonic_ns() - r->config->start_ns);
	sampler_read_now(r->sampler, FINAL_READ_NS);
	stop_listener(r);
	struct hooks *hooks = hooks_read(r->config->hooks);
	struct line_counts lines;
	(void)line_counts_read(r->config->hooks, &lines); // out of memory: keep what was read
	marks_stop(r->marks);
	if (r->first > 0 && !r->config->options->pid) {
		note_left_running(r);
	}
	beat(r);
	const char *left = sampler_stop(r->sampler);
	if (sampler_crashed(r->sampler)) {
		signal(SIGALRM, SIG_DFL);
		alarm(CRASHED_END_S);
	}
	if (r->node) {
		node_stop_reading(r->node); // another one reads while this one writes
	}
	if (left) {
		sink_event(r->sink, sampler_hung_ns(r->sampler), "source_dropped", 0, "%s", left);
		sampler_say_hung(r->sampler, r->sink);
	}
	tell(r, MESSAGE_CLOSING, NULL);
	sink_flush(r->sink);
	scribe_stop(r->scribe, end_ns);
	r->scribe = NULL;
	hooks_put(hooks, r->writer);
	put_lines(r, &lines);
	put_output(r, end_ns);
	describe_job_times(r->writer, r->config->start_ns, r->first_ns, r->last_ns);
	writer_put_run(r->writer, "scheduling", sampler_scheduling(r->sampler));
	if (r->clocks.suspended_ns > 0) {
		put_number(r, "suspended_ns", r->clocks.suspended_ns);
	}
	writer_finish(r->writer, end_ns, r->status, NULL);
	tell(r, MESSAGE_DONE, NULL);
	if (!r->launcher && r->config->cgroup) {
		job_cgroup_remove(r->config->cgroup); // otherwise the launcher does
	}
	if (left) {
		_exit(0); // a thread may still use memory that would be freed
	}
}

// Lanes may still run; none of them uses the writer.
static void discard_file(struct recorder *r)
{
	if (r->writer) {
		writer_discard(take_pointer(r->writer));
	}
}

// The job never ran: discards the whole recording.
static void abandon(struct recorder *r)
{
	listener_stop(r->listener);
	marks_stop(r->marks);
	const char *left = sampler_stop(r->sampler);
	scribe_stop(r->scribe, 0);
	discard_file(r);
	if (left) {
		_exit(0);
	}
}

static void recorder_done(struct recorder *r)
{
	sampler_free(r->sampler);
	node_leave(r->node);
	phase_log_free(r->phases);
	tree_free(r->tree);
	own_cost_free(r->self);
	sink_free(r->sink);
	feed_free(r->feed);
	registry_done(&r->registry);
	writer_free(r->writer);
	if (r->first_fd >= 0) {
		close(r->first_fd);
	}
	if (r->root_fd >= 0) {
		close(r->root_fd);
	}
}

int recorder_run(const struct recorder_config *config)
{
	struct recorder r = {.config = config,
		.launcher = true,
		.status = STATUS_UNKNOWN,
		.first_fd = -1,
		.root_fd = -1};
	struct error e = {0};
	settle_process();
	budget_init(&r.budget, config->options->overhead);
	if (set_up(&r, &e) < 0) {
		discard_file(&r); // the scribe, which would own the writer, is started last
		r.status = r.file_failed;
		tell(&r, MESSAGE_FAILED, e.text);
		return 1; // threads may run already; the end of the process frees everything
	}
	tell(&r, MESSAGE_READY, NULL);
	if (config->options->pid) {
		job_started(&r, config->options->pid);
	}
	run(&r);
	if (r.first == 0) {
		abandon(&r);
	} else {
		finish(&r);
	}
	recorder_done(&r);
	return 0;
}

// Describe ----------------------------------------------------------------------------------------
//
// The description of a run: the keys of table `run` and the labels known before the job runs.

enum { ARG_BYTES = 128 * 1024 };

struct description {
	struct writer *writer;
	int root; // "/"
	int rc; // the first error
};

static void put(struct description *d, const char *key, const char *value)
{
	int rc = value ? writer_put_run(d->writer, key, value) : -ENOMEM;
	d->rc = d->rc < 0 ? d->rc : rc;
}

static void put_format(struct description *d, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void put_format(struct description *d, const char *key, const char *format, ...)
{
	_cleanup_free_ char *value = NULL;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&value, format, arguments);
	va_end(arguments);
	put(d, key, length < 0 ? NULL : value);
}

// ---- the command

static void put_name(struct description *d, char *const *command)
{
	char name[80];
	command_name(command, name, sizeof(name));
	put(d, "name", name);
}

// The command line of a process that we did not start, from /proc/PID/cmdline.
static void put_attached(struct description *d, pid_t pid)
{
	char path[64], *buffer = malloc(ARG_BYTES);
	struct cursor command;
	_cleanup_text_ struct text json = {0};
	snprintf(path, sizeof(path), "proc/%d/cmdline", (int)pid);
	if (buffer && file_read_once(d->root, path, buffer, ARG_BYTES, &command, NULL) == 0) {
		secret_append_command(&json, command.at, (size_t)(command.end - command.at));
	} else {
		text_append_string(&json, "[]");
	}
	free(buffer);
	put(d, "command", json.failed ? NULL : json.data);
	put_format(d, "attached_pid", "%d", (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
	char directory[PATH_MAX];
	ssize_t length = readlink(path, directory, sizeof(directory) - 1);
	if (length > 0) {
		directory[length] = '\0';
		put(d, "directory", directory);
	}
}

static void put_command(struct description *d, char *const *command)
{
	_cleanup_text_ struct text json = {0};
	char directory[PATH_MAX];
	secret_append_arguments(&json, command);
	put(d, "command", json.failed ? NULL : json.data);
	put_name(d, command);
	if (getcwd(directory, sizeof(directory))) {
		put(d, "directory", directory);
	}
}

// ---- the machine

// The number of PCI devices of NVIDIA: 0 tells that a machine without a driver has no GPU to lose.
static void put_pci_devices(struct description *d)
{
	int n = machine_pci_devices(d->root, "10de");
	if (n >= 0) {
		put_format(d, "nvidia_pci_devices", "%d", n);
	}
}

static void put_machine(struct description *d)
{
	char boot[64];
	struct utsname names;
	if (uname(&names) == 0) {
		put(d, "hostname", names.nodename);
		put_format(d, "kernel", "%s %s %s", names.sysname, names.release, names.machine);
	}
	if (file_read_line(d->root, "proc/sys/kernel/random/boot_id", boot, sizeof(boot))) {
		put(d, "boot_id", boot);
	}
	put_pci_devices(d);
}

// ---- limits

struct resource_name {
	int resource;
	const char *name;
};

static const struct resource_name resources[] = {
	{RLIMIT_AS, "address_space"},
	{RLIMIT_CORE, "core"},
	{RLIMIT_CPU, "cpu_seconds"},
	{RLIMIT_DATA, "data"},
	{RLIMIT_FSIZE, "file_size"},
	{RLIMIT_MEMLOCK, "locked_memory"},
	{RLIMIT_NOFILE, "open_files"},
	{RLIMIT_NPROC, "processes"},
	{RLIMIT_STACK, "stack"},
};

// "0-3,8": the CPUs that the job may use.
static void append_cpus(struct text *json, const struct cpus *cpus)
{
	text_append_string(json, "\"cpus\":\"");
	cpus_append(json, cpus);
	text_format(json, "\",\"cpu_count\":%u,", cpus_count(cpus));
}

// pid: "self" or digits. memory_bytes: that strain set; 0: none.
static void append_cgroup(struct text *json, int root, const char *pid, uint64_t memory_bytes)
{
	struct cgroup_places places = {0};
	uint64_t bytes;
	double cpus;
	(void)cgroup_places_find(root, pid, &places, NULL);
	if (memory_bytes > 0) {
		text_format(json, "\"cgroup_memory_bytes\":%" PRIu64 ",", memory_bytes);
	} else if (cgroupfs_memory_limit(root, &places, &bytes, NULL) == 0) {
		text_format(json, "\"cgroup_memory_bytes\":%" PRIu64 ",", bytes);
	}
	if (cgroupfs_cpu_quota(root, &places, &cpus, NULL) == 0) {
		text_format(json, "\"cgroup_cpus\":%g,", cpus);
	}
	cgroup_places_done(&places);
}

// Batches of PyTorch's loader workers pass through shared memory; a container has 64 MB.
static void append_shared_memory(struct text *json)
{
	struct statvfs status;
	if (statvfs("/dev/shm", &status) == 0 && status.f_blocks > 0) {
		text_format(json, "\"shared_memory_bytes\":%" PRIu64 ",",
			(uint64_t)status.f_blocks * status.f_frsize);
	}
}

// Contains only resources that are limited.
static void append_resources(struct text *json)
{
	const char *comma = "";
	text_append_string(json, "\"resources\":{");
	for (size_t i = 0; i < ARRAY_LENGTH(resources); i++) {
		struct rlimit limit;
		if (getrlimit(resources[i].resource, &limit) == 0 &&
			limit.rlim_cur != RLIM_INFINITY) {
			text_format(json, "%s\"%s\":%" PRIu64, comma, resources[i].name,
				(uint64_t)limit.rlim_cur);
			comma = ",";
		}
	}
	text_append_string(json, "}");
}

// Ranks that are bound have other CPUs than the process that started them; those that are not have
// its CPUs together. Nothing is said if that process cannot be read.
static void append_inherited(struct text *json, int root, pid_t launcher, const struct cpus *own)
{
	static const char devices[] = "CUDA_VISIBLE_DEVICES";
	enum { ENVIRONMENT_BYTES = 256 * 1024 };
	char path[64];
	struct proc_stat stat;
	struct cpus cpus;
	struct cursor text;
	snprintf(path, sizeof(path), "proc/%d/stat", (int)launcher);
	if (proc_stat_read(root, path, &stat) < 0 || stat.parent <= 0) {
		return;
	}
	if (own && cpus_of(stat.parent, &cpus) == 0 && cpus_first_outside(&cpus, own) < 0 &&
		cpus_first_outside(own, &cpus) < 0) {
		text_append_string(json, "\"cpus_inherited\":1,");
	}
	const char *visible = getenv(devices);
	_cleanup_free_ char *buffer = visible ? malloc(ENVIRONMENT_BYTES) : NULL;
	snprintf(path, sizeof(path), "proc/%d/environ", (int)stat.parent);
	if (buffer && file_read_once(root, path, buffer, ENVIRONMENT_BYTES, &text, NULL) == 0) {
		ptrdiff_t length = (ptrdiff_t)strlen(visible);
		while (text.at < text.end) {
			const char *end = memchr(text.at, '\0', (size_t)(text.end - text.at));
			struct cursor one = {text.at, end ? end : text.end};
			text.at = end ? end + 1 : text.end;
			if (cursor_literal(&one, devices) && cursor_literal(&one, "=") &&
				one.end - one.at == length &&
				memcmp(one.at, visible, (size_t)length) == 0) {
				text_append_string(json, "\"gpus_inherited\":1,");
				return;
			}
		}
	}
}

static void put_limits(struct description *d, const struct recorder_config *config)
{
	const struct limits *limits = config->limits;
	_cleanup_text_ struct text json = {0};
	text_append_string(&json, "{");
	struct cpus cpus = limits->cpus;
	bool known = limits->set[LIMIT_CPUS] || cpus_of_self(&cpus) == 0;
	if (known) {
		append_cpus(&json, &cpus);
	}
	append_inherited(
		&json, d->root, config->launcher, known && !limits->set[LIMIT_CPUS] ? &cpus : NULL);
	append_cgroup(&json, d->root, "self", limits->memory_bytes);
	append_shared_memory(&json);
	append_resources(&json);
	text_append_string(&json, "}");
	put(d, "limits", json.failed ? NULL : json.data);
	for (size_t i = 0; i < N_LIMITS; i++) {
		if (limits->set[i]) {
			put(d, limit_key((enum limit)i), limits->set[i]);
		}
	}
}

// Those of a process that we did not start, as they are now.
static void put_attached_limits(struct description *d, pid_t pid)
{
	_cleanup_text_ struct text json = {0};
	struct cpus cpus;
	char digits[16];
	snprintf(digits, sizeof(digits), "%d", (int)pid);
	text_append_string(&json, "{");
	if (cpus_of(pid, &cpus) == 0) {
		append_cpus(&json, &cpus);
	}
	append_cgroup(&json, d->root, digits, 0);
	text_append_string(&json, "\"attached\":true}");
	put(d, "limits", json.failed ? NULL : json.data);
}

// ---- what a batch system allocated

static const char *variable_of(const struct cursor *environment, const char *name)
{
	return environment ? procfs_environ_value(*environment, name) : getenv(name);
}

// Slurm's figures count only in a task that it started on this node: salloc sets some of them on
// the login node, too. Those of other launchers are set for ranks only.
// environment: of the process to which the recorder is attached; NULL: our own, which the job
// inherits.
static void put_allocation(struct description *d, const struct cursor *environment)
{
	static const struct {
		const char *variable;
		const char *key;
		bool slurm;
	} facts[] = {
		{"SLURM_CPUS_ON_NODE", "slurm_cpus_on_node", true},
		{"SLURM_CPUS_PER_TASK", "slurm_cpus_per_task", true},
		{"SLURM_MEM_PER_NODE", "slurm_mem_per_node", true},
		{"SLURM_MEM_PER_CPU", "slurm_mem_per_cpu", true},
		{"SLURM_GPUS_ON_NODE", "slurm_gpus_on_node", true},
		{"SLURM_JOB_GPUS", "slurm_job_gpus", true},
		{"SLURM_STEP_TASKS_PER_NODE", "slurm_step_tasks_per_node", true},
		{"SLURM_NODEID", "slurm_nodeid", true},
		{"LOCAL_WORLD_SIZE", "local_world_size", false},
		{"OMPI_COMM_WORLD_LOCAL_SIZE", "ompi_comm_world_local_size", false},
		{"MPI_LOCALNRANKS", "mpi_localnranks", false},
	};
	static const char numbers[] = "0123456789,()x-"; // also lists of them: "2(x3),1"
	bool on_node = variable_of(environment, "SLURMD_NODENAME") != NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(facts); i++) {
		const char *value = variable_of(environment, facts[i].variable);
		bool is = value && *value && strlen(value) < 1024 && !value[strspn(value, numbers)];
		if (is && (on_node || !facts[i].slurm)) {
			put(d, facts[i].key, value);
		}
	}
}

static void put_attached_allocation(struct description *d, pid_t pid)
{
	char path[48];
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor environment;
	snprintf(path, sizeof(path), "proc/%d/environ", (int)pid);
	if (host_file_open(&file, d->root, path, NULL) == 0 &&
		host_file_read(&file, &environment) == 0) {
		put_allocation(d, &environment);
	}
	host_file_close(&file);
}

// ---- settings that the job inherits

// Settings that determine how the job's threads wait for each other, and their number, and which
// blocks glibc returns to the kernel.
static void put_settings(struct description *d)
{
	static const struct {
		const char *variable;
		const char *key;
	} settings[] = {
		{"OMP_NUM_THREADS", "omp_num_threads"},
		{"OMP_WAIT_POLICY", "omp_wait_policy"},
		{"MALLOC_MMAP_THRESHOLD_", "malloc_mmap_threshold"},
		{"MALLOC_TRIM_THRESHOLD_", "malloc_trim_threshold"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(settings); i++) {
		const char *value = getenv(settings[i].variable);
		if (value && *value && strlen(value) < 64) {
			put(d, settings[i].key, value);
		}
	}
}

// ---- the run

static void put_start(struct description *d, const struct recorder_config *config)
{
	uint64_t since = clock_monotonic_ns() - config->start_ns;
	put_format(d, "start_monotonic_ns", "%" PRIu64, config->start_ns);
	put_format(d, "start_utc_ns", "%" PRIu64, clock_realtime_ns() - since);
}

// A label's name does not make its value secret, because it was chosen for tables; a token's prefix
// does.
static void put_label(struct description *d, const struct run_label *label)
{
	_cleanup_text_ struct text value = {0};
	secret_append_value(&value, label->value, strlen(label->value));
	int rc = value.failed ? -ENOMEM : writer_put_label(d->writer, label->name, value.data);
	d->rc = d->rc < 0 ? d->rc : rc;
}

static void put_options(struct description *d, const struct run_options *options)
{
	put(d, "version", STRAIN_VERSION);
	if (options->interval_ns) {
		put_format(d, "interval_ns", "%" PRIu64, options->interval_ns);
	} else {
		put_format(d, "interval_ns", "%" PRIu64, PACE_INTERVAL_NS);
		put_format(d, "interval_fast_ns", "%" PRIu64, PACE_FAST_INTERVAL_NS);
	}
	put_format(d, "overhead", "%g", options->overhead);
	if (options->epoch_pattern) {
		put(d, "epoch_pattern", options->epoch_pattern);
	}
	for (size_t i = 0; i < options->n_labels; i++) {
		put_label(d, &options->labels[i]);
	}
}

static void put_missing(struct description *d, const struct recorder_config *config)
{
	for (size_t i = 0; i < ARRAY_LENGTH(config->missing); i++) {
		const struct missing_part *part = &config->missing[i];
		if (part->key && part->reason) {
			put(d, part->key, part->reason);
		}
	}
}

// Writes command, directory, host, kernel, start, limits, options and labels. The recorder calls it
// after writer_create and before it changes its own scheduling, so that the limits are those that
// the job inherits. Returns 0 or -errno.
static int describe_run(struct writer *w, const struct recorder_config *config)
{
	_cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct description d = {.writer = w, .root = root};
	put_start(&d, config);
	put_options(&d, config->options);
	put_machine(&d);
	put_missing(&d, config);
	if (config->options->pid > 0) {
		put_attached(&d, config->options->pid);
		put_attached_limits(&d, config->options->pid);
		put_attached_allocation(&d, config->options->pid);
	} else {
		put_command(&d, config->options->command);
		put_limits(&d, config);
		put_allocation(&d, NULL);
		put_settings(&d);
	}
	return d.rc;
}

// Writes the start and end of the job, which are within those of the run: the recorder is ready
// before the job starts and reads once more after it ends. All times are CLOCK_MONOTONIC; the first
// is the run's start. Writes nothing if the job's times are unknown (0).
static void describe_job_times(
	struct writer *w, uint64_t run_ns, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns >= run_ns && end_ns >= start_ns) {
		struct description d = {.writer = w};
		put_format(&d, "job_start_ns", "%" PRIu64, start_ns - run_ns);
		put_format(&d, "job_end_ns", "%" PRIu64, end_ns - run_ns);
	}
}
