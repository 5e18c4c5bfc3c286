// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The dataset and its loader: batches do not depend on the number of workers, every sample occurs
// once per epoch, and the end of a worker is reported.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "dataset.h"
#include "loader.h"

enum { SAMPLES = 37, BATCH = 4, EPOCHS = 3 };

static uint64_t digest(uint64_t hash, const void *data, size_t length)
{
	const uint8_t *byte = data;
	for (size_t i = 0; i < length; i++) {
		hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3); // FNV-1a
	}
	return hash;
}

static uint64_t digest_of_all(uint32_t workers)
{
	struct dataset dataset;
	dataset_init(&dataset, SAMPLES, 5);
	struct loader *loader = NULL;
	struct error e = {0};
	assert_int_equal(loader_open(&dataset, BATCH, EPOCHS, workers, &loader, &e), 0);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (uint32_t i = 0; i < EPOCHS * loader_epoch_batches(loader); i++) {
		struct batch batch;
		assert_int_equal(loader_next(loader, &batch, &e), 0);
		hash = digest(hash, batch.images, BATCH * IMAGE_FLOATS * sizeof(float));
		hash = digest(hash, batch.classes, BATCH);
	}
	loader_close(loader);
	return hash;
}

static void test_workers_give_the_same(void **state)
{
	(void)state;
	uint64_t alone = digest_of_all(0);
	assert_true(digest_of_all(1) == alone);
	assert_true(digest_of_all(2) == alone);
	assert_true(digest_of_all(3) == alone);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

// More workers than batches, or a trainer that stops early, also end cleanly.
static void test_closing_early(void **state)
{
	(void)state;
	struct dataset dataset;
	dataset_init(&dataset, BATCH, 5);
	struct loader *loader = NULL;
	struct error e;
	assert_int_equal(loader_open(&dataset, BATCH, 1, 5, &loader, &e), 0);
	struct batch batch;
	assert_int_equal(loader_next(loader, &batch, &e), 0);
	loader_close(loader);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	dataset_init(&dataset, 1000, 5);
	assert_int_equal(loader_open(&dataset, BATCH, 1, 2, &loader, &e), 0);
	loader_close(loader);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_every_sample_once(void **state)
{
	(void)state;
	struct dataset dataset;
	dataset_init(&dataset, SAMPLES, 5);
	uint32_t orders[2][SAMPLES];
	for (uint32_t epoch = 0; epoch < 2; epoch++) {
		uint8_t seen[SAMPLES] = {0};
		dataset_shuffle(&dataset, epoch, orders[epoch]);
		for (int i = 0; i < SAMPLES; i++) {
			assert_in_range(orders[epoch][i], 0, SAMPLES - 1);
			seen[orders[epoch][i]]++;
		}
		for (int i = 0; i < SAMPLES; i++) {
			assert_int_equal(seen[i], 1);
		}
	}
	assert_memory_not_equal(orders[0], orders[1], sizeof(orders[0]));
}

// Classes have about equal numbers of samples. A sample differs between epochs, but keeps its
// class.
static void test_samples(void **state)
{
	(void)state;
	enum { MANY = 1000 };
	struct dataset dataset;
	dataset_init(&dataset, MANY, 5);
	int per_class[CLASSES] = {0};
	float first[IMAGE_FLOATS], again[IMAGE_FLOATS];
	for (uint32_t i = 0; i < MANY; i++) {
		uint8_t class, same;
		dataset_prepare(&dataset, 1, i, first, &class);
		dataset_prepare(&dataset, 2, i, again, &same);
		assert_in_range(class, 0, CLASSES - 1);
		assert_int_equal(class, same);
		per_class[class]++;
	}
	assert_memory_not_equal(first, again, sizeof(first));
	for (int i = 0; i < CLASSES; i++) {
		assert_in_range(per_class[i], MANY / CLASSES / 2, MANY / CLASSES * 2);
	}
}

// The pid of the only child, from the kernel.
static pid_t only_child(void)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char line[64] = "";
	if (!file || !fgets(line, sizeof(line), file)) {
		return 0;
	}
	return (pid_t)strtol(line, NULL, 10);
}

static void test_killed_worker(void **state)
{
	(void)state;
	struct dataset dataset;
	dataset_init(&dataset, 100000, 5);
	struct loader *loader = NULL;
	struct error e = {0};
	assert_int_equal(loader_open(&dataset, BATCH, 1, 1, &loader, &e), 0);
	pid_t worker = only_child();
	if (worker == 0) {
		loader_close(loader);
		skip(); // the kernel has no files of children
	}
	struct batch batch;
	assert_int_equal(loader_next(loader, &batch, &e), 0);
	assert_int_equal(kill(worker, SIGKILL), 0);
	int r = 0;
	for (uint32_t i = 1; i < loader_epoch_batches(loader) && r == 0; i++) {
		r = loader_next(loader, &batch, &e); // batches that were ready may still arrive
	}
	assert_int_equal(r, -ECHILD);
	assert_non_null(strstr(e.text, "loader worker 0"));
	assert_non_null(strstr(e.text, "killed by signal 9"));
	loader_close(loader);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_too_few_samples(void **state)
{
	(void)state;
	struct dataset dataset;
	dataset_init(&dataset, 3, 5);
	struct loader *loader = NULL;
	struct error e = {0};
	assert_int_equal(loader_open(&dataset, 4, 1, 0, &loader, &e), -EINVAL);
	assert_string_equal(e.text, "3 samples do not fill a batch of 4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_workers_give_the_same),
		cmocka_unit_test(test_closing_early),
		cmocka_unit_test(test_every_sample_once),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_killed_worker),
		cmocka_unit_test(test_too_few_samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
