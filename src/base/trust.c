// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Owners and modes along a path.

#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

enum { LINKS_MOST = 40 }; // as in the kernel

// Who can change things ---------------------------------------------------------------------------

static void add_owner(struct trust *t, uid_t owner)
{
	if (owner == 0 || owner == geteuid()) {
		return;
	}
	for (size_t i = 0; i < t->n_owners; i++) {
		if (t->owners[i] == owner) {
			return;
		}
	}
	if (t->n_owners == TRUST_MOST) {
		t->everyone = true; // too many to list: treat as everyone
		return;
	}
	t->owners[t->n_owners++] = owner;
}

static void add_group(struct trust *t, gid_t group)
{
	for (size_t i = 0; i < t->n_groups; i++) {
		if (t->groups[i] == group) {
			return;
		}
	}
	if (t->n_groups == TRUST_MOST) {
		t->everyone = true;
		return;
	}
	t->groups[t->n_groups++] = group;
}

// In a sticky folder others can create names, but not remove existing ones.
static void add_status(struct trust *t, const struct stat *status)
{
	add_owner(t, status->st_uid);
	if (S_ISLNK(status->st_mode)) {
		return; // a link's mode means nothing
	}
	bool sticky = S_ISDIR(status->st_mode) && status->st_mode & S_ISVTX;
	if (status->st_mode & (S_IWGRP | S_IWOTH) && sticky) {
		t->in_public = true;
		return;
	}
	if (status->st_mode & S_IWGRP) {
		add_group(t, status->st_gid);
	}
	t->everyone = t->everyone || status->st_mode & S_IWOTH;
}

// The way -----------------------------------------------------------------------------------------

// A walk along a path: the part already walked ("" is the root) and the rest.
struct walk {
	struct text at;
	struct text rest;
	unsigned links;
};

static void walk_done(struct walk *w)
{
	text_done(&w->at);
	text_done(&w->rest);
}

static void go_up(struct text *at)
{
	char *slash = at->data ? strrchr(at->data, '/') : NULL;
	if (slash) {
		*slash = '\0';
		at->length = (size_t)(slash - at->data);
	}
}

// The link's target is put before the rest.
static int follow(struct walk *w)
{
	char target[PATH_MAX];
	ssize_t length = readlink(w->at.data, target, sizeof(target) - 1);
	if (length < 0) {
		return -errno;
	}
	if (++w->links > LINKS_MOST) {
		return -ELOOP;
	}
	target[length] = '\0';
	struct text rest = {0};
	text_format(&rest, "%s/%s", target, w->rest.data ? w->rest.data : "");
	text_done(&w->rest);
	w->rest = rest;
	if (target[0] == '/') {
		text_clear(&w->at);
	} else {
		go_up(&w->at);
	}
	return 0;
}

// Takes the next name from the rest. Returns false if there is none.
static bool next_name(struct text *rest, char *name, size_t size)
{
	const char *from = rest->data ? rest->data + strspn(rest->data, "/") : "";
	size_t length = strcspn(from, "/");
	if (length == 0 || length >= size) {
		return false;
	}
	memcpy(name, from, length);
	name[length] = '\0';
	struct text left = {0};
	text_append_string(&left, from + length);
	text_done(rest);
	*rest = left;
	return true;
}

static int step(struct walk *w, const char *name, struct trust *ret)
{
	struct stat status;
	if (strcmp(name, ".") == 0) {
		return 0;
	}
	if (strcmp(name, "..") == 0) {
		go_up(&w->at);
		return 0;
	}
	text_format(&w->at, "/%s", name);
	if (w->at.failed) {
		return -ENOMEM;
	}
	if (lstat(w->at.data, &status) < 0) {
		return -errno;
	}
	add_status(ret, &status);
	return S_ISLNK(status.st_mode) ? follow(w) : 0;
}

