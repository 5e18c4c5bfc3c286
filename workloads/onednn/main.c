// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// onednn-train: trains a small convolutional network on synthetic images, on the CPU. An ordinary
// training job to measure. It says where its epochs, iterations and phases are (strain/marker.h),
// which costs nothing where it is not recorded.
//
//   main.c       the loop over epochs
//   settings.c   options
//   network.c    layers, loss, Adam
//   operation.c  tensors, and what runs between them forward and backward
//   primitive.c  oneDNN, 2.x or 3.x
//   loader.c     worker processes that prepare batches ahead
//   dataset.c    the images
//   burden.c     what makes it slow, where that is wanted
//   ranks.c      several that train side by side
//   checkpoint.c saving

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "burden.h"
#include "checkpoint.h"
#include "dataset.h"
#include "loader.h"
#include "network.h"
#include "ranks.h"
#include "settings.h"
#include "strain/marker.h"

static const float learning_rate = 1e-3f;

// OpenMP reads its settings when it is loaded, before main: where they are not as they should be,
// set them and start again. Without passive waiting its threads spin beside the loader's workers:
// two of them on two busy CPUs were seen to make a step 16 times slower.
static void prepare_threads(const struct settings *settings, char **argv)
{
	char threads[24];
	snprintf(threads, sizeof(threads), "%lld", (long long)settings->threads);
	const char *present = getenv("OMP_NUM_THREADS");
	bool threads_right = settings->threads == 0 || (present && strcmp(present, threads) == 0);
	if (threads_right && getenv("OMP_WAIT_POLICY")) {
		return;
	}
	char program[4096]; // its own name, not /proc/self/exe, which would make it "exe" in ps
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	bool set = setenv("OMP_WAIT_POLICY", "passive", 0) == 0 &&
	           (threads_right || setenv("OMP_NUM_THREADS", threads, 1) == 0);
	if (length > 0 && set) {
		program[length] = '\0';
		execv(program, argv);
	}
	fprintf(stderr, "onednn-train: cannot set threads: %s; going on as it is\n",
		strerror(errno));
}

// Ctrl-C and the like wait until a batch is done; then everything is put away and the signal taken.
// One that is ignored (nohup, a shell's background) stays so.
static void hold_signals(sigset_t *ret)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
	sigemptyset(ret);
	for (size_t i = 0; i < ARRAY_LENGTH(ending); i++) {
		struct sigaction present;
		if (sigaction(ending[i], NULL, &present) == 0 && present.sa_handler != SIG_IGN) {
			sigaddset(ret, ending[i]);
		}
	}
	sigprocmask(SIG_BLOCK, ret, NULL);
}

static int pending_signal(const sigset_t *held)
{
	const struct timespec now = {0};
	int signal = sigtimedwait(held, NULL, &now);
	return signal > 0 ? signal : 0;
}

struct training {
	const struct settings *settings;
	struct dataset dataset;
	struct dataset unseen; // for validation
	struct loader *loader;
	struct loader *validation; // NULL: none
	struct network *network;
	struct ranks *ranks; // NULL: this is the only one
	sigset_t held;
	int signal; // that ended it; 0: none
};

static uint32_t rank_number(const struct training *t)
{
	return t->ranks ? ranks_number(t->ranks) : 0;
}

static int next_batch(struct loader *loader, struct batch *ret, struct error *e)
{
	strain_begin("data");
	int r = loader_next(loader, ret, e);
	strain_end();
	return r;
}

static int forward(
	struct training *t, const struct batch *batch, struct score *ret, struct error *e)
{
	strain_begin("forward");
	int r = network_score(t->network, batch->images, batch->classes, ret, e);
	if (t->settings->slow_rank == (int64_t)rank_number(t)) {
		burden_spin((uint64_t)t->settings->slow_rank_us * 1000);
	}
	strain_end();
	return r;
}

static int meet(struct training *t, struct error *e)
{
	if (!t->ranks) {
		return 0;
	}
	strain_begin("communication");
	int r = ranks_meet(t->ranks, e);
	strain_end();
	return r;
}

static int train_batch(struct training *t, struct score *ret, struct error *e)
{
	struct batch batch;
	int r = next_batch(t->loader, &batch, e);
	burden_spin((uint64_t)t->settings->step_us * 1000);
	if (r == 0) {
		r = forward(t, &batch, ret, e);
	}
	if (r == 0) {
		strain_begin("backward");
		r = network_backward(t->network, e);
		strain_end();
	}
	if (r == 0) {
		r = meet(t, e);
	}
	if (r == 0) {
		strain_begin("optimizer");
		network_update(t->network, learning_rate);
		strain_end();
	}
	return r;
}

// What the network makes of images that it is not trained on.
static int validate(struct training *t, struct error *e)
{
	uint64_t correct = 0;
	int r = 0;
	if (!t->validation) {
		return 0;
	}
	strain_begin("validation");
	for (int64_t i = 0; i < t->settings->validate && r == 0; i++) {
		struct batch batch;
		struct score score;
		r = next_batch(t->validation, &batch, e);
		if (r == 0) {
			r = forward(t, &batch, &score, e);
		}
		correct += r == 0 ? score.correct : 0;
	}
	strain_end();
	strain_point("validation accuracy",
		(double)correct / (double)(t->settings->validate * t->settings->batch_size));
	return r;
}

