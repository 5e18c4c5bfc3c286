// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A YAML document as a tree whose nodes know their line and column. Nothing is expanded: an alias
// is the node that it names, so a small file stays a small tree.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define YAML_MAX_BYTES (1u << 20)
#define YAML_MAX_NODES 100000u
#define YAML_MAX_DEPTH 32u
#define YAML_MAX_KEYS 1000u

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_node {
	enum yaml_kind kind;
	unsigned line; // from 1
	unsigned column; // from 1, in characters
	char *text; // of a scalar, as it was written, without its quotes; no NUL in it
	bool quoted;
	bool open; // its end was not read yet
	struct yaml_node **items; // of a list; of a map its keys (scalars), each before its value
	size_t n;
	size_t capacity;
};

struct yaml {
	char *name; // of the file, for errors
	struct yaml_node *root; // NULL: an empty document
	struct yaml_node **nodes; // all, owned
	size_t n_nodes;
	size_t nodes_capacity;
};

// Every error is one line: "NAME:LINE:COLUMN: what is wrong". -EINVAL for these, -ENOMEM.
int yaml_parse(const char *name, const char *data, size_t size, struct yaml *ret, struct error *e);
void yaml_done(struct yaml *y);

// The value of a key; NULL where there is none, or map is none.
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
// Whether it stands for nothing: an empty value, ~ or null without quotes.
bool yaml_is_null(const struct yaml_node *node);

// "NAME:LINE:COLUMN: FIELD: expected ..., found ...": what was found is the node. Returns -EINVAL.
int yaml_wrong(const struct yaml *y, const struct yaml_node *node, struct error *e,
	const char *field, const char *expected, ...) __attribute__((format(printf, 5, 6)));
// The same with other words after "FIELD: ".
int yaml_error(const struct yaml *y, const struct yaml_node *node, struct error *e,
	const char *field, const char *format, ...) __attribute__((format(printf, 5, 6)));

struct text;
// "32", "[32, 64]", "{value: 3}": for people, printable, not too long.
void yaml_append(struct text *t, const struct yaml_node *node);

// Whether two trees say the same. Where not: the field that differs ("parameters.workers"), and the
// nodes (NULL: it is not there). The order of keys is no difference.
bool yaml_same(const struct yaml_node *was, const struct yaml_node *is, struct text *ret_field,
	const struct yaml_node **ret_was, const struct yaml_node **ret_is);
