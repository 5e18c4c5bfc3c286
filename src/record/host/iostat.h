// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// io.stat of a v2 cgroup: "259:0 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0
// dios=0", a line a disk that the cgroup has used.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"

struct iostat_line {
	struct cursor device; // "259:0", a view into the text
	int64_t read_bytes; // 0 where the line lacks it: nothing was counted yet
	int64_t write_bytes;
	int64_t reads;
	int64_t writes;
};

// Takes the next line. False at the end of the text.
bool iostat_next(struct cursor *text, struct iostat_line *ret);

#define IOSTAT_MAX_DISKS 64u

// Which of the lines count, asked once for each of the first disks. Begins as zeros.
struct iostat_disks {
	struct {
		char number[16]; // "259:0"
		bool counts;
	} disks[IOSTAT_MAX_DISKS];
	size_t n;
};

// False for a device that stands on others, whose lines have the same bytes again: device mapper,
// RAID, loop.
bool iostat_counts(struct iostat_disks *known, int root_fd, struct cursor device);
