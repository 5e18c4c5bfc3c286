// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A common interface to oneDNN 2.x and 3.x. In 2.x a layout is a struct, and a primitive is
// described in two steps (an operation, then its primitive); in 3.x a layout is a handle, and one
// call suffices.

#include "primitive.h"

#include <errno.h>
#include <stddef.h>

#include <dnnl_debug.h>

#include "base/cleanup.h"

#if DNNL_VERSION_MAJOR >= 3

typedef const_dnnl_memory_desc_t layout_view;

struct layout {
	dnnl_memory_desc_t description; // owned; NULL: none
};

static layout_view view(const struct layout *layout)
{
	return layout->description;
}

static dnnl_status_t layout_init(
	struct layout *layout, const struct shape *shape, dnnl_format_tag_t order)
{
	return dnnl_memory_desc_create_with_tag(
		&layout->description, shape->rank, shape->size, dnnl_f32, order);
}

static void layout_done(struct layout *layout)
{
	if (layout->description) {
		dnnl_memory_desc_destroy(layout->description);
	}
}

#else

typedef const dnnl_memory_desc_t *layout_view;

struct layout {
	dnnl_memory_desc_t description;
};

static layout_view view(const struct layout *layout)
{
	return layout->description.ndims ? &layout->description : NULL;
}

static dnnl_status_t layout_init(
	struct layout *layout, const struct shape *shape, dnnl_format_tag_t order)
{
	return dnnl_memory_desc_init_by_tag(
		&layout->description, shape->rank, shape->size, dnnl_f32, order);
}

static void layout_done(struct layout *layout)
{
	(void)layout;
}

#endif

// Inputs of a description. The primitive chooses the layout of weights.
struct request {
	dnnl_engine_t engine;
	enum direction direction;
	const struct shapes *shapes;
	struct layout source;
	struct layout weights;
	struct layout bias;
	struct layout destination;
	dnnl_dims_t window;
	dnnl_dims_t strides;
	dnnl_dims_t padding;
	dnnl_primitive_desc_t forward;
};

#if DNNL_VERSION_MAJOR >= 3

static const dnnl_dims_t no_dilation = {0, 0};

static dnnl_status_t convolution(const struct request *r, dnnl_primitive_desc_t *ret)
{
	const dnnl_alg_kind_t direct = dnnl_convolution_direct;
	switch (r->direction) {
	case FORWARD:
		return dnnl_convolution_forward_primitive_desc_create(ret, r->engine,
			dnnl_forward_training, direct, view(&r->source), view(&r->weights),
			view(&r->bias), view(&r->destination), r->strides, no_dilation, r->padding,
			r->padding, NULL);
	case BACKWARD_DATA:
		return dnnl_convolution_backward_data_primitive_desc_create(ret, r->engine, direct,
			view(&r->source), view(&r->weights), view(&r->destination), r->strides,
			no_dilation, r->padding, r->padding, r->forward, NULL);
	case BACKWARD_WEIGHTS:
		return dnnl_convolution_backward_weights_primitive_desc_create(ret, r->engine,
			direct, view(&r->source), view(&r->weights), view(&r->bias),
			view(&r->destination), r->strides, no_dilation, r->padding, r->padding,
			r->forward, NULL);
	}
	return dnnl_invalid_arguments;
}

static dnnl_status_t pooling(const struct request *r, dnnl_primitive_desc_t *ret)
{
	if (r->direction == FORWARD) {
		return dnnl_pooling_forward_primitive_desc_create(ret, r->engine,
			dnnl_forward_training, dnnl_pooling_max, view(&r->source),
			view(&r->destination), r->strides, r->window, no_dilation, r->padding,
			r->padding, NULL);
	}
	return dnnl_pooling_backward_primitive_desc_create(ret, r->engine, dnnl_pooling_max,
		view(&r->source), view(&r->destination), r->strides, r->window, no_dilation,
		r->padding, r->padding, r->forward, NULL);
}

static dnnl_status_t resampling(const struct request *r, dnnl_primitive_desc_t *ret)
{
	const dnnl_alg_kind_t nearest = dnnl_resampling_nearest;
	if (r->direction == FORWARD) {
		return dnnl_resampling_forward_primitive_desc_create(ret, r->engine,
			dnnl_forward_training, nearest, NULL, view(&r->source),
			view(&r->destination), NULL);
	}
	return dnnl_resampling_backward_primitive_desc_create(ret, r->engine, nearest, NULL,
		view(&r->source), view(&r->destination), r->forward, NULL);
}

