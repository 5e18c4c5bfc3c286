// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a run is: the keys of table `run` and the labels that are known before the job runs.

#pragma once

#include "record/recorder.h"

struct writer;

// Puts command, directory, host, kernel, start, limits, options and labels. Called by the recorder
// after writer_create, before it changes its own scheduling: the limits are those that the job
// inherits too. 0 or -errno.
int describe_run(struct writer *w, const struct recorder_config *config);
// Puts when the job started and ended, which is later and sooner than the run: the recorder is
// ready before it, and reads once more after it. All are CLOCK_MONOTONIC, the first the run's
// start; nothing is put where the job's times are not known (0).
void describe_job_times(struct writer *w, uint64_t run_ns, uint64_t start_ns, uint64_t end_ns);
