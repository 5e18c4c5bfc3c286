// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// 64-bit FNV-1a, for hash keys and to detect damage. It does not protect against an attacker.

#pragma once

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

// Continues a hash, HASH_START at first, with these bytes.
uint64_t hash_add(uint64_t hash, const void *data, size_t bytes);
