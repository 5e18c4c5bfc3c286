// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Layers become operations between tensors. Softmax, cross-entropy and Adam (Kingma and Ba 2015)
// are implemented here.

#include "network.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "random.h"

enum { LAYERS_MAX = PARAMETERS_MAX / 2 };

// The network that Torres, Barrios and Denneulin (2021) train, their Table 1.
static const struct layer cnn[] = {
	{CONVOLUTION, 32, 3, 0, 0},
	{RELU, 0, 0, 0, 0},
	{POOLING, 0, 2, 0, 0},
	{CONVOLUTION, 64, 3, 0, 0},
	{RELU, 0, 0, 0, 0},
	{POOLING, 0, 2, 0, 0},
	{CONVOLUTION, 64, 3, 0, 0},
	{RELU, 0, 0, 0, 0},
	{DENSE, 32, 0, 0, 0},
	{RELU, 0, 0, 0, 0},
	{DENSE, 10, 0, 0, 0},
};

// So small that overhead takes longer than arithmetic.
static const struct layer tiny[] = {
	{DENSE, 10, 0, 0, 0},
};

// So large that only arithmetic matters.
static const struct layer wide[] = {
	{CONVOLUTION, 96, 3, 0, 0},
	{RELU, 0, 0, 0, 0},
	{CONVOLUTION, 128, 3, 0, 0},
	{RELU, 0, 0, 0, 0},
	{POOLING, 0, 2, 0, 0},
	{CONVOLUTION, 128, 3, 0, 0},
	{RELU, 0, 0, 0, 0},
	{DENSE, 128, 0, 0, 0},
	{RELU, 0, 0, 0, 0},
	{DENSE, 10, 0, 0, 0},
};

// Krizhevsky (2014), in the usual form, without dropout.
static const struct layer alexnet[] = {
	{CONVOLUTION, 64, 11, 4, 2},
	{RELU, 0, 0, 0, 0},
	{POOLING, 0, 3, 2, 0},
	{CONVOLUTION, 192, 5, 1, 2},
	{RELU, 0, 0, 0, 0},
	{POOLING, 0, 3, 2, 0},
	{CONVOLUTION, 384, 3, 1, 1},
	{RELU, 0, 0, 0, 0},
	{CONVOLUTION, 256, 3, 1, 1},
	{RELU, 0, 0, 0, 0},
	{CONVOLUTION, 256, 3, 1, 1},
	{RELU, 0, 0, 0, 0},
	{POOLING, 0, 3, 2, 0},
	{RESAMPLING, 6, 0, 0, 0},
	{DENSE, 4096, 0, 0, 0},
	{RELU, 0, 0, 0, 0},
	{DENSE, 4096, 0, 0, 0},
	{RELU, 0, 0, 0, 0},
	{DENSE, 10, 0, 0, 0},
};

static const struct model models[] = {
	{"cnn", cnn, ARRAY_LENGTH(cnn), 32, 18, 1e-3f},
	{"alexnet", alexnet, ARRAY_LENGTH(alexnet), 224, 63, 1e-4f},
	{"tiny", tiny, ARRAY_LENGTH(tiny), 32, 1, 1e-3f},
	{"wide", wide, ARRAY_LENGTH(wide), 32, 9, 1e-3f},
};

// A parameter, with Adam's moments of its gradients.
struct parameter {
	struct tensor tensor;
	float *mean;
	float *square;
};

struct network {
	struct device device;
	struct network_size size;
	struct tensor activations[LAYERS_MAX + 1]; // the input, then the output of each layer
	struct parameter parameters[PARAMETERS_MAX];
	struct operation *operations[LAYERS_MAX];
	size_t activation_count;
	size_t parameter_count;
	size_t operation_count;
	unsigned step;
};

const struct model *model_at(size_t i)
{
	return i < ARRAY_LENGTH(models) ? &models[i] : NULL;
}

const struct model *model_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(models); i++) {
		if (strcmp(models[i].name, name) == 0) {
			return &models[i];
		}
	}
	return NULL;
}

