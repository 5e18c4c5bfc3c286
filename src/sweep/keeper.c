// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The keeper of a trial.

#include "sweep/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/launch_status.h"
#include "base/parse.h"
#include "machine/process.h"
#include "runfile/still_running.h"

// No limit on the depth of descendants.
#define DESCENDANTS_DEEPEST UINT_MAX

// Processes to which a signal has been sent.
struct told {
	struct told_process {
		pid_t pid;
		uint64_t start_ticks;
	} * items;
	size_t n;
	size_t capacity;
};

// Descendants -------------------------------------------------------------------------------------
//
// Finds descendants with one scan of /proc.

struct processes {
	struct process_entry *items; // [n]
	unsigned *depths; // [n]: below the root; 0: not a descendant, as far as is known
	size_t n;
};

// Empty if they cannot be listed: the next scan may find them.
static struct processes list_processes(void)
{
	struct processes p = {0};
	if (process_list(&p.items, &p.n) == 0 && p.n > 0) {
		p.depths = calloc(p.n, sizeof(*p.depths));
	}
	p.n = p.depths ? p.n : 0;
	return p;
}

static void processes_done(struct processes *p)
{
	free(p->items);
	free(p->depths);
}

static int compare_pid(const void *pid, const void *entry)
{
	pid_t a = *(const pid_t *)pid, b = ((const struct process_entry *)entry)->pid;
	return (a > b) - (a < b);
}

static unsigned depth_of(const struct processes *p, pid_t pid)
{
	const struct process_entry *found = bsearch(
		&pid, p->items, p->n, sizeof(*p->items), compare_pid);
	return found ? p->depths[found - p->items] : 0;
}

// A parent may come after its child in the list, since pids wrap around.
static void find_depths(struct processes *p, pid_t root, pid_t kept)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < p->n; i++) {
			const struct process_entry *one = &p->items[i];
			if (p->depths[i] > 0 || one->pid == kept || one->pid == 1) {
				continue;
			}
			unsigned above = depth_of(p, one->parent);
			p->depths[i] = one->parent == root ? 1 : above > 0 ? above + 1 : 0;
			more = more || p->depths[i] > 0;
		}
	}
}

static bool is_told(const struct told *t, const struct process_entry *one)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->items[i].pid == one->pid && t->items[i].start_ticks == one->start_ticks) {
			return true;
		}
	}
	return false;
}

static void add_told(struct told *t, const struct process_entry *one)
{
	if (array_reserve((void **)&t->items, &t->capacity, t->n + 1, sizeof(*t->items)) == 0) {
		t->items[t->n++] = (struct told_process){one->pid, one->start_ticks};
	}
}

static bool signal_entry(const struct process_entry *one, int signal_number)
{
	return process_signal_child(one->pid, one->start_ticks, signal_number) == 0;
}

// Sends a signal to the descendants of `root` from depth `first` (1: children) to depth `last`,
// except `kept` (0: none) and its descendants. told: the signal is sent only to processes that are
// not in it, and they are added; NULL: to all. Returns the number of processes that received it.
static size_t descendants_signal(
	pid_t root, unsigned first, unsigned last, pid_t kept, int signal_number, struct told *told)
{
	struct processes p = list_processes();
	size_t n = 0;
	find_depths(&p, root, kept);
	first = first > 0 ? first : 1;
	for (size_t i = 0; i < p.n; i++) {
		const struct process_entry *one = &p.items[i];
		bool meant = p.depths[i] >= first && p.depths[i] <= last;
		if (!meant || (told && is_told(told, one))) {
			continue;
		}
		n += signal_entry(one, signal_number);
		if (told) {
			add_told(told, one);
		}
	}
	processes_done(&p);
	return n;
}

// Sets pids[most] to descendants of `root`, without `kept` as above. Returns their number;
// *ret_mine is the number of those that this process may signal.
static size_t descendants_find(pid_t root, pid_t kept, pid_t *pids, size_t most, size_t *ret_mine)
{
	struct processes p = list_processes();
	size_t n = 0;
	*ret_mine = 0;
	find_depths(&p, root, kept);
	for (size_t i = 0; i < p.n; i++) {
		if (p.depths[i] == 0) {
			continue;
		}
		if (n < most) {
			pids[n] = p.items[i].pid;
		}
		n++;
		*ret_mine += signal_entry(&p.items[i], 0);
	}
	processes_done(&p);
	return n;
}

// Keeper ------------------------------------------------------------------------------------------

