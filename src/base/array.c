// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Growing arrays.

#include "base/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int array_reserve(void **items, size_t *capacity, size_t wanted, size_t item_size)
{
	if (wanted <= *capacity) {
		return 0;
	}
	size_t grown = *capacity + *capacity / 2 + 8;
	if (grown < wanted) {
		grown = wanted;
	}
	if (grown > SIZE_MAX / item_size) {
		return -ENOMEM;
	}
	void *moved = realloc(*items, grown * item_size);
	if (!moved) {
		return -ENOMEM;
	}
	*items = moved;
	*capacity = grown;
	return 0;
}
