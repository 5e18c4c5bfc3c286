// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// CRC-32 as zlib, PNG and Ethernet compute it (reflected 0x04c11db7), so that every language's
// standard library can check a block.

#pragma once

#include <stddef.h>
#include <stdint.h>

uint32_t crc32_of(const void *data, size_t length);
