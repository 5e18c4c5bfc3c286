// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Parses YAML from libfyaml's events. Its document API loses the positions of aliases, and expands
// those it is asked to resolve.

#include "study/yaml.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"

enum { SHOWN_BYTES = 60 };

struct anchor {
	char *name;
	struct yaml_node *node;
};

struct building {
	struct yaml *yaml;
	const char *data;
	size_t size;
	struct error *e;
	struct yaml_node *open[YAML_MAX_DEPTH];
	size_t depth;
	struct anchor *anchors;
	size_t n_anchors;
	size_t anchors_capacity;
	unsigned documents;
};

// Errors ------------------------------------------------------------------------------------------

int yaml_error(const struct yaml *y, const struct yaml_node *node, struct error *e,
	const char *field, const char *format, ...)
{
	char what[400];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	return error_set(e, EINVAL, "%s:%u:%u: %s%s%s", y->name, node ? node->line : 1,
		node ? node->column : 1, field, *field ? ": " : "", what);
}

int yaml_wrong(const struct yaml *y, const struct yaml_node *node, struct error *e,
	const char *field, const char *expected, ...)
{
	char what[200];
	_cleanup_text_ struct text found = {0};
	va_list arguments;
	va_start(arguments, expected);
	vsnprintf(what, sizeof(what), expected, arguments);
	va_end(arguments);
	bool scalar = node && node->kind == YAML_SCALAR && !yaml_is_null(node);
	text_append_string(&found, scalar ? "'" : "");
	if (scalar) {
		yaml_append(&found, node);
	} else if (!node || node->kind == YAML_SCALAR) {
		text_append_string(&found, "nothing");
	} else {
		text_format(&found, "%s %s", node->n > 0 ? "a" : "an empty",
			node->kind == YAML_LIST ? "list" : "map");
	}
	text_append_string(&found, scalar ? "'" : "");
	return yaml_error(
		y, node, e, field, "expected %s, found %s", what, found.data ? found.data : "");
}

// For people --------------------------------------------------------------------------------------

static void append_scalar(struct text *t, const char *string)
{
	size_t length = strlen(string), shown = length;
	if (length > SHOWN_BYTES) {
		shown = SHOWN_BYTES;
		while (shown > 0 && ((unsigned char)string[shown] & 0xc0) == 0x80) {
			shown--;
		}
	}
	text_append_printable(t, string, shown);
	text_append_string(t, shown < length ? "..." : "");
}

void yaml_append(struct text *t, const struct yaml_node *node)
{
	if (!node) {
		text_append_string(t, "nothing");
	} else if (node->kind == YAML_SCALAR) {
		append_scalar(t, node->text);
	} else {
		bool map = node->kind == YAML_MAP;
		text_append_string(t, map ? "{" : "[");
		for (size_t i = 0; i < node->n && t->length < 3 * SHOWN_BYTES; i++) {
			text_append_string(t, i == 0 ? "" : map && i % 2 == 1 ? ": " : ", ");
			yaml_append(t, node->items[i]);
		}
		text_append_string(t, t->length >= 3 * SHOWN_BYTES ? "..." : "");
		text_append_string(t, map ? "}" : "]");
	}
}

// The tree ----------------------------------------------------------------------------------------

bool yaml_is_null(const struct yaml_node *node)
{
	return !node || (node->kind == YAML_SCALAR && !node->quoted &&
				(!*node->text || strcmp(node->text, "~") == 0 ||
					strcmp(node->text, "null") == 0));
}

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
	for (size_t i = 0; map && map->kind == YAML_MAP && i + 1 < map->n; i += 2) {
		if (strcmp(map->items[i]->text, key) == 0) {
			return map->items[i + 1];
		}
	}
	return NULL;
}

static bool same_map(const struct yaml_node *was, const struct yaml_node *is, struct text *field,
	const struct yaml_node **ret_was, const struct yaml_node **ret_is)
{
	size_t length = field->length;
	for (size_t i = 0; i + 1 < was->n + is->n; i += 2) {
		const char *key = i < was->n ? was->items[i]->text : is->items[i - was->n]->text;
		field->length = length;
		text_append_string(field, length > 0 ? "." : "");
		text_append_printable(field, key, strlen(key));
		const struct yaml_node *a = yaml_get(was, key), *b = yaml_get(is, key);
		if (!a || !b) {
			*ret_was = a;
			*ret_is = b;
			return false;
		}
		if (i < was->n && !yaml_same(a, b, field, ret_was, ret_is)) {
			return false;
		}
	}
	field->length = length;
	return true;
}

