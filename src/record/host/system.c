// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The machine's own files: proc(5), Documentation/admin-guide/iostats.rst.

#include "record/host/system.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

// Takes up to n numbers; the rest become KEYED_ABSENT. Returns how many there were.
static unsigned take_numbers(struct cursor *c, unsigned n, int64_t *numbers)
{
	unsigned taken = 0;
	while (taken < n && cursor_i64(c, &numbers[taken])) {
		taken++;
	}
	for (unsigned i = taken; i < n; i++) {
		numbers[i] = KEYED_ABSENT;
	}
	return taken;
}

int system_stat_parse(struct cursor text, struct system_stat *ret)
{
	enum { CONTEXT_SWITCHES, PROCESSES, RUNNING, BLOCKED, N };
	static const char *const keys[N] = {"ctxt", "processes", "procs_running", "procs_blocked"};
	struct system_stat stat;
	if (!cursor_literal(&text, "cpu ") ||
		take_numbers(&text, N_CPU_MODES, stat.ticks) <= CPU_IDLE) {
		return -EBADMSG;
	}
	int64_t v[N];
	keyed_parse(text, keys, N, v);
	stat.context_switches = v[CONTEXT_SWITCHES];
	stat.processes = v[PROCESSES];
	stat.running = v[RUNNING];
	stat.blocked = v[BLOCKED];
	*ret = stat;
	return 0;
}

int disk_line_parse(struct cursor line, struct disk_line *ret)
{
	enum {
		READS,
		READS_MERGED,
		READ_SECTORS,
		READ_MS,
		WRITES,
		WRITES_MERGED,
		WRITE_SECTORS,
		WRITE_MS,
		IN_FLIGHT,
		BUSY_MS,
		QUEUE_MS,
		DISCARDS,
		DISCARDS_MERGED,
		DISCARD_SECTORS,
		DISCARD_MS,
		FLUSHES,
		N
	};
	int64_t v[N];
	struct cursor name;
	if (!cursor_skip_fields(&line, 2) || !cursor_word(&line, &name) ||
		take_numbers(&line, N, v) <= QUEUE_MS) {
		return -EBADMSG;
	}
	*ret = (struct disk_line){
		.name = name,
		.reads = v[READS],
		.read_sectors = v[READ_SECTORS],
		.read_ms = v[READ_MS],
		.writes = v[WRITES],
		.write_sectors = v[WRITE_SECTORS],
		.write_ms = v[WRITE_MS],
		.in_flight = v[IN_FLIGHT],
		.busy_ms = v[BUSY_MS],
		.queue_ms = v[QUEUE_MS],
		.discard_sectors = v[DISCARD_SECTORS],
		.flushes = v[FLUSHES],
	};
	return 0;
}

int interface_line_parse(struct cursor line, struct interface_line *ret)
{
	enum { BYTES, PACKETS, ERRORS, DROPPED, N_EACH = 8, N = 16 };
	int64_t v[N];
	cursor_skip_blanks(&line);
	const char *colon = line.at < line.end ? memchr(line.at, ':', (size_t)(line.end - line.at))
	                                       : NULL;
	struct cursor name = {line.at, colon};
	line.at = colon ? colon + 1 : line.end; // the first number may stand right behind it
	if (!colon || name.at == name.end || take_numbers(&line, N, v) < N) {
		return -EBADMSG;
	}
	const int64_t *transmit = v + N_EACH;
	*ret = (struct interface_line){
		.name = name,
		.receive_bytes = v[BYTES],
		.receive_packets = v[PACKETS],
		.receive_errors = v[ERRORS],
		.receive_dropped = v[DROPPED],
		.transmit_bytes = transmit[BYTES],
		.transmit_packets = transmit[PACKETS],
		.transmit_errors = transmit[ERRORS],
		.transmit_dropped = transmit[DROPPED],
	};
	return 0;
}
