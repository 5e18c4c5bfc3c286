// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tensors, and operations between them, forward and backward.

#pragma once

#include <stddef.h>

#include "primitive.h"

// Values and, if needed, the gradient of the loss with respect to them. Both are in the order of
// the shape and owned by the tensor.
struct tensor {
	struct shape shape;
	size_t count;
	float *value;
	float *gradient; // NULL: not needed
};

int tensor_init(struct tensor *t, struct shape shape, bool with_gradient, struct error *e);
void tensor_done(struct tensor *t);

// A CPU with a stream for primitives.
struct device {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
};

int device_open(struct device *device, struct error *e);
void device_close(struct device *device);

// The tensors of an operation, which must outlive it. Weights and bias are NULL if the kind has
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

// Forward computes the destination's value. Backward uses the destination's gradient to compute
// those of weights and bias, and of the source if it has one. Both return when the computation is
// done.
int operation_forward(const struct operation *operation, struct error *e);
int operation_backward(const struct operation *operation, struct error *e);
