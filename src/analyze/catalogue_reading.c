// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Threads take one file after the other. Only the caller's own thread touches the index and says
// how far it is.

#include "analyze/catalogue_reading.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/catalogue_index.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define THREADS_MAX_READING 16
#define WAKE_NS (NS_PER_S / 10)

struct reading {
	struct catalogue_file **files; // [n] to be read
	size_t n;
	bool job_only;
	pthread_mutex_t mutex; // for all below
	pthread_cond_t read_one;
	size_t taken;
	size_t *done; // [n_done] indexes, in the order in which they were read
	size_t n_done;
};

void catalogue_file_done(struct catalogue_file *file)
{
	free(file->path);
	free(file->sweep);
	free(file->entry.data);
	free(file->error);
}

static bool take_one(struct reading *reading, size_t *ret)
{
	pthread_mutex_lock(&reading->mutex);
	bool any = reading->taken < reading->n;
	*ret = any ? reading->taken++ : 0;
	pthread_mutex_unlock(&reading->mutex);
	return any;
}

static void read_one(struct reading *reading, size_t at)
{
	struct catalogue_file *file = reading->files[at];
	struct error e = {0};
	if (catalogue_entry_read(file->path, reading->job_only, &file->entry, &e) < 0) {
		file->error = strdup(e.text);
		file->out_of_memory = e.code == ENOMEM || !file->error;
	}
	pthread_mutex_lock(&reading->mutex);
	reading->done[reading->n_done++] = at;
	pthread_cond_signal(&reading->read_one);
	pthread_mutex_unlock(&reading->mutex);
}

static void *work(void *context)
{
	struct reading *reading = context;
	for (size_t at; take_one(reading, &at);) {
		read_one(reading, at);
	}
	return NULL;
}

static size_t threads_wanted(size_t files)
{
	cpu_set_t cpus;
	size_t n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (size_t)CPU_COUNT(&cpus) : 1;
	n = n < THREADS_MAX_READING ? n : THREADS_MAX_READING;
	return n < files ? n : files;
}

// Signals are the main thread's. Returns how many there are.
static size_t start_threads(struct reading *reading, pthread_t threads[static THREADS_MAX_READING])
{
	sigset_t all, before;
	size_t wanted = threads_wanted(reading->n), n = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	while (wanted > 1 && n < wanted && pthread_create(&threads[n], NULL, work, reading) == 0) {
		n++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return n;
}

// Waits until more than `seen` are done, or for a moment.
static size_t wait_for_more(struct reading *reading, size_t seen)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)WAKE_NS;
	until.tv_sec += until.tv_nsec / (long)NS_PER_S;
	until.tv_nsec %= (long)NS_PER_S;
	pthread_mutex_lock(&reading->mutex);
	if (reading->n_done == seen) {
		pthread_cond_timedwait(&reading->read_one, &reading->mutex, &until);
	}
	size_t now = reading->n_done;
	pthread_mutex_unlock(&reading->mutex);
	return now;
}

// Follows the threads, or reads by itself where there are none.
static void follow(struct reading *reading, size_t threads, const struct catalogue_options *options,
	struct catalogue_index *index)
{
	for (size_t seen = 0; seen < reading->n;) {
		size_t at;
		if (threads == 0 && take_one(reading, &at)) {
			read_one(reading, at);
		}
		size_t now = wait_for_more(reading, seen);
		for (; seen < now; seen++) {
			const struct catalogue_file *file = reading->files[reading->done[seen]];
			if (file->entry.data) {
				catalogue_index_put(index, &file->entry, reading->job_only);
			}
		}
		if (options->progressed) {
			options->progressed(options->context, seen, reading->n);
		}
	}
}

static void read_all(struct reading *reading, const struct catalogue_options *options,
	struct catalogue_index *index)
{
	pthread_t threads[THREADS_MAX_READING];
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&reading->mutex, NULL);
	pthread_cond_init(&reading->read_one, &clock);
	pthread_condattr_destroy(&clock);
	size_t n = start_threads(reading, threads);
	follow(reading, n, options, index);
	for (size_t i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
	}
	pthread_cond_destroy(&reading->read_one);
	pthread_mutex_destroy(&reading->mutex);
}

int catalogue_reading(struct catalogue_file *files, size_t n,
	const struct catalogue_options *options, struct catalogue_index *index, size_t *ret_read,
	struct error *e)
{
	_cleanup_free_ struct catalogue_file **wanted = calloc(n + 1, sizeof(void *));
	_cleanup_free_ size_t *done = calloc(n + 1, sizeof(*done));
	struct reading reading = {.files = wanted, .job_only = options->job_only, .done = done};
	if (!wanted || !done) {
		return error_errno(e, ENOMEM, "cannot read runs");
	}
	for (size_t i = 0; i < n; i++) {
		if (!files[i].is_double && !files[i].entry.data) {
			wanted[reading.n++] = &files[i];
		}
	}
	if (reading.n > 0) {
		read_all(&reading, options, index);
	}
	*ret_read = reading.n;
	for (size_t i = 0; i < reading.n; i++) {
		if (wanted[i]->out_of_memory) {
			return error_errno(e, ENOMEM, "%s", wanted[i]->path);
		}
	}
	return 0;
}
