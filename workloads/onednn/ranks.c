// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A star: rank 0 has a socket to each of the others, receives from all, then replies to all.

#include "ranks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
	uint32_t count;
	uint32_t peer_count; // rank 0: all others; the others: rank 0
	struct peer *peers;
	size_t floats;
	// Shared by all ranks: the values of each, then the means; NULL: nothing to average.
	float *memory;
};

static size_t memory_bytes(const struct ranks *ranks)
{
	return ((size_t)ranks->count + 1) * ranks->floats * sizeof(float);
}

static void peers_close(struct ranks *ranks)
{
	for (uint32_t i = 0; i < ranks->peer_count; i++) {
		close(ranks->peers[i].socket);
	}
	ranks->peer_count = 0;
}

// Called in the new process.
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

static int share_memory(struct ranks *ranks, struct error *e)
{
	if (ranks->floats == 0) {
		return 0;
	}
	void *memory = mmap(NULL, memory_bytes(ranks), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		return error_errno(
			e, errno, "cannot share %zu bytes between ranks", memory_bytes(ranks));
	}
	ranks->memory = memory;
	return 0;
}

int ranks_start(uint32_t count, size_t floats, struct ranks **ret, struct error *e)
{
	struct ranks *ranks = calloc(1, sizeof(*ranks));
	struct peer *peers = calloc(count, sizeof(*peers));
	if (!ranks || !peers) {
		free(ranks);
		free(peers);
		return error_set(e, ENOMEM, "no memory for %u ranks", count);
	}
	ranks->peers = peers;
	ranks->count = count;
	ranks->floats = floats;
	int r = share_memory(ranks, e);
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

// Adds up one rank's part of the means: each rank has its own part, so that all work at once.
static void add_part(const struct ranks *ranks, size_t count)
{
	size_t first = count * ranks->number / ranks->count;
	size_t end = count * (ranks->number + 1) / ranks->count;
	float *means = ranks->memory + ranks->count * ranks->floats;
	memcpy(means + first, ranks->memory + first, (end - first) * sizeof(float));
	for (uint32_t rank = 1; rank < ranks->count; rank++) {
		const float *theirs = ranks->memory + rank * ranks->floats;
		for (size_t i = first; i < end; i++) {
			means[i] += theirs[i];
		}
	}
	for (size_t i = first; i < end; i++) {
		means[i] /= (float)ranks->count;
	}
}

// No rank writes its values again before all have read the means: it first meets the others.
int ranks_average(
	struct ranks *ranks, const struct piece *pieces, size_t piece_count, struct error *e)
{
	size_t count = 0;
	for (size_t i = 0; i < piece_count; i++) {
		if (pieces[i].count > ranks->floats - count) {
			return error_set(
				e, EINVAL, "ranks share %zu numbers, not more", ranks->floats);
		}
		memcpy(ranks->memory + ranks->number * ranks->floats + count, pieces[i].values,
			pieces[i].count * sizeof(float));
		count += pieces[i].count;
	}
	int r = ranks_meet(ranks, e);
	if (r == 0) {
		add_part(ranks, count);
		r = ranks_meet(ranks, e);
	}
	const float *means = ranks->memory + ranks->count * ranks->floats;
	for (size_t i = 0; i < piece_count && r == 0; i++) {
		memcpy(pieces[i].values, means, pieces[i].count * sizeof(float));
		means += pieces[i].count;
	}
	return r;
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
	if (ranks->memory) {
		munmap(ranks->memory, memory_bytes(ranks));
	}
	free(ranks->peers);
	free(ranks);
	return r;
}
