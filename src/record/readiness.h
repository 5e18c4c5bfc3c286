// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a recording could measure here: tries every source once, as a run would, and checks this
// machine, this user and this directory. Records nothing.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "machine/machine.h"
#include "record/job/limits.h"
#include "record/source/availability.h"

enum readiness_state { READINESS_AVAILABLE, READINESS_PARTLY, READINESS_MISSING };

struct readiness_check {
	const char *name;
	enum readiness_state state;
	char detail[600];
};

struct readiness {
	struct machine machine;
	// CPU time, timing, jobs of others, NVTX, hooks, the run file, and each limit of the job;
	// none of a captured machine
	struct readiness_check checks[6 + N_LIMITS]; // [n_checks]
	size_t n_checks;
	struct availability *tried; // the sources
};

// captured: root_fd is the folder of a captured machine. Returns 0, or -errno with nothing to free.
int readiness_find(int root_fd, bool captured, struct readiness *ret, struct error *e);
void readiness_done(struct readiness *r);

// "available", "partly", "missing".
const char *readiness_state_name(enum readiness_state state);
// What a group of metrics is, "waits, page faults and threads"; its name if it has no description.
// Static.
const char *readiness_group_words(const struct source *source, const struct group *group);