bool yaml_same(const struct yaml_node *was, const struct yaml_node *is, struct text *ret_field,
	const struct yaml_node **ret_was, const struct yaml_node **ret_is)
{
	*ret_was = was;
	*ret_is = is;
	if (!was || !is || was->kind != is->kind) {
		return was == is;
	}
	if (was->kind == YAML_SCALAR) {
		return strcmp(was->text, is->text) == 0;
	}
	if (was->kind == YAML_MAP) {
		return same_map(was, is, ret_field, ret_was, ret_is);
	}
	bool same = was->n == is->n;
	for (size_t i = 0; same && i < was->n; i++) {
		same = yaml_same(was->items[i], is->items[i], ret_field, ret_was, ret_is);
	}
	if (!same) { // report the whole list, not one of its items
		*ret_was = was;
		*ret_is = is;
	}
	return same;
}

// Building ----------------------------------------------------------------------------------------

// The library's positions of quoted text are after the quote.
static struct yaml_node place_of(const struct building *b, struct fy_event *event)
{
	const struct fy_mark *mark = fy_event_start_mark(event);
	if (!mark) {
		return (struct yaml_node){.line = 1, .column = 1};
	}
	size_t at = mark->input_pos;
	bool behind = event->type == FYET_SCALAR && mark->column > 0 && at > 0 && at < b->size &&
	              (b->data[at - 1] == '"' || b->data[at - 1] == '\'') &&
	              fy_token_scalar_style(fy_event_get_token(event)) != FYSS_PLAIN;
	return (struct yaml_node){
		.line = (unsigned)mark->line + 1, .column = (unsigned)mark->column + !behind};
}

static struct yaml_node *new_node(struct building *b, enum yaml_kind kind, struct fy_event *event)
{
	struct yaml *y = b->yaml;
	const struct yaml_node place = place_of(b, event);
	if (y->n_nodes >= YAML_MAX_NODES) {
		yaml_error(y, &place, b->e, "", "expected at most %u values", YAML_MAX_NODES);
		return NULL;
	}
	struct yaml_node *node = calloc(1, sizeof(*node));
	if (!node || array_reserve((void **)&y->nodes, &y->nodes_capacity, y->n_nodes + 1,
			     sizeof(struct yaml_node *)) < 0) {
		free(node);
		error_errno(b->e, ENOMEM, "%s", y->name);
		return NULL;
	}
	*node = place;
	node->kind = kind;
	y->nodes[y->n_nodes++] = node;
	return node;
}

static int remember(struct building *b, struct fy_event *event, struct yaml_node *node)
{
	size_t length = 0;
	struct fy_token *token = fy_event_get_anchor_token(event);
	const char *name = token ? fy_token_get_text(token, &length) : NULL;
	if (!name) {
		return 0;
	}
	char *copy = strndup(name, length);
	if (!copy || array_reserve((void **)&b->anchors, &b->anchors_capacity, b->n_anchors + 1,
			     sizeof(*b->anchors)) < 0) {
		free(copy);
		return error_errno(b->e, ENOMEM, "%s", b->yaml->name);
	}
	b->anchors[b->n_anchors++] = (struct anchor){copy, node};
	return 0;
}

static int check_key(struct building *b, struct yaml_node *map, struct yaml_node *key)
{
	if (key->kind != YAML_SCALAR) {
		return yaml_error(b->yaml, key, b->e, "", "expected a key of one word, found a %s",
			key->kind == YAML_LIST ? "list" : "map");
	}
	if (map->n / 2 >= YAML_MAX_KEYS) {
		return yaml_error(
			b->yaml, key, b->e, "", "expected at most %u keys", YAML_MAX_KEYS);
	}
	for (size_t i = 0; i + 1 < map->n; i += 2) {
		if (strcmp(map->items[i]->text, key->text) == 0) {
			_cleanup_text_ struct text shown = {0};
			yaml_append(&shown, key);
			return yaml_error(b->yaml, key, b->e, shown.data ? shown.data : "",
				"expected each key once, found a duplicate (first in line %u)",
				map->items[i]->line);
		}
	}
	return 0;
}

static int put(struct building *b, struct yaml_node *node)
{
	if (b->depth == 0) {
		b->yaml->root = node;
		return 0;
	}
	struct yaml_node *parent = b->open[b->depth - 1];
	if (parent->kind == YAML_MAP && parent->n % 2 == 0) {
		int result = check_key(b, parent, node);
		if (result < 0) {
			return result;
		}
	}
	if (array_reserve((void **)&parent->items, &parent->capacity, parent->n + 1,
		    sizeof(struct yaml_node *)) < 0) {
		return error_errno(b->e, ENOMEM, "%s", b->yaml->name);
	}
	parent->items[parent->n++] = node;
	return 0;
}

