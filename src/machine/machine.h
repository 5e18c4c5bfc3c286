// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The hardware of a machine, and the part of it that this process may use.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "machine/cgroupfs.h"

struct machine {
	unsigned cpus; // online
	unsigned cpus_allowed; // that this process may use, by affinity
	double cpu_quota; // of the cgroups, in CPUs; 0: none
	unsigned nodes; // NUMA; 0: not known
	uint64_t memory_bytes; // 0: not known
	uint64_t memory_limit_bytes; // of the cgroups; 0: none
	char cpu_model[128]; // "" if unknown
	char kernel[96];
	char name[72]; // host name
};

// Reads what is available; the rest stays 0 or "". Never fails.
void machine_read(int root_fd, struct machine *ret);

// Counts the PCI devices of a vendor, such as "10de", in the kernel's table. -errno; -EFBIG: the
// table has no end, so nothing is known.
int machine_pci_devices(int root_fd, const char *vendor);

// Returns the attributes of the host entity, a JSON object of the known fields above. Owned by the
// caller; NULL: out of memory.
char *machine_attributes(const struct machine *machine);
