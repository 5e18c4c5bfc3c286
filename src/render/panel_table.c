// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which metrics stand together. Blue is the job, orange a device, green memory and caches, grey
// the rest of the machine: the same in every panel.

#include "render/panels.h"

#include "base/cleanup.h"

enum { JOB_HUE, DEVICE_HUE, CACHE_HUE, FOURTH_HUE, FIFTH_HUE, SIXTH_HUE, SEVENTH_HUE, HOST_HUE };

#define TRAFFIC true

// /proc/stat counts in steps of 10 ms for each CPU, pressure is brought up to date every 2 s.
#define HOST_CPU_WINDOW_MS 250
#define PRESSURE_HOLD_MS 4000
#define IO_WINDOW_MS 100
#define SHARE_WINDOW_MS 1000
#define SHARE_HOLD_MS 10000

#define PRESSURE(text, where, name, colour)                                                       \
	{                                                                                         \
		.label = (text), .kind = (where), .value = LINE_RATE, .metrics = {name},          \
		.hue = (colour), .hold_ms = PRESSURE_HOLD_MS, .fallback = (where) == ENTITY_HOST, \
	}
#define BYTES(text, where, name, colour)                                                 \
	{                                                                                \
		.label = (text), .kind = (where), .value = LINE_RATE, .metrics = {name}, \
		.hue = (colour), .window_ms = IO_WINDOW_MS                               \
	}
#define GAUGE(text, where, name, colour)                                             \
	{                                                                            \
		.label = (text), .kind = (where), .metrics = {name}, .hue = (colour) \
	}

