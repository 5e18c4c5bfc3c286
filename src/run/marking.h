// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the process tree and the marks know of each other: processes that iterate or prepare have
// their role by that; workers have the CPU time of their processes, and who prepares without
// feeding a thread that trains is no worker, but a span of the job's own.

#pragma once

struct phases;
struct process_list;

// 0 or -ENOMEM.
int marking_join(struct process_list *processes, struct phases *p);
