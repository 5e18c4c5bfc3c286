// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tables of system calls and kernel functions that wait.

#include "machine/doing.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "machine/procfs.h"

// Parsing -----------------------------------------------------------------------------------------

bool doing_parse_call(struct cursor text, struct doing_call *ret)
{
	struct doing_call call = {.number = -1};
	if (cursor_literal(&text, "running")) {
		*ret = (struct doing_call){.runs = true, .number = -1};
		return true;
	}
	if (!cursor_i64(&text, &call.number)) {
		return false;
	}
	for (size_t i = 0; call.number >= 0 && i < ARRAY_LENGTH(call.arguments); i++) {
		if (!procfs_take_hex(&text, &call.arguments[i])) {
			return false;
		}
	}
	*ret = call;
	return true;
}

// System calls ------------------------------------------------------------------------------------

static const struct doing_rule rules[] = {
	{SYS_read, CLUE_FD, DOING_STORAGE, 0},
	{SYS_pread64, CLUE_FD, DOING_STORAGE, 0},
	{SYS_readv, CLUE_FD, DOING_STORAGE, 0},
	{SYS_preadv, CLUE_FD, DOING_STORAGE, 0},
	{SYS_preadv2, CLUE_FD, DOING_STORAGE, 0}, // Python's os.preadv
	{SYS_write, CLUE_FD, DOING_STORAGE, 0},
	{SYS_pwrite64, CLUE_FD, DOING_STORAGE, 0},
	{SYS_writev, CLUE_FD, DOING_STORAGE, 0},
	{SYS_pwritev, CLUE_FD, DOING_STORAGE, 0},
	{SYS_pwritev2, CLUE_FD, DOING_STORAGE, 0},
	{SYS_sendfile, CLUE_FD, DOING_STORAGE, 1},
	{SYS_copy_file_range, CLUE_KIND, DOING_STORAGE, 0},
	{SYS_io_getevents, CLUE_KIND, DOING_STORAGE, 0},
	{SYS_statx, CLUE_KIND, DOING_STORAGE, 0},
	{SYS_unlinkat, CLUE_KIND, DOING_STORAGE, 0},
	{SYS_ftruncate, CLUE_KIND, DOING_STORAGE, 0},
	{SYS_fallocate, CLUE_KIND, DOING_STORAGE, 0},
	{SYS_getdents64, CLUE_KIND, DOING_STORAGE, 0},
	{SYS_openat, CLUE_KIND, DOING_STORAGE, 0},
	{SYS_newfstatat, CLUE_KIND, DOING_STORAGE, 0},
	{SYS_readahead, CLUE_KIND, DOING_STORAGE, 0},
	{SYS_fsync, CLUE_KIND, DOING_FSYNC, 0},
	{SYS_fdatasync, CLUE_KIND, DOING_FSYNC, 0},
	{SYS_msync, CLUE_KIND, DOING_FSYNC, 0},
	{SYS_sync_file_range, CLUE_KIND, DOING_FSYNC, 0},
	{SYS_sync, CLUE_KIND, DOING_FSYNC, 0},
	{SYS_syncfs, CLUE_KIND, DOING_FSYNC, 0},
	{SYS_recvfrom, CLUE_FD, DOING_NETWORK, 0},
	{SYS_recvmsg, CLUE_FD, DOING_NETWORK, 0},
	{SYS_sendto, CLUE_FD, DOING_NETWORK, 0},
	{SYS_sendmsg, CLUE_FD, DOING_NETWORK, 0},
	{SYS_recvmmsg, CLUE_FD, DOING_NETWORK, 0},
	{SYS_sendmmsg, CLUE_FD, DOING_NETWORK, 0},
	{SYS_connect, CLUE_FD, DOING_NETWORK, 0},
	{SYS_accept, CLUE_FD, DOING_NETWORK, 0},
	{SYS_accept4, CLUE_FD, DOING_NETWORK, 0},
	{SYS_flock, CLUE_KIND, DOING_LOCK, 0},
	{SYS_fcntl, CLUE_KIND, DOING_LOCK, 0},
	{SYS_semop, CLUE_KIND, DOING_LOCK, 0},
	{SYS_semtimedop, CLUE_KIND, DOING_LOCK, 0},
	{SYS_futex, CLUE_FUTEX, DOING_OTHER, 0},
	{SYS_nanosleep, CLUE_KIND, DOING_SLEEP, 0},
	{SYS_clock_nanosleep, CLUE_KIND, DOING_SLEEP, 0},
	{SYS_wait4, CLUE_KIND, DOING_CHILD, 0},
	{SYS_waitid, CLUE_KIND, DOING_CHILD, 0},
	{SYS_clone, CLUE_KIND, DOING_CHILD, 0}, // like vfork: until the child runs its program
	{SYS_clone3, CLUE_KIND, DOING_CHILD, 0},
	{SYS_ppoll, CLUE_POLL, DOING_PIPE, 1},
	{SYS_pselect6, CLUE_POLL, DOING_PIPE, 0},
	{SYS_epoll_pwait, CLUE_KIND, DOING_PIPE, 0},
#ifdef SYS_vfork
	{SYS_vfork, CLUE_KIND, DOING_CHILD, 0},
#endif
#ifdef SYS_poll
	{SYS_poll, CLUE_POLL, DOING_PIPE, 1},
#endif
#ifdef SYS_select
	{SYS_select, CLUE_POLL, DOING_PIPE, 0},
#endif
#ifdef SYS_epoll_wait
	{SYS_epoll_wait, CLUE_KIND, DOING_PIPE, 0},
#endif
#ifdef SYS_open
	{SYS_open, CLUE_KIND, DOING_STORAGE, 0},
#endif
#ifdef SYS_stat
	{SYS_stat, CLUE_KIND, DOING_STORAGE, 0},
#endif
#ifdef SYS_unlink
	{SYS_unlink, CLUE_KIND, DOING_STORAGE, 0},
#endif
#ifdef SYS_pause
	{SYS_pause, CLUE_KIND, DOING_SLEEP, 0},
#endif
};

