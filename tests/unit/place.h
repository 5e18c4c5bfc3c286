// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A folder for a test, with a path for a run.

#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct place {
	char directory[64];
	char run[96]; // path for a run file
};

// Creates the folder. Returns 0 or -1, as cmocka's setup functions do.
static inline int place_init(struct place *p, const char *run_name)
{
	snprintf(p->directory, sizeof(p->directory), "/tmp/strain-test-XXXXXX");
	if (!mkdtemp(p->directory)) {
		return -1;
	}
	snprintf(p->run, sizeof(p->run), "%s/%s", p->directory, run_name);
	return 0;
}

// Removes the run and its folder. Returns -1 if anything else is in it.
static inline int place_done(struct place *p)
{
	static const char *const parts[] = {"", "-wal", "-shm", "-journal"};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		char name[sizeof(p->run) + 16];
		snprintf(name, sizeof(name), "%s%s", p->run, parts[i]);
		unlink(name);
	}
	return rmdir(p->directory);
}

// Removes the folder with all its content.
static inline int place_clear(struct place *p)
{
	char command[sizeof(p->directory) + 16];
	snprintf(command, sizeof(command), "rm -rf '%s'", p->directory);
	return system(command);
}

// cmocka's setup and teardown of a test that only needs a folder.

static inline int place_setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	if (!p || place_init(p, "a.strain") < 0) {
		free(p);
		return -1;
	}
	*state = p;
	return 0;
}

static inline int place_teardown(void **state)
{
	int r = place_done(*state);
	free(*state);
	return r;
}
