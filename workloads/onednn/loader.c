// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Worker w prepares the batches w, w + workers, w + 2 workers, ... in a ring of slots shared with
// the trainer. A socket between the two transfers one byte per batch: from the worker when the
// batch is ready, back when its slot is free. The end of a process closes its socket, which the
// other side notices when it waits. The shared memory is anonymous, so nothing can be left behind.

#include "loader.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "byte.h"
#include "strain/marker.h"

enum { SLOTS = 2 }; // batches in advance per worker

struct worker {
	pid_t pid; // 0: not started
	int socket;
};

struct loader {
	const struct dataset *dataset;
	uint32_t batch_size;
	uint32_t epoch_batches;
	uint64_t batches; // over all epochs
	uint64_t next;
	uint32_t worker_count;
	struct worker *workers;
	uint32_t slot_count;
	void *memory; // the images of all slots, then their classes
	size_t memory_bytes;
	uint32_t *order; // of samples in `order_epoch`
	uint32_t order_epoch; // counted from 1; 0: none yet
	struct burden_file *file; // of the preparing process; NULL: none
};

static struct batch slot(const struct loader *l, uint64_t number)
{
	size_t at = 0;
	if (l->worker_count > 0) {
		uint64_t worker = number % l->worker_count;
		at = (size_t)(worker * SLOTS + number / l->worker_count % SLOTS);
	}
	size_t images = (size_t)l->batch_size * IMAGE_FLOATS;
	uint8_t *classes = (uint8_t *)((float *)l->memory + l->slot_count * images);
	return (struct batch){
		.images = (float *)l->memory + at * images,
		.classes = classes + at * l->batch_size,
	};
}

static int prepare(struct loader *l, uint64_t number, int64_t worker, struct error *e)
{
	uint32_t epoch = (uint32_t)(number / l->epoch_batches) + 1;
	if (l->order_epoch != epoch) {
		dataset_shuffle(l->dataset, epoch, l->order);
		l->order_epoch = epoch;
	}
	struct batch batch = slot(l, number);
	uint64_t first = number % l->epoch_batches * l->dataset->shares + l->dataset->share;
	const uint32_t *indices = l->order + first * l->batch_size;
	int r = 0;
	for (uint32_t i = 0; i < l->batch_size && r == 0; i++) {
		dataset_prepare(l->dataset, epoch, indices[i],
			batch.images + (size_t)i * IMAGE_FLOATS, &batch.classes[i]);
		r = burden_bear(&l->dataset->burden, l->file, worker, indices[i], e);
	}
	return r;
}

static int work(struct loader *l, uint32_t worker, int socket, struct error *e)
{
	int r = burden_open(&l->dataset->burden, &l->file, e);
	if (r < 0) {
		return r;
	}
	for (uint64_t number = worker; number < l->batches; number += l->worker_count) {
		bool slot_taken = number / l->worker_count >= SLOTS;
		if (slot_taken && !byte_wait(socket)) {
			return 0;
		}
		strain_begin_samples("prepare", l->batch_size);
		r = prepare(l, number, worker, e);
		strain_end();
		if (r < 0 || !byte_send(socket)) {
			return r;
		}
	}
	// The trainer may not have used its last batches yet: wait until the trainer closes the
	// socket.
	while (byte_wait(socket)) {
	}
	return 0;
}

// After Ctrl-C, a worker continues until the trainer has finished its batch and closes the socket.
static _Noreturn void run_worker(struct loader *l, uint32_t worker, int socket)
{
	signal(SIGINT, SIG_IGN);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (uint32_t i = 0; i < l->worker_count; i++) {
		if (l->workers[i].socket >= 0) {
			close(l->workers[i].socket);
		}
	}
	struct error e = {0};
	if (work(l, worker, socket, &e) < 0) {
		fprintf(stderr, "onednn-train: loader worker %u: %s\n", worker, e.text);
		_exit(EXIT_FAILURE);
	}
	_exit(EXIT_SUCCESS);
}

static int start_worker(struct loader *l, uint32_t worker, struct error *e)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		return error_errno(e, errno, "cannot connect loader worker %u", worker);
	}
	_cleanup_close_ int theirs = pair[1];
	l->workers[worker].socket = pair[0];
	pid_t pid = fork();
	if (pid < 0) {
		return error_errno(e, errno, "cannot start loader worker %u", worker);
	}
	if (pid == 0) {
		run_worker(l, worker, theirs);
	}
	l->workers[worker].pid = pid;
	return 0;
}

