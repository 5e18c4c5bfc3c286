// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A star: rank 0 has a socket to each of the others, hears from all, then answers all.

#include "ranks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "byte.h"

struct peer {
	int socket;
	pid_t pid;
};

struct ranks {
	uint32_t number;
	uint32_t peer_count; // rank 0: all others; the others: rank 0
	struct peer *peers;
};

static void peers_close(struct ranks *ranks)
{
	for (uint32_t i = 0; i < ranks->peer_count; i++) {
		close(ranks->peers[i].socket);
	}
	ranks->peer_count = 0;
}

// In the new process.
static void become(struct ranks *ranks, uint32_t number, int socket)
{
	peers_close(ranks);
	ranks->number = number;
	ranks->peers[0] = (struct peer){.socket = socket};
	ranks->peer_count = 1;
}

static int start_rank(struct ranks *ranks, uint32_t number, struct error *e)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		return error_errno(e, errno, "cannot connect rank %u", number);
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		become(ranks, number, pair[1]);
		return 0;
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return error_errno(e, errno, "cannot start rank %u", number);
	}
	ranks->peers[ranks->peer_count++] = (struct peer){.socket = pair[0], .pid = pid};
	return 0;
}

int ranks_start(uint32_t count, struct ranks **ret, struct error *e)
{
	struct ranks *ranks = calloc(1, sizeof(*ranks));
	struct peer *peers = calloc(count, sizeof(*peers));
	if (!ranks || !peers) {
		free(ranks);
		free(peers);
		return error_set(e, ENOMEM, "no memory for %u ranks", count);
	}
	ranks->peers = peers;
	int r = 0;
	for (uint32_t i = 1; i < count && ranks->number == 0 && r == 0; i++) {
		r = start_rank(ranks, i, e);
	}
	if (r < 0) {
		(void)ranks_end(ranks, NULL);
		return r;
	}
	*ret = ranks;
	return 0;
}

uint32_t ranks_number(const struct ranks *ranks)
{
	return ranks->number;
}

int ranks_meet(struct ranks *ranks, struct error *e)
{
	bool here = true;
	for (uint32_t i = 0; ranks->number > 0 && i < ranks->peer_count; i++) {
		here = byte_send(ranks->peers[i].socket) && here;
	}
	for (uint32_t i = 0; i < ranks->peer_count && here; i++) {
		here = byte_wait(ranks->peers[i].socket);
	}
	for (uint32_t i = 0; ranks->number == 0 && i < ranks->peer_count && here; i++) {
		here = byte_send(ranks->peers[i].socket);
	}
	return here ? 0 : error_set(e, ECHILD, "another rank is gone");
}

int ranks_end(struct ranks *ranks, struct error *e)
{
	if (!ranks) {
		return 0;
	}
	uint32_t peers = ranks->peer_count;
	int r = 0;
	peers_close(ranks);
	for (uint32_t i = 0; ranks->number == 0 && i < peers; i++) {
		int status = 0;
		if (waitpid(ranks->peers[i].pid, &status, 0) < 0 || status != 0) {
			r = error_set(e, ECHILD, "rank %u did not end well", i + 1);
		}
	}
	free(ranks->peers);
	free(ranks);
	return r;
}
