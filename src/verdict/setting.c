// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The kinds of settings, a row for each, and the environment variables that may be set.

#include "verdict/setting.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"

// Settings are passed to a job that is run: none of these variables names a program, a library or a
// file to load.
static const char *const variables[] = {
	"BLIS_NUM_THREADS",
	"GLIBC_TUNABLES",
	"GOMP_SPINCOUNT",
	"KMP_BLOCKTIME",
	"MALLOC_ARENA_MAX",
	"MALLOC_MMAP_MAX_",
	"MALLOC_MMAP_THRESHOLD_",
	"MALLOC_TOP_PAD_",
	"MALLOC_TRIM_THRESHOLD_",
	"MKL_NUM_THREADS",
	"NUMEXPR_NUM_THREADS",
	"OMP_NUM_THREADS",
	"OMP_PROC_BIND",
	"OMP_WAIT_POLICY",
	"OPENBLAS_NUM_THREADS",
	"VECLIB_MAXIMUM_THREADS",
};

static bool is_plain(const char *value, const char *further)
{
	for (; *value; value++) {
		bool plain = (*value >= '0' && *value <= '9') || (*value >= 'a' && *value <= 'z') ||
		             (*value >= 'A' && *value <= 'Z') || strchr(further, *value);
		if (!plain) {
			return false;
		}
	}
	return true;
}

static bool is_variable(const char *value)
{
	const char *equal = strchr(value, '=');
	for (size_t i = 0; equal && i < ARRAY_LENGTH(variables); i++) {
		size_t length = strlen(variables[i]);
		if (length == (size_t)(equal - value) && memcmp(value, variables[i], length) == 0) {
			return equal[1] && is_plain(equal + 1, "_.:=,-");
		}
	}
	return false;
}

static bool is_number(const char *value, uint64_t least, uint64_t most)
{
	struct cursor at = cursor_of(value, strlen(value));
	uint64_t number;
	return cursor_u64(&at, &number) && at.at == at.end && number >= least && number <= most;
}

// Above the limit: more than any machine has CPUs, and more than a loader can feed.
static bool is_workers(const char *value)
{
	return is_number(value, 0, 1024);
}

static bool is_prefetch(const char *value)
{
	return is_number(value, 1, 1024);
}

static bool is_flag(const char *value)
{
	return is_number(value, 0, 1);
}

static bool is_cpus(const char *value)
{
	return *value && strspn(value, "0123456789,-") == strlen(value);
}

static const struct kind {
	const char *name;
	bool (*allows)(const char *value);
} kinds[N_SETTING_KINDS] = {
	[SETTING_ENVIRONMENT] = {"environment", is_variable},
	[SETTING_WORKERS] = {"num_workers", is_workers},
	[SETTING_PREFETCH] = {"prefetch_factor", is_prefetch},
	[SETTING_PIN] = {"pin_memory", is_flag},
	[SETTING_PERSISTENT] = {"persistent_workers", is_flag},
	[SETTING_FLUSH_DENORMAL] = {"flush_denormal", is_flag},
	[SETTING_CPUS] = {"cpus", is_cpus},
};

bool setting_add(
	struct setting_list *list, unsigned choice, enum setting_kind kind, const char *value)
{
	size_t length = strlen(value);
	if (list->n >= SETTINGS_MAX || kind >= N_SETTING_KINDS || choice > UINT8_MAX ||
		length >= SETTING_VALUE_MAX || !kinds[kind].allows(value)) {
		return false;
	}
	struct setting *added = &list->items[list->n++];
	*added = (struct setting){.kind = kind, .choice = (unsigned char)choice};
	memcpy(added->value, value, length + 1);
	return true;
}

bool setting_choose(const struct setting_list *list, unsigned choice, struct setting_list *ret)
{
	*ret = (struct setting_list){0};
	for (size_t i = 0; i < list->n; i++) {
		if (list->items[i].choice == choice) {
			ret->items[ret->n] = list->items[i];
			ret->items[ret->n++].choice = 0;
		}
	}
	return ret->n > 0;
}

static bool is_same(const struct setting *one, const struct setting *other)
{
	return one->kind == other->kind && strcmp(one->value, other->value) == 0;
}

