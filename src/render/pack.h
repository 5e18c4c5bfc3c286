// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Buckets as text for a page: columns of small differences in Rice codes, then base64.
// web/README.md describes the bits; web/src/decode.ts reads them.

#pragma once

#include "base/text.h"
#include "render/buckets.h"

// value = unit * sinh(code / PACK_STEPS): about three digits at every size, and small codes.
#define PACK_STEPS 1024

struct packed {
	double unit;
	struct text base64; // owner: text_done
};

// 0 or -ENOMEM. A zeroed or used *packed is filled anew.
int buckets_pack(const struct buckets *b, struct packed *packed);

// Appends bytes as base64, with padding.
void text_append_base64(struct text *t, const unsigned char *bytes, size_t length);