static int take_scalar(struct building *b, struct fy_event *event)
{
	size_t length = 0;
	struct fy_token *token = fy_event_get_token(event);
	const char *value = token ? fy_token_get_text(token, &length) : "";
	struct yaml_node *node = new_node(b, YAML_SCALAR, event);
	if (!node) {
		return -b->e->code;
	}
	node->quoted = token && fy_token_scalar_style(token) != FYSS_PLAIN;
	node->text = strndup(value ? value : "", length);
	if (!node->text) {
		return error_errno(b->e, ENOMEM, "%s", b->yaml->name);
	}
	if (strlen(node->text) != length) {
		return yaml_error(b->yaml, node, b->e, "",
			"expected text, found a NUL character after '%s'", node->text);
	}
	int result = remember(b, event, node);
	return result < 0 ? result : put(b, node);
}

static int take_start(struct building *b, struct fy_event *event, enum yaml_kind kind)
{
	struct yaml_node *node = new_node(b, kind, event);
	if (!node) {
		return -b->e->code;
	}
	if (b->depth >= YAML_MAX_DEPTH) {
		return yaml_error(b->yaml, node, b->e, "",
			"expected at most %u levels of lists and maps", YAML_MAX_DEPTH);
	}
	int result = remember(b, event, node);
	result = result < 0 ? result : put(b, node);
	node->open = true;
	b->open[b->depth++] = node;
	return result;
}

static int take_alias(struct building *b, struct fy_event *event)
{
	size_t length = 0;
	struct fy_token *token = fy_event_get_token(event);
	const char *name = token ? fy_token_get_text(token, &length) : NULL;
	struct yaml_node *place = new_node(b, YAML_SCALAR, event), *named = NULL;
	if (!place) {
		return -b->e->code;
	}
	place->text = strndup(name ? name : "", length);
	if (!place->text) {
		return error_errno(b->e, ENOMEM, "%s", b->yaml->name);
	}
	for (size_t i = b->n_anchors; i > 0 && !named; i--) {
		named = strcmp(b->anchors[i - 1].name, place->text) == 0 ? b->anchors[i - 1].node
		                                                         : NULL;
	}
	_cleanup_text_ struct text shown = {0};
	yaml_append(&shown, place);
	if (!named) {
		return yaml_error(b->yaml, place, b->e, "",
			"expected an alias of an anchor, found '*%s' without '&%s' before it",
			shown.data ? shown.data : "", shown.data ? shown.data : "");
	}
	if (named->open) {
		return yaml_error(b->yaml, place, b->e, "",
			"expected an alias of another node, found '*%s' within '&%s'",
			shown.data ? shown.data : "", shown.data ? shown.data : "");
	}
	return put(b, named);
}

static int take_event(struct building *b, struct fy_event *event)
{
	struct yaml_node place = {.line = 1, .column = 1};
	const struct fy_mark *mark = fy_event_start_mark(event);
	switch (event->type) {
	case FYET_DOCUMENT_START:
		place.line = mark ? (unsigned)mark->line + 1 : 1;
		return b->documents++ == 0 ? 0
		                           : yaml_error(b->yaml, &place, b->e, "",
						     "expected one document, found another");
	case FYET_SCALAR:
		return take_scalar(b, event);
	case FYET_ALIAS:
		return take_alias(b, event);
	case FYET_SEQUENCE_START:
		return take_start(b, event, YAML_LIST);
	case FYET_MAPPING_START:
		return take_start(b, event, YAML_MAP);
	case FYET_SEQUENCE_END:
	case FYET_MAPPING_END:
		if (b->depth > 0) {
			b->open[--b->depth]->open = false;
		}
		return 0;
	default:
		return 0;
	}
}

// libfyaml ----------------------------------------------------------------------------------------

static void print_nothing(struct fy_diag *diag, void *user, const char *buffer, size_t length)
{
	(void)diag, (void)user, (void)buffer, (void)length;
}

static int syntax_error(const struct yaml *y, struct fy_diag *diag, struct error *e)
{
	void *previous = NULL;
	const struct fy_diag_error *found = fy_diag_errors_iterate(diag, &previous);
	if (!found) {
		return error_set(e, EINVAL, "%s:1:1: expected YAML", y->name);
	}
	struct yaml_node place = {.line = found->line > 0 ? (unsigned)found->line : 1,
		.column = found->column > 0 ? (unsigned)found->column : 1};
	_cleanup_text_ struct text message = {0};
	const char *text = found->msg ? found->msg : "";
	text_append_printable(&message, text, strcspn(text, "\n"));
	return yaml_error(
		y, &place, e, "", "expected YAML: %.200s", message.data ? message.data : "");
}

