// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a page's header says of a run: where it ran, for how long, how it ended, with which
// versions.

#pragma once

#include <jansson.h>

struct analysis;

// A new reference. What is not known is null, or not among the versions.
json_t *page_about(const struct analysis *a);
