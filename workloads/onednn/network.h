// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A network of layers in a row, its loss and its optimiser.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "operation.h"

// A layer's kind, how many outputs (filters, units; of resampling the edge of the image) it has,
// and its window, where its kind has these. A stride of 0 is that kind's usual one: 1 of a
// convolution, the window of a pooling. Between the last convolution or pooling and a dense layer
// lies no flattening of its own: a dense layer takes images as they are.
struct layer {
	enum primitive_kind kind;
	int outputs;
	int window;
	int stride;
	int padding;
};

struct model {
	const char *name;
	const struct layer *layers;
	size_t layer_count;
	int edge; // of the images that it is made for
	int smallest; // edge that it can do with
	float learning_rate;
};

// The model of this name, or NULL. The i-th model, or NULL after the last.
const struct model *model_find(const char *name);
const struct model *model_at(size_t i);

struct network;

enum { PARAMETERS_MAX = 48 };

// What a network is given: batches of images of `source_edge` x `source_edge` pixels with `colours`
// each, which it resizes to `edge` first (bilinear). The last layer must be dense: its outputs are
// the classes, as many as `classes`, or as the model has where that is 0.
struct network_size {
	int images;
	int source_edge;
	int edge;
	int colours;
	int classes;
};

// Its weights are drawn from the seed.
int network_new(const struct model *model, const struct network_size *size, uint64_t seed,
	struct network **ret, struct error *e);
void network_free(struct network *network);

struct score {
	double loss; // cross-entropy, mean over the batch
	uint32_t correct; // how many of the batch were most likely of their own class
};

// Forward: what the network makes of a batch.
int network_score(struct network *network, const float *images, const uint8_t *classes,
	struct score *ret, struct error *e);
// Backward: the gradients of the loss last scored.
int network_backward(struct network *network, struct error *e);
// One step of Adam down the gradients.
void network_update(struct network *network, float rate);

// Weights and biases in the order of the layers, and how many numbers they are.
struct tensor *network_parameter(struct network *network, size_t i); // NULL after the last
size_t network_parameter_count(const struct network *network);
// The same before there is one.
size_t model_parameter_count(const struct model *model, const struct network_size *size);
