// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the hooks in the job's processes have said: files in the marker directory, a line a fact
// (docs/hooks.md). The job can write anything there.

#pragma once

struct hooks;
struct writer;

// Reads what is in the open directory, before it goes. NULL without one (-1), or without memory.
struct hooks *hooks_read(int directory);
// Puts what is known by now, while the job runs: `hooks`, `loader_...` and `optimizer_...`, and not
// what is missing, which may still come. Without a directory: nothing.
void hooks_put_so_far(int directory, struct writer *w);
// Puts the keys `hooks`, `hooks_missing`, `loader_...` and `optimizer_...` of the run, and frees.
// Accepts NULL: says nothing.
void hooks_put(struct hooks *hooks, struct writer *w);
