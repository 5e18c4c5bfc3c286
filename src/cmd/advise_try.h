// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain advise --try.

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "analyze/setting.h"

enum { TRY_WITH_MOST = 8 };

struct try_options {
	const char *run; // as a person names it; NULL: none
	char **command; // ends with NULL; NULL: the run's
	struct setting_list with[TRY_WITH_MOST]; // that were asked for
	size_t n_with;
	const char *folder; // of the probes; exists
	double error;
	uint64_t limit_ns; // of a probe
	uint64_t time_ns; // of all
	unsigned repeats;
	bool json;
	const volatile sig_atomic_t *interrupted; // the signal; 0: go on
};

// Reads what --with says: "OMP_NUM_THREADS=1 num_workers=2". False: `word` (of size bytes) is what
// is wrong.
bool try_parse_settings(const char *text, struct setting_list *ret, char *word, size_t size);

// An exit status.
int advise_try(const struct try_options *o);
