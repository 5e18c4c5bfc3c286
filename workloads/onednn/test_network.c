// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The network: its gradients against finite differences, its size against the published layers, and
// that training on a learnable dataset learns.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <math.h>

#include "base/cleanup.h"
#include "dataset.h"
#include "loader.h"
#include "network.h"
#include "random.h"

enum { IMAGES = 4, MASKS = 6 };

static const float rate = 1e-3f;

// A small network with the features that AlexNet has and the CNN does not: strides, padding,
// overlapping windows, an image that is resized before and after.
static const struct layer steps[] = {
	{CONVOLUTION, 6, 11, 4, 2},
	{RELU, 0, 0, 0, 0},
	{POOLING, 0, 3, 2, 0},
	{CONVOLUTION, 8, 5, 1, 2},
	{RELU, 0, 0, 0, 0},
	{POOLING, 0, 3, 2, 0},
	{RESAMPLING, 6, 0, 0, 0},
	{DENSE, 10, 0, 0, 0},
};

static const struct model stepping = {"stepping", steps, ARRAY_LENGTH(steps), 64, 64, 1e-3f};

static struct network *new_network(const struct model *model, int images)
{
	struct network *network = NULL;
	struct error e = {0};
	assert_non_null(model);
	const struct network_size size = {images, IMAGE_EDGE, model->edge, IMAGE_COLOURS, 0};
	int r = network_new(model, &size, 1, &network, &e);
	if (r < 0) {
		fail_msg("%s", e.text);
	}
	return network;
}

static struct network *cnn_new(int images)
{
	return new_network(model_find("cnn"), images);
}

static double loss_of(struct network *network, const float *images, const uint8_t *classes)
{
	struct score score;
	struct error e;
	assert_int_equal(network_score(network, images, classes, &score, &e), 0);
	return score.loss;
}

static void move(struct tensor *t, const float *origin, const float *direction, float by)
{
	for (size_t i = 0; i < t->count; i++) {
		t->value[i] = origin[i] + by * direction[i];
	}
}

// A random half of the gradient, scaled to length 1. Along it, the loss must change by the length
// of that half, unless a component is wrong: an error that is orthogonal to one half is not to the
// next. Returns the length.
static double masked_direction(
	const float *gradient, size_t count, struct random *random, float *direction)
{
	double square = 0;
	for (size_t i = 0; i < count; i++) {
		direction[i] = random_below(random, 2) ? gradient[i] : 0;
		square += (double)direction[i] * (double)direction[i];
	}
	double length = sqrt(square);
	for (size_t i = 0; i < count; i++) {
		direction[i] = length > 0 ? (float)(direction[i] / length) : 0;
	}
	return length;
}

// Central differences in float32. The loss is summed in double from outputs of about 1 that are
// rounded to 2^-24 at each of 5 layers: an error of about 1e-7. A step of 2 * 0.0003 turns that
// into less than 2e-4 of slope, 0.2 % of the shortest gradient here (0.09). The rest of the error
// comes from ReLUs and maxima that switch within the step, and is proportional to it: 2 % was seen
// at 0.005, 0.6 % at 0.0003. A wrong sign, factor or missing term exceeds the allowed 2 % by far.
static void check_parameter(struct network *network, size_t number, const float *images,
	const uint8_t *classes, struct random *random)
{
	const float step = 0.0003f;
	struct tensor *t = network_parameter(network, number);
	size_t bytes = t->count * sizeof(float);
	_cleanup_free_ float *origin = malloc(bytes);
	_cleanup_free_ float *gradient = malloc(bytes);
	_cleanup_free_ float *direction = malloc(bytes);
	assert_true(origin && gradient && direction);
	for (size_t i = 0; i < t->count; i++) {
		origin[i] = t->value[i];
		gradient[i] = t->gradient[i];
	}
	for (int mask = 0; mask < MASKS; mask++) {
		double expected = masked_direction(gradient, t->count, random, direction);
		move(t, origin, direction, step);
		double above = loss_of(network, images, classes);
		move(t, origin, direction, -step);
		double below = loss_of(network, images, classes);
		move(t, origin, direction, 0);
		double found = (above - below) / (2 * (double)step);
		if (expected < 0.001 || fabs(found - expected) > 0.02 * expected) {
			fail_msg("parameter %zu, mask %d: the gradient says %g, the loss %g",
				number, mask, expected, found);
		}
	}
}

