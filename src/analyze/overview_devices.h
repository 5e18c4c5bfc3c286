// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The overview's devices. Only overview.c needs this.

#pragma once

#include "analyze/overview.h"

int overview_devices_build(const struct analysis *a, struct overview *ret);
