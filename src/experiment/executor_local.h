// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Trials on this machine, as children of this process, which takes in what they leave running.

#pragma once

#include "experiment/executor.h"

extern const struct executor executor_local;
