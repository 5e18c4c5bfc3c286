// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Options: most of them are numbers.

#include "settings.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "dataset.h"

enum { EXIT_USAGE = 2 };

enum {
	OPTION_VALIDATION_SAMPLES = 256,
	OPTION_IMAGE_SIZE,
	OPTION_CLASSES,
	OPTION_PROCESSES,
	OPTION_RANKS,
	OPTION_VALIDATE,
	OPTION_CHECKPOINT,
	OPTION_CHECKPOINT_BYTES,
	OPTION_PREPARE,
	OPTION_SLOW_WORKER,
	OPTION_SLOW_WORKER_US,
	OPTION_DATA,
	OPTION_IMAGE_BYTES,
	OPTION_STEP,
	OPTION_SLOW_RANK,
	OPTION_SLOW_RANK_US,
};

static const struct {
	const char *name;
	int64_t samples;
} datasets[] = {
	{"dt1", 60000},
	{"dt2", 600000},
};

static const struct argp_option options[] = {
	{"model", 'm', "NAME", 0, "what to train: cnn (the default), alexnet, tiny or wide", 0},
	{"dataset", 'd', "NAME", 0,
		"dt1 (60,000 images) or dt2 (600,000), which other frameworks have too; otherwise "
		"60,000 that take longer to prepare",
		0},
	{"batch-size", 'b', "N", 0, "images in a batch, of all processes (32)", 0},
	{"validation-samples", OPTION_VALIDATION_SAMPLES, "N", 0,
		"score so many others after each epoch (0)", 0},
	{"image-size", OPTION_IMAGE_SIZE, "N", 0,
		"resize to so many pixels (what the model was made for)", 0},
	{"classes", OPTION_CLASSES, "N", 0, "the model's outputs (10)", 0},
	{"processes", OPTION_PROCESSES, "N", 0, "so many train together, data-parallel (1)", 0},
	{"epochs", 'e', "N", 0, "how often to go through the dataset (3)", 0},
	{"samples", 'n', "N", 0, "take so many images instead of the dataset's", 0},
	{"seed", 's', "N", 0, "where images, weights and orders come from (1)", 0},
	{"threads", 't', "N", 0, "threads that compute (the CPUs this process may use)", 0},
	{"workers", 'w', "N", 0, "processes that prepare batches; 0: none of their own (0)", 0},
	{"ranks", OPTION_RANKS, "N", 0, "so many copies train, and meet after each step (1)", 0},
	{"validate", OPTION_VALIDATE, "N", 0, "score N other batches after each epoch", 0},
	{"checkpoint", OPTION_CHECKPOINT, "FILE", 0, "save the weights after each epoch", 0},
	{"checkpoint-bytes", OPTION_CHECKPOINT_BYTES, "N", 0,
		"as if the weights were so many bytes", 0},
	{NULL, 0, NULL, 0, "To be slower than it need be:", 1},
	{"prepare-us", OPTION_PREPARE, "N", 0, "CPU time to prepare an image, in addition", 0},
	{"slow-worker", OPTION_SLOW_WORKER, "K", 0, "loader worker K is slower than others", 0},
	{"slow-worker-us", OPTION_SLOW_WORKER_US, "N", 0, "by so much for each image", 0},
	{"data", OPTION_DATA, "FILE", 0, "read FILE, a piece of it for each image", 0},
	{"image-bytes", OPTION_IMAGE_BYTES, "N", 0, "pieces of so many bytes (100000)", 0},
	{"step-us", OPTION_STEP, "N", 0, "CPU time of the trainer in each step, outside", 0},
	{"slow-rank", OPTION_SLOW_RANK, "K", 0, "rank K is slower than others", 0},
	{"slow-rank-us", OPTION_SLOW_RANK_US, "N", 0, "by so much in each forward pass", 0},
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
	{OPTION_VALIDATION_SAMPLES, offsetof(struct settings, validation_samples), 0, 100000000},
	{OPTION_IMAGE_SIZE, offsetof(struct settings, image_size), 1, 4096},
	{OPTION_CLASSES, offsetof(struct settings, classes), CLASSES, 100000},
	{OPTION_PROCESSES, offsetof(struct settings, processes), 1, 64},
	{OPTION_RANKS, offsetof(struct settings, ranks), 1, 64},
	{OPTION_VALIDATE, offsetof(struct settings, validate), 0, 1000000},
	{OPTION_CHECKPOINT_BYTES, offsetof(struct settings, checkpoint_bytes), 0, INT64_MAX},
	{OPTION_PREPARE, offsetof(struct settings, prepare_us), 0, 10000000},
	{OPTION_SLOW_WORKER, offsetof(struct settings, burden.slow_worker), 0, 255},
	{OPTION_SLOW_WORKER_US, offsetof(struct settings, slow_worker_us), 0, 10000000},
	{OPTION_IMAGE_BYTES, offsetof(struct settings, image_bytes), 1, 1 << 30},
	{OPTION_STEP, offsetof(struct settings, step_us), 0, 10000000},
	{OPTION_SLOW_RANK, offsetof(struct settings, slow_rank), 0, 63},
	{OPTION_SLOW_RANK_US, offsetof(struct settings, slow_rank_us), 0, 10000000},
};

