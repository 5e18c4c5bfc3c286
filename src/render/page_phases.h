// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Iterations and phases of a run as JSON for the page.

#pragma once

#include <jansson.h>

struct analysis;
struct lane_list;
struct phases;

// Null where nothing was marked.
json_t *page_iterations(const struct analysis *a);
// The spans that the job's author named.
json_t *page_own_spans(const struct phases *p);
// Puts the panels of iterations, of the main thread, of ranks and of loader workers before the
// others.
void page_add_lanes(json_t *panels, const struct analysis *a, const struct lane_list *lanes);
