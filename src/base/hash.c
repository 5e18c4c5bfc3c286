// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include "base/hash.h"

uint64_t hash_add(uint64_t hash, const void *data, size_t bytes)
{
	const unsigned char *at = data;
	for (size_t i = 0; i < bytes; i++) {
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	}
	return hash;
}
