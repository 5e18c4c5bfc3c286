// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Parsers of /proc/PID: proc(5) and the kernel's Documentation/filesystems/proc.rst describe the
// fields.

#include "machine/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/file.h"

// Maps --------------------------------------------------------------------------------------------

bool procfs_take_hex(struct cursor *c, uint64_t *ret)
{
	struct cursor at = *c;
	uint64_t value = 0;
	unsigned digits = 0;
	cursor_skip_blanks(&at);
	cursor_literal(&at, "0x");
	for (; at.at < at.end; at.at++, digits++) {
		char d = *at.at;
		int digit = d >= '0' && d <= '9'   ? d - '0'
		            : d >= 'a' && d <= 'f' ? d - 'a' + 10
		                                   : -1;
		if (digit < 0) {
			break;
		}
		value = value << 4 | (unsigned)digit;
	}
	if (digits == 0 || digits > 16) {
		return false;
	}
	*c = at;
	*ret = value;
	return true;
}

// "55d0-55d4 r-xp 00000000 08:01 42   /usr/bin/python3.11"
bool procfs_take_maps_line(struct cursor line, struct mapping *ret)
{
	struct mapping m = {.from = 0};
	struct cursor modes;
	if (!procfs_take_hex(&line, &m.from) || !cursor_literal(&line, "-") ||
		!procfs_take_hex(&line, &m.to) || !cursor_word(&line, &modes) ||
		!procfs_take_hex(&line, &m.offset) || !cursor_skip_fields(&line, 2)) {
		return false;
	}
	cursor_skip_blanks(&line);
	m.runs = modes.end - modes.at >= 3 && modes.at[2] == 'x';
	m.path = line;
	*ret = m;
	return m.to > m.from;
}

// Pressure ----------------------------------------------------------------------------------------
//
// "some avg10=3.51 avg60=2.58 avg300=0.94 total=17824653" (Documentation/accounting/psi.rst). Only
// totals are used; averages are left to the analysis.

static int64_t find_total(struct cursor line)
{
	struct cursor word;
	int64_t total;
	while (cursor_word(&line, &word)) {
		if (cursor_literal(&word, "total=") && word.at < word.end && *word.at != ' ' &&
			cursor_i64(&word, &total) && total >= 0) {
			return total;
		}
	}
	return KEYED_ABSENT;
}

int pressure_parse(struct cursor text, struct pressure *ret)
{
	struct pressure p = {KEYED_ABSENT, KEYED_ABSENT};
	struct cursor line;
	while (cursor_line(&text, &line)) {
		if (cursor_literal(&line, "some ")) {
			p.some_us = find_total(line);
		} else if (cursor_literal(&line, "full ")) {
			p.full_us = find_total(line);
		}
	}
	if (p.some_us == KEYED_ABSENT && p.full_us == KEYED_ABSENT) {
		return -EBADMSG;
	}
	*ret = p;
	return 0;
}

const char *pressure_reason(int error)
{
	switch (error) {
	case ENOENT:
		// With psi=0, newer kernels do not even have the files.
		return "the kernel does not measure pressure; enable it with the boot option psi=1 "
		       "(Linux 4.20 with CONFIG_PSI)";
	case EOPNOTSUPP:
		return "pressure is disabled in the kernel; enable it with the boot option psi=1";
	default:
		return strerrordesc_np(error);
	}
}

// System ------------------------------------------------------------------------------------------
//
// Files of the whole machine: proc(5), Documentation/admin-guide/iostats.rst.

// Takes up to n numbers; the rest become KEYED_ABSENT. Returns the number taken.
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
	file_keys_parse(text, keys, N, v);
	stat.context_switches = v[CONTEXT_SWITCHES];
	stat.processes = v[PROCESSES];
	stat.running = v[RUNNING];
	stat.blocked = v[BLOCKED];
	*ret = stat;
	return 0;
}

int procfs_meminfo(int root_fd, const char *key, uint64_t *ret_bytes)
{
	char buffer[4096];
	struct cursor text;
	int64_t bytes;
	int r = file_read_once(root_fd, root_fd == AT_FDCWD ? "/proc/meminfo" : "proc/meminfo",
		buffer, sizeof(buffer), &text, NULL);
	if (r == 0 && (file_keys_parse(text, &key, 1, &bytes) == 0 || bytes < 0)) {
		r = -ENODATA;
	}
	if (r == 0) {
		*ret_bytes = (uint64_t)bytes;
	}
	return r;
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
	line.at = colon ? colon + 1 : line.end; // the first number may follow without a blank
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

// Iostat ------------------------------------------------------------------------------------------
//
// io.stat (Documentation/admin-guide/cgroup-v2.rst).

bool procfs_next_iostat(struct cursor *text, struct iostat_line *ret)
{
	struct iostat_line found = {0};
	const struct {
		const char *key;
		int64_t *value;
	} keys[] = {
		{"rbytes=", &found.read_bytes},
		{"wbytes=", &found.write_bytes},
		{"rios=", &found.reads},
		{"wios=", &found.writes},
	};
	struct cursor line, word;
	do {
		if (!cursor_line(text, &line)) {
			return false;
		}
	} while (!cursor_word(&line, &found.device));
	while (cursor_word(&line, &word)) {
		for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
			struct cursor value = word;
			int64_t number;
			if (cursor_literal(&value, keys[i].key) && cursor_i64(&value, &number) &&
				number >= 0) {
				*keys[i].value = number;
			}
		}
	}
	*ret = found;
	return true;
}

