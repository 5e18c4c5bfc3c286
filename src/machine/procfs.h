// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Parsers for files of /proc/PID. Each parses the whole text of one file, read with one pread, in
// one pass and without allocating. The text is untrusted. Returns 0, or -EBADMSG, leaving *ret
// unchanged, if it is not the kernel's format. Numbers that this kernel does not provide, or that
// this reader may not see, are KEYED_ABSENT, never 0. Times are in ticks of sysconf(_SC_CLK_TCK),
// memory is in bytes unless the name says otherwise.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/parse.h"
#include "machine/file.h"

// /proc/PID/stat
struct proc_stat {
	char name[64]; // set by the process: any bytes but NUL; kernel threads have longer names
	char state; // R, S, D, Z, T, ...
	pid_t parent;
	pid_t group;
	pid_t session;
	uint32_t flags; // PF_* of the kernel
	uint64_t minor_faults;
	uint64_t child_minor_faults; // child_*: of children that were waited for
	uint64_t major_faults;
	uint64_t child_major_faults;
	uint64_t user_ticks;
	uint64_t system_ticks;
	uint64_t child_user_ticks;
	uint64_t child_system_ticks;
	int64_t threads;
	uint64_t start_ticks; // since boot: with the pid, the process's identity
	int64_t rss_pages;
	int64_t cpu; // on which it last ran
	int64_t block_delay_ticks; // waited for block I/O; stays 0 unless delay accounting is on
	int64_t exit_code; // of a zombie, as waitpid gives it; 0 also if it is not readable
};
int proc_stat_parse(struct cursor text, struct proc_stat *ret);
// Opens, reads and parses a file of this format: "proc/7/stat" under root_fd, or an absolute path.
// Returns -errno if it cannot be read.
int proc_stat_read(int root_fd, const char *path, struct proc_stat *ret);

// /proc/PID/statm, in pages
struct proc_statm {
	uint64_t size_pages;
	uint64_t resident_pages;
	uint64_t shared_pages; // resident, of files and shmem
};
int proc_statm_parse(struct cursor text, struct proc_statm *ret);

// /proc/PID/io
struct proc_io {
	int64_t asked_read_bytes; // rchar: by system calls, from the page cache too
	int64_t asked_write_bytes; // wchar
	int64_t read_calls;
	int64_t write_calls;
	int64_t storage_read_bytes; // read_bytes: fetched from the block layer
	int64_t storage_write_bytes;
	int64_t cancelled_write_bytes;
};
int proc_io_parse(struct cursor text, struct proc_io *ret);

// /proc/PID/schedstat: the thread-group leader only. Kernels without schedstats write zeros.
struct proc_schedstat {
	uint64_t run_ns;
	uint64_t wait_ns; // runnable, without a CPU
	uint64_t slices;
};
int proc_schedstat_parse(struct cursor text, struct proc_schedstat *ret);

// /proc/PID/status
struct proc_status {
	int64_t uid; // real
	int64_t pid_in_namespace; // the pid that the process itself sees
	int64_t peak_virtual_bytes; // VmPeak; this and all below absent for kernel threads and
	                            // zombies
	int64_t peak_resident_bytes; // VmHWM
	int64_t resident_bytes;
	int64_t anonymous_bytes;
	int64_t file_bytes;
	int64_t shmem_bytes;
	int64_t swap_bytes;
	int64_t threads;
	int64_t voluntary_switches; // of the leader thread only
	int64_t involuntary_switches;
	uint64_t ignored_signals; // bit n - 1 is signal n
	unsigned cpus_allowed; // to the leader thread, by affinity and cpuset; 0: not said
};
int proc_status_parse(struct cursor text, struct proc_status *ret);
int proc_status_read(int root_fd, const char *path, struct proc_status *ret); // as proc_stat_read

// /proc/PID/smaps_rollup
struct proc_smaps_rollup {
	int64_t rss_bytes;
	int64_t pss_bytes;
	int64_t pss_anonymous_bytes; // the parts of PSS: Linux 5.4 and later
	int64_t pss_file_bytes;
	int64_t pss_shmem_bytes;
	int64_t private_clean_bytes;
	int64_t private_dirty_bytes;
	int64_t swap_bytes;
	int64_t swap_pss_bytes;
};
int proc_smaps_rollup_parse(struct cursor text, struct proc_smaps_rollup *ret);

