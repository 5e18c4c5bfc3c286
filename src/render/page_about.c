// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A page's header.

#include "render/page_about.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "render/page_facts.h"

// "python3.11" names its version, "python3" does not.
static bool is_versioned_python(const char *name)
{
	static const char word[] = "python";
	size_t n = strlen(word);
	return name && strncmp(name, word, n) == 0 && isdigit((unsigned char)name[n]) &&
	       strchr(name + n, '.') && strspn(name + n, "0123456789.") == strlen(name + n);
}

static void add_python(json_t *versions, const struct analysis *a)
{
	for (size_t i = 0; i < a->entities.n; i++) {
		const struct entity *entity = &a->entities.items[i];
		if (entity->kind == ENTITY_PROCESS && is_versioned_python(entity->name)) {
			json_array_append_new(versions,
				page_format("Python %s", entity->name + strlen("python")));
			return;
		}
	}
}

// "pytorch 1.13.0: data, backward; jax 0.4.30: step" are two, with what their hooks mark.
static void add_frameworks(json_t *versions, const char *hooks)
{
	while (hooks && *hooks) {
		size_t length = strcspn(hooks, ";"), name = strcspn(hooks, ":;");
		if (name > 0 && name < length) {
			json_array_append_new(versions, page_format("%.*s", (int)name, hooks));
		}
		hooks += length;
		hooks += strspn(hooks, "; ");
	}
}

json_t *page_about(const struct analysis *a)
{
	const struct overview *o = &a->overview;
	const char *version = reader_run(a->reader, "version");
	const char *kernel = reader_run(a->reader, "kernel");
	_cleanup_text_ struct text outcome = {0};
	json_t *json = json_object(), *versions = json_array();
	overview_append_outcome(&outcome, o);
	add_frameworks(versions, reader_run(a->reader, "hooks"));
	add_python(versions, a);
	if (kernel) {
		json_array_append_new(versions, page_string(kernel));
	}
	if (version) {
		json_array_append_new(versions, page_format("strain %s", version));
	}
	json_object_set_new(json, "host", page_string(reader_run(a->reader, "hostname")));
	json_object_set_new(json, "lasted", page_number(o->duration_s));
	json_object_set_new(json, "ended", page_string(outcome.length > 0 ? outcome.data : NULL));
	json_object_set_new(json, "versions", versions);
	return json;
}
