// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// onednn-train: trains a small convolutional network on synthetic images, on the CPU. An ordinary
// training job to measure. It says where its epochs, iterations and phases are (strain/marker.h),
// which costs nothing where it is not recorded.
//
//   main.c       options and the loop over epochs
//   network.c    layers, loss, Adam
//   operation.c  tensors, and what runs between them forward and backward
//   primitive.c  oneDNN, 2.x or 3.x
//   loader.c     worker processes that prepare batches ahead
//   dataset.c    the images

#include <argp.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "dataset.h"
#include "loader.h"
#include "network.h"
#include "strain/marker.h"

struct settings {
	const struct model *model;
	const char *dataset;
	int64_t batch_size;
	int64_t epochs;
	int64_t samples; // 0: the dataset's
	int64_t seed;
	int64_t threads; // 0: the environment's, else the CPUs that this process may use
	int64_t workers;
};

static const struct {
	const char *name;
	int64_t samples;
} datasets[] = {
	{"dt1", 60000},
	{"dt2", 600000},
};

static const float learning_rate = 1e-3f;

enum { EXIT_USAGE = 2 };

static const struct argp_option options[] = {
	{"model", 'm', "NAME", 0, "what to train: cnn (the default)", 0},
	{"dataset", 'd', "NAME", 0, "dt1 (60,000 images, the default) or dt2 (600,000)", 0},
	{"batch-size", 'b', "N", 0, "images in a batch (32)", 0},
	{"epochs", 'e', "N", 0, "how often to go through the dataset (3)", 0},
	{"samples", 'n', "N", 0, "take so many images instead of the dataset's", 0},
	{"seed", 's', "N", 0, "where images, weights and orders come from (1)", 0},
	{"threads", 't', "N", 0, "threads that compute (the CPUs this process may use)", 0},
	{"workers", 'w', "N", 0, "processes that prepare batches; 0: none of their own (0)", 0},
	{0},
};

// The options that are numbers.
static const struct number {
	int key;
	size_t offset;
	int64_t minimum;
	int64_t maximum;
} numbers[] = {
	{'b', offsetof(struct settings, batch_size), 1, 65536},
	{'e', offsetof(struct settings, epochs), 1, 1000000},
	{'n', offsetof(struct settings, samples), 1, 100000000},
	{'s', offsetof(struct settings, seed), 0, INT64_MAX},
	{'t', offsetof(struct settings, threads), 1, 4096},
	{'w', offsetof(struct settings, workers), 0, 256},
};

static const char *option_name(int key)
{
	for (const struct argp_option *o = options; o->name; o++) {
		if (o->key == key) {
			return o->name;
		}
	}
	return "";
}

static int64_t dataset_samples(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(datasets); i++) {
		if (strcmp(datasets[i].name, name) == 0) {
			return datasets[i].samples;
		}
	}
	return 0;
}

static error_t parse_number(struct settings *settings, const struct number *number, char *argument,
	struct argp_state *state)
{
	int64_t *value = (int64_t *)((char *)settings + number->offset);
	struct error e = {0};
	if (parse_integer(argument, number->minimum, number->maximum, value, &e) < 0) {
		argp_error(state, "--%s: %s", option_name(number->key), e.text);
	}
	return 0;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct settings *settings = state->input;
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
		if (numbers[i].key == key) {
			return parse_number(settings, &numbers[i], argument, state);
		}
	}
	switch (key) {
	case 'm':
		settings->model = model_find(argument);
		if (!settings->model) {
			argp_error(state, "--model: no model '%s' (there is: cnn)", argument);
		}
		return 0;
	case 'd':
		settings->dataset = argument;
		if (dataset_samples(argument) == 0) {
			argp_error(state, "--dataset: no dataset '%s' (there are: dt1, dt2)",
				argument);
		}
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is '%s'? All options have names", argument);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

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
	struct loader *loader;
	struct network *network;
	sigset_t held;
	int signal; // that ended it; 0: none
};

static int train_batch(struct training *t, struct score *ret, struct error *e)
{
	struct batch batch;
	strain_begin("data");
	int r = loader_next(t->loader, &batch, e);
	strain_end();
	if (r == 0) {
		strain_begin("forward");
		r = network_score(t->network, batch.images, batch.classes, ret, e);
		strain_end();
	}
	if (r == 0) {
		strain_begin("backward");
		r = network_backward(t->network, e);
		strain_end();
	}
	if (r == 0) {
		strain_begin("optimizer");
		network_update(t->network, learning_rate);
		strain_end();
	}
	return r;
}

static int train_epoch(struct training *t, int64_t epoch, struct error *e)
{
	uint32_t batches = loader_epoch_batches(t->loader);
	uint64_t start_ns = clock_monotonic_ns();
	double loss = 0;
	uint64_t correct = 0;
	strain_epoch(epoch);
	for (uint32_t i = 0; i < batches; i++) {
		struct score score;
		strain_iteration(i, t->settings->batch_size);
		int r = train_batch(t, &score, e);
		if (r < 0) {
			return r;
		}
		loss += score.loss;
		correct += score.correct;
		t->signal = pending_signal(&t->held);
		if (t->signal) {
			return 0;
		}
	}
	double images = (double)batches * (double)t->settings->batch_size;
	strain_point("loss", loss / batches);
	strain_point("accuracy", (double)correct / images);
	strain_epoch_end();
	double seconds = (double)(clock_monotonic_ns() - start_ns) / (double)NS_PER_S;
	printf("epoch %lld/%lld  loss %.4f  accuracy %.3f  %.1f s  %.0f images/s\n",
		(long long)epoch, (long long)t->settings->epochs, loss / batches,
		(double)correct / images, seconds, images / seconds);
	return fflush(stdout) == 0 ? 0 : error_errno(e, errno, "cannot write");
}

static int train(const struct settings *settings, int *ret_signal, struct error *e)
{
	int64_t samples = settings->samples ? settings->samples
	                                    : dataset_samples(settings->dataset);
	struct dataset dataset;
	dataset_init(&dataset, (uint32_t)samples, (uint64_t)settings->seed);
	struct training t = {.settings = settings};
	hold_signals(&t.held);
	// The workers first: oneDNN starts threads, and a fork would lose them.
	int r = loader_open(&dataset, (uint32_t)settings->batch_size, (uint32_t)settings->epochs,
		(uint32_t)settings->workers, &t.loader, e);
	if (r == 0) {
		r = network_new(settings->model, (int)settings->batch_size, IMAGE_EDGE,
			IMAGE_COLOURS, (uint64_t)settings->seed, &t.network, e);
	}
	if (r == 0) {
		printf("%s: %zu parameters, %lld images, batch size %lld, %lld workers\n",
			settings->model->name, network_parameter_count(t.network),
			(long long)samples, (long long)settings->batch_size,
			(long long)settings->workers);
		fflush(stdout);
	}
	for (int64_t epoch = 1; epoch <= settings->epochs && r == 0 && !t.signal; epoch++) {
		r = train_epoch(&t, epoch, e);
	}
	network_free(t.network);
	loader_close(t.loader);
	*ret_signal = t.signal;
	return r;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.doc = "Trains a small convolutional network on synthetic images, on the CPU.",
	};
	struct settings settings = {
		.model = model_at(0),
		.dataset = datasets[0].name,
		.batch_size = 32,
		.epochs = 3,
		.seed = 1,
	};
	argp_err_exit_status = EXIT_USAGE;
	if (argp_parse(&argp, argc, argv, 0, NULL, &settings) != 0) {
		return EXIT_USAGE;
	}
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
