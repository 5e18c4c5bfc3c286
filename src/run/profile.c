// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One table classifies code. The names of files and functions are those of glibc, libgomp,
// OpenBLAS, oneDNN, PyTorch, TensorFlow, CPython and their image decoders, taken from samples or
// from their sources.

#include "run/profile.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/words.h"
#include "run/analysis.h"
#include "run/names.h"
#include "run/query.h"
#include "run/rate.h"
#include "run/symbols.h"

enum { FUNCTIONS_MOST = 4096 };
#define SHOWN 0.05 // least share of the samples for output
// sched_yield, relative to samples in the kernel: 5 to 13 % where all of those were sched_yield
#define YIELDING 0.04

struct rule {
	const char *file; // part of the file's name
	const char *symbol; // part of the function's name; NULL: any function, also an unknown one
	enum code_class class;
};

// The first matching row applies.
static const struct rule rules[] = {
	{"[kernel]", NULL, CODE_SYSTEM},
	{"[vdso]", NULL, CODE_SYSTEM},
	// Threads that poll while they wait for each other.
	{"libc.so", "sched_yield", CODE_SPINNING},
	{"libgomp", "gomp_thread_start", CODE_OTHER},
	{"libgomp", NULL, CODE_SPINNING}, // its other functions only begin and end regions
	{"libiomp5", NULL, CODE_SPINNING},
	{"libomp", NULL, CODE_SPINNING},
	{"blas", "blas_thread_server", CODE_SPINNING},
	{"blas", "exec_blas", CODE_SPINNING},
	{"blas", "inner_thread", CODE_SPINNING}, // waits for blocks of other threads
	{"", "pthreadpool_wait", CODE_SPINNING},
	{"", "wait_worker_threads", CODE_SPINNING},
	{"", "thread_main", CODE_SPINNING}, // of pthreadpool
	{"", "__kmp_", CODE_SPINNING},
	{"", "ThreadPoolTempl", CODE_SPINNING}, // Eigen's, which steals and spins
	{"", "WaitForWork", CODE_SPINNING},
	{"libtbb", NULL, CODE_SPINNING},
	// Python.
	{"python", "gc_collect", CODE_COLLECTION},
	{"python", "visit_decref", CODE_COLLECTION},
	{"python", "visit_reachable", CODE_COLLECTION},
	{"python", "subtract_refs", CODE_COLLECTION},
	{"python", "move_unreachable", CODE_COLLECTION},
	{"_multiarray_umath", NULL, CODE_FRAMEWORK}, // NumPy
	{"mtrand", NULL, CODE_FRAMEWORK}, // NumPy's random numbers
	{"_generator.", NULL, CODE_FRAMEWORK},
	{"zlib.", NULL, CODE_DECODING}, // modules of Python's standard library
	{"_bz2.", NULL, CODE_DECODING},
	{"_lzma.", NULL, CODE_DECODING},
	{"_json", NULL, CODE_DECODING},
	{"numpy", NULL, CODE_FRAMEWORK},
	{"_imaging", NULL, CODE_DECODING}, // Pillow
	{"python", NULL, CODE_INTERPRETER},
	{"libtorch_python", NULL, CODE_INTERPRETER}, // converts arguments to and from Python
	{"_C.", NULL, CODE_INTERPRETER},
	// Allocation and copies, in any library.
	{"libc.so", "malloc", CODE_ALLOCATION},
	{"libc.so", "calloc", CODE_ALLOCATION},
	{"libc.so", "realloc", CODE_ALLOCATION},
	{"libc.so", "free", CODE_ALLOCATION},
	{"libc.so", "memalign", CODE_ALLOCATION},
	{"libc.so", "mem", CODE_COPYING}, // memcpy, memmove, memset and their variants
	{"libc.so", "_mem", CODE_COPYING},
	{"malloc", NULL, CODE_ALLOCATION}, // jemalloc, tcmalloc, mimalloc
	// Decoding, decompressing.
	{"libjpeg", NULL, CODE_DECODING},
	{"libturbojpeg", NULL, CODE_DECODING},
	{"libpng", NULL, CODE_DECODING},
	{"libwebp", NULL, CODE_DECODING},
	{"libtiff", NULL, CODE_DECODING},
	{"libz.so", NULL, CODE_DECODING},
	{"libz-", NULL, CODE_DECODING},
	{"libzstd", NULL, CODE_DECODING},
	{"liblz4", NULL, CODE_DECODING},
	{"libbz2", NULL, CODE_DECODING},
	{"liblzma", NULL, CODE_DECODING},
	{"libavcodec", NULL, CODE_DECODING},
	{"libavformat", NULL, CODE_DECODING},
	{"libswscale", NULL, CODE_DECODING},
	{"libopencv", NULL, CODE_DECODING},
	{"cv2", NULL, CODE_DECODING},
	// Matrix products and convolutions.
	{"blas", NULL, CODE_KERNELS}, // OpenBLAS, reference BLAS, host side of cuBLAS
	{"libmkl", NULL, CODE_KERNELS},
	{"libblis", NULL, CODE_KERNELS},
	{"libdnnl", NULL, CODE_KERNELS},
	{"libmkldnn", NULL, CODE_KERNELS},
	{"", "gemm", CODE_KERNELS},
	{"", "gemv", CODE_KERNELS},
	{"", "dnnl", CODE_KERNELS},
	{"", "mkldnn", CODE_KERNELS},
	{"", "mkl_vml_", CODE_FRAMEWORK}, // functions of each element: roots, exponentials
	{"", "mkl_", CODE_KERNELS},
	{"", "convolution", CODE_KERNELS},
	{"", "xnn_", CODE_KERNELS},
	{"", "gebp_kernel", CODE_KERNELS}, // Eigen's
	{"", "dot_fp", CODE_KERNELS}, // XLA's (YNNPACK), of 16, 32 and 64 bits
	{"", "dot_bf", CODE_KERNELS},
	{"", "nnpack", CODE_KERNELS},
	// Other arithmetic, and dispatch.
	{"libtorch", NULL, CODE_FRAMEWORK},
	{"libc10", NULL, CODE_FRAMEWORK},
	{"tensorflow", NULL, CODE_FRAMEWORK},
	{"xla_extension", NULL, CODE_FRAMEWORK},
	{"libjax", NULL, CODE_FRAMEWORK},
	{"libxgboost", NULL, CODE_FRAMEWORK},
	{"lib_lightgbm", NULL, CODE_FRAMEWORK},
	{"libsleef", NULL, CODE_FRAMEWORK},
	{"libm.so", NULL, CODE_FRAMEWORK},
	{"libmvec", NULL, CODE_FRAMEWORK},
	{"libstdc++", NULL, CODE_FRAMEWORK},
	{"libcuda.so", NULL, CODE_DRIVER},
	// Libraries of devices.
	{"libcuda", NULL, CODE_FRAMEWORK},
	{"libcudnn", NULL, CODE_FRAMEWORK},
	{"libnccl", NULL, CODE_FRAMEWORK},
	{"libnvidia", NULL, CODE_FRAMEWORK},
	{"libamdhip", NULL, CODE_DRIVER},
	{"libhsa-runtime", NULL, CODE_DRIVER},
	{"libMIOpen", NULL, CODE_FRAMEWORK},
	{"librccl", NULL, CODE_FRAMEWORK},
};