static int allocate(struct loader *l, struct error *e)
{
	l->slot_count = l->worker_count > 0 ? l->worker_count * SLOTS : 1;
	size_t slot_bytes = (size_t)l->batch_size * (IMAGE_FLOATS * sizeof(float) + 1);
	l->memory_bytes = l->slot_count * slot_bytes;
	l->memory = mmap(
		NULL, l->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->memory == MAP_FAILED) {
		l->memory = NULL;
		return error_errno(e, errno, "cannot share %zu bytes of batches", l->memory_bytes);
	}
	l->order = calloc(l->dataset->samples, sizeof(*l->order));
	l->workers = calloc(l->worker_count + 1, sizeof(*l->workers));
	if (!l->order || !l->workers) {
		return error_set(e, ENOMEM, "no memory for the loader");
	}
	for (uint32_t i = 0; i < l->worker_count; i++) {
		l->workers[i].socket = -1;
	}
	return 0;
}

int loader_open(const struct dataset *dataset, uint32_t batch_size, uint32_t epochs,
	uint32_t workers, struct loader **ret, struct error *e)
{
	uint32_t whole = batch_size * dataset->shares;
	if (dataset->samples < whole) {
		return error_set(
			e, EINVAL, "%u samples do not fill a batch of %u", dataset->samples, whole);
	}
	struct loader *l = calloc(1, sizeof(*l));
	if (!l) {
		return error_set(e, ENOMEM, "no memory for the loader");
	}
	l->dataset = dataset;
	l->batch_size = batch_size;
	l->epoch_batches = dataset->samples / whole;
	l->batches = (uint64_t)epochs * l->epoch_batches;
	l->worker_count = workers;
	int r = allocate(l, e);
	if (r == 0 && workers == 0) {
		r = burden_open(&dataset->burden, &l->file, e);
	}
	for (uint32_t i = 0; i < workers && r == 0; i++) {
		r = start_worker(l, i, e);
	}
	if (r < 0) {
		loader_close(l);
		return r;
	}
	*ret = l;
	return 0;
}

uint32_t loader_epoch_batches(const struct loader *l)
{
	return l->epoch_batches;
}

// Reports how a worker that closed its socket ended.
static int worker_ended(struct loader *l, uint32_t number, struct error *e)
{
	struct worker *worker = &l->workers[number];
	int status = 0;
	pid_t pid = worker->pid;
	if (waitpid(pid, &status, 0) < 0) {
		return error_errno(
			e, ECHILD, "loader worker %u (pid %d) is lost", number, (int)pid);
	}
	worker->pid = 0;
	if (WIFSIGNALED(status)) {
		return error_set(e, ECHILD,
			"loader worker %u (pid %d) was killed by signal %d (%s)", number, (int)pid,
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	}
	return error_set(e, ECHILD, "loader worker %u (pid %d) ended with status %d", number,
		(int)pid, WEXITSTATUS(status));
}

int loader_next(struct loader *l, struct batch *ret, struct error *e)
{
	uint64_t number = l->next;
	if (l->worker_count == 0) {
		int r = prepare(l, number, -1, e);
		if (r < 0) {
			return r;
		}
	} else {
		if (number > 0) {
			// The end of a worker is noticed when one of its batches is missing.
			(void)byte_send(l->workers[(number - 1) % l->worker_count].socket);
		}
		uint32_t worker = (uint32_t)(number % l->worker_count);
		if (!byte_wait(l->workers[worker].socket)) {
			return worker_ended(l, worker, e);
		}
	}
	l->next++;
	*ret = slot(l, number);
	return 0;
}

void loader_close(struct loader *l)
{
	if (!l) {
		return;
	}
	for (uint32_t i = 0; l->workers && i < l->worker_count; i++) {
		if (l->workers[i].socket >= 0) {
			close(l->workers[i].socket);
		}
	}
	for (uint32_t i = 0; l->workers && i < l->worker_count; i++) {
		if (l->workers[i].pid > 0) {
			waitpid(l->workers[i].pid, NULL, 0);
		}
	}
	if (l->memory) {
		munmap(l->memory, l->memory_bytes);
	}
	burden_close(l->file);
	free(l->workers);
	free(l->order);
	free(l);
}