const struct panel_spec panel_table[] = {
	{"Memory", "By",
		"Memory of the job on the host, each shared page once, and of its devices.", 0, 0,
		false, {LIMIT_MEMORY, LIMIT_GPU_MEMORY},
		{
			{.label = "job",
				.kind = ENTITY_JOB,
				.metrics = {"strain.memory.anonymous", "strain.memory.shmem"},
				.hue = JOB_HUE},
			GAUGE("job (PSS)", ENTITY_JOB, "strain.memory.pss", FIFTH_HUE),
			{.label = "sum of resident",
				.kind = ENTITY_JOB,
				.metrics = {"strain.memory.rss_sum"},
				.hue = HOST_HUE,
				.fallback = true},
			GAUGE("GPU", ENTITY_GPU, "hw.gpu.memory.usage", DEVICE_HUE),
			GAUGE("GPU, this job", ENTITY_GPU, "strain.gpu.job.memory.usage",
				FOURTH_HUE),
			GAUGE("job's page cache", ENTITY_JOB, "strain.memory.file", CACHE_HUE),
		}},
	{"CPU", "{cpu}", "CPUs in use.", 0, 0, false, {LIMIT_CPUS},
		{
			{.label = "job",
				.kind = ENTITY_JOB,
				.value = LINE_RATE,
				.metrics = {"process.cpu.time"},
				.hue = JOB_HUE},
			{.label = "whole host",
				.kind = ENTITY_HOST,
				.value = LINE_RATE,
				.metrics = {"system.cpu.time.user", "system.cpu.time.nice",
					"system.cpu.time.system", "system.cpu.time.irq",
					"system.cpu.time.softirq", "system.cpu.time.steal"},
				.hue = HOST_HUE,
				.window_ms = HOST_CPU_WINDOW_MS},
			{.label = "held back by the quota",
				.kind = ENTITY_JOB,
				.value = LINE_RATE,
				.metrics = {"strain.cgroup.cpu.throttled_time"},
				.hue = FOURTH_HUE,
				.window_ms = SHARE_WINDOW_MS},
		}},
	{"GPU", "1", "Share of time in which a kernel ran, and how busy it kept the device.", 1, 1,
		false, {LIMIT_NONE},
		{
			GAUGE("a kernel ran", ENTITY_GPU, "hw.gpu.utilization", DEVICE_HUE),
			GAUGE("SMs active", ENTITY_GPU, "strain.gpu.sm.activity", FOURTH_HUE),
			GAUGE("its memory active", ENTITY_GPU, "strain.gpu.dram.activity",
				CACHE_HUE),
		}},
	{"PCIe", "By/s", "Bytes between host and device.", 0, 0, TRAFFIC, {LIMIT_NONE},
		{
			BYTES("host to device", ENTITY_GPU, "strain.gpu.pcie.host_to_device",
				JOB_HUE),
			BYTES("device to host", ENTITY_GPU, "strain.gpu.pcie.device_to_host",
				DEVICE_HUE),
		}},
	{"Job's files", "By/s",
		"What the job asked for by read calls, and what of it came from storage.", 0, 0,
		TRAFFIC, {LIMIT_NONE},
		{
			BYTES("asked for", ENTITY_JOB, "strain.io.read", JOB_HUE),
			BYTES("from storage", ENTITY_JOB, "process.disk.io.read", DEVICE_HUE),
			BYTES("to storage", ENTITY_JOB, "process.disk.io.write", FOURTH_HUE),
		}},
	{"Page cache", "1",
		"Share of what the job read that did not come from storage (reads through "
		"memory maps "
		"are not in it).",
		1, 1, false, {LIMIT_NONE},
		{
			{.label = "share of reads",
				.kind = ENTITY_JOB,
				.value = LINE_SHARE,
				.metrics = {"process.disk.io.read"},
				.of = "strain.io.read",
				.hue = CACHE_HUE,
				.window_ms = SHARE_WINDOW_MS,
				.hold_ms = SHARE_HOLD_MS},
		}},
	{"Disk", "By/s", "Bytes that the devices moved, for everybody.", 0, 0, TRAFFIC,
		{LIMIT_NONE},
		{
			BYTES("read", ENTITY_DISK, "system.disk.io.read", JOB_HUE),
			BYTES("written", ENTITY_DISK, "system.disk.io.write", DEVICE_HUE),
		}},
	{"Network", "By/s", "Bytes through the host's interfaces.", 0, 0, TRAFFIC, {LIMIT_NONE},
		{
			BYTES("received", ENTITY_NETWORK, "system.network.io.receive", JOB_HUE),
			BYTES("sent", ENTITY_NETWORK, "system.network.io.transmit", DEVICE_HUE),
		}},
	{"Pressure", "1", "Share of time in which something waited for the resource (PSI, some).",
		0.05, 1, false, {LIMIT_NONE},
		{
			PRESSURE("cpu", ENTITY_JOB, "strain.cgroup.pressure.cpu.some", JOB_HUE),
			PRESSURE("memory", ENTITY_JOB, "strain.cgroup.pressure.memory.some",
				CACHE_HUE),
			PRESSURE("io", ENTITY_JOB, "strain.cgroup.pressure.io.some", DEVICE_HUE),
			PRESSURE("cpu, host", ENTITY_HOST, "strain.pressure.cpu.some", JOB_HUE),
			PRESSURE("memory, host", ENTITY_HOST, "strain.pressure.memory.some",
				CACHE_HUE),
			PRESSURE("io, host", ENTITY_HOST, "strain.pressure.io.some", DEVICE_HUE),
		}},
	{"Processes", "{process}", "Processes of the job that live.", 0, 0, false, {LIMIT_NONE},
		{
			GAUGE("processes", ENTITY_JOB, "strain.process.count", JOB_HUE),
			GAUGE("threads", ENTITY_JOB, "process.thread.count", HOST_HUE),
		}},
	{"GPU power", "W", "Power that the device draws.", 0, 0, false, {LIMIT_NONE},
		{
			GAUGE("power", ENTITY_GPU, "hw.power", DEVICE_HUE),
		}},
};
const size_t panel_table_length = ARRAY_LENGTH(panel_table);