// /proc/loadavg
struct proc_loadavg {
	uint32_t load_hundredths[3]; // over 1, 5 and 15 minutes
	uint64_t runnable; // threads
	uint64_t threads;
	pid_t last_pid; // newest pid in the reader's namespace: changes when a process or thread
	                // starts
};
int proc_loadavg_parse(struct cursor text, struct proc_loadavg *ret);

// /proc/PID/environ, in which each variable ends with NUL: its value, a string in the text. NULL:
// it is not set, or the text ends within it.
const char *procfs_environ_value(struct cursor text, const char *name);

// Counts the numbers in a list such as "0-3,8,10-11". Returns 0 if it is not a list.
unsigned procfs_list_count(struct cursor list);

// Maps --------------------------------------------------------------------------------------------
//
// Lines of /proc/PID/maps (proc(5)).

struct mapping {
	uint64_t from;
	uint64_t to;
	uint64_t offset; // in the file
	bool runs; // executable
	struct cursor path; // empty: anonymous; "[stack]", "[vdso]"
};

// "0x1f", "1f". Returns false, without moving the cursor, if there is no number or it exceeds 64
// bits.
bool procfs_take_hex(struct cursor *c, uint64_t *ret);
// Returns false if the line is not of a maps file.
bool procfs_take_maps_line(struct cursor line, struct mapping *ret);

// Pressure ----------------------------------------------------------------------------------------
//
// Pressure (PSI) files, of the machine (proc/pressure/) and of v2 cgroups (cpu.pressure, ...).

struct pressure {
	int64_t some_us; // total time that at least one task waited for the resource
	int64_t full_us; // total time that all tasks waited; KEYED_ABSENT if the kernel has no such
	                 // line
};

// Parses a whole pressure file. Returns 0 or -EBADMSG; *ret is then unchanged.
int pressure_parse(struct cursor text, struct pressure *ret);

// The reason why the file could not be read, and the remedy. error: positive errno of open or read.
const char *pressure_reason(int error);

// System ------------------------------------------------------------------------------------------
//
// Statistics of the whole machine: /proc/stat, disks and interfaces. The text is untrusted; numbers
// that this kernel does not provide are KEYED_ABSENT.

enum cpu_mode {
	CPU_USER, // includes the time of guests
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
	int64_t processes; // created since boot, including threads
	int64_t running; // threads
	int64_t blocked; // threads that wait for storage
};
// Returns 0 or -EBADMSG; *ret is then unchanged. The same for all functions below.
int system_stat_parse(struct cursor text, struct system_stat *ret);

// Reads one line of /proc/meminfo, in bytes: "MemTotal", "MemAvailable", "SwapFree". root_fd
// AT_FDCWD: of this machine. Returns -ENODATA if this kernel does not have the line, else -errno.
int procfs_meminfo(int root_fd, const char *key, uint64_t *ret_bytes);

// One line of /proc/diskstats
struct disk_line {
	struct cursor name; // a view into the text
	int64_t reads, read_sectors, read_ms; // sectors of 512 bytes on any disk
	int64_t writes, write_sectors, write_ms;
	int64_t in_flight;
	int64_t busy_ms; // wraps at 32 bits, as do the other ms
	int64_t queue_ms; // sum of the requests' durations
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

// Iostat ------------------------------------------------------------------------------------------
//
// io.stat of a v2 cgroup has a line for each disk that the cgroup has used: "259:0 rbytes=1459200
// wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0".

struct iostat_line {
	struct cursor device; // "259:0", a view into the text
	int64_t read_bytes; // 0 if the line lacks it: nothing counted yet
	int64_t write_bytes;
	int64_t reads;
	int64_t writes;
};

// Takes the next line. Returns false at the end of the text.
bool procfs_next_iostat(struct cursor *text, struct iostat_line *ret);

#define IOSTAT_MAX_DISKS 64u

// Caches which of the first disks count. Initialise with zeros.
struct iostat_disks {
	struct {
		char number[16]; // "259:0"
		bool counts;
	} disks[IOSTAT_MAX_DISKS];
	size_t n;
};

// Returns false for a device on top of others (device mapper, RAID, loop): the lines of those count
// the same bytes again.
bool procfs_iostat_counts(struct iostat_disks *known, int root_fd, struct cursor device);

// Namespaces --------------------------------------------------------------------------------------

// Whether /proc has this process under the number that getpid() gives. If not, it is of another PID
// namespace, and the numbers of other processes mean others there. True if that is not known.
bool procfs_is_own(void);
