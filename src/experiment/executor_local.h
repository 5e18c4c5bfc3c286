// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Trials on this machine, below this process.

#pragma once

#include "experiment/executor.h"

extern const struct executor executor_local;
