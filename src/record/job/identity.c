// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Numbers in pid namespaces, and whose they are.

#include "record/job/identity.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "record/host/file.h"
#include "record/host/procfs.h"

// A process's start is known to a tick of the kernel's, and on another clock.
#define START_SLACK_NS (20 * NS_PER_MS)

static uint64_t namespace_of(int directory_fd, const char *path)
{
	struct stat status;
	return fstatat(directory_fd, path, &status, 0) == 0 ? status.st_ino : 0;
}

uint64_t identity_own_namespace(int root_fd)
{
	return namespace_of(root_fd, "proc/self/ns/pid");
}

void identity_read(int proc_fd, uint64_t own_namespace, struct identity *identity)
{
	char path[32], buffer[4096];
	struct cursor text;
	struct proc_status status;
	snprintf(path, sizeof(path), "%d/ns/pid", (int)identity->pid);
	identity->pid_namespace = namespace_of(proc_fd, path);
	if (identity->pid_namespace != 0 && identity->pid_namespace == own_namespace) {
		identity->inner_pid = identity->pid;
		return;
	}
	snprintf(path, sizeof(path), "%d/status", (int)identity->pid);
	if (host_read_once(proc_fd, path, buffer, sizeof(buffer), &text, NULL) == 0 &&
		proc_status_parse(text, &status) == 0 && status.pid_in_namespace > 0 &&
		status.pid_in_namespace <= INT32_MAX) {
		identity->inner_pid = (pid_t)status.pid_in_namespace;
	}
	// Who has one number for both is at home here, whatever may be read of him.
	if (identity->pid_namespace == 0 && identity->inner_pid == identity->pid) {
		identity->pid_namespace = own_namespace;
	}
}

void identities_left_add(struct identities_left *left, const struct identity *identity)
{
	left->items[left->n++ % IDENTITIES_LEFT] = *identity;
}

void identity_consider(struct identity_search *search, const struct identity *identity)
{
	const struct identity_claim *claim = &search->claim;
	uint64_t theirs = identity->pid_namespace;
	bool known = claim->pid_namespace != 0 && theirs != 0;
	if (identity->inner_pid <= 0 || (uint32_t)identity->inner_pid != claim->inner_pid ||
		identity->first_ns > claim->at_ns + START_SLACK_NS ||
		(known && theirs != claim->pid_namespace)) {
		return;
	}
	// Of those who have had the number one after the other, it is the last before the claim.
	if (known && (!search->sure || identity->first_ns > search->best.first_ns)) {
		search->sure = true;
		search->best = *identity;
	} else if (!known && !search->sure) {
		search->best = *identity;
	}
	search->likely += !known;
}

void identity_consider_left(struct identity_search *search, const struct identities_left *left)
{
	size_t n = left->n < IDENTITIES_LEFT ? left->n : IDENTITIES_LEFT;
	for (size_t i = 0; i < n; i++) {
		identity_consider(search, &left->items[i]);
	}
}

unsigned identity_count(const struct identity_search *search)
{
	return search->sure ? 1 : search->likely;
}
