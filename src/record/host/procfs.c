// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// /proc/PID: proc(5) and the kernel's Documentation/filesystems/proc.rst say what the fields are.

#include "record/host/procfs.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "record/host/machine.h"

// Fields of stat as proc(5) numbers them.
enum stat_field {
	STAT_PARENT = 4,
	STAT_GROUP,
	STAT_SESSION,
	STAT_FLAGS = 9,
	STAT_MINOR_FAULTS,
	STAT_CHILD_MINOR_FAULTS,
	STAT_MAJOR_FAULTS,
	STAT_CHILD_MAJOR_FAULTS,
	STAT_USER,
	STAT_SYSTEM,
	STAT_CHILD_USER,
	STAT_CHILD_SYSTEM,
	STAT_THREADS = 20,
	STAT_START = 22,
	STAT_RSS = 24,
	STAT_CPU = 39,
	STAT_BLOCK_DELAY = 42,
	STAT_EXIT_CODE = 52,
	STAT_FIELDS,
};

// A number of either sign behind at most one blank. Inlined, and checked only where the digits are
// so many that they may not fit: fifty of them make a reading.
static inline bool take_number(struct cursor *c, uint64_t *ret)
{
	enum { SURELY_FITS = 19 };
	const char *at = c->at + (c->at < c->end && *c->at == ' ');
	bool negative = at < c->end && *at == '-';
	const char *start = at += negative;
	uint64_t value = 0;
	for (; at < c->end && *at >= '0' && *at <= '9'; at++) {
		value = value * 10 + (uint64_t)(*at - '0');
	}
	if (at == start) {
		return false;
	}
	if (at - start > SURELY_FITS) {
		struct cursor number = {start, at};
		if (negative || !cursor_u64(&number, &value)) {
			return false;
		}
	}
	*ret = negative ? -value : value;
	c->at = at;
	return true;
}

// Fills field[STAT_PARENT..] from the rest of the line; returns the number of the last field that
// was there.
static unsigned take_fields(struct cursor c, uint64_t *field)
{
	unsigned at = STAT_PARENT;
	while (at < STAT_FIELDS && take_number(&c, &field[at])) {
		at++;
	}
	return at - 1;
}

static int64_t field_or_absent(const uint64_t *field, unsigned last, enum stat_field wanted)
{
	return (unsigned)wanted <= last ? (int64_t)field[wanted] : KEYED_ABSENT;
}

int proc_stat_parse(struct cursor text, struct proc_stat *ret)
{
	// A name may hold anything, also ") R 1 (" and newlines; only numbers follow, so the last
	// parenthesis closes it.
	size_t length = (size_t)(text.end - text.at);
	const char *open = length ? memchr(text.at, '(', length) : NULL;
	const char *close = length ? memrchr(text.at, ')', length) : NULL;
	if (!open || !close || close < open || text.end - close < 4 || close[1] != ' ') {
		return -EBADMSG;
	}
	uint64_t field[STAT_FIELDS];
	unsigned last = take_fields((struct cursor){close + 3, text.end}, field);
	if (last < STAT_START || field[STAT_PARENT] > INT_MAX) {
		return -EBADMSG;
	}
	struct proc_stat stat = {
		.state = close[2],
		.parent = (pid_t)field[STAT_PARENT],
		.group = (pid_t)field[STAT_GROUP],
		.session = (pid_t)field[STAT_SESSION],
		.flags = (uint32_t)field[STAT_FLAGS],
		.minor_faults = field[STAT_MINOR_FAULTS],
		.child_minor_faults = field[STAT_CHILD_MINOR_FAULTS],
		.major_faults = field[STAT_MAJOR_FAULTS],
		.child_major_faults = field[STAT_CHILD_MAJOR_FAULTS],
		.user_ticks = field[STAT_USER],
		.system_ticks = field[STAT_SYSTEM],
		.child_user_ticks = field[STAT_CHILD_USER],
		.child_system_ticks = field[STAT_CHILD_SYSTEM],
		.threads = (int64_t)field[STAT_THREADS],
		.start_ticks = field[STAT_START],
		.rss_pages = field_or_absent(field, last, STAT_RSS),
		.cpu = field_or_absent(field, last, STAT_CPU),
		.block_delay_ticks = field_or_absent(field, last, STAT_BLOCK_DELAY),
		.exit_code = field_or_absent(field, last, STAT_EXIT_CODE),
	};
	size_t name_length = (size_t)(close - open - 1);
	name_length = name_length < sizeof(stat.name) ? name_length : sizeof(stat.name) - 1;
	memcpy(stat.name, open + 1, name_length);
	*ret = stat;
	return 0;
}

int proc_statm_parse(struct cursor text, struct proc_statm *ret)
{
	struct proc_statm statm;
	if (!cursor_u64(&text, &statm.size_pages) || !cursor_u64(&text, &statm.resident_pages) ||
		!cursor_u64(&text, &statm.shared_pages)) {
		return -EBADMSG;
	}
	*ret = statm;
	return 0;
}

int proc_schedstat_parse(struct cursor text, struct proc_schedstat *ret)
{
	struct proc_schedstat schedstat;
	if (!cursor_u64(&text, &schedstat.run_ns) || !cursor_u64(&text, &schedstat.wait_ns) ||
		!cursor_u64(&text, &schedstat.slices)) {
		return -EBADMSG;
	}
	*ret = schedstat;
	return 0;
}

