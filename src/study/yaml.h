// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A YAML document as a tree whose nodes have line and column. Aliases are not expanded: an alias is
// the node that it refers to, so a small file stays a small tree.

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
	char *text; // of a scalar, as written, without quotes; has no NUL
	bool quoted;
	bool open; // still being read
	// of a list; of a map, its keys (scalars), each followed by its value
	struct yaml_node **items;
	size_t n;
	size_t capacity;
};

struct yaml {
	char *name; // of the file, for errors
	struct yaml_node *root; // NULL: an empty document
	struct yaml_node **nodes; // all nodes, owned
	size_t n_nodes;
	size_t nodes_capacity;
};

// Parses a document. Returns 0; -EINVAL with one line "NAME:LINE:COLUMN: what is wrong"; -ENOMEM.
int yaml_parse(const char *name, const char *data, size_t size, struct yaml *ret, struct error *e);
void yaml_done(struct yaml *y);

// The value of a key; NULL if there is none, or if `map` is not a map.
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
// Whether it is null: an empty value, ~ or null without quotes.
bool yaml_is_null(const struct yaml_node *node);

// Sets the error "NAME:LINE:COLUMN: FIELD: expected ..., found ...", where the node is what was
// found. Returns -EINVAL.
int yaml_wrong(const struct yaml *y, const struct yaml_node *node, struct error *e,
	const char *field, const char *expected, ...) __attribute__((format(printf, 5, 6)));
// The same with other text after "FIELD: ".
int yaml_error(const struct yaml *y, const struct yaml_node *node, struct error *e,
	const char *field, const char *format, ...) __attribute__((format(printf, 5, 6)));

struct text;
// Appends "32", "[32, 64]", "{value: 3}", for people: printable and short.
void yaml_append(struct text *t, const struct yaml_node *node);

// Whether two trees are the same. If not, sets the field that differs ("parameters.workers") and
// the nodes (NULL: missing). The order of keys does not matter.
bool yaml_same(const struct yaml_node *was, const struct yaml_node *is, struct text *ret_field,
	const struct yaml_node **ret_was, const struct yaml_node **ret_is);
