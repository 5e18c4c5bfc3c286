// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A plan as a sweep's folder keeps it: without secrets.

#pragma once

#include "sweep/plan.h"

struct text;

// The plan in `data`, which it was read from, byte for byte; where secrets are in it
// (docs/secrets.md), the same plan written anew, with *** for each, whose `masked` is true when it
// is read. -EINVAL where that is no plan: a placeholder within a secret. -ENOMEM.
int plan_kept(
	const struct plan *plan, const char *data, size_t size, struct text *ret, struct error *e);

// As plan_differs, of a plan that was kept.
int plan_kept_differs(const struct plan *kept, const struct plan *is, bool *ret_differs,
	char **ret_what, struct error *e);
