// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Every source. Within a lane they are read in this order.

#include "record/source/source.h"

#include <stddef.h>

extern const struct source source_process;
extern const struct source source_memory;

const struct source *const source_list[] = {
	&source_process,
	&source_memory,
	NULL,
};
