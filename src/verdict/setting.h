// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A setting of a job that needs no edit of its script. Advice that `strain advise --try` can try
// consists of settings.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

enum setting_kind {
	SETTING_ENVIRONMENT, // "OMP_NUM_THREADS=1"; only those in setting_variables
	// Of the training loader (torch.utils.data.DataLoader):
	SETTING_WORKERS, // "4"
	SETTING_PREFETCH, // "4": batches that each worker prepares ahead
	SETTING_PIN, // "1", "0"
	SETTING_PERSISTENT, // "1", "0"
	// Of PyTorch, torch.set_flush_denormal():
	SETTING_FLUSH_DENORMAL, // "1", "0"
	// Of the job:
	SETTING_CPUS, // "0-3,8": CPUs that it may use
	N_SETTING_KINDS,
};

enum { SETTINGS_MAX = 8, SETTING_VALUE_MAX = 80 };

struct setting {
	enum setting_kind kind;
	// Settings with the same choice are used together. Another choice is an alternative
	// ("OMP_NUM_THREADS=1, or OMP_WAIT_POLICY=passive").
	unsigned char choice;
	char value[SETTING_VALUE_MAX];
};

struct setting_list {
	struct setting items[SETTINGS_MAX];
	size_t n;
};

// What a library that creates the training loader for the script calls its settings.
struct loader_words {
	const char *library; // the package, as in Python's import
	const char *call; // where a script gives it the settings: "TrainingArguments"
	const char *batch_size, *workers;
	const char *prefetch, *pin, *persistent; // NULL: the library cannot set it
};

// Returns the words of a library; PyTorch's for one that is not in the table, and for NULL.
const struct loader_words *setting_words_of(const char *library);
// The library's word for a setting of the training loader, NULL if it has none; for others the name
// of the setting.
const char *setting_word(const struct loader_words *words, enum setting_kind kind);

// Adds a setting. Returns false and leaves the list unchanged if there is no room, or if a run of
// the job may not have it: a value out of bounds, or a variable that is not in the table of those
// that only change the speed of a job.
bool setting_add(
	struct setting_list *list, unsigned choice, enum setting_kind kind, const char *value);
// Returns the settings of one choice, as choice 0. False: there are none.
bool setting_choose(const struct setting_list *list, unsigned choice, struct setting_list *ret);
// Returns the settings of both lists. False if they contradict each other or there is no room; then
// *ret is *one.
bool setting_join(
	const struct setting_list *one, const struct setting_list *other, struct setting_list *ret);
// Whether two lists have the same settings, in any order; choices do not matter.
bool setting_same(const struct setting_list *one, const struct setting_list *other);
// "OMP_NUM_THREADS=1 with num_workers=4".
void setting_append(struct text *t, const struct setting_list *list);
// The name of a setting in files and in JSON: "environment", "num_workers", "cpus".
const char *setting_kind_name(enum setting_kind kind);
// Returns N_SETTING_KINDS for an unknown name.
enum setting_kind setting_kind_of(const char *name);
