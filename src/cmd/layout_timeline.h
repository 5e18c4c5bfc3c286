// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Layouts that show runs over time, or epoch by epoch: they read the runs themselves.

#pragma once

#include "base/error.h"
#include "cmd/layout.h"
#include "cmd/layout_select.h"

struct figure_page;

// 0 and a page, which is the caller's; -errno and one line.
int layout_timeline(const struct layout *l, struct layout_selection *selection,
	struct figure_page **ret, struct error *e);