// Before glibc 2.34 the files had versions: "libc-2.31.so".
static const char *unversioned(const char *file)
{
	return strncmp(file, "libc-2.", strlen("libc-2.")) == 0   ? "libc.so"
	       : strncmp(file, "libm-2.", strlen("libm-2.")) == 0 ? "libm.so"
	                                                          : file;
}

enum code_class profile_classify(const char *path, const char *symbol, enum code_class jit)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	if (strcmp(path, "[jit]") == 0) {
		return jit;
	}
	if (strstr(path, "torchinductor")) { // what torch.compile has compiled for CPUs
		return CODE_KERNELS;
	}
	file = unversioned(file);
	for (size_t i = 0; i < ARRAY_LENGTH(rules); i++) {
		bool fits = strstr(file, rules[i].file) != NULL;
		if (fits && (!rules[i].symbol || (symbol && strstr(symbol, rules[i].symbol)))) {
			return rules[i].class;
		}
	}
	// A stripped C library has names only for exported functions, not for its variants of
	// memcpy for each CPU.
	return strstr(file, "libc.so") && !symbol ? CODE_COPYING : CODE_OTHER;
}

// Names as compilers write them.
bool profile_dispatches(const char *symbol)
{
	// Loops over elements, of which some have the name of a function that calls them.
	static const char *const loops[] = {"oop2d", "loop_2d", "_kernel", "6native4AVX2",
		"6native6AVX512", "6native7DEFAULT", "parallel_for", "for_each", "random", "Sleef"};
	static const char *const leads[] = {"_ZN2at4_ops", // operators
		"_ZN3c10", "_ZNK3c10", "_ZNR3c10", // references, shapes, keys of dispatch
		"_ZN5torch", "_ZNK5torch", "_ZZN5torch", // arguments, autograd's records
		"TensorIterator", "_ZN2at6detail", "_ZNK2at10TensorBase"};
	for (size_t i = 0; symbol && i < ARRAY_LENGTH(loops); i++) {
		if (strstr(symbol, loops[i])) {
			return false;
		}
	}
	for (size_t i = 0; symbol && i < ARRAY_LENGTH(leads); i++) {
		if (strstr(symbol, leads[i])) {
			return true;
		}
	}
	return false;
}

