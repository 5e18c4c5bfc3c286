// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the kernel tells about the whole machine: /proc/stat, its disks and its interfaces. Each
// parser takes foreign text and trusts nothing; KEYED_ABSENT is what this kernel does not tell.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/parse.h"
#include "record/host/keyed.h"

enum cpu_mode {
	CPU_USER, // guests' time is in it
	CPU_NICE,
	CPU_SYSTEM,
	CPU_IDLE,
	CPU_IOWAIT,
	CPU_IRQ,
	CPU_SOFTIRQ,
	CPU_STEAL,
	N_CPU_MODES,
};

// /proc/stat
struct system_stat {
	int64_t ticks[N_CPU_MODES]; // of all CPUs together
	int64_t context_switches;
	int64_t processes; // created since boot, threads too
	int64_t running; // threads
	int64_t blocked; // threads that wait for storage
};
// 0 or -EBADMSG; *ret is then untouched. The same for all below.
int system_stat_parse(struct cursor text, struct system_stat *ret);

// One line of /proc/diskstats
struct disk_line {
	struct cursor name; // a view into the text
	int64_t reads, read_sectors, read_ms; // sectors of 512 bytes, whatever the disk's are
	int64_t writes, write_sectors, write_ms;
	int64_t in_flight;
	int64_t busy_ms; // wraps at 32 bits, as do the other ms
	int64_t queue_ms; // requests times the time they took
	int64_t discard_sectors; // Linux 4.18
	int64_t flushes; // Linux 5.5
};
int disk_line_parse(struct cursor line, struct disk_line *ret);

// One line of /proc/net/dev
struct interface_line {
	struct cursor name; // a view into the text
	int64_t receive_bytes, receive_packets, receive_errors, receive_dropped;
	int64_t transmit_bytes, transmit_packets, transmit_errors, transmit_dropped;
};
int interface_line_parse(struct cursor line, struct interface_line *ret);
