// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs of one cell that are not repeats of each other.

#pragma once

#include "cmd/layout.h"
#include "cmd/layout_select.h"

// Where runs of a cell differ in a label that the layout does not show, those with the value that
// most have stay, and it is said: a mean over different configurations is none of repeats. Cells
// of which the layout makes one number (the best, a ratio), or one figure, are one for this; where
// what differs along a line cannot be told from what the line is drawn over, it is said. -ENOMEM.
int layout_narrow(const struct layout *l, struct layout_selection *s);