const char *code_class_name(enum code_class class)
{
	static const char *const names[N_CODE_CLASSES] = {
		[CODE_SPINNING] = "spinning",
		[CODE_KERNELS] = "matrix kernels",
		[CODE_FRAMEWORK] = "other arithmetic",
		[CODE_INTERPRETER] = "interpreter",
		[CODE_COLLECTION] = "garbage collection",
		[CODE_ALLOCATION] = "allocation",
		[CODE_COPYING] = "copying",
		[CODE_DECODING] = "decoding",
		[CODE_SYSTEM] = "kernel",
		[CODE_DRIVER] = "GPU driver",
		[CODE_OTHER] = "other code",
	};
	return names[class];
}

const char *code_class_title(enum code_class class)
{
	return class == CODE_SYSTEM ? "OS kernel" : code_class_name(class);
}

const char *code_group_name(enum code_group group)
{
	static const char *const names[N_CODE_GROUPS] = {
		[CODE_LEADER] = "training thread",
		[CODE_THREADS] = "other threads",
		[CODE_WORKERS] = "workers",
	};
	return names[group];
}

// Reading -----------------------------------------------------------------------------------------

struct function {
	char *path;
	char *symbol; // NULL: not known
	uint64_t samples[N_CODE_GROUPS];
};

struct loading {
	const struct analysis *a;
	const struct stretch *stretch;
	struct function *functions; // sorted by path, symbol
	size_t n, capacity;
	bool kernels; // a library that generates matrix kernels at run time is mapped
	double within, leader; // of the leader's samples: those within the stretch, all
};

enum code_group code_group_of(const struct analysis *a, int64_t entity, bool leader)
{
	for (size_t i = 0; i < a->phases.n_ranks; i++) {
		if (a->phases.ranks[i].entity == entity) {
			return leader ? CODE_LEADER : CODE_THREADS;
		}
	}
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		bool trains = row->role == ROLE_MAIN || row->role == ROLE_RANK;
		if (row->entity == entity) {
			return row->role == ROLE_LOADER           ? CODE_WORKERS
			       : !trains || a->phases.n_ranks > 0 ? N_CODE_GROUPS
			       : leader                           ? CODE_LEADER
			                                          : CODE_THREADS;
		}
	}
	return N_CODE_GROUPS;
}

bool profile_is_numpy(const char *path)
{
	return strstr(path, "/numpy/") != NULL;
}

