// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// onednn-train: trains a small convolutional network on synthetic images, on the CPU. It is an
// ordinary training job for measurements. It marks its epochs, iterations and phases
// (strain/marker.h), which costs nothing if it is not recorded.
//
//   main.c       the loop over epochs
//   settings.c   options
//   network.c    layers, loss, Adam
//   operation.c  tensors, and operations between them, forward and backward
//   primitive.c  oneDNN, 2.x or 3.x
//   loader.c     worker processes that prepare batches in advance
//   dataset.c    the images
//   shared.c     the images common to all frameworks
//   burden.c     optional slow-downs
//   ranks.c      several processes that train together
//   checkpoint.c saving

#include <errno.h>
#include <math.h>
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

// OpenMP reads its settings when it is loaded, before main. If they are wrong, they are set and the
// program is executed again. Without passive waiting, its threads spin while the loader's workers
// need CPUs: with two threads on two busy CPUs, steps were up to 16 times slower.
static void prepare_threads(const struct settings *settings, char **argv)
{
	char threads[24];
	snprintf(threads, sizeof(threads), "%lld", (long long)settings->threads);
	const char *present = getenv("OMP_NUM_THREADS");
	bool threads_right = settings->threads == 0 || (present && strcmp(present, threads) == 0);
	if (threads_right && getenv("OMP_WAIT_POLICY")) {
		return;
	}
	char program[4096]; // the real path, since /proc/self/exe would show as "exe" in ps
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

// Blocks Ctrl-C and similar signals until a batch is done; then everything is cleaned up and the
// signal delivered. Ignored signals (nohup, a background job of a shell) stay ignored.
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
	struct shared_images shared;
	struct dataset dataset;
	struct dataset unseen; // for validation
	struct loader *loader;
	struct loader *validation; // NULL: none
	struct network *network;
	struct ranks *ranks; // NULL: a single process
	sigset_t held;
	int signal; // signal that ended it; 0: none
};

static uint32_t rank_number(const struct training *t)
{
	return t->ranks ? ranks_number(t->ranks) : 0;
}

// Images per batch in this process.
static int64_t share_of_batch(const struct settings *settings)
{
	return settings->batch_size / settings->processes;
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

// The gradients of a batch are the means of those of its shares.
static int average_gradients(struct training *t, struct error *e)
{
	struct piece pieces[PARAMETERS_MAX];
	size_t count = 0;
	struct tensor *tensor;
	while ((tensor = network_parameter(t->network, count)) != NULL) {
		pieces[count++] = (struct piece){tensor->gradient, tensor->count};
	}
	return ranks_average(t->ranks, pieces, count, e);
}

static int meet(struct training *t, struct error *e)
{
	if (!t->ranks) {
		return 0;
	}
	strain_begin("communication");
	int r = t->settings->processes > 1 ? average_gradients(t, e) : ranks_meet(t->ranks, e);
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
		network_update(t->network, t->settings->model->learning_rate);
		strain_end();
	}
	return r;
}

struct progress {
	double loss; // sum over batches
	uint64_t correct;
	uint64_t start_ns;
};

// Computes the means of a pass over this many batches, over all processes, and prints its line.
static int finish_pass(struct training *t, const char *what, int64_t epoch, uint32_t batches,
	struct progress *done, struct error *e)
{
	const struct settings *settings = t->settings;
	if (settings->processes > 1) {
		float sums[] = {(float)done->loss, (float)done->correct};
		struct piece piece = {sums, ARRAY_LENGTH(sums)};
		int r = ranks_average(t->ranks, &piece, 1, e);
		if (r < 0) {
			return r;
		}
		done->loss = (double)sums[0];
		done->correct = (uint64_t)llroundf(sums[1] * (float)settings->processes);
	}
	double images = (double)batches * (double)settings->batch_size;
	double seconds = (double)(clock_monotonic_ns() - done->start_ns) / (double)NS_PER_S;
	if (rank_number(t) == 0) {
		printf("%s %lld/%lld  loss %.4f  accuracy %.3f  %.1f s  %.0f images/s\n", what,
			(long long)epoch, (long long)settings->epochs, done->loss / batches,
			(double)done->correct / images, seconds, images / seconds);
	}
	return fflush(stdout) != 0 ? error_errno(e, errno, "cannot write") : 0;
}