const struct doing_rule *doing_rule_of(const struct doing_call *call)
{
	for (size_t i = 0; i < ARRAY_LENGTH(rules); i++) {
		if (rules[i].number == call->number) {
			return &rules[i];
		}
	}
	return NULL;
}

bool doing_polls_nothing(const struct doing_rule *rule, const struct doing_call *call)
{
	return rule->clue == CLUE_POLL && (uint32_t)call->arguments[rule->argument] == 0;
}

enum doing doing_of_futex(const struct doing_call *call, uint64_t gil_from, uint64_t gil_to)
{
	uint64_t word = call->arguments[0], limit = call->arguments[3];
	if ((call->arguments[1] & FUTEX_PRIVATE_FLAG) == 0) {
		return DOING_LOCK;
	}
	return word >= gil_from && word < gil_to && limit != 0 ? DOING_GIL : DOING_OTHER;
}

enum doing doing_of_descriptor(const char *target)
{
	return strncmp(target, "socket:", 7) == 0        ? DOING_NETWORK
	       : strncmp(target, "pipe:", 5) == 0        ? DOING_PIPE
	       : strncmp(target, "anon_inode:", 11) == 0 ? DOING_OTHER
	       : strncmp(target, "/dev/", 5) == 0        ? DOING_OTHER
	       : target[0] == '/'                        ? DOING_STORAGE
	                                                 : DOING_OTHER;
}

// The kernel's functions --------------------------------------------------------------------------

struct function {
	const char *prefix;
	enum doing kind;
};

