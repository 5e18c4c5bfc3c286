// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What this trainer needs of oneDNN, said once for 2.x and 3.x, whose C interfaces differ. Nothing
// else includes anything that changed between them. All data is float32 in a given order; the order
// of weights is the primitive's own choice.

#pragma once

#include <stdbool.h>
#include <dnnl.h>

#include "base/error.h"

enum primitive_kind { CONVOLUTION, POOLING, DENSE, RELU, RESAMPLING };

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS };

// Sizes are batch, channels, height, width; or outputs, inputs, height, width for weights. `order`
// is how they lie in memory.
struct shape {
	int rank;
	dnnl_dims_t size;
	dnnl_format_tag_t order;
};

// How a window moves over an image, and how many pixels of nothing surround the image.
struct window {
	int edge;
	int stride;
	int padding;
};

// Shapes of what a primitive works on. A rank of 0: it has none. Going backward these are the
// shapes of the gradients, which are the same.
struct shapes {
	struct shape source;
	struct shape weights;
	struct shape bias;
	struct shape destination;
	struct window window; // of a convolution or pooling
};

// Describes a primitive. Pooling takes the maximum, resampling the nearest. `forward` is what the
// same kind described going forward, NULL when this is it. *ret belongs to the caller
// (dnnl_primitive_desc_destroy).
int primitive_describe(dnnl_engine_t engine, enum primitive_kind kind, enum direction direction,
	const struct shapes *shapes, dnnl_primitive_desc_t forward, dnnl_primitive_desc_t *ret,
	struct error *e);

// Describes a copy from one order into another.
int primitive_describe_reorder(dnnl_engine_t engine, dnnl_memory_t from, dnnl_memory_t to,
	dnnl_primitive_desc_t *ret, struct error *e);

// Memory of this shape over the caller's data.
int memory_over(dnnl_engine_t engine, const struct shape *shape, float *data, dnnl_memory_t *ret,
	struct error *e);

// Memory of its own in the order that a primitive chose for one of its arguments (DNNL_ARG_...).
int memory_for(dnnl_engine_t engine, dnnl_primitive_desc_t primitive, int argument,
	dnnl_memory_t *ret, struct error *e);

// Whether a primitive takes this memory for the argument as it is.
bool memory_fits(dnnl_memory_t memory, dnnl_primitive_desc_t primitive, int argument);

// A oneDNN status as an error; 0 where it is success.
int status_error(dnnl_status_t status, struct error *e, const char *what);
