// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// CUDA_VISIBLE_DEVICES, interpreted like CUDA does.

#include "record/source/gpu_visible.h"

#include <string.h>

#include "base/parse.h"

struct visible_gpus {
	const struct gpu_identity *gpus;
	size_t n;
	bool order_known;
	enum gpu_visible *verdicts;
};

static void show(struct visible_gpus *v, size_t index)
{
	if (v->order_known) {
		v->verdicts[index] = GPU_VISIBLE;
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		v->verdicts[i] = v->verdicts[i] == GPU_VISIBLE ? GPU_VISIBLE : GPU_VISIBLE_UNKNOWN;
	}
}

// "GPU-8932": the only GPU whose UUID begins so.
static bool show_uuid(struct visible_gpus *v, struct cursor word)
{
	size_t length = (size_t)(word.end - word.at), found = v->n;
	for (size_t i = 0; i < v->n; i++) {
		if (strncmp(v->gpus[i].uuid, word.at, length) == 0) {
			if (found < v->n) {
				return false;
			}
			found = i;
		}
	}
	if (found < v->n) {
		v->verdicts[found] = GPU_VISIBLE;
	}
	return found < v->n;
}

// Returns the instance whose UUID begins with the word; gpu->n_instances: none or several.
static size_t find_instance(const struct gpu_identity *gpu, struct cursor word)
{
	size_t length = (size_t)(word.end - word.at), found = gpu->n_instances;
	for (size_t i = 0; i < gpu->n_instances; i++) {
		if (strncmp(gpu->instances[i], word.at, length) == 0) {
			if (found < gpu->n_instances) {
				return gpu->n_instances;
			}
			found = i;
		}
	}
	return found;
}

// Searches GPUs whose instances have known UUIDs. Returns false if the UUIDs of some divided GPU
// are unknown.
static bool show_known_instance(struct visible_gpus *v, struct cursor word, bool *ret_found)
{
	*ret_found = false;
	for (size_t i = 0; i < v->n; i++) {
		if (v->gpus[i].mig && v->gpus[i].n_instances == 0) {
			return false;
		}
		if (v->gpus[i].mig && find_instance(&v->gpus[i], word) < v->gpus[i].n_instances) {
			v->verdicts[i] = GPU_VISIBLE;
			*ret_found = true;
		}
	}
	return true;
}

// "MIG-UUID" is an instance of any divided GPU, "MIG-GPU-UUID/3/0" (older) of that GPU.
static bool show_instance(struct visible_gpus *v, struct cursor word)
{
	bool found;
	struct cursor whole = word;
	whole.at -= strlen("MIG-");
	bool known = show_known_instance(v, whole, &found);
	if (found) {
		return true;
	}
	if (cursor_literal(&word, "GPU-")) {
		word.at -= strlen("GPU-");
		const char *slash = memchr(word.at, '/', (size_t)(word.end - word.at));
		word.end = slash ? slash : word.end;
		return show_uuid(v, word);
	}
	if (known) {
		return false;
	}
	size_t n_mig = 0;
	for (size_t i = 0; i < v->n; i++) {
		n_mig += v->gpus[i].mig;
	}
	for (size_t i = 0; i < v->n; i++) {
		if (v->gpus[i].mig && v->verdicts[i] != GPU_VISIBLE) {
			v->verdicts[i] = n_mig == 1 ? GPU_VISIBLE : GPU_VISIBLE_UNKNOWN;
		}
	}
	return n_mig > 0;
}

// Applies one entry of the list. Returns false if it names no GPU, which ends the list.
static bool show_entry(struct visible_gpus *v, struct cursor word)
{
	uint64_t index;
	struct cursor rest = word;
	if (cursor_u64(&rest, &index)) {
		cursor_skip_blanks(&rest);
		if (rest.at != rest.end || index >= v->n) {
			return false;
		}
		show(v, (size_t)index);
		return true;
	}
	cursor_skip_blanks(&word);
	while (word.end > word.at && (word.end[-1] == ' ' || word.end[-1] == '\t')) {
		word.end--;
	}
	rest = word;
	if (cursor_literal(&rest, "GPU-")) {
		return show_uuid(v, word);
	}
	return cursor_literal(&word, "MIG-") && show_instance(v, word);
}

static bool one_model(const struct gpu_identity *gpus, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (strcmp(gpus[i].name, gpus[0].name) != 0) {
			return false;
		}
	}
	return true;
}

void gpu_visible(const char *list, const char *order, const struct gpu_identity *gpus, size_t n,
	enum gpu_visible *ret)
{
	for (size_t i = 0; i < n; i++) {
		ret[i] = list ? GPU_HIDDEN : GPU_VISIBLE;
	}
	if (!list) {
		return;
	}
	struct visible_gpus v = {
		.gpus = gpus,
		.n = n,
		.order_known = one_model(gpus, n) || (order && strcmp(order, "PCI_BUS_ID") == 0),
		.verdicts = ret,
	};
	const char *end = list + strlen(list);
	for (const char *at = list; at <= end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma ? comma : end;
		if (!show_entry(&v, cursor_of(at, (size_t)(stop - at)))) {
			return;
		}
		at = stop + 1;
	}
}

int gpu_visible_instance(const char *list, const struct gpu_identity *gpu)
{
	int found = -1;
	if (gpu->n_instances == 1) {
		return 0;
	}
	for (const char *at = list ? list : ""; *at;) {
		size_t length = strcspn(at, ",");
		struct cursor word = cursor_of(at, length), rest;
		cursor_skip_blanks(&word);
		while (word.end > word.at && (word.end[-1] == ' ' || word.end[-1] == '\t')) {
			word.end--;
		}
		rest = word;
		size_t instance = cursor_literal(&rest, "MIG-") ? find_instance(gpu, word)
		                                                : gpu->n_instances;
		if (instance < gpu->n_instances && found >= 0 && found != (int)instance) {
			return -1;
		}
		found = instance < gpu->n_instances ? (int)instance : found;
		at += length + (at[length] == ',');
	}
	return found;
}
