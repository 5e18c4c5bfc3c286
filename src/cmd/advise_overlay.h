// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Output of strain advise on the overlay over which its probes run.

#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "probe/overlay.h"

// Finds out whether probes can run over an overlay (probe_overlay_find), and says what they may
// overwrite. Returns false after it has printed the reason.
bool advise_overlay_find(
	const char *directory, const char *folder, bool in_place, struct probe_overlay *ret);
// Adds whether probes ran in place, and why. NULL: none ran.
void advise_overlay_json(json_t *json, const struct probe_overlay *overlay);
