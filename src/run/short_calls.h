// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Short operations of PyTorch that Python code calls one by one, told from arithmetic by samples of
// code. Both are code of the framework. Three observations bound the time of short operations:
//
// - Functions that lead to an operation (dispatch, views, shapes, autograd's records) have a
//   quarter of it or more. They are known by name; arithmetic does not call them for long.
// - It is spread over hundreds of functions, while arithmetic on large tensors runs in a few loops.
// - Python runs between two calls, so it is at most a multiple of the interpreter's time.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "run/phases.h"

struct analysis;

struct short_calls { // samples of the first threads of training processes, in one phase
	uint64_t samples; // of all code
	uint64_t interpreter; // and its garbage collector
	uint64_t arithmetic; // matrix kernels, framework, copying; with short operations
	uint64_t arrays; // NumPy's, not in `arithmetic`
	uint64_t kernel; // system calls, page faults
	uint64_t dispatch; // functions that lead to an operation
	uint64_t spread; // framework, allocation, copying: with dispatch, without loops
};

// Of a damaged file, the samples before the damage are used. Returns 0 or -ENOMEM.
int short_calls_load(const struct analysis *a, enum phase_id phase, struct short_calls *ret);
// Of the samples at n places that are not known to be dispatch, those in no loop.
uint64_t short_calls_spread(const uint64_t *places, size_t n, uint64_t dispatch);
// The samples that short operations have: 0 if there are too few to tell.
uint64_t short_calls_samples(const struct short_calls *calls);
// The same of phases whose operations an engine calls, without Python: autograd's backward.
uint64_t short_calls_of_engine(const struct short_calls *calls);