int proc_io_parse(struct cursor text, struct proc_io *ret)
{
	static const char *const keys[] = {"rchar", "wchar", "syscr", "syscw", "read_bytes",
		"write_bytes", "cancelled_write_bytes"};
	int64_t v[ARRAY_LENGTH(keys)];
	if (keyed_parse(text, keys, ARRAY_LENGTH(keys), v) == 0) {
		return -EBADMSG;
	}
	*ret = (struct proc_io){v[0], v[1], v[2], v[3], v[4], v[5], v[6]};
	return 0;
}

int proc_smaps_rollup_parse(struct cursor text, struct proc_smaps_rollup *ret)
{
	static const char *const keys[] = {"Rss", "Pss", "Pss_Anon", "Pss_File", "Pss_Shmem",
		"Private_Clean", "Private_Dirty", "Swap", "SwapPss"};
	int64_t v[ARRAY_LENGTH(keys)];
	keyed_parse(text, keys, ARRAY_LENGTH(keys), v);
	if (v[0] == KEYED_ABSENT || v[1] == KEYED_ABSENT) {
		return -EBADMSG;
	}
	*ret = (struct proc_smaps_rollup){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]};
	return 0;
}

static uint64_t parse_mask(struct cursor value)
{
	uint64_t mask = 0;
	struct cursor word;
	if (!cursor_word(&value, &word) || word.end - word.at > 16) {
		return 0;
	}
	for (; word.at < word.end; word.at++) {
		char c = *word.at;
		int digit = c >= '0' && c <= '9'   ? c - '0'
		            : c >= 'a' && c <= 'f' ? c - 'a' + 10
		                                   : -1;
		if (digit < 0) {
			return 0;
		}
		mask = mask << 4 | (uint64_t)digit;
	}
	return mask;
}

static int64_t last_number(struct cursor value)
{
	int64_t number = KEYED_ABSENT;
	while (cursor_i64(&value, &number)) {
	}
	return number;
}

int proc_status_parse(struct cursor text, struct proc_status *ret)
{
	enum {
		UID,
		NSPID,
		HWM,
		RSS,
		ANON,
		FILE_PAGES,
		SHMEM,
		SWAP,
		THREADS,
		SIGIGN,
		CPUS,
		VOLUNTARY,
		INVOLUNTARY,
		N
	};
	static const char *const keys[N] = {"Uid", "NSpid", "VmHWM", "VmRSS", "RssAnon", "RssFile",
		"RssShmem", "VmSwap", "Threads", "SigIgn", "Cpus_allowed_list",
		"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"};
	struct cursor line[N] = {0};
	struct cursor key, value;
	// The lines come in the order of the table, whichever of them there are.
	for (size_t expected = 0; expected < N && keyed_next(&text, &key, &value);) {
		for (size_t i = expected; i < N; i++) {
			if (*keys[i] == *key.at && cursor_is(key, keys[i])) {
				line[i] = value;
				expected = i + 1;
				break;
			}
		}
	}
	if (!line[THREADS].at || !line[UID].at) {
		return -EBADMSG;
	}
	int64_t v[N];
	for (size_t i = 0; i < N; i++) {
		v[i] = keyed_number(line[i]);
	}
	*ret = (struct proc_status){
		.uid = v[UID],
		.pid_in_namespace = last_number(line[NSPID]),
		.peak_resident_bytes = v[HWM],
		.resident_bytes = v[RSS],
		.anonymous_bytes = v[ANON],
		.file_bytes = v[FILE_PAGES],
		.shmem_bytes = v[SHMEM],
		.swap_bytes = v[SWAP],
		.threads = v[THREADS],
		.voluntary_switches = v[VOLUNTARY],
		.involuntary_switches = v[INVOLUNTARY],
		.ignored_signals = parse_mask(line[SIGIGN]),
		.cpus_allowed = line[CPUS].at ? machine_list_count(line[CPUS]) : 0,
	};
	return 0;
}

// "0.66": two digits behind the point.
static bool take_hundredths(struct cursor *c, uint32_t *ret)
{
	uint64_t whole, fraction;
	struct cursor rest = *c;
	if (!cursor_u64(&rest, &whole) || !cursor_literal(&rest, ".") || rest.at == rest.end ||
		*rest.at == ' ' || !cursor_u64(&rest, &fraction) || whole > 40000000 ||
		fraction > 99) {
		return false;
	}
	*ret = (uint32_t)(whole * 100 + fraction);
	*c = rest;
	return true;
}

int proc_loadavg_parse(struct cursor text, struct proc_loadavg *ret)
{
	struct proc_loadavg load;
	uint64_t last_pid;
	if (!take_hundredths(&text, &load.load_hundredths[0]) ||
		!take_hundredths(&text, &load.load_hundredths[1]) ||
		!take_hundredths(&text, &load.load_hundredths[2]) ||
		!cursor_u64(&text, &load.runnable) || !cursor_literal(&text, "/") ||
		!cursor_u64(&text, &load.threads) || !cursor_u64(&text, &last_pid) ||
		last_pid > INT_MAX) {
		return -EBADMSG;
	}
	load.last_pid = (pid_t)last_pid;
	*ret = load;
	return 0;
}