// Whether both set the same thing, possibly to different values.
static bool is_of_same(const struct setting *one, const struct setting *other)
{
	size_t name = strcspn(one->value, "=");
	return one->kind == other->kind &&
	       (one->kind != SETTING_ENVIRONMENT ||
		       (strncmp(one->value, other->value, name) == 0 && other->value[name] == '='));
}

bool setting_join(
	const struct setting_list *one, const struct setting_list *other, struct setting_list *ret)
{
	struct setting_list joined = *one;
	*ret = *one;
	for (size_t i = 0; i < other->n; i++) {
		bool there = false;
		for (size_t k = 0; k < one->n; k++) {
			bool same = is_same(&one->items[k], &other->items[i]);
			if (!same && is_of_same(&one->items[k], &other->items[i])) {
				return false;
			}
			there = there || same;
		}
		if (!there && joined.n == SETTINGS_MAX) {
			return false;
		}
		if (!there) {
			joined.items[joined.n++] = other->items[i];
		}
	}
	*ret = joined;
	return true;
}

static bool has(const struct setting_list *list, const struct setting *setting)
{
	for (size_t i = 0; i < list->n; i++) {
		if (is_same(&list->items[i], setting)) {
			return true;
		}
	}
	return false;
}

bool setting_same(const struct setting_list *one, const struct setting_list *other)
{
	for (size_t i = 0; i < one->n; i++) {
		if (!has(other, &one->items[i])) {
			return false;
		}
	}
	return one->n == other->n;
}

void setting_append(struct text *t, const struct setting_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct setting *setting = &list->items[i];
		text_append_string(t, i > 0 ? " with " : "");
		if (setting->kind == SETTING_PIN || setting->kind == SETTING_PERSISTENT) {
			text_format(t, "%s=%s", setting_kind_name(setting->kind),
				*setting->value == '1' ? "True" : "False");
		} else if (setting->kind == SETTING_FLUSH_DENORMAL) {
			text_format(t, "torch.set_flush_denormal(%s)",
				*setting->value == '1' ? "True" : "False");
		} else if (setting->kind == SETTING_ENVIRONMENT) {
			text_append_string(t, setting->value);
		} else {
			text_format(t, "%s=%s", setting_kind_name(setting->kind), setting->value);
		}
	}
}

// Sources: the parameters of TrainingArguments (transformers), of Model.train (ultralytics), of
// DataLoaders (fastai) and of NeuralNet (skorch) in the documentation of each.
static const struct loader_words loader_words[] = {
	{"torch", "DataLoader", "batch_size", "num_workers", "prefetch_factor", "pin_memory",
		"persistent_workers"},
	{"transformers", "TrainingArguments", "per_device_train_batch_size",
		"dataloader_num_workers", "dataloader_prefetch_factor", "dataloader_pin_memory",
		"dataloader_persistent_workers"},
	{"ultralytics", "train", "batch", "workers", NULL, NULL, NULL},
	{"fastai", "dataloaders", "bs", "num_workers", NULL, "pin_memory", "persistent_workers"},
	{"skorch", "NeuralNet", "batch_size", "iterator_train__num_workers",
		"iterator_train__prefetch_factor", "iterator_train__pin_memory",
		"iterator_train__persistent_workers"},
};

const struct loader_words *setting_words_of(const char *library)
{
	for (size_t i = 0; library && i < sizeof(loader_words) / sizeof(loader_words[0]); i++) {
		if (strcmp(loader_words[i].library, library) == 0) {
			return &loader_words[i];
		}
	}
	return &loader_words[0];
}

const char *setting_word(const struct loader_words *words, enum setting_kind kind)
{
	return kind == SETTING_WORKERS      ? words->workers
	       : kind == SETTING_PREFETCH   ? words->prefetch
	       : kind == SETTING_PIN        ? words->pin
	       : kind == SETTING_PERSISTENT ? words->persistent
	                                    : setting_kind_name(kind);
}

const char *setting_kind_name(enum setting_kind kind)
{
	return kinds[kind].name;
}

enum setting_kind setting_kind_of(const char *name)
{
	enum setting_kind kind = 0;
	while (kind < N_SETTING_KINDS && strcmp(kinds[kind].name, name) != 0) {
		kind++;
	}
	return kind;
}
