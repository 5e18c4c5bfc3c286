// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Epochs from lines of the job's output. Some jobs print a line when an epoch begins ("Epoch
// 2/10"), some when it has ended ("epoch 2  loss 0.31"). Which of the two is known at the end of
// the run.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct epoch_line {
	int64_t t_ns; // since the run's start; never falls
	int64_t number; // as printed, -1 where the pattern has no group for it
	int64_t span; // id of the span in the run file
};

// Whether the lines stand at the ends of epochs: next to nothing comes after the last one, measured
// by the time between lines, and something came before the first. Needs two lines at least; false
// otherwise.
bool epochs_end_at_lines(const struct epoch_line *lines, size_t n, int64_t end_ns);