static const char *option_name(int key)
{
	for (const struct argp_option *o = options; o->name || o->doc; o++) {
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

static void parse_number(struct settings *settings, const struct number *number, char *argument,
	struct argp_state *state)
{
	int64_t *value = (int64_t *)((char *)settings + number->offset);
	struct error e = {0};
	if (parse_integer(argument, number->minimum, number->maximum, value, &e) < 0) {
		argp_error(state, "--%s: %s", option_name(number->key), e.text);
	}
}

// Checks combinations of options.
static void check_together(struct settings *settings, struct argp_state *state)
{
	settings->shared = settings->dataset_samples > 0;
	int64_t samples = settings->shared ? settings->dataset_samples : datasets[0].samples;
	settings->samples = settings->samples > 0 ? settings->samples : samples;
	if (settings->image_size == 0) {
		settings->image_size = settings->model->edge;
	}
	if (settings->image_size < settings->model->smallest) {
		argp_error(state, "%s needs images of at least %d pixels", settings->model->name,
			settings->model->smallest);
	}
	if (settings->batch_size % settings->processes != 0) {
		argp_error(state, "%lld processes cannot share batches of %lld",
			(long long)settings->processes, (long long)settings->batch_size);
	}
	if (settings->processes > 1 && settings->ranks > 1) {
		argp_error(state, "--processes share batches, --ranks have their own: not both");
	}
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct settings *settings = state->input;
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
		if (numbers[i].key == key) {
			parse_number(settings, &numbers[i], argument, state);
			return 0;
		}
	}
	switch (key) {
	case 'm':
		settings->model = model_find(argument);
		if (!settings->model) {
			argp_error(state,
				"--model: no model '%s' (there are: cnn, alexnet, tiny, wide)",
				argument);
		}
		return 0;
	case 'd':
		settings->dataset_samples = dataset_samples(argument);
		if (settings->dataset_samples == 0) {
			argp_error(state, "--dataset: no dataset '%s' (there are: dt1, dt2)",
				argument);
		}
		return 0;
	case ARGP_KEY_END:
		check_together(settings, state);
		return 0;
	case OPTION_CHECKPOINT:
		settings->checkpoint = argument;
		return 0;
	case OPTION_DATA:
		settings->burden.file = argument;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is '%s'? All options have names", argument);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void settings_parse(int argc, char **argv, struct settings *ret)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.doc = "Trains a small convolutional network on synthetic images, on the CPU.",
	};
	*ret = (struct settings){
		.model = model_at(0),
		.batch_size = 32,
		.epochs = 3,
		.seed = 1,
		.processes = 1,
		.ranks = 1,
		.burden = {.slow_worker = -1},
		.image_bytes = 100000,
		.slow_rank = -1,
	};
	argp_err_exit_status = EXIT_USAGE;
	if (argp_parse(&argp, argc, argv, 0, NULL, ret) != 0) {
		exit(EXIT_USAGE);
	}
	ret->burden.prepare_ns = (uint64_t)ret->prepare_us * 1000;
	ret->burden.slow_worker_ns = (uint64_t)ret->slow_worker_us * 1000;
	ret->burden.read_bytes = (uint64_t)ret->image_bytes;
}