static dnnl_status_t dense(const struct request *r, dnnl_primitive_desc_t *ret)
{
	switch (r->direction) {
	case FORWARD:
		return dnnl_inner_product_forward_primitive_desc_create(ret, r->engine,
			dnnl_forward_training, view(&r->source), view(&r->weights), view(&r->bias),
			view(&r->destination), NULL);
	case BACKWARD_DATA:
		return dnnl_inner_product_backward_data_primitive_desc_create(ret, r->engine,
			view(&r->source), view(&r->weights), view(&r->destination), r->forward,
			NULL);
	case BACKWARD_WEIGHTS:
		return dnnl_inner_product_backward_weights_primitive_desc_create(ret, r->engine,
			view(&r->source), view(&r->weights), view(&r->bias), view(&r->destination),
			r->forward, NULL);
	}
	return dnnl_invalid_arguments;
}

static dnnl_status_t relu(const struct request *r, dnnl_primitive_desc_t *ret)
{
	const dnnl_alg_kind_t in_place = dnnl_eltwise_relu_use_dst_for_bwd;
	if (r->direction == FORWARD) {
		return dnnl_eltwise_forward_primitive_desc_create(ret, r->engine,
			dnnl_forward_training, in_place, view(&r->source), view(&r->destination), 0,
			0, NULL);
	}
	return dnnl_eltwise_backward_primitive_desc_create(ret, r->engine, in_place,
		view(&r->source), view(&r->destination), view(&r->destination), 0, 0, r->forward,
		NULL);
}

#else

static dnnl_status_t convolution(const struct request *r, dnnl_primitive_desc_t *ret)
{
	const dnnl_alg_kind_t direct = dnnl_convolution_direct;
	dnnl_convolution_desc_t d;
	dnnl_status_t status = dnnl_invalid_arguments;
	switch (r->direction) {
	case FORWARD:
		status = dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, direct,
			view(&r->source), view(&r->weights), view(&r->bias), view(&r->destination),
			r->strides, r->padding, r->padding);
		break;
	case BACKWARD_DATA:
		status = dnnl_convolution_backward_data_desc_init(&d, direct, view(&r->source),
			view(&r->weights), view(&r->destination), r->strides, r->padding,
			r->padding);
		break;
	case BACKWARD_WEIGHTS:
		status = dnnl_convolution_backward_weights_desc_init(&d, direct, view(&r->source),
			view(&r->weights), view(&r->bias), view(&r->destination), r->strides,
			r->padding, r->padding);
		break;
	}
	return status ? status : dnnl_primitive_desc_create(ret, &d, NULL, r->engine, r->forward);
}

static dnnl_status_t pooling(const struct request *r, dnnl_primitive_desc_t *ret)
{
	dnnl_pooling_desc_t d;
	dnnl_status_t status;
	if (r->direction == FORWARD) {
		status = dnnl_pooling_forward_desc_init(&d, dnnl_forward_training, dnnl_pooling_max,
			view(&r->source), view(&r->destination), r->strides, r->window, r->padding,
			r->padding);
	} else {
		status = dnnl_pooling_backward_desc_init(&d, dnnl_pooling_max, view(&r->source),
			view(&r->destination), r->strides, r->window, r->padding, r->padding);
	}
	return status ? status : dnnl_primitive_desc_create(ret, &d, NULL, r->engine, r->forward);
}

static dnnl_status_t resampling(const struct request *r, dnnl_primitive_desc_t *ret)
{
	const dnnl_alg_kind_t nearest = dnnl_resampling_nearest;
	dnnl_resampling_desc_t d;
	dnnl_status_t status;
	if (r->direction == FORWARD) {
		status = dnnl_resampling_forward_desc_init(&d, dnnl_forward_training, nearest, NULL,
			view(&r->source), view(&r->destination));
	} else {
		status = dnnl_resampling_backward_desc_init(
			&d, nearest, NULL, view(&r->source), view(&r->destination));
	}
	return status ? status : dnnl_primitive_desc_create(ret, &d, NULL, r->engine, r->forward);
}

static dnnl_status_t dense(const struct request *r, dnnl_primitive_desc_t *ret)
{
	dnnl_inner_product_desc_t d;
	dnnl_status_t status = dnnl_invalid_arguments;
	switch (r->direction) {
	case FORWARD:
		status = dnnl_inner_product_forward_desc_init(&d, dnnl_forward_training,
			view(&r->source), view(&r->weights), view(&r->bias), view(&r->destination));
		break;
	case BACKWARD_DATA:
		status = dnnl_inner_product_backward_data_desc_init(
			&d, view(&r->source), view(&r->weights), view(&r->destination));
		break;
	case BACKWARD_WEIGHTS:
		status = dnnl_inner_product_backward_weights_desc_init(&d, view(&r->source),
			view(&r->weights), view(&r->bias), view(&r->destination));
		break;
	}
	return status ? status : dnnl_primitive_desc_create(ret, &d, NULL, r->engine, r->forward);
}

