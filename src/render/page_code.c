// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Bars by phase and by role; a class of code has the same colour in all.

#include "render/page_code.h"

#include "analyze/analysis.h"
#include "analyze/code_time.h"
#include "render/json.h"
#include "render/page_facts.h"

// What computes is blue, what is lost is red, what is the kernel's or nobody's grey.
static const unsigned hues[N_CODE_CLASSES] = {
	[CODE_SPINNING] = 1,
	[CODE_KERNELS] = 0,
	[CODE_FRAMEWORK] = 4,
	[CODE_INTERPRETER] = 2,
	[CODE_COLLECTION] = 8,
	[CODE_ALLOCATION] = 5,
	[CODE_COPYING] = 3,
	[CODE_DECODING] = 6,
	[CODE_SYSTEM] = 7,
	[CODE_OTHER] = 9,
};

static json_t *bar_json(const char *name, const struct code_group_samples *bar)
{
	json_t *json = json_object(), *classes = json_array(), *functions = json_array();
	json_object_set_new(json, "name", page_string(name));
	json_object_set_new(json, "samples", json_integer((json_int_t)bar->samples));
	for (size_t i = 0; i < N_CODE_CLASSES; i++) {
		json_array_append_new(classes, json_integer((json_int_t)bar->by_class[i]));
	}
	for (size_t i = 0; i < bar->n_tops; i++) {
		json_t *top = json_object();
		json_object_set_new(top, "name", page_string(bar->tops[i].name));
		json_object_set_new(top, "class", json_integer(bar->tops[i].class));
		json_object_set_new(top, "samples", json_integer((json_int_t)bar->tops[i].samples));
		json_array_append_new(functions, top);
	}
	json_object_set_new(json, "classes", classes);
	json_object_set_new(json, "functions", functions);
	return json;
}

static void add_bar(json_t *list, const char *name, const struct code_group_samples *bar)
{
	if (bar->samples > 0) {
		json_array_append_new(list, bar_json(name, bar));
	}
}

static json_t *classes_json(void)
{
	json_t *json = json_array();
	for (size_t i = 0; i < N_CODE_CLASSES; i++) {
		json_t *class = json_object();
		json_object_set_new(
			class, "name", json_string(code_class_name((enum code_class)i)));
		json_object_set_new(class, "hue", json_integer(hues[i]));
		json_array_append_new(json, class);
	}
	return json;
}

json_t *page_cpu_time(const struct analysis *a)
{
	struct code_time time;
	if (code_time_load(a, &time) < 0) {
		return NULL;
	}
	json_t *json = json_object(), *phases = json_array(), *roles = json_array();
	for (size_t i = 0; i < N_CODE_PHASES; i++) {
		size_t phase = code_phase_in_order(i);
		add_bar(phases, code_phase_name(phase), &time.phases[phase]);
	}
	for (size_t i = 0; i < N_CODE_ROLES; i++) {
		add_bar(roles, code_role_name((enum code_role)i), &time.roles[i]);
	}
	json_object_set_new(json, "rate", json_integer(CODE_SAMPLES_A_SECOND));
	json_object_set_new(json, "classes", classes_json());
	json_object_set_new(json, "phases", phases);
	json_object_set_new(json, "roles", roles);
	json_object_set_new(json, "missing", page_string(time.missing));
	json_object_set_new(json, "phases_missing", page_string(time.phases_missing));
	code_time_done(&time);
	return json;
}
