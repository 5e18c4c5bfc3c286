// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The energy of a run, by each source that measured it. Sources that disagree are both shown:
// neither is right for every machine.

#pragma once

#include <stdbool.h>

struct analysis;
struct text;

// In joules, during the recorded time; NAN: not measured.
struct energy {
	double host; // processors and memory of the machine, by all programs (RAPL)
	double platform; // the whole machine, on laptops that count it (RAPL, psys)
	double gpus; // of the job, by their counters
	double gpus_sampled; // the same by their sampled power
};

void energy_find(const struct analysis *a, struct energy *ret);
// Whether two sources of the same energy differ by more than 5 %. False if one is not known.
bool energy_disagrees(double one, double other);
// Appends "processors and memory 120 J (RAPL), GPUs 1.2 kJ by their counters and 1.5 kJ by their
// power"; nothing if nothing was measured.
void energy_append(struct text *t, const struct energy *e);
