// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What /proc/PID tells about a process. Each parser takes the whole text of one file, as one pread
// gave it, in one pass and without allocating; nothing in the text is trusted. 0, or -EBADMSG where
// it is not what the kernel writes, and then *ret is untouched. Numbers that this kernel (or this
// reader's permissions) does not tell are KEYED_ABSENT, never 0. Times are in ticks of
// sysconf(_SC_CLK_TCK), memory in bytes unless the name says else.

#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/parse.h"
#include "record/host/keyed.h"

// /proc/PID/stat
struct proc_stat {
	char name[64]; // as the process calls itself: any bytes but NUL; kernel threads' are longer
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
	int64_t cpu; // that it last ran on
	int64_t block_delay_ticks; // waited for block I/O; stays 0 unless delay accounting is on
	int64_t exit_code; // of a zombie, as waitpid gives it; 0 also where it may not be read
};
int proc_stat_parse(struct cursor text, struct proc_stat *ret);

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

// /proc/PID/schedstat: of the thread-group leader only. Kernels without schedstats write zeros.
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
	int64_t peak_resident_bytes; // VmHWM; absent for kernel threads and zombies
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
	pid_t last_pid; // newest pid in the reader's namespace: it moves when a process or thread
	                // is born
};
int proc_loadavg_parse(struct cursor text, struct proc_loadavg *ret);
