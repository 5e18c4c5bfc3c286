// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Growing arrays: a pointer, a length and a capacity that the owner keeps in its own struct.

#pragma once

#include <stddef.h>

// Makes room for `wanted` items of item_size bytes; grows by half at least. Returns 0 or -ENOMEM;
// *items and *capacity are untouched on failure.
int array_reserve(void **items, size_t *capacity, size_t wanted, size_t item_size);
