// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What doctor finds out beside the sources: about this machine, this user and this directory.

#pragma once

#include "base/error.h"

struct job_cgroup;

enum doctor_state { DOCTOR_AVAILABLE, DOCTOR_PARTLY, DOCTOR_MISSING };

const char *doctor_state_name(enum doctor_state state);

struct doctor_check {
	const char *name;
	enum doctor_state state;
	char detail[600];
};

// How exact the job's CPU time is: cgroup is the one that a run would get, or NULL, and then why.
void doctor_check_cpu_time(
	const struct job_cgroup *cgroup, const struct error *why, struct doctor_check *ret);
// How punctual the recorder's ticks can be.
void doctor_check_timing(struct doctor_check *ret);
// Whose jobs --pid can record.
void doctor_check_others(struct doctor_check *ret);
// Whether the ranges that a job marks through NVTX can be taken.
void doctor_check_nvtx(struct doctor_check *ret);
// Whether the hooks are there, and PyTorch for them to hook (doctor_hooks.c).
void doctor_check_hooks(struct doctor_check *ret);
// Whether `strain run` can limit its job, a check for each limit (doctor_limits.c). The cgroup is
// the one that a run would get, or NULL, and then why. Needs room for DOCTOR_LIMITS.
#define DOCTOR_LIMITS 4
void doctor_check_limits(
	struct job_cgroup *cgroup, const struct error *why, struct doctor_check *ret);
// Whether a run file can be kept in the current directory, and how soon it holds what was measured.
void doctor_check_run_file(struct doctor_check *ret);
