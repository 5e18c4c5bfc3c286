// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The trials that have been handed to Slurm.

#include "sweep/slurm_ledger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/trust.h"
#include "base/whole_file.h"

enum { OUTPUT_BYTES = 4096, NAME_SIZE = 96, OWNER_SIZE = 256 };

// Names -------------------------------------------------------------------------------------------

static void name_of(char buffer[NAME_SIZE], const struct slurm_ticket *t, const char *ending)
{
	snprintf(buffer, NAME_SIZE, "%04u-%u.%u.%s.%u%s", t->trial.configuration, t->trial.repeat,
		t->attempt, t->token, t->task, ending);
}

static void name_of_batch(char buffer[NAME_SIZE], const char *token, const char *ending)
{
	snprintf(buffer, NAME_SIZE, "%s%s", token, ending);
}

static void name_of_output(char buffer[NAME_SIZE], const struct slurm_ticket *t)
{
	snprintf(buffer, NAME_SIZE, "%s-%u.out", t->token, t->task);
}

char *slurm_ticket_stem(const struct slurm_ticket *ticket)
{
	char name[NAME_SIZE];
	name_of(name, ticket, "");
	return strdup(name);
}

static bool take_number(struct cursor *c, uint32_t *ret)
{
	uint64_t number;
	bool is_one = cursor_u64(c, &number) && number > 0 && number <= UINT32_MAX;
	*ret = is_one ? (uint32_t)number : 0;
	return is_one;
}

static bool is_hexadecimal(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool take_token(struct cursor *c, char token[SLURM_TOKEN_SIZE])
{
	for (size_t i = 0; i < SLURM_TOKEN_SIZE - 1; i++) {
		if (c->at == c->end || !is_hexadecimal(*c->at)) {
			return false;
		}
		token[i] = *c->at++;
	}
	token[SLURM_TOKEN_SIZE - 1] = '\0';
	return true;
}

bool slurm_ticket_parse(const char *stem, size_t length, struct slurm_ticket *ret)
{
	struct cursor c = cursor_of(stem, length);
	struct slurm_ticket t = {0};
	bool is_one = take_number(&c, &t.trial.configuration) && cursor_literal(&c, "-") &&
	              take_number(&c, &t.trial.repeat) && cursor_literal(&c, ".") &&
	              take_number(&c, &t.attempt) && cursor_literal(&c, ".") &&
	              take_token(&c, t.token) && cursor_literal(&c, ".") &&
	              take_number(&c, &t.task) && c.at == c.end;
	*ret = t;
	return is_one;
}

int slurm_ledger_new_token(char token[SLURM_TOKEN_SIZE])
{
	uint64_t number;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
		return -EIO;
	}
	snprintf(token, SLURM_TOKEN_SIZE, "%016" PRIx64, number);
	return 0;
}

// Files -------------------------------------------------------------------------------------------

int slurm_ledger_open(int sweep_folder, const char *sweep_path, bool make, struct error *e)
{
	_cleanup_text_ struct text path = {0};
	text_format(&path, "%s/" SLURM_LEDGER, sweep_path);
	if (path.failed) {
		return error_errno(e, ENOMEM, "%s", sweep_path);
	}
	if (make && mkdirat(sweep_folder, SLURM_LEDGER, 0700) < 0 && errno != EEXIST) {
		return error_errno(e, errno, "%s", path.data);
	}
	_cleanup_close_ int fd = openat(
		sweep_folder, SLURM_LEDGER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		return error_errno(e, errno, "%s", path.data);
	}
	int result = trust_own(fd, path.data, e);
	return result < 0 ? result : take_fd(fd);
}

