// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// How large a run may be for a reader (docs/format.md, "Bounds"). Blocks of constants take a few
// bytes each: without bounds, a file of 100 kB can hold more rows than there is memory. A job of 48
// hours with 64 processes, read each 10 ms and never thinned, is within each of them.

#pragma once

#include <stdint.h>

#define RUN_BYTES_MAX (UINT64_C(64) << 30) // the file
#define RUN_ROWS_MAX (INT64_C(1) << 31) // of all blocks; that job has 1.2e9
#define RUN_STREAM_ROWS_MAX (INT64_C(1) << 25) // of one entity and source; that job has 1.7e7
// Values of all blocks, each with its times and its clock's, by the bytes of the file. A real run
// has some: what does not change takes no bytes, but when it was read does, once for all that was
// read then. 64 idle processes of 12 metrics, read each 10 ms, have about 650.
#define RUN_VALUES_MIN (INT64_C(1) << 26) // any run may have as many
#define RUN_VALUES_PER_BYTE 4096
#define RUN_SPANS_MAX (INT64_C(1) << 23) // a recorder writes 2,000,000, and 1,000,000 points
#define RUN_ENTITIES_MAX (INT64_C(1) << 18)
#define RUN_METRICS_MAX 4096
#define RUN_EVENTS_MAX (INT64_C(1) << 20)
#define RUN_MISSING_MAX (INT64_C(1) << 20)
#define RUN_SUMMARY_MAX (INT64_C(1) << 24)
#define RUN_KEYS_MAX 4096 // keys, labels
#define RUN_KEYS_BYTES_MAX (UINT64_C(16) << 20) // of keys with their values, of labels with theirs

// Instructions of SQLite that a statement may take while a file is opened and checked: a row takes
// some hundred, and no less than four bytes.
#define OPENING_STEPS (UINT64_C(1) << 24)
#define OPENING_STEPS_PER_BYTE UINT64_C(64)
#define SQLITE_BYTES_MAX (INT64_C(512) << 20) // SQLite's memory, all connections of the process
#define COPY_BYTES_MAX (UINT64_C(1) << 30) // a copy of a run that cannot be read in its place
