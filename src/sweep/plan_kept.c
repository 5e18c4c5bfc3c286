// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A plan without its secrets. A plan without secrets is kept as written. Otherwise the whole plan
// is written anew from its tree, since a mask could change the meaning of YAML: * begins an alias.

#include "sweep/plan_kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"

// The tree ----------------------------------------------------------------------------------------

struct writing {
	struct text *out;
	bool masked; // something was masked
};

static void append_scalar(
	struct writing *w, const struct yaml_node *node, const struct text *masked)
{
	const char *text = masked->data ? masked->data : "";
	bool same = strcmp(text, node->text) == 0;
	bool plain = same && !node->quoted && *text &&
	             !text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					"0123456789_.+/")];
	w->masked = w->masked || !same;
	w->out->failed = w->out->failed || masked->failed;
	if (plain) {
		text_append_string(w->out, text);
	} else {
		text_append_json_string(w->out, text);
	}
}

// Writes a node, and masks only values that look like secrets.
static void append_node(struct writing *w, const struct yaml_node *node)
{
	if (w->out->length > YAML_MAX_BYTES) { // aliases are written out each time
		w->out->failed = true;
	} else if (node->kind == YAML_SCALAR) {
		_cleanup_text_ struct text masked = {0};
		secret_append_value(&masked, node->text, strlen(node->text));
		append_scalar(w, node, &masked);
	} else {
		bool map = node->kind == YAML_MAP;
		text_append_string(w->out, map ? "{" : "[");
		for (size_t i = 0; i < node->n && !w->out->failed; i++) {
			text_append_string(w->out, i == 0 ? "" : map && i % 2 == 1 ? ": " : ", ");
			append_node(w, node->items[i]);
		}
		text_append_string(w->out, map ? "}" : "]");
	}
}

static void append_line(struct writing *w, const struct yaml_node *node)
{
	_cleanup_text_ struct text masked = {0};
	secret_append_text(&masked, node->text, strlen(node->text));
	append_scalar(w, node, &masked);
}

struct words {
	struct writing *writing;
	const struct yaml_node *list;
	size_t n;
};

static void append_word(void *context, const char *masked, size_t length)
{
	struct words *words = context;
	_cleanup_text_ struct text word = {0};
	text_append(&word, masked, length);
	text_append_string(words->writing->out, words->n > 0 ? ", " : "");
	append_scalar(words->writing, words->list->items[words->n++], &word);
}

static void append_command(struct writing *w, const struct yaml_node *node)
{
	if (node->kind == YAML_SCALAR) {
		append_line(w, node);
		return;
	}
	_cleanup_free_ char **arguments = calloc(node->n + 1, sizeof(*arguments));
	struct words words = {.writing = w, .list = node};
	bool failed = !arguments;
	for (size_t i = 0; arguments && i < node->n; i++) {
		arguments[i] = node->items[i]->text;
	}
	text_append_string(w->out, "[");
	if (arguments) {
		secret_each_argument(arguments, append_word, &words, &failed);
	}
	text_append_string(w->out, "]");
	w->out->failed = w->out->failed || failed;
}

struct variable {
	struct text value;
	size_t name_bytes;
};

static void take_value(void *context, const char *masked, size_t length)
{
	struct variable *v = context;
	size_t from = length < v->name_bytes ? length : v->name_bytes;
	text_append(&v->value, masked + from, length - from);
}

// Writes NAME=value, as passed to `env`.
static void append_variable(
	struct writing *w, const struct yaml_node *name, const struct yaml_node *node)
{
	_cleanup_text_ struct text pair = {0};
	struct variable v = {.name_bytes = strlen(name->text) + 1};
	bool failed = false;
	text_format(&pair, "%s=%s", name->text, node->text);
	char *const arguments[] = {pair.data, NULL};
	secret_each_argument(arguments, take_value, &v, &failed);
	v.value.failed = v.value.failed || failed || pair.failed;
	append_scalar(w, node, &v.value);
	text_done(&v.value);
}