static int add_parameter(
	struct network *n, struct shape shape, struct tensor **ret, struct error *e)
{
	struct parameter *p = &n->parameters[n->parameter_count];
	int r = tensor_init(&p->tensor, shape, true, e);
	if (r < 0) {
		return r;
	}
	n->parameter_count++;
	p->mean = calloc(p->tensor.count, sizeof(*p->mean));
	p->square = calloc(p->tensor.count, sizeof(*p->square));
	if (!p->mean || !p->square) {
		return error_set(e, ENOMEM, "no memory for the optimiser");
	}
	*ret = &p->tensor;
	return 0;
}

static int add_activation(struct network *n, struct shape shape, bool with_gradient,
	struct tensor **ret, struct error *e)
{
	struct tensor *activation = &n->activations[n->activation_count];
	int r = tensor_init(activation, shape, with_gradient, e);
	if (r == 0) {
		n->activation_count++;
		*ret = activation;
	}
	return r;
}

// Uniform with variance 2 / (inputs + outputs), which preserves the scale of activations and
// gradients (Glorot and Bengio 2010).
static void draw_weights(struct tensor *weights, struct random *random)
{
	float outputs = (float)weights->shape.size[0], inputs = (float)weights->shape.size[1];
	float window = (float)weights->count / (outputs * inputs);
	float limit = sqrtf(6 / (window * (inputs + outputs)));
	for (size_t i = 0; i < weights->count; i++) {
		weights->value[i] = random_between(random, -limit, limit);
	}
}

static struct shape weights_shape(const struct layer *layer, const struct shape *source)
{
	struct shape weights = {.rank = source->rank, .size = {layer->outputs, source->size[1]}};
	for (int i = 2; i < source->rank; i++) {
		weights.size[i] = layer->kind == CONVOLUTION ? layer->window : source->size[i];
	}
	weights.order = source->rank == 4 ? dnnl_oihw : dnnl_oi;
	return weights;
}

static int add_weights(struct network *n, const struct layer *layer, const struct shape *source,
	struct operands *operands, struct random *random, struct error *e)
{
	struct shape bias = {.rank = 1, .size = {layer->outputs}, .order = dnnl_x};
	int r = add_parameter(n, weights_shape(layer, source), &operands->weights, e);
	if (r == 0) {
		r = add_parameter(n, bias, &operands->bias, e);
	}
	if (r == 0) {
		draw_weights(operands->weights, random);
	}
	return r;
}

static bool has_weights(const struct layer *layer)
{
	return layer->kind == CONVOLUTION || layer->kind == DENSE;
}

static int stride_of(const struct layer *layer)
{
	return layer->stride > 0 ? layer->stride : layer->kind == POOLING ? layer->window : 1;
}

static struct shape output_shape(const struct layer *layer, const struct shape *source)
{
	struct shape shape = *source;
	if (layer->kind == DENSE) {
		return (struct shape){2, {source->size[0], layer->outputs}, dnnl_nc};
	}
	if (layer->kind == CONVOLUTION) {
		shape.size[1] = layer->outputs;
	}
	for (int i = 2; i < shape.rank && layer->kind != RELU; i++) {
		dnnl_dim_t rest = source->size[i] + 2 * layer->padding - layer->window;
		shape.size[i] = layer->kind == RESAMPLING ? layer->outputs
		                                          : rest / stride_of(layer) + 1;
	}
	return shape;
}

// A layer of the model; the last one gets as many outputs as there are classes.
static struct layer layer_at(const struct model *model, size_t i, const struct network_size *size)
{
	struct layer layer = model->layers[i];
	if (i + 1 == model->layer_count && size->classes > 0) {
		layer.outputs = size->classes;
	}
	return layer;
}

static struct shape input_shape(const struct network_size *size)
{
	return (struct shape){4, {size->images, size->colours, size->edge, size->edge}, dnnl_nhwc};
}

