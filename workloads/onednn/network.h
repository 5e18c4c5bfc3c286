// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A sequential network, its loss and its optimiser.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "operation.h"

// A layer: its kind, its number of outputs (filters, units; for resampling, the edge of the image),
// and its window, if its kind has these. A stride of 0 is the kind's default: 1 for a convolution,
// the window for pooling. No flattening is needed before a dense layer: it accepts images.
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
	int edge; // of the images for which it is made
	int smallest; // smallest possible edge
	float learning_rate;
};

// model_find returns the model of this name, or NULL. The other returns the i-th model, or NULL
// after the last.
const struct model *model_find(const char *name);
const struct model *model_at(size_t i);

struct network;

enum { PARAMETERS_MAX = 48 };

// The input of a network: batches of images of `source_edge` x `source_edge` pixels with `colours`
// each, which it first resizes to `edge` (bilinear). The last layer must be dense. Its outputs are
// the classes: `classes`, or the model's default if that is 0.
struct network_size {
	int images;
	int source_edge;
	int edge;
	int colours;
	int classes;
};

// The weights are initialised from the seed.
int network_new(const struct model *model, const struct network_size *size, uint64_t seed,
	struct network **ret, struct error *e);
void network_free(struct network *network);

struct score {
	double loss; // cross-entropy, mean over the batch
	uint32_t correct; // number of images whose own class was the most likely
};

// Forward pass of a batch.
int network_score(struct network *network, const float *images, const uint8_t *classes,
	struct score *ret, struct error *e);
// Backward pass: the gradients of the loss last scored.
int network_backward(struct network *network, struct error *e);
// One step of Adam.
void network_update(struct network *network, float rate);

// Weights and biases in the order of the layers, and their total number of values.
struct tensor *network_parameter(struct network *network, size_t i); // NULL after the last
size_t network_parameter_count(const struct network *network);
// The same for a model, before a network is created.
size_t model_parameter_count(const struct model *model, const struct network_size *size);
