// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// An operation has two lists of steps, forward and backward. A step is a oneDNN primitive with its
// memory. If a primitive needs weights in a layout of its own, a reorder precedes it; if it returns
// their gradient in one, a reorder follows.

#include "operation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { STEPS_MAX = 4, ARGUMENTS_MAX = 4, MEMORIES_MAX = 24, ALIGNMENT = 64 };

struct step {
	dnnl_primitive_t primitive;
	int count;
	dnnl_exec_arg_t arguments[ARGUMENTS_MAX];
};

struct pass {
	int count;
	struct step steps[STEPS_MAX];
};

struct operation {
	const struct device *device;
	enum primitive_kind kind;
	struct operands operands;
	struct pass forward;
	struct pass backward;
	dnnl_primitive_desc_t description; // of the forward primitive
	dnnl_memory_t workspace; // data that pooling keeps from forward for backward
	dnnl_memory_t memories[MEMORIES_MAX]; // all of them, to destroy them
	int memory_count;
};

// Arguments that each primitive reads and writes, in each direction; 0 ends a list.
static const int arguments[][3][ARGUMENTS_MAX + 1] = {
	[CONVOLUTION] =
		{
			{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
			{DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC},
			{DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS,
				DNNL_ARG_DIFF_BIAS},
		},
	[POOLING] =
		{
			{DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WORKSPACE},
			{DNNL_ARG_WORKSPACE, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC},
		},
	[DENSE] =
		{
			{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
			{DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC},
			{DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS,
				DNNL_ARG_DIFF_BIAS},
		},
	[RELU] =
		{
			{DNNL_ARG_SRC, DNNL_ARG_DST},
			{DNNL_ARG_DST, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC},
		},
	[RESAMPLING] =
		{
			{DNNL_ARG_SRC, DNNL_ARG_DST},
			{DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC},
		},
};

int tensor_init(struct tensor *t, struct shape shape, bool with_gradient, struct error *e)
{
	size_t count = 1;
	for (int i = 0; i < shape.rank; i++) {
		count *= (size_t)shape.size[i];
	}
	size_t bytes = (count * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	*t = (struct tensor){.shape = shape, .count = count};
	t->value = aligned_alloc(ALIGNMENT, bytes);
	t->gradient = with_gradient ? aligned_alloc(ALIGNMENT, bytes) : NULL;
	if (!t->value || (with_gradient && !t->gradient)) {
		tensor_done(t);
		return error_set(e, ENOMEM, "no memory for a tensor of %zu bytes", bytes);
	}
	memset(t->value, 0, bytes);
	if (t->gradient) {
		memset(t->gradient, 0, bytes);
	}
	return 0;
}

void tensor_done(struct tensor *t)
{
	free(t->value);
	free(t->gradient);
	*t = (struct tensor){0};
}

int device_open(struct device *device, struct error *e)
{
	*device = (struct device){0};
	int r = status_error(
		dnnl_engine_create(&device->engine, dnnl_cpu, 0), e, "cannot use the CPU");
	if (r == 0) {
		r = status_error(dnnl_stream_create(&device->stream, device->engine,
					 dnnl_stream_default_flags),
			e, "stream");
	}
	if (r < 0) {
		device_close(device);
	}
	return r;
}

void device_close(struct device *device)
{
	if (device->stream) {
		dnnl_stream_destroy(device->stream);
	}
	if (device->engine) {
		dnnl_engine_destroy(device->engine);
	}
	*device = (struct device){0};
}

static int add_step(struct pass *pass, dnnl_primitive_desc_t description,
	const dnnl_exec_arg_t *bound, int count, struct error *e)
{
	struct step *step = &pass->steps[pass->count];
	int r = status_error(dnnl_primitive_create(&step->primitive, description), e,
		"cannot build a primitive");
	if (r < 0) {
		return r;
	}
	pass->count++;
	step->count = count;
	memcpy(step->arguments, bound, (size_t)count * sizeof(*bound));
	return 0;
}

static int add_reorder(struct operation *o, struct pass *pass, dnnl_memory_t from, dnnl_memory_t to,
	struct error *e)
{
	dnnl_primitive_desc_t description = NULL;
	int r = primitive_describe_reorder(o->device->engine, from, to, &description, e);
	if (r < 0) {
		return r;
	}
	const dnnl_exec_arg_t bound[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
	r = add_step(pass, description, bound, ARRAY_LENGTH(bound), e);
	dnnl_primitive_desc_destroy(description);
	return r;
}

// The tensor data for an argument.
static struct tensor *operand(const struct operation *o, int argument, float **ret_data)
{
	const struct {
		int value;
		int gradient;
		struct tensor *tensor;
	} rows[] = {
		{DNNL_ARG_SRC, DNNL_ARG_DIFF_SRC, o->operands.source},
		{DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_WEIGHTS, o->operands.weights},
		{DNNL_ARG_BIAS, DNNL_ARG_DIFF_BIAS, o->operands.bias},
		{DNNL_ARG_DST, DNNL_ARG_DIFF_DST, o->operands.destination},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		if (argument == rows[i].value || argument == rows[i].gradient) {
			*ret_data = argument == rows[i].value ? rows[i].tensor->value
			                                      : rows[i].tensor->gradient;
			return rows[i].tensor;
		}
	}
	return NULL;
}

static int bind_tensor(struct operation *o, int argument, dnnl_memory_t *ret, struct error *e)
{
	float *data = NULL;
	struct tensor *tensor = operand(o, argument, &data);
	int r = memory_over(o->device->engine, &tensor->shape, data, ret, e);
	if (r == 0) {
		o->memories[o->memory_count++] = *ret;
	}
	return r;
}

// The memory in the layout that a primitive needs for this argument. *ret_plain is the tensor's own
// memory; it is the same if the primitive accepts that.
static int bind_argument(struct operation *o, dnnl_primitive_desc_t description, int argument,
	dnnl_memory_t *ret, dnnl_memory_t *ret_plain, struct error *e)
{
	if (argument == DNNL_ARG_WORKSPACE && o->workspace) {
		*ret = *ret_plain = o->workspace;
		return 0;
	}
	if (argument != DNNL_ARG_WORKSPACE) {
		int r = bind_tensor(o, argument, ret_plain, e);
		if (r < 0) {
			return r;
		}
		if (memory_fits(*ret_plain, description, argument)) {
			*ret = *ret_plain;
			return 0;
		}
	}
	int r = memory_for(o->device->engine, description, argument, ret, e);
	if (r < 0) {
		return r;
	}
	o->memories[o->memory_count++] = *ret;
	if (argument == DNNL_ARG_WORKSPACE) {
		*ret_plain = o->workspace = *ret;
	}
	return 0;
}

static int add_primitive(struct operation *o, struct pass *pass, dnnl_primitive_desc_t description,
	enum direction direction, struct error *e)
{
	const int *list = arguments[o->kind][direction];
	dnnl_exec_arg_t bound[ARGUMENTS_MAX];
	dnnl_memory_t plain[ARGUMENTS_MAX];
	int count = 0;
	for (; count < ARGUMENTS_MAX && list[count]; count++) {
		bound[count].arg = list[count];
		int r = bind_argument(
			o, description, list[count], &bound[count].memory, &plain[count], e);
		if (r == 0 && list[count] == DNNL_ARG_WEIGHTS &&
			bound[count].memory != plain[count]) {
			r = add_reorder(o, pass, plain[count], bound[count].memory, e);
		}
		if (r < 0) {
			return r;
		}
	}
	int r = add_step(pass, description, bound, count, e);
	for (int i = 0; i < count && r == 0; i++) {
		if (list[i] == DNNL_ARG_DIFF_WEIGHTS && bound[i].memory != plain[i]) {
			r = add_reorder(o, pass, bound[i].memory, plain[i], e);
		}
	}
	return r;
}

static int add_direction(struct operation *o, enum direction direction, struct error *e)
{
	struct shapes shapes = {
		.source = o->operands.source->shape,
		.weights = o->operands.weights ? o->operands.weights->shape : (struct shape){0},
		.bias = o->operands.bias ? o->operands.bias->shape : (struct shape){0},
		.destination = o->operands.destination->shape,
		.window = o->operands.window,
	};
	dnnl_primitive_desc_t description = NULL;
	int r = primitive_describe(
		o->device->engine, o->kind, direction, &shapes, o->description, &description, e);
	if (r < 0) {
		return r;
	}
	struct pass *pass = direction == FORWARD ? &o->forward : &o->backward;
	r = add_primitive(o, pass, description, direction, e);
	if (direction == FORWARD) {
		o->description = description;
	} else {
		dnnl_primitive_desc_destroy(description);
	}
	return r;
}

int operation_new(const struct device *device, enum primitive_kind kind,
	const struct operands *operands, struct operation **ret, struct error *e)
{
	struct operation *o = calloc(1, sizeof(*o));
	if (!o) {
		return error_set(e, ENOMEM, "no memory for an operation");
	}
	o->device = device;
	o->kind = kind;
	o->operands = *operands;
	int r = add_direction(o, FORWARD, e);
	// Weights first: an in-place operation overwrites the incoming gradient.
	if (r == 0 && operands->weights) {
		r = add_direction(o, BACKWARD_WEIGHTS, e);
	}
	if (r == 0 && operands->source->gradient) {
		r = add_direction(o, BACKWARD_DATA, e);
	}
	if (r < 0) {
		operation_free(o);
		return r;
	}
	*ret = o;
	return 0;
}

static void pass_done(struct pass *pass)
{
	for (int i = 0; i < pass->count; i++) {
		dnnl_primitive_destroy(pass->steps[i].primitive);
	}
}

void operation_free(struct operation *o)
{
	if (!o) {
		return;
	}
	pass_done(&o->forward);
	pass_done(&o->backward);
	for (int i = 0; i < o->memory_count; i++) {
		dnnl_memory_destroy(o->memories[i]);
	}
	if (o->description) {
		dnnl_primitive_desc_destroy(o->description);
	}
	free(o);
}

static int run(const struct device *device, const struct pass *pass, struct error *e)
{
	dnnl_status_t status = dnnl_success;
	for (int i = 0; i < pass->count && status == dnnl_success; i++) {
		const struct step *step = &pass->steps[i];
		status = dnnl_primitive_execute(
			step->primitive, device->stream, step->count, step->arguments);
	}
	if (status == dnnl_success) {
		status = dnnl_stream_wait(device->stream);
	}
	return status_error(status, e, "a primitive failed");
}

int operation_forward(const struct operation *o, struct error *e)
{
	return run(o->device, &o->forward, e);
}

int operation_backward(const struct operation *o, struct error *e)
{
	return run(o->device, &o->backward, e);
}