static bool is_stacked(int root_fd, struct cursor device)
{
	struct cursor c = device;
	if (cursor_literal(&c, "7:")) {
		return true; // loop devices list no slaves
	}
	char path[64];
	int length = (int)(device.end - device.at);
	snprintf(path, sizeof(path), "sys/dev/block/%.*s/slaves", length < 32 ? length : 32,
		device.at);
	return file_has_entries(root_fd, path);
}

bool procfs_iostat_counts(struct iostat_disks *known, int root_fd, struct cursor device)
{
	for (size_t i = 0; i < known->n; i++) {
		if (cursor_is(device, known->disks[i].number)) {
			return known->disks[i].counts;
		}
	}
	size_t length = (size_t)(device.end - device.at);
	bool counts = !is_stacked(root_fd, device);
	if (known->n < IOSTAT_MAX_DISKS && length < sizeof(known->disks->number)) {
		memcpy(known->disks[known->n].number, device.at, length);
		known->disks[known->n++].counts = counts;
	}
	return counts;
}

// Procfs ------------------------------------------------------------------------------------------

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

// A number of either sign after at most one blank. Inlined, and checked for overflow only if it has
// very many digits: one read parses fifty of them.
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

// Fills field[STAT_PARENT..] from the rest of the line. Returns the number of the last field found.
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
	// A name may contain anything, including ") R 1 (" and newlines. Only numbers follow, so
	// the last parenthesis ends it.
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

int proc_stat_read(int root_fd, const char *path, struct proc_stat *ret)
{
	char buffer[1024];
	struct cursor text;
	int r = file_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL);
	return r < 0 ? r : proc_stat_parse(text, ret);
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
	if (file_keys_parse(text, keys, ARRAY_LENGTH(keys), v) == 0) {
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
	file_keys_parse(text, keys, ARRAY_LENGTH(keys), v);
	if (v[0] == KEYED_ABSENT || v[1] == KEYED_ABSENT) {
		return -EBADMSG;
	}
	*ret = (struct proc_smaps_rollup){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]};
	return 0;
}

unsigned procfs_list_count(struct cursor list)
{
	uint64_t count = 0, first, last;
	while (cursor_u64(&list, &first)) {
		last = first;
		if (cursor_literal(&list, "-") && !cursor_u64(&list, &last)) {
			return 0;
		}
		if (last < first || last > INT_MAX || (count += last - first + 1) > INT_MAX) {
			return 0;
		}
		if (!cursor_literal(&list, ",")) {
			break;
		}
	}
	return (unsigned)count;
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
		PEAK,
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
		PROCFS_N
	};
	static const char *const keys[PROCFS_N] = {"Uid", "NSpid", "VmPeak", "VmHWM", "VmRSS",
		"RssAnon", "RssFile", "RssShmem", "VmSwap", "Threads", "SigIgn",
		"Cpus_allowed_list", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"};
	struct cursor line[PROCFS_N] = {0};
	struct cursor key, value;
	// The lines are in the order of the table, although some may be missing.
	for (size_t expected = 0; expected < PROCFS_N && file_next_key(&text, &key, &value);) {
		for (size_t i = expected; i < PROCFS_N; i++) {
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
	int64_t v[PROCFS_N];
	for (size_t i = 0; i < PROCFS_N; i++) {
		v[i] = file_key_number(line[i]);
	}
	*ret = (struct proc_status){
		.uid = v[UID],
		.pid_in_namespace = last_number(line[NSPID]),
		.peak_virtual_bytes = v[PEAK],
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
		.cpus_allowed = line[CPUS].at ? procfs_list_count(line[CPUS]) : 0,
	};
	return 0;
}

int proc_status_read(int root_fd, const char *path, struct proc_status *ret)
{
	char buffer[8192]; // two lines of masks grow with the machine's CPUs and nodes
	struct cursor text;
	int r = file_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL);
	return r < 0 ? r : proc_status_parse(text, ret);
}

// "0.66": two digits after the point.
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

const char *procfs_environ_value(struct cursor text, const char *name)
{
	size_t name_length = strlen(name);
	while (text.at < text.end) {
		size_t left = (size_t)(text.end - text.at);
		const char *stop = memchr(text.at, '\0', left);
		if (!stop) {
			return NULL;
		}
		if ((size_t)(stop - text.at) > name_length &&
			memcmp(text.at, name, name_length) == 0 && text.at[name_length] == '=') {
			return text.at + name_length + 1;
		}
		text.at = stop + 1;
	}
	return NULL;
}

bool procfs_is_own(void)
{
	char found[32] = "", own[32];
	snprintf(own, sizeof(own), "%d", (int)getpid());
	ssize_t n = readlink("/proc/self", found, sizeof(found) - 1);
	return n < 0 || strcmp(found, own) == 0;
}