static int read_events(struct building *b, struct fy_parser *parser, struct fy_diag *diag)
{
	for (;;) {
		struct fy_event *event = fy_parser_parse(parser);
		if (!event) {
			return fy_diag_got_error(diag) ? syntax_error(b->yaml, diag, b->e) : 0;
		}
		bool last = event->type == FYET_STREAM_END;
		int result = take_event(b, event);
		fy_parser_event_free(parser, event);
		if (result < 0 || last) {
			return result;
		}
	}
}

static int read_stream(struct building *b)
{
	struct fy_diag_cfg diag_config;
	fy_diag_cfg_default(&diag_config);
	diag_config.fp = NULL;
	diag_config.output_fn = print_nothing;
	diag_config.colorize = false;
	struct fy_diag *diag = fy_diag_create(&diag_config);
	if (!diag) {
		return error_errno(b->e, ENOMEM, "%s", b->yaml->name);
	}
	fy_diag_set_collect_errors(diag, true);
	const struct fy_parse_cfg config = {
		.search_path = "", .flags = FYPCF_COLLECT_DIAG, .diag = diag};
	struct fy_parser *parser = fy_parser_create(&config);
	int result = parser && fy_parser_set_string(parser, b->data, b->size) == 0
	                     ? read_events(b, parser, diag)
	                     : error_errno(b->e, ENOMEM, "%s", b->yaml->name);
	if (parser) {
		fy_parser_destroy(parser);
	}
	fy_diag_destroy(diag);
	return result;
}

// Number of bytes before the first that is not valid UTF-8, or `size`.
static size_t valid_utf8(const char *data, size_t size)
{
	for (size_t i = 0; i < size;) {
		unsigned char c = (unsigned char)data[i];
		size_t length = c < 0x80                ? 1
		                : c >= 0xc2 && c < 0xe0 ? 2
		                : c >= 0xe0 && c < 0xf0 ? 3
		                : c >= 0xf0 && c < 0xf5 ? 4
		                                        : 0;
		if (length == 0 || i + length > size) {
			return i;
		}
		for (size_t k = 1; k < length; k++) {
			if (((unsigned char)data[i + k] & 0xc0) != 0x80) {
				return i;
			}
		}
		unsigned char second = length > 1 ? (unsigned char)data[i + 1] : 0;
		if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) ||
			(c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f)) {
			return i;
		}
		i += length;
	}
	return size;
}

static int check_bytes(const struct yaml *y, const char *data, size_t size, struct error *e)
{
	if (size > YAML_MAX_BYTES) {
		return error_set(e, EINVAL, "%s: expected at most %u bytes, found %zu", y->name,
			YAML_MAX_BYTES, size);
	}
	size_t valid = valid_utf8(data, size);
	const char *nul = memchr(data, '\0', valid);
	size_t wrong = nul ? (size_t)(nul - data) : valid;
	if (wrong == size) {
		return 0;
	}
	struct yaml_node place = {.line = 1, .column = 1};
	for (size_t i = 0; i < wrong; i++) {
		place.line += data[i] == '\n';
		place.column = data[i] == '\n' ? 1 : place.column + ((data[i] & 0xc0) != 0x80);
	}
	return yaml_error(y, &place, e, "", "expected UTF-8, found the byte 0x%02x",
		(unsigned char)data[wrong]);
}

int yaml_parse(const char *name, const char *data, size_t size, struct yaml *ret, struct error *e)
{
	struct error ignored = {0};
	struct building b = {.yaml = ret, .data = data, .size = size, .e = e ? e : &ignored};
	*ret = (struct yaml){0};
	ret->name = strdup(name);
	if (!ret->name) {
		return error_errno(b.e, ENOMEM, "%s", name);
	}
	int result = check_bytes(ret, data, size, b.e);
	if (result == 0 && size > 0) {
		result = read_stream(&b);
	}
	for (size_t i = 0; i < b.n_anchors; i++) {
		free(b.anchors[i].name);
	}
	free(b.anchors);
	if (result < 0) {
		yaml_done(ret);
	}
	return result;
}

void yaml_done(struct yaml *y)
{
	for (size_t i = 0; i < y->n_nodes; i++) {
		free(y->nodes[i]->text);
		free(y->nodes[i]->items);
		free(y->nodes[i]);
	}
	free(y->nodes);
	free(y->name);
	*y = (struct yaml){0};
}