bool profile_makes_kernels(const char *path)
{
	static const char *const libraries[] = {
		"libtorch", "libdnnl", "mkldnn", "tensorflow", "xla_extension", "libjax"};
	for (size_t i = 0; i < ARRAY_LENGTH(libraries); i++) {
		if (strstr(path, libraries[i])) {
			return true;
		}
	}
	return false;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct function *function_of(struct loading *l, const char *path, const char *symbol)
{
	struct function *last = l->n > 0 ? &l->functions[l->n - 1] : NULL;
	void *functions = l->functions;
	if (last && same_text(last->path, path) && same_text(last->symbol, symbol)) {
		return last;
	}
	if (l->n >= FUNCTIONS_MOST) {
		return last;
	}
	if (array_reserve(&functions, &l->capacity, l->n + 1, sizeof(*l->functions)) < 0) {
		return NULL;
	}
	l->functions = functions;
	struct function *f = &l->functions[l->n];
	*f = (struct function){.path = strdup(path), .symbol = symbol ? strdup(symbol) : NULL};
	if (!f->path || (symbol && !f->symbol)) {
		free(f->path);
		free(f->symbol);
		return NULL;
	}
	l->n++;
	return f;
}

enum { ENTITY, LEADER, FROM, TO, COUNT, PATH, SYMBOL };

static int take_row(void *context, sqlite3_stmt *row)
{
	struct loading *l = context;
	int64_t entity = sqlite3_column_int64(row, ENTITY);
	double from_us = (double)sqlite3_column_int64(row, FROM) / 1000;
	double to_us = (double)sqlite3_column_int64(row, TO) / 1000;
	int64_t count = sqlite3_column_int64(row, COUNT);
	const char *path = (const char *)sqlite3_column_text(row, PATH);
	const char *symbol = (const char *)sqlite3_column_text(row, SYMBOL);
	enum code_group group = code_group_of(l->a, entity, sqlite3_column_int64(row, LEADER) == 1);
	bool within = stretch_has(l->stretch, (from_us + to_us) / 2);
	if (!path || count <= 0 || count > UINT32_MAX || group == N_CODE_GROUPS || !within) {
		return 0;
	}
	struct function *function = function_of(l, path, symbol);
	if (!function) {
		return -ENOMEM;
	}
	l->kernels |= profile_makes_kernels(path);
	function->samples[group] += (uint64_t)count;
	if (group == CODE_LEADER && to_us > from_us) {
		double part = stretch_overlap(l->stretch, from_us, to_us) / (to_us - from_us);
		l->within += part * (double)count;
		l->leader += (double)count;
	}
	return 0;
}

// Adding up ---------------------------------------------------------------------------------------

static void put_top(struct code_group_samples *g, const struct code_top *top)
{
	size_t at = g->n_tops < CODE_TOPS ? g->n_tops : CODE_TOPS - 1;
	if (g->n_tops == CODE_TOPS && top->samples <= g->tops[at].samples) {
		return;
	}
	for (; at > 0 && g->tops[at - 1].samples < top->samples; at--) {
		g->tops[at] = g->tops[at - 1];
	}
	g->tops[at] = *top;
	g->n_tops += g->n_tops < CODE_TOPS;
}

static void name_top(const char *path, const char *symbol, struct code_top *top)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	char words[57] = "";
	if (symbol) {
		symbols_shorten(symbol, words, sizeof(words));
	}
	if (*words) {
		snprintf(top->name, sizeof(top->name), "%s (%.32s)", words, file);
	} else {
		snprintf(top->name, sizeof(top->name), "%.60s", file);
	}
}

// Without memory for it, a function has no name among the first ones; its samples count all the
// same.
static void hold_name(struct code_names *names, const struct code_top *top)
{
	void *items = names->items;
	if (array_reserve(&items, &names->capacity, names->n + 1, sizeof(*top)) == 0) {
		names->items = items;
		names->items[names->n++] = *top;
	}
}

// Of a BLAS library, YNNPACK, Eigen.
static bool multiplies_doubles(const char *symbol)
{
	static const char *const names[] = {"dgemm", "dot_fp64", "gebp_kernelIdd"};
	for (size_t i = 0; symbol && i < ARRAY_LENGTH(names); i++) {
		if (strstr(symbol, names[i])) {
			return true;
		}
	}
	return false;
}

void profile_count(struct code_group_samples *g, const char *path, const char *symbol,
	enum code_class class, uint64_t samples)
{
	struct code_top top = {.class = class, .samples = samples};
	if (samples > 0) {
		name_top(path, symbol, &top);
		g->samples += samples;
		g->by_class[class] += samples;
		g->in_openmp += class == CODE_SPINNING && strstr(path, "omp") ? samples : 0;
		g->of_doubles += class == CODE_KERNELS && multiplies_doubles(symbol) ? samples : 0;
		hold_name(&g->names, &top);
	}
}

static int compare_names(const void *left, const void *right)
{
	const struct code_top *a = left, *b = right;
	int names = strcmp(a->name, b->name);
	return names != 0 ? names : (a->class > b->class) - (a->class < b->class);
}

void profile_settle(struct code_group_samples *g)
{
	struct code_top *items = g->names.items;
	if (g->names.n > 0) {
		qsort(items, g->names.n, sizeof(*items), compare_names);
	}
	for (size_t i = 0, k; i < g->names.n; i = k) {
		for (k = i + 1; k < g->names.n && compare_names(&items[i], &items[k]) == 0; k++) {
			items[i].samples += items[k].samples;
		}
		put_top(g, &items[i]);
	}
	free(items);
	g->names = (struct code_names){0};
}

// A thread that polls with sched_yield spends most of that time in the kernel, whose functions have
// no names here. If a group is seen to yield, its samples in the kernel count as polling. The
// training thread also has page faults there: for the same number of samples in sched_yield, it
// gets as many as the other threads have.
uint64_t profile_yielding_in_kernel(
	const struct code_yields *threads, bool leader, uint64_t yielding, uint64_t kernel)
{
	if (threads->yielding == 0 ||
		(double)threads->yielding < YIELDING * (double)threads->kernel) {
		return 0;
	}
	uint64_t most = leader ? yielding * threads->kernel / threads->yielding : kernel;
	return most < kernel ? most : kernel;
}

