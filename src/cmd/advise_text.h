// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What `strain advise` says.

#pragma once

struct stall_runs;

// A line on standard error while it works.
void advise_say(const char *text);
// The end of a file, on standard error: what the job printed before it failed.
void advise_print_tail(const char *path);
// The rates, the stalls and what they mean, on standard output.
void advise_stalls_print(const struct stall_runs *runs);
// The same; a new reference.
struct json_t *advise_stalls_json(const struct stall_runs *runs);
