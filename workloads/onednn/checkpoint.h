// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Saving a network.

#pragma once

#include <stdint.h>

#include "network.h"

// Writes the weights into the file, and zeros after them up to `bytes` (as if the network were
// larger), and waits until they are on the disk. The file is replaced in one step.
int checkpoint_write(const char *path, struct network *network, uint64_t bytes, struct error *e);
