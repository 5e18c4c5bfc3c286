// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What this version knows of metrics, made of docs/metrics.md by metric_help.awk: run files are
// smaller without it.

#pragma once

struct metric_help {
	const char *kind; // of entity: "job"
	const char *name;
	const char *help;
};

extern const struct metric_help metric_helps[]; // the last one's name is NULL