#define LEFT_GRACE_NS (2 * NS_PER_S) // for processes left by a job that ended by itself
// between two SIGKILLs, since processes can be started in between
#define AGAIN_NS (100 * NS_PER_MS)
#define AGAIN_MOST_NS (2 * NS_PER_S)
// Time after the first SIGKILL. Processes that may not be signalled are not waited for longer, and
// none if the user is in a hurry. Others have to free memory first, which takes a while if there is
// much.
#define REFUSING_NS (5 * NS_PER_S)
#define DYING_NS (30 * NS_PER_S)
#define NEVER UINT64_MAX

enum {
	LONGEST_MS = 3600000,
	// Orphans that are not our children arrive without a signal. The longer none arrives, the
	// rarer the checks.
	LOOK_MS = 20,
	LOOK_MOST_MS = 500,
	LOOK_SHARE = 32,
};

struct keeper {
	const struct keeper_config *config;
	int socket;
	int signals; // SIGCHLD
	bool heard_last; // the sweep has ended
	pid_t launcher; // 0: it has ended
	bool recorder_gone; // only killed after the launcher ended
	bool asked;
	uint64_t ask_all_ns; // due times of the next steps
	uint64_t kill_ns;
	uint64_t again_ns; // interval between SIGKILLs
	uint64_t first_kill_ns; // 0: there was none
	uint64_t alone_ns; // time when the launcher ended
	bool hurried;
	struct told told;
};

static void ask(struct keeper *k)
{
	if (k->asked) {
		return;
	}
	uint64_t now_ns = clock_monotonic_ns();
	k->asked = true;
	k->ask_all_ns = now_ns + k->config->grace_ns / 2;
	k->kill_ns = now_ns + k->config->grace_ns;
	if (k->launcher > 0) {
		kill(k->launcher, SIGTERM);
		kill(k->launcher, SIGCONT); // the launcher stops with its job
	}
}

// Reaps children. False: there are none left.
static bool reap(struct keeper *k)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != k->launcher) {
			continue;
		}
		const struct keeper_message message = {.status = status};
		k->launcher = 0;
		k->alone_ns = clock_monotonic_ns();
		send(k->socket, &message, sizeof(message), MSG_NOSIGNAL);
		if (!k->asked) {
			k->asked = true;
			k->ask_all_ns = k->alone_ns + LEFT_GRACE_NS / 2;
			k->kill_ns = k->alone_ns + LEFT_GRACE_NS;
		}
	}
	return pid == 0;
}

static void hear(struct keeper *k)
{
	char command;
	while (!k->heard_last) {
		ssize_t n = recv(k->socket, &command, 1, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			return;
		}
		if (n == 1 && command == KEEPER_KILL) {
			ask(k);
			k->kill_ns = 0;
			k->again_ns = 0;
			k->hurried = true;
			continue;
		}
		ask(k);
		k->heard_last = n <= 0;
	}
}

// The recorder was not told of the end, or does not end: the run it writes is incomplete.
static void kill_recorder(struct keeper *k)
{
	if (!k->recorder_gone) {
		still_running_kill_recorder(k->config->run, k->config->mark);
	}
	k->recorder_gone = true;
}

// The recorder is also below the launcher, and must be kept. While the launcher runs, its own
// children are not signalled: they get SIGTERM from it, or when it has ended.
static void act(struct keeper *k)
{
	uint64_t now_ns = clock_monotonic_ns();
	pid_t root = k->launcher > 0 ? k->launcher : getpid();
	bool kill_now = now_ns >= k->kill_ns, ask_all = now_ns >= k->ask_all_ns;
	pid_t kept = k->launcher > 0 && (kill_now || ask_all)
	                     ? still_running_recorder(k->config->run, k->config->mark)
	                     : 0;
	if (kill_now) {
		descendants_signal(root, 1, DESCENDANTS_DEEPEST, kept, SIGKILL, NULL);
		k->ask_all_ns = NEVER;
		k->again_ns = k->again_ns == 0                  ? AGAIN_NS
		              : k->again_ns < AGAIN_MOST_NS / 2 ? 2 * k->again_ns
		                                                : AGAIN_MOST_NS;
		k->kill_ns = now_ns + k->again_ns;
		k->first_kill_ns = k->first_kill_ns ? k->first_kill_ns : now_ns;
		if (k->launcher > 0) {
			kill(k->launcher, SIGCONT);
		}
	} else if (ask_all) {
		descendants_signal(root, k->launcher > 0 ? 2 : 1, DESCENDANTS_DEEPEST, kept,
			SIGTERM, &k->told);
		k->ask_all_ns = NEVER;
	} else if (k->launcher == 0) {
		kill_recorder(k);
		descendants_signal(root, 1, 1, 0, SIGTERM, &k->told);
	}
}

