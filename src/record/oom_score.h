// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whom the kernel kills where memory ends: the recorder, or a process of the job.

#pragma once

#include <stdint.h>

// What is added to the recorder's oom_score_adj under a limit; memory_bytes 0: not known.
unsigned oom_score_raise_under(uint64_t memory_bytes);

// Raises this process's own, under the limit that it is under. What cannot be done is left.
void oom_score_raise(void);
