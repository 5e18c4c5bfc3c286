// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What web/src/contract.ts calls CpuTime: samples of CPU time by phase and by role.

#pragma once

#include <jansson.h>

struct analysis;

json_t *page_cpu_time(const struct analysis *a); // NULL where memory is short