size_t model_parameter_count(const struct model *model, const struct network_size *size)
{
	struct shape shape = input_shape(size);
	size_t count = 0;
	for (size_t i = 0; i < model->layer_count; i++) {
		struct layer layer = layer_at(model, i, size);
		if (has_weights(&layer)) {
			struct shape weights = weights_shape(&layer, &shape);
			size_t product = 1;
			for (int k = 0; k < weights.rank; k++) {
				product *= (size_t)weights.size[k];
			}
			count += product + (size_t)layer.outputs;
		}
		shape = output_shape(&layer, &shape);
	}
	return count;
}

static int add_layer(
	struct network *n, const struct layer *layer, struct random *random, struct error *e)
{
	struct tensor *source = &n->activations[n->activation_count - 1];
	struct operands operands = {
		.source = source,
		.destination = source,
		.window = {layer->window, stride_of(layer), layer->padding},
	};
	int r = 0;
	if (has_weights(layer)) {
		r = add_weights(n, layer, &source->shape, &operands, random, e);
	}
	if (r == 0 && layer->kind != RELU) {
		struct shape shape = output_shape(layer, &source->shape);
		r = add_activation(n, shape, true, &operands.destination, e);
	}
	if (r == 0) {
		r = operation_new(
			&n->device, layer->kind, &operands, &n->operations[n->operation_count], e);
	}
	if (r == 0) {
		n->operation_count++;
	}
	return r;
}

int network_new(const struct model *model, const struct network_size *size, uint64_t seed,
	struct network **ret, struct error *e)
{
	struct network *n = calloc(1, sizeof(*n));
	if (!n) {
		return error_set(e, ENOMEM, "no memory for a network");
	}
	n->size = *size;
	struct random random = {seed};
	struct tensor *source = NULL;
	int r = device_open(&n->device, e);
	if (r == 0) {
		r = add_activation(n, input_shape(size), false, &source, e);
	}
	for (size_t i = 0; i < model->layer_count && r == 0; i++) {
		struct layer layer = layer_at(model, i, size);
		r = add_layer(n, &layer, &random, e);
		if (r < 0) {
			error_prefix(e, "layer %zu of %s", i + 1, model->name);
		}
	}
	if (r < 0) {
		network_free(n);
		return r;
	}
	*ret = n;
	return 0;
}

void network_free(struct network *n)
{
	if (!n) {
		return;
	}
	for (size_t i = 0; i < n->operation_count; i++) {
		operation_free(n->operations[i]);
	}
	for (size_t i = 0; i < n->activation_count; i++) {
		tensor_done(&n->activations[i]);
	}
	for (size_t i = 0; i < n->parameter_count; i++) {
		tensor_done(&n->parameters[i].tensor);
		free(n->parameters[i].mean);
		free(n->parameters[i].square);
	}
	device_close(&n->device);
	free(n);
}

// Softmax and cross-entropy of one image. The gradient is the difference between probabilities and
// truth. Returns the loss.
static double image_loss(const float *outputs, int classes, int class, float share, float *gradient)
{
	float largest = outputs[0];
	for (int i = 1; i < classes; i++) {
		largest = fmaxf(largest, outputs[i]);
	}
	double sum = 0;
	for (int i = 0; i < classes; i++) {
		sum += exp((double)outputs[i] - (double)largest);
	}
	for (int i = 0; i < classes; i++) {
		double probability = exp((double)outputs[i] - (double)largest) / sum;
		gradient[i] = (float)(probability - (i == class)) * share;
	}
	return log(sum) - ((double)outputs[class] - (double)largest);
}

static bool most_likely(const float *outputs, int classes, int class)
{
	for (int i = 0; i < classes; i++) {
		if (outputs[i] > outputs[class]) {
			return false;
		}
	}
	return true;
}

// The position of a pixel of the larger image in the smaller one, by pixel centres: between two
// pixels, the second with weight `share`.
struct place {
	int first;
	int second;
	float share;
};

static struct place place_of(int pixel, int edge, int source_edge)
{
	float at = ((float)pixel + 0.5f) * (float)source_edge / (float)edge - 0.5f;
	at = fmaxf(at, 0);
	int first = (int)at;
	int second = first + 1 < source_edge ? first + 1 : source_edge - 1;
	return (struct place){first, second, at - (float)first};
}

