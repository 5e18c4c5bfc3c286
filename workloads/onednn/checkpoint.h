// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Saves a network.

#pragma once

#include <stdint.h>

#include "network.h"

// Writes the weights to the file, followed by zeros up to `bytes` (as if the network were larger),
// and waits until they are on disk. Replaces the file atomically.
int checkpoint_write(const char *path, struct network *network, uint64_t bytes, struct error *e);
