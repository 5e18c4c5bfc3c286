// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Descriptions of the metrics of this version, generated from docs/metrics.md by metric_help.awk.
// They are in the program to keep run files small.

#pragma once

struct metric_help {
	const char *kind; // kind of entity: "job"
	const char *name;
	const char *help;
};

extern const struct metric_help metric_helps[]; // terminated by a row whose name is NULL
