// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which process a pid is: pids come round, a pid and its start time do not.

#pragma once

#include <stdint.h>

// The start time of a process in clock ticks since boot (field 22 of /proc/PID/stat); 0 where there
// is none, or it is a zombie.
uint64_t process_start_ticks(int64_t pid);
