// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Where runs are.

#include "trace/places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "trace/index.h"

const char *places_usual(void)
{
	const char *chosen = secure_getenv("STRAIN_DIR");
	return chosen && *chosen ? chosen : ".";
}

char *places_fallback(void)
{
	const char *state = secure_getenv("XDG_STATE_HOME"), *home = secure_getenv("HOME");
	struct text path = {0};
	if (state && *state == '/') {
		text_format(&path, "%s/strain", state);
	} else if (home && *home == '/') {
		text_format(&path, "%s/.local/state/strain", home);
	} else {
		return NULL;
	}
	return text_steal(&path);
}

static bool is_sweep(DIR *stream, const char *name)
{
	struct text plan = {0};
	text_format(&plan, "%s/plan.yaml", name);
	bool there = plan.data && faccessat(dirfd(stream), plan.data, F_OK, 0) == 0;
	text_done(&plan);
	return there;
}

static bool holds_runs(const char *directory)
{
	DIR *stream = opendir(directory);
	bool found = false;
	for (struct dirent *entry; stream && !found && (entry = readdir(stream));) {
		found = run_name_is(entry->d_name) ||
		        (entry->d_type != DT_REG && entry->d_name[0] != '.' &&
				is_sweep(stream, entry->d_name));
	}
	if (stream) {
		closedir(stream);
	}
	return found;
}

int places_find(struct places *ret)
{
	const char *usual = places_usual();
	struct places places = {.paths = {strdup(usual)}, .n = 1};
	if (!places.paths[0]) {
		return -ENOMEM;
	}
	if (!holds_runs(usual) || faccessat(AT_FDCWD, usual, W_OK | X_OK, AT_EACCESS) < 0) {
		char *fallback = places_fallback();
		if (fallback && access(fallback, R_OK | X_OK) == 0) {
			places.paths[places.n++] = fallback;
		} else {
			free(fallback);
		}
	}
	*ret = places;
	return 0;
}

void places_done(struct places *places)
{
	for (size_t i = 0; i < places->n; i++) {
		free(places->paths[i]);
	}
	*places = (struct places){0};
}
