// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A plan as stored in a sweep's folder: without secrets.

#pragma once

#include "sweep/plan.h"

struct text;

// Returns the plan in `data`, byte for byte if it has no secrets (docs/secrets.md). Otherwise the
// same plan is written anew with *** for each secret, and has `masked` set when it is read.
// -EINVAL: the result would not be a valid plan (a placeholder within a secret). -ENOMEM.
int plan_kept(
	const struct plan *plan, const char *data, size_t size, struct text *ret, struct error *e);

// Like plan_differs, for a plan that was stored.
int plan_kept_differs(const struct plan *kept, const struct plan *is, bool *ret_differs,
	char **ret_what, struct error *e);
