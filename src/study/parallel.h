// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reading many run files at once: by threads, several for each CPU, since they wait for a disk.

#pragma once

#include <stddef.h>
#include <stdint.h>

struct parallel {
	size_t n; // items
	void (*one)(void *context, size_t i); // reads an item; safe to call from several threads
	void *context;
	// Called now and then by the caller's thread. NULL: no progress.
	void (*progressed)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
};

// Returns when all items have been read. Without threads, the caller's reads them.
void parallel_run(const struct parallel *p);