static int walk_begin(struct walk *w, const char *path)
{
	char here[PATH_MAX];
	if (path[0] != '/') {
		if (!getcwd(here, sizeof(here))) {
			return -errno;
		}
		text_format(&w->rest, "%s/", here);
	}
	text_append_string(&w->rest, path);
	return w->rest.failed ? -ENOMEM : 0;
}

int trust_of(const char *path, struct trust *ret, struct error *e)
{
	_cleanup_(walk_done) struct walk w = {0};
	struct trust found = {0};
	struct stat root;
	char name[NAME_MAX + 1];
	int result = walk_begin(&w, path);
	if (result == 0 && stat("/", &root) == 0) {
		add_status(&found, &root);
	}
	while (result == 0 && next_name(&w.rest, name, sizeof(name))) {
		result = step(&w, name, &found);
		result = result == 0 && w.rest.failed ? -ENOMEM : result;
	}
	if (result < 0) {
		return error_errno(e, -result, "%s", path);
	}
	*ret = found;
	return 0;
}

// Questions ---------------------------------------------------------------------------------------

static bool has(const unsigned *items, size_t n, unsigned item)
{
	for (size_t i = 0; i < n; i++) {
		if (items[i] == item) {
			return true;
		}
	}
	return false;
}

bool trust_within(const struct trust *one, const struct trust *other)
{
	bool within = other->everyone || !one->everyone;
	for (size_t i = 0; i < one->n_owners && within; i++) {
		within = other->everyone || has(other->owners, other->n_owners, one->owners[i]);
	}
	for (size_t i = 0; i < one->n_groups && within; i++) {
		within = other->everyone || has(other->groups, other->n_groups, one->groups[i]);
	}
	return within;
}

static const char *who_else(const struct trust *t, char *buffer, size_t size)
{
	if (t->everyone) {
		return "everyone";
	}
	snprintf(buffer, size, t->n_owners > 0 ? "user %u" : "group %u",
		t->n_owners > 0   ? t->owners[0]
		: t->n_groups > 0 ? t->groups[0]
				  : 0);
	return buffer;
}

int trust_part(const char *path, bool lasting, struct error *e)
{
	struct trust part = {0}, program = {0};
	char buffer[32];
	int result = trust_of(path, &part, e);
	if (result < 0) {
		return result;
	}
	if (trust_of("/proc/self/exe", &program, NULL) < 0) {
		program = (struct trust){0}; // it was removed: trust no owner then
	}
	if (!trust_within(&part, &program) || (lasting && part.everyone)) {
		return error_set(e, EPERM, "%s: not used, because %s can change it", path,
			who_else(&part, buffer, sizeof(buffer)));
	}
	if (lasting && part.in_public) {
		return error_set(e, EPERM,
			"%s: not used, because it is in a folder in which everyone can create "
			"files",
			path);
	}
	return 0;
}

int trust_way(const char *path, struct error *e)
{
	struct trust t;
	char buffer[32];
	int result = trust_of(path, &t, e);
	if (result < 0) {
		return result;
	}
	if (t.n_owners > 0 || t.everyone || (geteuid() == 0 && t.n_groups > 0)) {
		return error_set(e, EPERM, "%s: not used, because %s can change it", path,
			who_else(&t, buffer, sizeof(buffer)));
	}
	return 0;
}

int trust_own(int fd, const char *path, struct error *e)
{
	struct stat status;
	if (fstat(fd, &status) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	if (status.st_uid != geteuid()) {
		return error_set(e, EPERM,
			"%s: dubious ownership: it belongs to user %u, not to %u", path,
			(unsigned)status.st_uid, (unsigned)geteuid());
	}
	if (status.st_mode & (S_IWGRP | S_IWOTH)) {
		return error_set(e, EPERM,
			"%s: others can write it (mode %04o); to use it: chmod go-w '%s'", path,
			(unsigned)status.st_mode & 07777, path);
	}
	return 0;
}
