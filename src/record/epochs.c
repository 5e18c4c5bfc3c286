// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whether a matching line begins an epoch or ends one.

#include "record/epochs.h"

bool epochs_end_at_lines(const struct epoch_line *lines, size_t n, int64_t end_ns)
{
	if (n == 0) {
		return false;
	}
	int64_t before = lines[0].t_ns, after = end_ns - lines[n - 1].t_ns;
	if (n == 1) {
		return before > after; // one line: it ends what is longer
	}
	// A line that begins the last epoch is followed by about one epoch; one that ends it by a
	// little tidying up. Epochs differ, and the mean of all is less moved by a slow first one
	// than any.
	int64_t mean = (lines[n - 1].t_ns - lines[0].t_ns) / (int64_t)(n - 1);
	return after < mean / 2 && before > after;
}
