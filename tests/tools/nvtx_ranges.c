// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A job that says what it does through NVTX; for tests/cli/nvtx.bats.

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nvtx_loader.h"

enum { LOOKED_AT_MS = 300 }; // a process that lives so long is known to the recorder

static void rest(long ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&time, NULL);
}

static const struct nvtx_functions *nvtx;
static uint64_t crossing;

static void *work(void *context)
{
	nvtx->push_bytes("work");
	rest(LOOKED_AT_MS);
	nvtx->end(crossing);
	nvtx->pop();
	return context;
}

int main(void)
{
	bool loaded = nvtx_load(&nvtx);
	printf("%s\n", loaded ? "a tool" : "no tool");
	struct nvtx_event inner = nvtx_event_of(NVTX_MESSAGE_WIDE, (uintptr_t)L"caf\u00e9", 7);
	uintptr_t domain = nvtx->create_bytes("mine");
	crossing = nvtx->start_bytes("crossing");
	for (int i = 0; i < 3; i++) {
		nvtx->push_bytes("forward");
		nvtx->domain_push(domain, &inner);
		rest(2);
		nvtx->pop(); // not nested with the domain's
		rest(2);
		nvtx->domain_pop(domain);
		nvtx->mark_bytes("loss");
	}
	pthread_t thread;
	if (pthread_create(&thread, NULL, work, NULL) == 0) {
		pthread_join(thread, NULL);
	}
	pid_t child = fork();
	if (child == 0) {
		nvtx->push_bytes("child 4");
		rest(LOOKED_AT_MS);
		nvtx->pop();
		nvtx->pop();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return 0;
}
