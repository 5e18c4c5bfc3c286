// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Joins the process tree and the marks: processes that iterate or prepare batches get their role,
// workers get the CPU time of their processes, and threads that prepare batches for no training
// thread become spans of the job.

#pragma once

struct phases;
struct process_list;

// 0 or -ENOMEM.
int marking_join(struct process_list *processes, struct phases *p);
