// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A row per group of metrics: docs/metrics.md says what is in each.

#include "cmd/doctor_words.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "record/source/source.h"

static const struct {
	const char *source;
	const char *group;
	const char *words;
} rows[] = {
	{"processes", "cpu", "CPU time and memory"},
	{"processes", "job", "number of processes"},
	{"processes", "stat", "waits, page faults and threads"},
	{"processes", "job_stopped", "stops"},
	{"processes", "io", "I/O"},
	{"processes", "job_io", "the job's I/O"},
	{"processes", "status", "context switches and swap"},
	{"processes", "job_peak", "the job's peak of memory"},
	{"memory", "pss", "proportional memory (PSS)"},
	{"memory", "job_pss", "the job's PSS"},
	{"memory", "cost", "its cost"},
	{"cgroup", "cpu", "CPU time"},
	{"cgroup", "throttling", "throttling"},
	{"cgroup", "limits", "limits of CPU and memory"},
	{"cgroup", "memory", "memory by use"},
	{"cgroup", "io", "storage"},
	{"cgroup", "pressure", "pressure"},
	{"pressure", "cpu", "CPU"},
	{"pressure", "memory", "memory"},
	{"pressure", "io", "storage"},
	{"host", "cpu", "CPU time by mode"},
	{"host", "memory", "memory by use"},
	{"host", "paging", "paging"},
	{"host", "load", "load"},
	{"disks", "io", "reads, writes and queues"},
	{"network", "io", "bytes and packets"},
	{"nvml", "utilization", "utilization"},
	{"nvml", "memory", "memory"},
	{"nvml", "clock", "clocks and throttling"},
	{"nvml", "power", "power and energy"},
	{"nvml", "pcie", "PCIe traffic"},
	{"nvml", "nvlink", "NVLink traffic"},
	{"nvml", "gpm", "activity of SMs and memory"},
	{"nvml", "state", "temperature, power limit and PCIe link"},
	{"nvml", "errors", "errors"},
	{"nvml", "job", "the job's memory"},
	{"nvml", "gpu_processes", "memory and utilization of each process"},
	{"waits", "waits", "what first threads wait for"},
	{"threads", "threads", "threads by what they are for"},
	{"profile", "profile", "samples of CPU time"},
};

const char *doctor_group_words(const struct source *source, const struct group *group)
{
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		if (strcmp(rows[i].source, source->name) == 0 &&
			strcmp(rows[i].group, group->name) == 0) {
			return rows[i].words;
		}
	}
	return group->name;
}
