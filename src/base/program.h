// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whether a command can be executed, before it is.

#pragma once

// 0, or the errno value that execvp gives for this name. path: what PATH is then; NULL: not set.
int program_check(const char *name, const char *path);
