// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// CUDA_VISIBLE_DEVICES, interpreted like CUDA does; ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES,
// like ROCm; and whose environments are read for them.

#include "record/source/gpu_visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/parse.h"
#include "machine/file.h"
#include "machine/tree.h"

#define ENVIRONS_MAX 64u // per reading
#define ENVIRON_AGAIN_NS NS_PER_S
#define HIP_GPUS_MAX 256u

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

// ROCm --------------------------------------------------------------------------------------------

static struct cursor trimmed_of(const char *at, size_t length)
{
	struct cursor word = cursor_of(at, length);
	cursor_skip_blanks(&word);
	while (word.end > word.at && (word.end[-1] == ' ' || word.end[-1] == '\t')) {
		word.end--;
	}
	return word;
}

// ROCr takes an index in any of C's notations, and the beginning of a UUID in any case, with blanks
// around. Returns the place among n GPUs; n: none, or several.
static size_t find_rocr(
	const char *entry, const struct gpu_identity *gpus, const size_t *order, size_t n)
{
	struct cursor trimmed = trimmed_of(entry, strlen(entry));
	char word[32];
	snprintf(word, sizeof(word), "%.*s", (int)(trimmed.end - trimmed.at), trimmed.at);
	size_t length = strlen(word), found = n;
	if (strncasecmp(word, "GPU-", strlen("GPU-")) != 0) {
		char *end;
		long index = strtol(word, &end, 0);
		return end != word && !*end && index >= 0 && (size_t)index < n ? (size_t)index : n;
	}
	for (size_t i = 0; i < n && length > strlen("GPU-"); i++) {
		if (strncasecmp(gpus[order[i]].uuid, word, length) == 0) {
			if (found < n) {
				return n;
			}
			found = i;
		}
	}
	return found;
}

// HIP takes a plain decimal, or a part of a UUID, of which the first match counts.
static size_t find_hip(
	const char *entry, const struct gpu_identity *gpus, const size_t *order, size_t n)
{
	bool uuid = strncmp(entry, "GPU-", strlen("GPU-")) == 0 && entry[strlen("GPU-")];
	char plain[24];
	for (size_t i = 0; i < n; i++) {
		snprintf(plain, sizeof(plain), "%zu", i);
		if (strcmp(entry, plain) == 0 || (uuid && strstr(gpus[order[i]].uuid, entry))) {
			return i;
		}
	}
	return n;
}

// Leaves of order[n] what the list names, in its order, up to an entry that names no GPU. One that
// names a GPU again ends the list of ROCr, and is ignored in that of HIP. Returns their number.
static size_t choose(const char *list, bool rocr, const struct gpu_identity *gpus,
	size_t order[HIP_GPUS_MAX], size_t n)
{
	size_t chosen[HIP_GPUS_MAX], kept = 0;
	for (const char *at = list; at && kept < n;) {
		char entry[64];
		size_t length = strcspn(at, ",");
		snprintf(entry, sizeof(entry), "%.*s", (int)(length < sizeof(entry) ? length : 0),
			at);
		size_t place = rocr ? find_rocr(entry, gpus, order, n)
		                    : find_hip(entry, gpus, order, n);
		bool again = false;
		for (size_t i = 0; i < kept && place < n; i++) {
			again = again || chosen[i] == order[place];
		}
		if (place == n || (again && rocr)) {
			break;
		}
		if (!again) {
			chosen[kept++] = order[place];
		}
		at = at[length] ? at + length + 1 : NULL;
	}
	memcpy(order, chosen, kept * sizeof(*chosen));
	return kept;
}

void gpu_visible_hip(const char *rocr, const char *hip, const char *cuda,
	const struct gpu_identity *gpus, size_t n, enum gpu_visible *ret)
{
	size_t order[HIP_GPUS_MAX], left = n < HIP_GPUS_MAX ? n : HIP_GPUS_MAX;
	for (size_t i = 0; i < left; i++) {
		order[i] = i;
	}
	hip = hip && *hip ? hip : cuda;
	left = rocr ? choose(rocr, true, gpus, order, left) : left;
	left = hip && *hip ? choose(hip, false, gpus, order, left) : left;
	for (size_t i = 0; i < n; i++) {
		ret[i] = GPU_HIDDEN;
	}
	for (size_t i = 0; i < left; i++) {
		ret[order[i]] = GPU_VISIBLE;
	}
}

// Environments ------------------------------------------------------------------------------------

static bool read_environ(int root_fd, pid_t pid,
	bool (*take)(void *context, struct cursor environment), void *context)
{
	char path[48];
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text = cursor_of("", 0);
	snprintf(path, sizeof(path), "proc/%d/environ", (int)pid);
	int r = host_file_open(&file, root_fd, path, NULL);
	r = r < 0 ? r : host_file_read(&file, &text);
	bool has = take(context, r < 0 ? cursor_of("", 0) : text);
	host_file_close(&file);
	return has;
}

bool gpu_environs_read(struct gpu_environs *e, struct tree *tree, int root_fd, uint64_t now_ns,
	bool (*take)(void *context, struct cursor environment), void *context)
{
	const bool again = now_ns >= e->again_ns + ENVIRON_AGAIN_NS;
	size_t n = 0, asked = 0;
	bool any = false;
	if (tree_snapshot(tree, &e->members, &n, &e->capacity) < 0) {
		return false;
	}
	for (size_t i = 0; i < n && asked < ENVIRONS_MAX; i++) {
		// Entities are numbered in the order of joining.
		int64_t entity = e->members[i].entity;
		bool read_once = entity <= e->last_entity;
		if (!read_once || (again && entity > e->last_again && entity <= e->before)) {
			e->last_entity = read_once ? e->last_entity : entity;
			any = read_environ(root_fd, e->members[i].pid, take, context) || any;
			asked++;
		}
	}
	if (again && asked < ENVIRONS_MAX) { // all of them
		e->last_again = e->before;
		e->before = e->last_entity;
		e->again_ns = now_ns;
	}
	return any;
}

void gpu_environs_done(struct gpu_environs *e)
{
	free(e->members);
	*e = (struct gpu_environs){0};
}