static int save(struct training *t, struct error *e)
{
	const struct settings *settings = t->settings;
	if (!settings->checkpoint || rank_number(t) > 0) {
		return 0;
	}
	strain_begin("checkpoint");
	int r = checkpoint_write(
		settings->checkpoint, t->network, (uint64_t)settings->checkpoint_bytes, e);
	strain_end();
	return r;
}

struct progress {
	double loss;
	uint64_t correct;
};

static int train_batches(
	struct training *t, uint32_t batches, struct progress *ret, struct error *e)
{
	for (uint32_t i = 0; i < batches; i++) {
		struct score score;
		strain_iteration(i, t->settings->batch_size);
		int r = train_batch(t, &score, e);
		if (r < 0) {
			return r;
		}
		ret->loss += score.loss;
		ret->correct += score.correct;
		t->signal = pending_signal(&t->held);
		if (t->signal) {
			return 0;
		}
	}
	return 0;
}

static int train_epoch(struct training *t, int64_t epoch, struct error *e)
{
	uint32_t batches = loader_epoch_batches(t->loader);
	uint64_t start_ns = clock_monotonic_ns();
	struct progress done = {0};
	strain_epoch(epoch);
	int r = train_batches(t, batches, &done, e);
	if (r < 0 || t->signal) {
		return r;
	}
	double images = (double)batches * (double)t->settings->batch_size;
	strain_point("loss", done.loss / batches);
	strain_point("accuracy", (double)done.correct / images);
	strain_epoch_end();
	double seconds = (double)(clock_monotonic_ns() - start_ns) / (double)NS_PER_S;
	if (rank_number(t) == 0) {
		printf("epoch %lld/%lld  loss %.4f  accuracy %.3f  %.1f s  %.0f images/s\n",
			(long long)epoch, (long long)t->settings->epochs, done.loss / batches,
			(double)done.correct / images, seconds, images / seconds);
	}
	if (fflush(stdout) != 0) {
		return error_errno(e, errno, "cannot write");
	}
	r = validate(t, e);
	return r < 0 ? r : save(t, e);
}

static int open_loaders(struct training *t, struct error *e)
{
	const struct settings *settings = t->settings;
	uint64_t seed = (uint64_t)settings->seed + rank_number(t);
	uint32_t batch_size = (uint32_t)settings->batch_size, epochs = (uint32_t)settings->epochs;
	dataset_init(&t->dataset, (uint32_t)settings->samples, seed);
	t->dataset.burden = settings->burden;
	int r = loader_open(
		&t->dataset, batch_size, epochs, (uint32_t)settings->workers, &t->loader, e);
	if (r == 0 && settings->validate > 0) {
		dataset_init(&t->unseen, (uint32_t)settings->validate * batch_size, ~seed);
		r = loader_open(&t->unseen, batch_size, epochs, 0, &t->validation, e);
	}
	return r;
}

static int open_training(struct training *t, struct error *e)
{
	const struct settings *settings = t->settings;
	hold_signals(&t->held);
	// Processes first: oneDNN starts threads, and a fork would lose them.
	int r = settings->ranks > 1 ? ranks_start((uint32_t)settings->ranks, &t->ranks, e) : 0;
	if (r == 0) {
		r = open_loaders(t, e);
	}
	if (r == 0) {
		r = network_new(settings->model, (int)settings->batch_size, IMAGE_EDGE,
			IMAGE_COLOURS, (uint64_t)settings->seed, &t->network, e);
	}
	return r;
}

static int train(const struct settings *settings, int *ret_signal, struct error *e)
{
	struct training t = {.settings = settings};
	int r = open_training(&t, e);
	if (r == 0 && rank_number(&t) == 0) {
		printf("%s: %zu parameters, %lld images, batch size %lld, %lld workers\n",
			settings->model->name, network_parameter_count(t.network),
			(long long)settings->samples, (long long)settings->batch_size,
			(long long)settings->workers);
		fflush(stdout);
	}
	for (int64_t epoch = 1; epoch <= settings->epochs && r == 0 && !t.signal; epoch++) {
		r = train_epoch(&t, epoch, e);
	}
	network_free(t.network);
	loader_close(t.validation);
	loader_close(t.loader);
	int ended = ranks_end(t.ranks, r == 0 ? e : NULL);
	*ret_signal = t.signal;
	return r < 0 || t.signal ? r : ended;
}

int main(int argc, char **argv)
{
	struct settings settings;
	settings_parse(argc, argv, &settings);
	prepare_threads(&settings, argv);
	struct error e = {0};
	int ended_by = 0;
	if (train(&settings, &ended_by, &e) < 0) {
		fprintf(stderr, "onednn-train: %s\n", e.text);
		return EXIT_FAILURE;
	}
	if (ended_by) {
		fprintf(stderr, "onednn-train: stopped by signal %d (%s)\n", ended_by,
			strsignal(ended_by));
		sigset_t none;
		sigemptyset(&none);
		signal(ended_by, SIG_DFL);
		raise(ended_by);
		sigprocmask(SIG_SETMASK, &none, NULL);
	}
	return EXIT_SUCCESS;
}
