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