static void yields_of(const struct loading *l, struct code_yields ret[N_CODE_GROUPS])
{
	for (size_t i = 0; i < l->n; i++) {
		const struct function *f = &l->functions[i];
		bool yield = f->symbol && strstr(f->symbol, "sched_yield");
		bool kernel = strcmp(f->path, "[kernel]") == 0;
		for (size_t k = 0; k < N_CODE_GROUPS; k++) {
			ret[k].yielding += yield ? f->samples[k] : 0;
			ret[k].kernel += kernel ? f->samples[k] : 0;
		}
	}
}

static void add_up(const struct loading *l, struct code_profile *ret)
{
	enum code_class jit = l->kernels ? CODE_KERNELS : CODE_OTHER;
	struct code_yields yields[N_CODE_GROUPS] = {0};
	yields_of(l, yields);
	for (size_t i = 0; i < l->n; i++) {
		const struct function *f = &l->functions[i];
		enum code_class class = profile_classify(f->path, f->symbol, jit);
		bool kernel = strcmp(f->path, "[kernel]") == 0;
		for (size_t k = 0; k < N_CODE_GROUPS; k++) {
			uint64_t spins = !kernel || k == CODE_WORKERS
			                         ? 0
			                         : profile_yielding_in_kernel(&yields[CODE_THREADS],
							   k == CODE_LEADER, yields[k].yielding,
							   yields[k].kernel);
			profile_count(&ret->groups[k], f->path, f->symbol, CODE_SPINNING, spins);
			profile_count(
				&ret->groups[k], f->path, f->symbol, class, f->samples[k] - spins);
		}
	}
}

int profile_load(const struct analysis *a, const struct stretch *stretch, struct code_profile *ret)
{
	static const char select[] =
		"SELECT s.entity, s.leader, s.from_ns, s.to_ns, s.samples, o.path, y.name"
		" FROM profile_sample AS s JOIN profile_object AS o ON o.id = s.object"
		" LEFT JOIN profile_symbol AS y ON y.object = s.object AND y.address = s.address"
		" ORDER BY o.path, y.name";
	struct loading l = {.a = a, .stretch = stretch};
	*ret = (struct code_profile){.within = NAN};
	if (!a->tables.reader || !reader_has_samples(a->tables.reader)) {
		return 0;
	}
	// Of a damaged file, the samples before the damage are used.
	int r = query_each(a->tables.reader, select, take_row, &l, NULL);
	add_up(&l, ret);
	ret->within = l.leader > 0 ? l.within / l.leader : NAN;
	for (size_t i = 0; i < N_CODE_GROUPS; i++) {
		profile_settle(&ret->groups[i]);
	}
	for (size_t i = 0; i < l.n; i++) {
		free(l.functions[i].path);
		free(l.functions[i].symbol);
	}
	free(l.functions);
	return r == -ENOMEM ? r : 0;
}

// Facts -------------------------------------------------------------------------------------------

bool profile_multiplies_doubles(const struct code_profile *p)
{
	uint64_t doubles = 0, all = 0;
	for (size_t i = CODE_LEADER; i <= CODE_THREADS; i++) {
		doubles += p->groups[i].of_doubles;
		all += p->groups[i].by_class[CODE_KERNELS];
	}
	return doubles > 0 && 2 * doubles >= all;
}

void code_facts_put(const struct code_group_samples *g, struct code_facts *ret)
{
	ret->samples = g->samples;
	for (size_t i = 0; g->samples > 0 && i < N_CODE_CLASSES; i++) {
		ret->share[i] = (double)g->by_class[i] / (double)g->samples;
		ret->in_openmp = (double)g->in_openmp / (double)g->samples;
	}
}

void code_facts_append(struct text *t, const struct code_facts *code)
{
	bool shown[N_CODE_CLASSES] = {false};
	for (size_t n = 0; code->samples > 0 && n < N_CODE_CLASSES; n++) {
		size_t largest = N_CODE_CLASSES;
		for (size_t i = 0; i < N_CODE_CLASSES; i++) {
			bool larger = largest == N_CODE_CLASSES ||
			              code->share[i] > code->share[largest];
			largest = !shown[i] && larger ? i : largest;
		}
		if (!(code->share[largest] >= SHOWN)) {
			break;
		}
		shown[largest] = true;
		text_format(
			t, "%s%s ", n > 0 ? ", " : "", code_class_title((enum code_class)largest));
		words_append_percent(t, code->share[largest]);
	}
}