static int create(int ledger, const char *name)
{
	int fd = openat(ledger, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static size_t read_small(int ledger, const char *name, char *buffer, size_t size)
{
	_cleanup_close_ int fd = openat(
		ledger, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buffer, size - 1);
	buffer[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static bool exists(int ledger, const char *name)
{
	struct stat status;
	return fstatat(ledger, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool parse_entry(const char *name, struct slurm_ticket *ret)
{
	const char *dot = strrchr(name, '.');
	bool ticket = dot && strcmp(dot, ".ticket") == 0, taken = dot && strcmp(dot, ".taken") == 0;
	if ((!ticket && !taken) || !slurm_ticket_parse(name, (size_t)(dot - name), ret)) {
		return false;
	}
	ret->taken = taken;
	return true;
}

static int list_once(
	int ledger, int (*each)(void *context, const struct slurm_ticket *ticket), void *context)
{
	int fd = openat(ledger, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); // a position of its own
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		int code = errno;
		cleanup_close(&fd);
		return -code;
	}
	int result = 0;
	while (result == 0) {
		struct slurm_ticket ticket;
		errno = 0;
		struct dirent *entry = readdir(folder);
		if (!entry) { // the end, or EIO or ESTALE
			result = -errno;
			break;
		}
		if (parse_entry(entry->d_name, &ticket)) {
			result = each(context, &ticket);
		}
	}
	closedir(folder);
	return result;
}

// A ticket that is renamed during the first look may be missed under both names. It is renamed only
// once, so that the second look finds it.
int slurm_ledger_list(
	int ledger, int (*each)(void *context, const struct slurm_ticket *ticket), void *context)
{
	int result = list_once(ledger, each, context);
	return result == 0 ? list_once(ledger, each, context) : result;
}

static int note_one(void *context, const struct slurm_ticket *ticket)
{
	(void)ticket;
	*(bool *)context = true;
	return 0;
}

bool slurm_ledger_has_tickets(int ledger)
{
	bool any = false;
	return slurm_ledger_list(ledger, note_one, &any) < 0 || any;
}

int slurm_ledger_write(int ledger, const struct slurm_ticket *ticket)
{
	char name[NAME_SIZE];
	name_of(name, ticket, ".ticket");
	int fd = create(ledger, name);
	if (fd < 0) {
		return fd;
	}
	return close(fd) < 0 ? -errno : 0;
}

int slurm_ledger_sync(int ledger)
{
	return fsync(ledger) < 0 && errno != EINVAL ? -errno : 0;
}

bool slurm_ledger_revoke(int ledger, const struct slurm_ticket *ticket)
{
	char name[NAME_SIZE];
	name_of(name, ticket, ".ticket");
	return unlinkat(ledger, name, 0) == 0;
}

void slurm_ledger_remove(int ledger, const struct slurm_ticket *ticket)
{
	char name[NAME_SIZE];
	name_of(name, ticket, ".ticket");
	unlinkat(ledger, name, 0);
	name_of(name, ticket, ".taken");
	unlinkat(ledger, name, 0);
	name_of_output(name, ticket);
	unlinkat(ledger, name, 0);
}

void slurm_ledger_read_output(int ledger, const struct slurm_ticket *ticket, struct text *ret)
{
	char name[NAME_SIZE], buffer[OUTPUT_BYTES];
	struct stat status;
	name_of_output(name, ticket);
	_cleanup_close_ int fd = openat(
		ledger, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		return;
	}
	off_t from = status.st_size > OUTPUT_BYTES ? status.st_size - OUTPUT_BYTES : 0;
	ssize_t n = pread(fd, buffer, sizeof(buffer), from);
	text_append(ret, buffer, n > 0 ? (size_t)n : 0);
}

// Arrays ------------------------------------------------------------------------------------------

uint64_t slurm_ledger_job(int ledger, const char *token)
{
	char name[NAME_SIZE], buffer[32];
	uint64_t job = 0;
	name_of_batch(name, token, ".job");
	struct cursor c = cursor_of(buffer, read_small(ledger, name, buffer, sizeof(buffer)));
	return cursor_u64(&c, &job) && cursor_literal(&c, "\n") ? job : 0;
}

// With its newline, or it does not count: the sweep may be killed while it writes.
int slurm_ledger_write_job(int ledger, const char *token, uint64_t job)
{
	char name[NAME_SIZE], text[32];
	name_of_batch(name, token, ".job");
	unlinkat(ledger, name, 0);
	_cleanup_close_ int fd = create(ledger, name);
	int length = snprintf(text, sizeof(text), "%" PRIu64 "\n", job);
	return fd < 0 ? fd : whole_file_write_to(fd, text, (size_t)length);
}

int slurm_ledger_cancel(int ledger, const char *token)
{
	char name[NAME_SIZE];
	name_of_batch(name, token, ".cancelled");
	_cleanup_close_ int fd = create(ledger, name);
	return fd < 0 && fd != -EEXIST ? fd : 0;
}

bool slurm_ledger_is_cancelled(int ledger, const char *token)
{
	char name[NAME_SIZE];
	name_of_batch(name, token, ".cancelled");
	return exists(ledger, name);
}

void slurm_ledger_forget(int ledger, const char *token)
{
	static const char *const endings[] = {".job", ".cancelled"};
	for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
		char name[NAME_SIZE];
		name_of_batch(name, token, endings[i]);
		unlinkat(ledger, name, 0);
	}
}

void slurm_ledger_tidy(int ledger, bool (*kept)(void *context, const char *token), void *context)
{
	int fd = openat(ledger, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		cleanup_close(&fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(folder));) {
		char token[SLURM_TOKEN_SIZE];
		struct cursor c = cursor_of(entry->d_name, strlen(entry->d_name));
		if (take_token(&c, token) && c.at < c.end && strchr(".-", *c.at) &&
			!kept(context, token)) {
			unlinkat(ledger, entry->d_name, 0);
		}
	}
	closedir(folder);
}

// In a task ---------------------------------------------------------------------------------------

int slurm_ledger_take(int ledger, const struct slurm_ticket *ticket, bool again, char **ret_owner)
{
	char from[NAME_SIZE], to[NAME_SIZE], host[128] = "", owner[OWNER_SIZE];
	name_of(from, ticket, ".ticket");
	name_of(to, ticket, ".taken");
	if (renameat(ledger, from, ledger, to) < 0 && (errno != ENOENT || !again)) {
		int code = errno;
		if (code == ENOENT && !exists(ledger, to)) { // nobody waits for this task
			name_of_output(to, ticket);
			unlinkat(ledger, to, 0);
		}
		return -code;
	}
	gethostname(host, sizeof(host) - 1);
	int length = snprintf(owner, sizeof(owner), "%s %d %" PRIu64 "\n", host, (int)getpid(),
		clock_realtime_ns());
	// Without O_CREAT: the sweep may have removed it.
	_cleanup_close_ int fd = openat(ledger, to, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	int result = fd < 0 ? -errno : whole_file_write_to(fd, owner, (size_t)length);
	if (result < 0) {
		return result;
	}
	name_of_output(to, ticket);
	int out = openat(ledger, to, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cleanup_close(&out);
	*ret_owner = strdup(owner);
	return *ret_owner ? 0 : -ENOMEM;
}

bool slurm_ledger_owns(int ledger, const struct slurm_ticket *ticket, const char *owner)
{
	char name[NAME_SIZE], buffer[OWNER_SIZE];
	name_of(name, ticket, ".taken");
	read_small(ledger, name, buffer, sizeof(buffer));
	return strcmp(buffer, owner) == 0;
}