static void append_environment(struct writing *w, const struct yaml_node *map)
{
	text_append_string(w->out, "{");
	for (size_t i = 0; i + 1 < map->n; i += 2) {
		text_append_string(w->out, i > 0 ? ", " : "");
		append_node(w, map->items[i]);
		text_append_string(w->out, ": ");
		append_variable(w, map->items[i], map->items[i + 1]);
	}
	text_append_string(w->out, "}");
}

static const struct {
	const char *key;
	void (*append)(struct writing *w, const struct yaml_node *node);
} by_name[] = {{"command", append_command}, {"env", append_environment}};

// Writes a line for each key of the plan.
static void append_plan(struct writing *w, const struct yaml_node *root)
{
	text_append_string(w->out, PLAN_MASKED "\n");
	for (size_t i = 0; i + 1 < root->n; i += 2) {
		void (*append)(struct writing *, const struct yaml_node *) = append_node;
		for (size_t k = 0; k < ARRAY_LENGTH(by_name); k++) {
			append = strcmp(root->items[i]->text, by_name[k].key) == 0
			                 ? by_name[k].append
			                 : append;
		}
		append_node(w, root->items[i]);
		text_append_string(w->out, ": ");
		append(w, root->items[i + 1]);
		text_append_string(w->out, "\n");
	}
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

// Comments may contain names with values; elsewhere a secret is known by its form. A # in a quoted
// text is taken for a comment, too: plan_kept checks that the plan is still the same.
static void append_as_written(struct text *out, const char *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		const char *newline = memchr(data + at, '\n', size - at);
		size_t end = newline ? (size_t)(newline - data) + 1 : size;
		size_t comment = at;
		while (comment < end &&
			!(data[comment] == '#' && (comment == at || is_blank(data[comment - 1])))) {
			comment++;
		}
		text_append(out, data + at, comment - at);
		secret_append_text(out, data + comment, end - comment);
		at = end;
	}
}

static bool is_other_plan(const struct plan *plan, const struct text *written)
{
	struct plan again;
	_cleanup_free_ char *what = NULL;
	if (plan_read(plan->yaml.name, written->data, written->length, &again, NULL) != 0) {
		return true;
	}
	bool other = plan_differs(plan, &again, &what);
	plan_done(&again);
	return other;
}

int plan_kept(
	const struct plan *plan, const char *data, size_t size, struct text *ret, struct error *e)
{
	struct writing w = {.out = ret};
	append_plan(&w, plan->yaml.root);
	if (!ret->failed && !w.masked) {
		_cleanup_text_ struct text lines = {0}, written = {0};
		append_as_written(&lines, data, size);
		secret_append_value(&written, lines.data ? lines.data : "", lines.length);
		ret->failed = ret->failed || lines.failed || written.failed;
		if (!ret->failed && !is_other_plan(plan, &written)) {
			text_clear(ret);
			text_append(ret, written.data, written.length);
		}
	}
	if (ret->failed) {
		return error_errno(e, ENOMEM, "%s", plan->yaml.name);
	}
	struct plan again;
	int result = plan_read(plan->yaml.name, ret->data, ret->length, &again, NULL);
	if (result == 0) {
		plan_done(&again);
		return 0;
	}
	return error_set(e, EINVAL,
		"%s: a parameter contains a secret, and the sweep's folder keeps the plan without "
		"secrets; pass the secret in the environment of strain sweep",
		plan->yaml.name);
}

int plan_kept_differs(const struct plan *kept, const struct plan *is, bool *ret_differs,
	char **ret_what, struct error *e)
{
	_cleanup_text_ struct text form = {0};
	struct plan masked;
	if (!kept->masked) {
		*ret_differs = plan_differs(kept, is, ret_what);
		return 0;
	}
	struct writing w = {.out = &form};
	append_plan(&w, is->yaml.root);
	if (form.failed) {
		return error_errno(e, ENOMEM, "%s", is->yaml.name);
	}
	int result = plan_read(is->yaml.name, form.data, form.length, &masked, e);
	if (result == 0) {
		*ret_differs = plan_differs(kept, &masked, ret_what);
		plan_done(&masked);
	}
	return result;
}