// Whether SIGKILL does not help. While the launcher runs, the recorder does not count.
static bool is_stuck(const struct keeper *k, struct keeper_message *ret)
{
	uint64_t waited_ns = k->first_kill_ns ? clock_monotonic_ns() - k->first_kill_ns : 0;
	if (waited_ns < REFUSING_NS) {
		return false;
	}
	pid_t root = k->launcher > 0 ? k->launcher : getpid();
	pid_t kept = k->launcher > 0 ? still_running_recorder(k->config->run, k->config->mark) : 0;
	size_t mine;
	*ret = (struct keeper_message){0};
	ret->n_left = descendants_find(root, kept, ret->left, KEEPER_LEFT_MOST, &mine);
	return ret->n_left > 0 && (mine == 0 || k->hurried || waited_ns >= DYING_NS);
}

static void give_up(struct keeper *k, const struct keeper_message *message)
{
	kill_recorder(k);
	if (k->launcher > 0) {
		kill(k->launcher, SIGKILL);
	}
	send(k->socket, message, sizeof(*message), MSG_NOSIGNAL);
}

static int look_ms(const struct keeper *k, uint64_t now_ns)
{
	uint64_t share_ms = (now_ns - k->alone_ns) / LOOK_SHARE / NS_PER_MS;
	return share_ms < LOOK_MS        ? LOOK_MS
	       : share_ms < LOOK_MOST_MS ? (int)share_ms
	                                 : LOOK_MOST_MS;
}

static void wait_for_news(const struct keeper *k)
{
	struct signalfd_siginfo info;
	struct pollfd fds[] = {{.fd = k->signals, .events = POLLIN},
		{.fd = k->heard_last ? -1 : k->socket, .events = POLLIN}};
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t due_ns = k->ask_all_ns < k->kill_ns ? k->ask_all_ns : k->kill_ns;
	uint64_t left_ms = due_ns > now_ns ? (due_ns - now_ns) / NS_PER_MS + 1 : 0;
	int timeout_ms = k->launcher == 0  ? look_ms(k, now_ns)
	                 : due_ns == NEVER ? -1
	                                   : (int)(left_ms < LONGEST_MS ? left_ms : LONGEST_MS);
	poll(fds, ARRAY_LENGTH(fds), timeout_ms);
	while (read(k->signals, &info, sizeof(info)) > 0) {
	}
}

// Closes the sweep's descriptors, above all its lock, and the pipes it was given: they must end
// with the sweep.
static void keep_only(int socket, int signals)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++) {
		dup2(null, fd);
	}
	DIR *directory = opendir("/proc/self/fd");
	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		int64_t fd;
		if (parse_integer(entry->d_name, STDERR_FILENO + 1, INT32_MAX, &fd, NULL) == 0 &&
			fd != socket && fd != signals && fd != dirfd(directory)) {
			close((int)fd);
		}
	}
	if (directory) {
		closedir(directory);
	}
}

// Restores the signals as they were when the sweep started, except those of the terminal and
// SIGPIPE, which get their defaults.
static void restore_signals(const struct sigaction *child)
{
	static const int usual[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE};
	sigset_t none;
	for (size_t i = 0; i < ARRAY_LENGTH(usual); i++) {
		signal(usual[i], SIG_DFL);
	}
	sigaction(SIGCHLD, child, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void run_launcher(
	const struct keeper_config *config, pid_t keeper, const struct sigaction *child)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != keeper) {
		_exit(LAUNCH_FAILED);
	}
	setpgid(0, 0);
	restore_signals(child);
	config->become(config->context);
	_exit(LAUNCH_FAILED);
}

// Nothing was started: sends the reason to the sweep.
static _Noreturn void fail(const struct keeper_config *config, int code)
{
	const struct keeper_message message = {.error = code};
	send(config->socket, &message, sizeof(message), MSG_NOSIGNAL);
	_exit(LAUNCH_FAILED);
}

void keeper_run(const struct keeper_config *config)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	struct sigaction child;
	struct keeper k = {.config = config, .ask_all_ns = NEVER, .kill_ns = NEVER};
	struct keeper_message message;
	sigset_t all, ended;
	k.socket = fcntl(config->socket, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	// if it were ignored, children would vanish without a status
	sigaction(SIGCHLD, &usual, &child);
	setpgid(0, 0);
	prctl(PR_SET_NAME, "strain-keeper");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t keeper = getpid();
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	_cleanup_close_ int signals = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
	k.signals = k.socket < 0 || signals < 0
	                    ? -1
	                    : fcntl(signals, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	k.launcher = k.signals < 0 ? -1 : fork();
	if (k.launcher == 0) {
		run_launcher(config, keeper, &child);
	}
	if (k.launcher < 0) {
		fail(config, errno);
	}
	keep_only(k.socket, k.signals);
	while (reap(&k)) {
		hear(&k);
		act(&k);
		if (is_stuck(&k, &message)) {
			give_up(&k, &message);
			break;
		}
		wait_for_news(&k);
	}
	_exit(0);
}
