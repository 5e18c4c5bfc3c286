// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The parts of oneDNN that this trainer needs, with one interface for 2.x and 3.x, whose C
// interfaces differ. No other file includes anything that changed between them. All data is float32
// in a given order, except weights, whose order the primitive chooses.

#pragma once

#include <stdbool.h>
#include <dnnl.h>

#include "base/error.h"

enum primitive_kind { CONVOLUTION, POOLING, DENSE, RELU, RESAMPLING };

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS };

// Sizes are batch, channels, height, width; for weights: outputs, inputs, height, width. `order` is
// the order in memory.
struct shape {
	int rank;
	dnnl_dims_t size;
	dnnl_format_tag_t order;
};

// Steps of a window over an image, and the padding around the image.
struct window {
	int edge;
	int stride;
	int padding;
};

// Shapes of the tensors of a primitive; rank 0: absent. Gradients have the same shapes.
struct shapes {
	struct shape source;
	struct shape weights;
	struct shape bias;
	struct shape destination;
	struct window window; // of a convolution or pooling
};

// Describes a primitive. Pooling takes the maximum, resampling the nearest pixel. `forward` is the
// description of the forward primitive; NULL: this is it. *ret is owned by the caller
// (dnnl_primitive_desc_destroy).
int primitive_describe(dnnl_engine_t engine, enum primitive_kind kind, enum direction direction,
	const struct shapes *shapes, dnnl_primitive_desc_t forward, dnnl_primitive_desc_t *ret,
	struct error *e);

// Describes a copy between two layouts.
int primitive_describe_reorder(dnnl_engine_t engine, dnnl_memory_t from, dnnl_memory_t to,
	dnnl_primitive_desc_t *ret, struct error *e);

// Memory of this shape over the caller's data.
int memory_over(dnnl_engine_t engine, const struct shape *shape, float *data, dnnl_memory_t *ret,
	struct error *e);

// New memory in the layout that a primitive chose for an argument (DNNL_ARG_...).
int memory_for(dnnl_engine_t engine, dnnl_primitive_desc_t primitive, int argument,
	dnnl_memory_t *ret, struct error *e);

// Whether a primitive accepts this memory for an argument without a reorder.
bool memory_fits(dnnl_memory_t memory, dnnl_primitive_desc_t primitive, int argument);

// Converts a oneDNN status to an error; 0 for success.
int status_error(dnnl_status_t status, struct error *e, const char *what);
