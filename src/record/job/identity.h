// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Who somebody is who gives only the number that he has in his own pid namespace, and that perhaps
// no longer lives when he is looked for.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define IDENTITIES_LEFT 1024u

// A process of the job. The numbers of its namespace never change while it lives.
struct identity {
	pid_t pid; // in the recorder's pid namespace
	pid_t inner_pid; // in its own; 0: not known
	uint64_t pid_namespace; // the inode of its own; 0: not known
	uint64_t first_ns; // CLOCK_MONOTONIC: when it was started, not later than it was
	int64_t entity;
};

// What somebody says of himself.
struct identity_claim {
	uint64_t pid_namespace; // 0: he does not know
	uint32_t inner_pid;
	uint64_t at_ns; // CLOCK_MONOTONIC: when he said it
};

// Reads inner_pid and pid_namespace of identity->pid, as far as they can be known: the number is
// everybody's to read, the namespace is not where the process has more rights than its user.
// own_namespace: that of /proc.
void identity_read(int proc_fd, uint64_t own_namespace, struct identity *identity);
// The inode of the pid namespace that /proc is of; 0 where it cannot be read.
uint64_t identity_own_namespace(int root_fd);

// Those that left last; a new one takes the place of the oldest.
struct identities_left {
	struct identity items[IDENTITIES_LEFT];
	size_t n; // so many in all, ever
};
void identities_left_add(struct identities_left *left, const struct identity *identity);

// A search asks one after the other.
struct identity_search {
	struct identity_claim claim;
	struct identity best;
	bool sure; // best is of the namespace that is claimed
	unsigned likely; // others, of whom that is not known
};
void identity_consider(struct identity_search *search, const struct identity *identity);
void identity_consider_left(struct identity_search *search, const struct identities_left *left);
// How many it may be. Only of one it is certain who: search->best.
unsigned identity_count(const struct identity_search *search);