// Evaluates the network on images that are not trained on.
static int validate(struct training *t, int64_t epoch, struct error *e)
{
	struct progress done = {.start_ns = clock_monotonic_ns()};
	int r = 0;
	if (!t->validation) {
		return 0;
	}
	uint32_t batches = loader_epoch_batches(t->validation);
	strain_begin("validation");
	for (uint32_t i = 0; i < batches && r == 0; i++) {
		struct batch batch;
		struct score score = {0};
		r = next_batch(t->validation, &batch, e);
		if (r == 0) {
			r = forward(t, &batch, &score, e);
		}
		done.loss += score.loss;
		done.correct += score.correct;
	}
	strain_end();
	strain_point("validation accuracy",
		(double)done.correct / ((double)batches * (double)share_of_batch(t->settings)));
	if (r == 0 && t->settings->validation_samples > 0) {
		r = finish_pass(t, "validation", epoch, batches, &done, e);
	}
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

static int train_batches(
	struct training *t, uint32_t batches, struct progress *ret, struct error *e)
{
	for (uint32_t i = 0; i < batches; i++) {
		struct score score;
		strain_iteration(i, share_of_batch(t->settings));
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
	struct progress done = {.start_ns = clock_monotonic_ns()};
	strain_epoch(epoch);
	int r = train_batches(t, batches, &done, e);
	if (r < 0 || t->signal) {
		return r;
	}
	double images = (double)batches * (double)share_of_batch(t->settings);
	strain_point("loss", done.loss / batches);
	strain_point("accuracy", (double)done.correct / images);
	strain_epoch_end();
	r = finish_pass(t, "epoch", epoch, batches, &done, e);
	if (r == 0) {
		r = validate(t, epoch, e);
	}
	return r < 0 ? r : save(t, e);
}

// Selects this program's own images, or those common to all frameworks.
static void choose_images(
	struct training *t, struct dataset *dataset, int64_t samples, uint64_t seed)
{
	dataset_init(dataset, (uint32_t)samples, seed);
	if (t->settings->shared) {
		shared_init(&t->shared, seed);
		dataset->shared = &t->shared;
	}
	if (t->settings->processes > 1) {
		dataset->share = rank_number(t);
		dataset->shares = (uint32_t)t->settings->processes;
	}
}

static int open_loaders(struct training *t, struct error *e)
{
	const struct settings *settings = t->settings;
	uint64_t seed = (uint64_t)settings->seed + (settings->ranks > 1 ? rank_number(t) : 0);
	uint32_t share = (uint32_t)share_of_batch(settings), epochs = (uint32_t)settings->epochs;
	choose_images(t, &t->dataset, settings->samples, seed);
	t->dataset.burden = settings->burden;
	int r = loader_open(&t->dataset, share, epochs, (uint32_t)settings->workers, &t->loader, e);
	if (r < 0) {
		return r;
	}
	if (settings->validation_samples > 0) {
		choose_images(t, &t->unseen, settings->validation_samples, seed);
		t->unseen.first = (uint64_t)settings->samples;
		r = loader_open(&t->unseen, share, epochs, 0, &t->validation, e);
	} else if (settings->validate > 0) {
		dataset_init(&t->unseen, (uint32_t)settings->validate * share, ~seed);
		r = loader_open(&t->unseen, share, epochs, 0, &t->validation, e);
	}
	return r;
}

static struct network_size size_of(const struct settings *settings)
{
	return (struct network_size){
		.images = (int)share_of_batch(settings),
		.source_edge = IMAGE_EDGE,
		.edge = (int)settings->image_size,
		.colours = IMAGE_COLOURS,
		.classes = (int)settings->classes,
	};
}

static int open_training(struct training *t, struct error *e)
{
	const struct settings *settings = t->settings;
	struct network_size size = size_of(settings);
	int64_t together = settings->processes > 1 ? settings->processes : settings->ranks;
	size_t floats = 0;
	if (settings->processes > 1) {
		floats = model_parameter_count(settings->model, &size);
	}
	hold_signals(&t->held);
	// Processes first: oneDNN starts threads, which a fork would lose.
	int r = together > 1 ? ranks_start((uint32_t)together, floats, &t->ranks, e) : 0;
	if (r == 0) {
		r = open_loaders(t, e);
	}
	if (r == 0) {
		r = network_new(settings->model, &size, (uint64_t)settings->seed, &t->network, e);
	}
	return r;
}

static void announce(const struct training *t)
{
	const struct settings *settings = t->settings;
	printf("%s: %zu parameters, %lld images, batch size %lld, %lld workers",
		settings->model->name, network_parameter_count(t->network),
		(long long)settings->samples, (long long)settings->batch_size,
		(long long)settings->workers);
	if (settings->processes > 1) {
		printf(", %lld processes", (long long)settings->processes);
	}
	if (settings->image_size != IMAGE_EDGE) {
		printf(", images resized from %d to %lld pixels", IMAGE_EDGE,
			(long long)settings->image_size);
	}
	printf("\n");
	fflush(stdout);
}

static int train(const struct settings *settings, int *ret_signal, struct error *e)
{
	struct training t = {.settings = settings};
	int r = open_training(&t, e);
	if (r == 0 && rank_number(&t) == 0) {
		announce(&t);
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