static dnnl_status_t relu(const struct request *r, dnnl_primitive_desc_t *ret)
{
	const dnnl_alg_kind_t in_place = dnnl_eltwise_relu_use_dst_for_bwd;
	dnnl_eltwise_desc_t d;
	dnnl_status_t status;
	if (r->direction == FORWARD) {
		status = dnnl_eltwise_forward_desc_init(
			&d, dnnl_forward_training, in_place, view(&r->source), 0, 0);
	} else {
		status = dnnl_eltwise_backward_desc_init(
			&d, in_place, view(&r->source), view(&r->destination), 0, 0);
	}
	return status ? status : dnnl_primitive_desc_create(ret, &d, NULL, r->engine, r->forward);
}

#endif

static const struct {
	const char *name;
	dnnl_status_t (*describe)(const struct request *, dnnl_primitive_desc_t *);
} kinds[] = {
	[CONVOLUTION] = {"convolution", convolution},
	[POOLING] = {"pooling", pooling},
	[DENSE] = {"dense layer", dense},
	[RELU] = {"relu", relu},
	[RESAMPLING] = {"resampling", resampling},
};

static void request_done(struct request *r)
{
	layout_done(&r->source);
	layout_done(&r->weights);
	layout_done(&r->bias);
	layout_done(&r->destination);
}

static dnnl_status_t request_layouts(struct request *r)
{
	const struct {
		struct layout *layout;
		const struct shape *shape;
		dnnl_format_tag_t order;
	} rows[] = {
		{&r->source, &r->shapes->source, r->shapes->source.order},
		{&r->weights, &r->shapes->weights, dnnl_format_tag_any},
		{&r->bias, &r->shapes->bias, r->shapes->bias.order},
		{&r->destination, &r->shapes->destination, r->shapes->destination.order},
	};
	dnnl_status_t status = dnnl_success;
	for (size_t i = 0; i < ARRAY_LENGTH(rows) && status == dnnl_success; i++) {
		if (rows[i].shape->rank > 0) {
			status = layout_init(rows[i].layout, rows[i].shape, rows[i].order);
		}
	}
	return status;
}

int primitive_describe(dnnl_engine_t engine, enum primitive_kind kind, enum direction direction,
	const struct shapes *shapes, dnnl_primitive_desc_t forward, dnnl_primitive_desc_t *ret,
	struct error *e)
{
	const struct window *window = &shapes->window;
	struct request request = {
		.engine = engine,
		.direction = direction,
		.shapes = shapes,
		.window = {window->edge, window->edge},
		.strides = {window->stride, window->stride},
		.padding = {window->padding, window->padding},
		.forward = forward,
	};
	dnnl_status_t status = request_layouts(&request);
	if (status == dnnl_success) {
		status = kinds[kind].describe(&request, ret);
	}
	request_done(&request);
	return status_error(status, e, kinds[kind].name);
}

static layout_view layout_of(dnnl_memory_t memory)
{
	layout_view layout = NULL;
	dnnl_memory_get_memory_desc(memory, &layout);
	return layout;
}

int primitive_describe_reorder(dnnl_engine_t engine, dnnl_memory_t from, dnnl_memory_t to,
	dnnl_primitive_desc_t *ret, struct error *e)
{
	return status_error(dnnl_reorder_primitive_desc_create(
				    ret, layout_of(from), engine, layout_of(to), engine, NULL),
		e, "reorder");
}

int memory_over(dnnl_engine_t engine, const struct shape *shape, float *data, dnnl_memory_t *ret,
	struct error *e)
{
	struct layout layout = {0};
	dnnl_status_t status = layout_init(&layout, shape, shape->order);
	if (status == dnnl_success) {
		status = dnnl_memory_create(ret, view(&layout), engine, data);
	}
	layout_done(&layout);
	return status_error(status, e, "memory");
}

int memory_for(dnnl_engine_t engine, dnnl_primitive_desc_t primitive, int argument,
	dnnl_memory_t *ret, struct error *e)
{
	layout_view layout = dnnl_primitive_desc_query_md(
		primitive, dnnl_query_exec_arg_md, argument);
	return status_error(
		dnnl_memory_create(ret, layout, engine, DNNL_MEMORY_ALLOCATE), e, "memory");
}

bool memory_fits(dnnl_memory_t memory, dnnl_primitive_desc_t primitive, int argument)
{
	layout_view layout = dnnl_primitive_desc_query_md(
		primitive, dnnl_query_exec_arg_md, argument);
	return dnnl_memory_desc_equal(layout, layout_of(memory)) != 0;
}

int status_error(dnnl_status_t status, struct error *e, const char *what)
{
	if (status == dnnl_success) {
		return 0;
	}
	int code = status == dnnl_out_of_memory ? ENOMEM : ENOTSUP;
	return error_set(e, code, "oneDNN: %s: %s", what, dnnl_status2str(status));
}
