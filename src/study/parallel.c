// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Threads take one item after the other. The caller's thread reports progress.

#include "study/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"

#define THREADS_MOST 16
#define THREADS_PER_CPU 4 // those that wait for a disk leave their CPU to the others
#define WAKE_NS (NS_PER_S / 10)

struct reading {
	const struct parallel *p;
	pthread_mutex_t mutex; // guards the fields below
	pthread_cond_t all_read;
	size_t taken;
	size_t n_done;
};

static bool take_one(struct reading *reading, size_t *ret)
{
	pthread_mutex_lock(&reading->mutex);
	bool any = reading->taken < reading->p->n;
	*ret = any ? reading->taken++ : 0;
	pthread_mutex_unlock(&reading->mutex);
	return any;
}

static void read_one(struct reading *reading, size_t at)
{
	reading->p->one(reading->p->context, at);
	pthread_mutex_lock(&reading->mutex);
	if (++reading->n_done == reading->p->n) {
		pthread_cond_signal(&reading->all_read);
	}
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

static size_t threads_wanted(size_t items)
{
	cpu_set_t cpus;
	size_t n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (size_t)CPU_COUNT(&cpus) : 1;
	n = n < THREADS_MOST / THREADS_PER_CPU ? n * THREADS_PER_CPU : THREADS_MOST;
	return n < items ? n : items;
}

// Starts threads that block all signals. Returns their number.
static size_t start_threads(struct reading *reading, pthread_t threads[static THREADS_MOST])
{
	sigset_t all, before;
	size_t wanted = threads_wanted(reading->p->n), n = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	while (wanted > 1 && n < wanted && pthread_create(&threads[n], NULL, work, reading) == 0) {
		n++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return n;
}

// Waits until all are done, or for a moment. Returns how many are done.
static size_t wait_a_moment(struct reading *reading)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)WAKE_NS;
	until.tv_sec += until.tv_nsec / (long)NS_PER_S;
	until.tv_nsec %= (long)NS_PER_S;
	pthread_mutex_lock(&reading->mutex);
	if (reading->n_done < reading->p->n) {
		pthread_cond_timedwait(&reading->all_read, &reading->mutex, &until);
	}
	size_t now = reading->n_done;
	pthread_mutex_unlock(&reading->mutex);
	return now;
}

// Follows the threads; reads by itself where there are none.
static void follow(struct reading *reading, size_t threads)
{
	for (size_t done = 0; done < reading->p->n;) {
		size_t at;
		if (threads > 0) {
			done = wait_a_moment(reading);
		} else if (take_one(reading, &at)) {
			read_one(reading, at);
			done = at + 1;
		}
		if (reading->p->progressed) {
			reading->p->progressed(reading->p->progress_context, done, reading->p->n);
		}
	}
}

void parallel_run(const struct parallel *p)
{
	struct reading reading = {.p = p};
	pthread_t threads[THREADS_MOST];
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&reading.mutex, NULL);
	pthread_cond_init(&reading.all_read, &clock);
	pthread_condattr_destroy(&clock);
	size_t n = start_threads(&reading, threads);
	follow(&reading, n);
	for (size_t i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
	}
	pthread_cond_destroy(&reading.all_read);
	pthread_mutex_destroy(&reading.mutex);
}
