// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The CPU quota that applies to the job: how much of it the job uses, and how much CPU time it
// asked for.

#pragma once

struct analysis;
struct facts;
struct stretch;

// CPUs that the quota allowed for most of the run (the median over time); NAN: none is known.
double quota_cpus(const struct analysis *a);
// Fills facts.quota. Needs cpus_used and host_cpus; narrows nothing.
void quota_facts_fill(const struct analysis *a, const struct stretch *stretch, struct facts *ret);
