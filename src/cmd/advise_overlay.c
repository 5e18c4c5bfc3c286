// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Output of strain advise on its overlay.

#include "cmd/advise_overlay.h"

#include "base/cleanup.h"
#include "cmd/command.h"
#include "show/json.h"

bool advise_overlay_find(
	const char *directory, const char *folder, bool in_place, struct probe_overlay *ret)
{
	struct error e = {0};
	const char *why = in_place ? "--in-place was given" : NULL;
	if (probe_overlay_find(directory, folder, why, ret, &e) < 0) {
		command_fail("%s", e.text);
		probe_overlay_done(ret);
		return false;
	}
	_cleanup_free_ char *sentence = probe_overlay_sentence(ret);
	if (sentence) {
		command_note("%s", sentence);
	}
	return true;
}

void advise_overlay_json(json_t *json, const struct probe_overlay *overlay)
{
	json_object_set_new(
		json, "in_place", overlay ? json_boolean(overlay->in_place != NULL) : json_null());
	json_object_set_new(
		json, "in_place_reason", json_from_text(overlay ? overlay->in_place : NULL));
}
