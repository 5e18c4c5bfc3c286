// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a run is.

#include "record/describe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/command_name.h"
#include "base/clock.h"
#include "base/text.h"
#include "record/host/file.h"
#include "record/host/cgroupfs.h"
#include "record/job/limits.h"
#include "base/secret.h"
#include "record/name.h"
#include "trace/writer.h"

enum { ARG_BYTES = 128 * 1024 };

struct description {
	struct writer *writer;
	int root; // "/"
	int rc; // the first failure
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

// /proc/PID/cmdline of a process that was not started by us.
static void put_attached(struct description *d, pid_t pid)
{
	char path[64], *buffer = malloc(ARG_BYTES);
	struct cursor command;
	_cleanup_text_ struct text json = {0};
	snprintf(path, sizeof(path), "proc/%d/cmdline", (int)pid);
	if (buffer && host_read_once(d->root, path, buffer, ARG_BYTES, &command, NULL) == 0) {
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

static void put_machine(struct description *d)
{
	char boot[64];
	struct cursor id, line;
	struct utsname names;
	if (uname(&names) == 0) {
		put(d, "hostname", names.nodename);
		put_format(d, "kernel", "%s %s %s", names.sysname, names.release, names.machine);
	}
	if (host_read_once(d->root, "proc/sys/kernel/random/boot_id", boot, sizeof(boot), &id,
		    NULL) == 0 &&
		cursor_line(&id, &line)) {
		put_format(d, "boot_id", "%.*s", (int)(line.end - line.at), line.at);
	}
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
static void append_cpus(struct text *json, const struct limits *limits)
{
	struct cpus cpus = limits->cpus;
	if (!limits->set[LIMIT_CPUS] && cpus_of_self(&cpus) < 0) {
		return;
	}
	text_append_string(json, "\"cpus\":\"");
	cpus_append(json, &cpus);
	text_format(json, "\",\"cpu_count\":%u,", cpus_count(&cpus));
}

static void append_cgroup(struct text *json, int root, const struct limits *limits)
{
	struct cgroup_places places = {0};
	uint64_t bytes;
	double cpus;
	(void)cgroup_places_find(root, "self", &places, NULL);
	if (limits->memory_bytes > 0) {
		text_format(json, "\"cgroup_memory_bytes\":%" PRIu64 ",", limits->memory_bytes);
	} else if (cgroup_memory_limit(root, &places, &bytes, NULL) == 0) {
		text_format(json, "\"cgroup_memory_bytes\":%" PRIu64 ",", bytes);
	}
	if (cgroup_cpu_quota(root, &places, &cpus, NULL) == 0) {
		text_format(json, "\"cgroup_cpus\":%g,", cpus);
	}
	cgroup_places_done(&places);
}

// Batches of PyTorch's loader workers travel through it; a container has 64 MB.
static void append_shared_memory(struct text *json)
{
	struct statvfs status;
	if (statvfs("/dev/shm", &status) == 0 && status.f_blocks > 0) {
		text_format(json, "\"shared_memory_bytes\":%" PRIu64 ",",
			(uint64_t)status.f_blocks * status.f_frsize);
	}
}

// Only what is limited stands there.
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

static void put_limits(struct description *d, const struct limits *limits)
{
	_cleanup_text_ struct text json = {0};
	text_append_string(&json, "{");
	append_cpus(&json, limits);
	append_cgroup(&json, d->root, limits);
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

// ---- settings that the job starts with

// Those that decide how its threads wait for each other and how many there are.
static void put_thread_settings(struct description *d)
{
	static const struct {
		const char *variable;
		const char *key;
	} settings[] = {
		{"OMP_NUM_THREADS", "omp_num_threads"},
		{"OMP_WAIT_POLICY", "omp_wait_policy"},
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

// A label's name was chosen for tables: it makes no value secret, a token's prefix does.
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
	put_format(d, "interval_ns", "%" PRIu64, options->interval_ns);
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

int describe_run(struct writer *w, const struct recorder_config *config)
{
	_cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct description d = {.writer = w, .root = root};
	put_start(&d, config);
	put_options(&d, config->options);
	put_machine(&d);
	put_missing(&d, config);
	if (config->options->pid > 0) {
		put_attached(&d, config->options->pid);
	} else {
		put_command(&d, config->options->command);
		put_limits(&d, config->limits);
		put_thread_settings(&d);
	}
	return d.rc;
}

void describe_job_times(struct writer *w, uint64_t run_ns, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns >= run_ns && end_ns >= start_ns) {
		struct description d = {.writer = w};
		put_format(&d, "job_start_ns", "%" PRIu64, start_ns - run_ns);
		put_format(&d, "job_end_ns", "%" PRIu64, end_ns - run_ns);
	}
}
