// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tensors, and operations between them that run forward and backward.

#pragma once

#include <stddef.h>

#include "primitive.h"

// Values and, where somebody asks for it, the gradient of the loss with respect to them. Both lie
// in the shape's order and belong to the tensor.
struct tensor {
	struct shape shape;
	size_t count;
	float *value;
	float *gradient; // NULL: nobody asks
};

int tensor_init(struct tensor *t, struct shape shape, bool with_gradient, struct error *e);
void tensor_done(struct tensor *t);

// A CPU and the stream in which its primitives run.
struct device {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
};

int device_open(struct device *device, struct error *e);
void device_close(struct device *device);

// What an operation works on; they must outlive it. Weights and bias are NULL where a kind has
// none. RELU works in place: source and destination are the same tensor.
struct operands {
	struct tensor *source;
	struct tensor *weights;
	struct tensor *bias;
	struct tensor *destination;
	struct window window; // of a convolution or pooling
};

struct operation;

int operation_new(const struct device *device, enum primitive_kind kind,
	const struct operands *operands, struct operation **ret, struct error *e);
void operation_free(struct operation *operation);

// Forward computes destination's value. Backward takes destination's gradient and computes that of
// weights and bias, and of the source where it has one. Both return when all is done.
int operation_forward(const struct operation *operation, struct error *e);
int operation_backward(const struct operation *operation, struct error *e);