static void check_gradients(const struct model *model, size_t expected_parameters)
{
	struct dataset dataset;
	dataset_init(&dataset, IMAGES, 7);
	_cleanup_free_ float *images = malloc(IMAGES * IMAGE_FLOATS * sizeof(float));
	assert_non_null(images);
	uint8_t classes[IMAGES];
	for (uint32_t i = 0; i < IMAGES; i++) {
		dataset_prepare(&dataset, 1, i, images + (size_t)i * IMAGE_FLOATS, &classes[i]);
	}
	struct network *network = new_network(model, IMAGES);
	struct error e;
	loss_of(network, images, classes);
	assert_int_equal(network_backward(network, &e), 0);
	struct random random = {11};
	size_t parameters = 0;
	for (; network_parameter(network, parameters); parameters++) {
		check_parameter(network, parameters, images, classes, &random);
	}
	assert_int_equal(parameters, expected_parameters);
	network_free(network);
}

static void test_gradients(void **state)
{
	(void)state;
	check_gradients(model_find("cnn"), 10);
	check_gradients(&stepping, 6);
}

// Filters times window times channels, and a bias each, of the published layers: 32 and 64 and 64
// filters of 3x3, dense layers of 32 and 10. Edges: 32, 30 after the first convolution, 15 pooled,
// 13, 6 pooled, 4.
static void test_parameter_count(void **state)
{
	(void)state;
	size_t expected = 32 * (3 * 3 * 3 + 1) + 64 * (3 * 3 * 32 + 1) + 64 * (3 * 3 * 64 + 1) +
	                  32 * (4 * 4 * 64 + 1) + 10 * (32 + 1);
	assert_int_equal(expected, 89450);
	struct network *network = cnn_new(1);
	assert_int_equal(network_parameter_count(network), expected);
	network_free(network);
	const struct network_size small = {1, IMAGE_EDGE, IMAGE_EDGE, IMAGE_COLOURS, 0};
	assert_int_equal(model_parameter_count(model_find("cnn"), &small), expected);
	// As published, for any size of the images.
	struct network_size size = {1, IMAGE_EDGE, 224, IMAGE_COLOURS, 1000};
	assert_int_equal(model_parameter_count(model_find("alexnet"), &size), 61100840);
	size.edge = 64;
	assert_int_equal(model_parameter_count(model_find("alexnet"), &size), 61100840);
}

// Trains for some batches and returns the mean loss of the first and the last ten.
static void train(uint32_t batches, double *ret_first, double *ret_last)
{
	enum { BATCH = 32, MEAN = 10 };
	struct dataset dataset;
	dataset_init(&dataset, BATCH * batches, 3);
	struct loader *loader = NULL;
	struct error e;
	assert_int_equal(loader_open(&dataset, BATCH, 1, 0, &loader, &e), 0);
	struct network *network = cnn_new(BATCH);
	double first = 0, last = 0;
	for (uint32_t i = 0; i < batches; i++) {
		struct batch batch;
		struct score score;
		assert_int_equal(loader_next(loader, &batch, &e), 0);
		assert_int_equal(
			network_score(network, batch.images, batch.classes, &score, &e), 0);
		assert_int_equal(network_backward(network, &e), 0);
		network_update(network, rate);
		first += i < MEAN ? score.loss / MEAN : 0;
		last += i >= batches - MEAN ? score.loss / MEAN : 0;
	}
	network_free(network);
	loader_close(loader);
	*ret_first = first;
	*ret_last = last;
}

// Chance is log(10) = 2.30; seen: 2.33 at first, 0.5 after 250 batches.
static void test_loss_falls(void **state)
{
	(void)state;
	double first, last;
	train(250, &first, &last);
	assert_true(first > 2.0 && first < 3.0);
	assert_true(last < 1.5);
}

// With one thread (the suite sets it) the same seed gives the same losses, to the last bit.
static void test_deterministic(void **state)
{
	(void)state;
	double first[2], last[2];
	train(20, &first[0], &last[0]);
	train(20, &first[1], &last[1]);
	assert_true(first[0] == first[1] && last[0] == last[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_parameter_count),
		cmocka_unit_test(test_loss_falls),
		cmocka_unit_test(test_deterministic),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