static float between(float first, float second, float share)
{
	return first + (second - first) * share;
}

static void resize(const struct network_size *size, const float *source, float *image)
{
	size_t row = (size_t)size->source_edge * (size_t)size->colours;
	for (int y = 0; y < size->edge; y++) {
		struct place down = place_of(y, size->edge, size->source_edge);
		const float *above = source + (size_t)down.first * row;
		const float *below = source + (size_t)down.second * row;
		for (int x = 0; x < size->edge; x++) {
			struct place across = place_of(x, size->edge, size->source_edge);
			int left = across.first * size->colours;
			int right = across.second * size->colours;
			for (int c = 0; c < size->colours; c++) {
				float top = between(
					above[left + c], above[right + c], across.share);
				float foot = between(
					below[left + c], below[right + c], across.share);
				*image++ = between(top, foot, down.share);
			}
		}
	}
}

static void take_images(struct network *n, const float *images)
{
	const struct network_size *size = &n->size;
	struct tensor *input = &n->activations[0];
	if (size->edge == size->source_edge) {
		memcpy(input->value, images, input->count * sizeof(float));
		return;
	}
	size_t source_floats = (size_t)(size->source_edge * size->source_edge * size->colours);
	for (size_t i = 0; i < (size_t)size->images; i++) {
		resize(size, images + i * source_floats,
			input->value + i * (input->count / (size_t)size->images));
	}
}

int network_score(struct network *n, const float *images, const uint8_t *classes, struct score *ret,
	struct error *e)
{
	take_images(n, images);
	for (size_t i = 0; i < n->operation_count; i++) {
		int r = operation_forward(n->operations[i], e);
		if (r < 0) {
			return r;
		}
	}
	const struct tensor *output = &n->activations[n->activation_count - 1];
	int class_count = (int)output->shape.size[1];
	struct score score = {0};
	for (int i = 0; i < n->size.images; i++) {
		const float *outputs = output->value + (size_t)i * (size_t)class_count;
		float *gradient = output->gradient + (size_t)i * (size_t)class_count;
		score.loss += image_loss(
			outputs, class_count, classes[i], 1.0f / (float)n->size.images, gradient);
		score.correct += most_likely(outputs, class_count, classes[i]);
	}
	score.loss /= n->size.images;
	*ret = score;
	return 0;
}

int network_backward(struct network *n, struct error *e)
{
	int r = 0;
	for (size_t i = n->operation_count; i > 0 && r == 0; i--) {
		r = operation_backward(n->operations[i - 1], e);
	}
	return r;
}

void network_update(struct network *n, float rate)
{
	static const float mean_decay = 0.9f, square_decay = 0.999f, smallest = 1e-8f;
	n->step++;
	// Both means start at 0; the corrections compensate for that.
	float mean_share = 1 - powf(mean_decay, (float)n->step);
	float square_share = 1 - powf(square_decay, (float)n->step);
	for (size_t p = 0; p < n->parameter_count; p++) {
		const struct parameter *parameter = &n->parameters[p];
		const float *gradient = parameter->tensor.gradient;
		for (size_t i = 0; i < parameter->tensor.count; i++) {
			float g = gradient[i];
			float mean = mean_decay * parameter->mean[i] + (1 - mean_decay) * g;
			float square = square_decay * parameter->square[i] +
			               (1 - square_decay) * g * g;
			parameter->mean[i] = mean;
			parameter->square[i] = square;
			parameter->tensor.value[i] -= rate * (mean / mean_share) /
			                              (sqrtf(square / square_share) + smallest);
		}
	}
}

struct tensor *network_parameter(struct network *n, size_t i)
{
	return i < n->parameter_count ? &n->parameters[i].tensor : NULL;
}

size_t network_parameter_count(const struct network *n)
{
	size_t count = 0;
	for (size_t i = 0; i < n->parameter_count; i++) {
		count += n->parameters[i].tensor.count;
	}
	return count;
}
