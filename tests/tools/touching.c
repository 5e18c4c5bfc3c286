// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// touching SHAPE MB MS: jobs whose peak of memory is known. MB megabytes are touched, held for MS
// milliseconds and given back; then the job lives on for as long. Prints the peak in bytes, of all
// its processes together, each page once, without the few megabytes of the programs themselves.
//
//   one        one process
//   child      a forked child
//   dies       a forked child that ends while it holds them
//   apart      two children, one after the other
//   together   two children at the same time
//   inherited  the parent, and two children that map the same pages
//   shared     memory that the parent shares with two children

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static size_t bytes;
static long hold_ms;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "touching: %s: %s\n", what, strerror(errno));
	exit(3);
}

static void wait_ms(long ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};
	while (nanosleep(&left, &left) < 0 && errno == EINTR) {
	}
}

static char *map(int flags)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		fail("mmap");
	}
	return memory;
}

static void touch(char *memory)
{
	for (size_t i = 0; i < bytes; i += 4096) {
		((volatile char *)memory)[i] = 1;
	}
}

static void hold(void)
{
	char *memory = map(MAP_PRIVATE);
	touch(memory);
	wait_ms(hold_ms);
	munmap(memory, bytes);
}

static pid_t start(void)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid < 0) {
		fail("fork");
	}
	return pid;
}

static void wait_all(void)
{
	while (wait(NULL) > 0) {
	}
}

static size_t one(void)
{
	hold();
	return bytes;
}

static size_t child(void)
{
	if (start() == 0) {
		hold();
		wait_ms(hold_ms);
		_exit(0);
	}
	wait_all();
	return bytes;
}

static size_t dies(void)
{
	if (start() == 0) {
		touch(map(MAP_PRIVATE));
		_exit(0);
	}
	wait_all();
	return bytes;
}

static size_t apart(void)
{
	child();
	return child();
}

// Each says that it has touched all, and holds it until told that both have.
static size_t together(void)
{
	int ready[2], go[2];
	char byte;
	if (pipe(ready) < 0 || pipe(go) < 0) {
		fail("pipe");
	}
	for (int i = 0; i < 2; i++) {
		if (start() == 0) {
			close(go[1]);
			char *memory = map(MAP_PRIVATE);
			touch(memory);
			(void)!write(ready[1], "", 1);
			(void)!read(go[0], &byte, 1);
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++) {
		if (read(ready[0], &byte, 1) != 1) {
			fail("read");
		}
	}
	wait_ms(hold_ms);
	close(go[0]);
	close(go[1]);
	wait_all();
	return 2 * bytes;
}

static size_t with_two(int flags)
{
	char *memory = map(flags);
	touch(memory);
	for (int i = 0; i < 2; i++) {
		if (start() == 0) {
			for (size_t k = 0; k < bytes; k += 4096) { // of shared memory nothing else
				(void)((volatile char *)memory)[k]; // maps it into the child
			}
			wait_ms(hold_ms);
			_exit(0);
		}
	}
	wait_all();
	munmap(memory, bytes);
	return bytes;
}

static size_t inherited(void)
{
	return with_two(MAP_PRIVATE);
}

static size_t shared(void)
{
	return with_two(MAP_SHARED);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		size_t (*run)(void);
	} shapes[] = {{"one", one}, {"child", child}, {"dies", dies}, {"apart", apart},
		{"together", together}, {"inherited", inherited}, {"shared", shared}};
	if (argc != 4) {
		fprintf(stderr, "touching SHAPE MB MS\n");
		return 2;
	}
	bytes = strtoul(argv[2], NULL, 10) * 1000000;
	hold_ms = strtol(argv[3], NULL, 10);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (strcmp(argv[1], shapes[i].name) == 0) {
			size_t peak = shapes[i].run();
			wait_ms(hold_ms);
			printf("%zu\n", peak);
			return 0;
		}
	}
	fprintf(stderr, "touching: no shape %s\n", argv[1]);
	return 2;
}