// The first match counts. Names from Linux 4.18 to 6.18.
static const struct function functions[] = {
	{"hrtimer_nanosleep", DOING_SLEEP},
	{"do_nanosleep", DOING_SLEEP},
	{"common_nsleep", DOING_SLEEP},
	{"do_wait", DOING_CHILD},
	{"kernel_wait4", DOING_CHILD},
	{"kernel_clone", DOING_CHILD},
	{"wait_for_vfork_done", DOING_CHILD},
	{"pipe_", DOING_PIPE},
	{"anon_pipe_", DOING_PIPE},
	{"unix_", DOING_PIPE},
	{"do_poll", DOING_PIPE},
	{"do_sys_poll", DOING_PIPE},
	{"poll_schedule_timeout", DOING_PIPE},
	{"do_select", DOING_PIPE},
	{"ep_poll", DOING_PIPE},
	{"do_epoll_wait", DOING_PIPE},
	{"flock_lock_inode_wait", DOING_LOCK},
	{"locks_lock_inode_wait", DOING_LOCK},
	{"posix_lock_inode_wait", DOING_LOCK},
	{"do_lock_file_wait", DOING_LOCK},
	{"fcntl_setlk", DOING_LOCK},
	{"do_semtimedop", DOING_LOCK},
	{"sk_wait_data", DOING_NETWORK},
	{"wait_woken", DOING_NETWORK},
	{"inet_", DOING_NETWORK},
	{"tcp_", DOING_NETWORK},
	{"jbd2_log_wait_commit", DOING_FSYNC},
	{"ext4_sync_file", DOING_FSYNC},
	{"xfs_log_force", DOING_FSYNC},
	{"btrfs_sync_file", DOING_FSYNC},
	{"file_write_and_wait", DOING_FSYNC},
	{"blkdev_issue_flush", DOING_FSYNC},
	{"io_schedule", DOING_STORAGE},
	{"folio_wait_bit", DOING_STORAGE},
	{"wait_on_page_bit", DOING_STORAGE},
	{"__lock_page", DOING_STORAGE},
	{"blk_", DOING_STORAGE},
	{"rpc_wait_bit_killable", DOING_STORAGE}, // NFS
	{"nfs_", DOING_STORAGE},
	{"ll_", DOING_STORAGE}, // Lustre
	{"fuse_", DOING_STORAGE},
	{"request_wait_answer", DOING_STORAGE},
	{"balance_dirty_pages", DOING_STORAGE},
};

enum doing doing_of_wchan(struct cursor name)
{
	if (cursor_is(name, "0") || name.at == name.end) {
		return DOING_RUNS;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(functions); i++) {
		struct cursor rest = name;
		if (cursor_literal(&rest, functions[i].prefix)) {
			return functions[i].kind;
		}
	}
	return DOING_OTHER;
}

enum doing doing_of_blocked(struct cursor wchan, bool faulted)
{
	enum doing kind = doing_of_wchan(wchan);
	return kind != DOING_RUNS ? kind : faulted ? DOING_STORAGE : DOING_OTHER;
}

// Python ------------------------------------------------------------------------------------------

static bool begins(struct cursor text, const char *prefix)
{
	return cursor_literal(&text, prefix);
}

// 0: neither. 1: a program of that name. 2: the library, which has the variables if it is used.
static int interpreter_rank(struct cursor path)
{
	struct cursor name = path;
	for (const char *at = path.at; at < path.end; at++) {
		if (*at == '/') {
			name.at = at + 1;
		}
	}
	return begins(name, "libpython3") ? 2 : begins(name, "python3") ? 1 : 0;
}

bool doing_find_interpreter(struct cursor maps, uint64_t *ret_from, uint64_t *ret_to)
{
	struct cursor line;
	uint64_t from = 0, to = 0;
	int best = 0;
	bool follows = false; // the mapping before belonged to it
	while (cursor_line(&maps, &line)) {
		struct mapping m;
		if (!procfs_take_maps_line(line, &m)) {
			continue;
		}
		int rank = interpreter_rank(m.path);
		bool variables = follows && m.from == to && m.path.at == m.path.end; // .bss
		if (rank > best) {
			from = m.from;
			best = rank;
		}
		follows = (rank > 0 && rank == best) || variables;
		to = follows ? m.to : to;
	}
	*ret_from = from;
	*ret_to = to;
	return to > from;
}
