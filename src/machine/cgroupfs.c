// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Locates cgroups: proc/PID/cgroup has their names within the hierarchies, mountinfo the mount
// points of hierarchies or parts of them (cgroups(7)).

#include "machine/cgroupfs.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "machine/file.h"

static const char *const controller_names[N_CGROUP_CONTROLLERS] = {
	[CGROUP_CPU] = "cpu",
	[CGROUP_CPUACCT] = "cpuacct",
	[CGROUP_MEMORY] = "memory",
	[CGROUP_IO] = "blkio",
	[CGROUP_CPUSET] = "cpuset",
};

static char *copy_view(struct cursor c)
{
	return strndup(c.at, (size_t)(c.end - c.at));
}

// Whether `list`, separated by commas or blanks, contains the word.
static bool list_has(struct cursor list, const char *word)
{
	while (list.at < list.end) {
		const char *start = list.at;
		while (list.at < list.end && !strchr(", \n", *list.at)) {
			list.at++;
		}
		if (cursor_is((struct cursor){start, list.at}, word)) {
			return true;
		}
		list.at += list.at < list.end;
	}
	return false;
}

bool cgroupfs_list_has(struct cursor list, const char *word)
{
	return list_has(list, word);
}

// Takes the bytes up to `separator` and moves past it.
static bool take_until(struct cursor *c, char separator, struct cursor *ret)
{
	const char *at = c->at < c->end ? memchr(c->at, separator, (size_t)(c->end - c->at)) : NULL;
	if (!at) {
		return false;
	}
	*ret = (struct cursor){c->at, at};
	c->at = at + 1;
	return true;
}

// Finds a cgroup's path within its hierarchy, in the line of proc/PID/cgroup that names the
// controller (NULL: the line of v2, which names none).
static bool find_name(struct cursor text, const char *controller, struct cursor *ret)
{
	struct cursor line, id, controllers;
	while (cursor_line(&text, &line)) {
		if (!take_until(&line, ':', &id) || !take_until(&line, ':', &controllers)) {
			continue;
		}
		bool match = controller ? list_has(controllers, controller)
		                        : cursor_is(id, "0") && controllers.at == controllers.end;
		if (match) {
			*ret = line;
			return true;
		}
	}
	return false;
}

struct mount {
	char *root; // the part of the hierarchy that is mounted
	char *point;
};

// Whether the mountinfo line is for the hierarchy with the controller (NULL: v2). The returned
// fields are still escaped.
static bool is_mount(struct cursor line, const char *controller, struct cursor *ret_root,
	struct cursor *ret_point)
{
	struct cursor word, type, source, options;
	if (!cursor_skip_fields(&line, 3) || !cursor_word(&line, ret_root) ||
		!cursor_word(&line, ret_point)) {
		return false;
	}
	// A dash ends the optional fields, which vary in number.
	while (cursor_word(&line, &word) && !cursor_is(word, "-")) {
	}
	return cursor_word(&line, &type) && cursor_word(&line, &source) &&
	       cursor_word(&line, &options) && cursor_is(type, controller ? "cgroup" : "cgroup2") &&
	       (!controller || list_has(options, controller));
}

// A path outside of the cgroup namespace has no name inside it.
static bool is_outside(const char *path)
{
	return strncmp(path, "/..", 3) == 0 && (path[3] == '/' || !path[3]);
}

// Returns the cgroup's path below a mount of its hierarchy: its name less the mount's root. NULL if
// it is not there, or cannot be determined: a mount made outside of the cgroup namespace shows
// cgroups above ours, which is some descendant of them.
static const char *name_below(const char *name, const char *root)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (is_outside(root) || strstr(name, "/..") || strncmp(name, root, length) != 0 ||
		(name[length] && name[length] != '/')) {
		return NULL;
	}
	return strcmp(name + length, "/") == 0 ? "" : name + length;
}

enum fit {
	FIT_NONE,
	FIT_MOUNT, // the mount is a container's own cgroup, but names are the host's
	FIT_NAME,
};

static enum fit fit_of(const char *name, const char *root, const char **ret_below)
{
	const char *below = name_below(name, root);
	*ret_below = below ? below : "";
	if (below) {
		return FIT_NAME;
	}
	bool lost = is_outside(root) || strstr(name, "/..") || strcmp(root, "/") == 0;
	return lost ? FIT_NONE : FIT_MOUNT;
}

// Uses the mount for the cgroup unless an earlier one fits better. Of two equal ones the later is
// on top.
static enum fit consider_mount(const struct mount *mount, const char *name, int version,
	enum fit best, struct cgroup_place *place)
{
	const char *below;
	enum fit fit = fit_of(name, mount->root, &below);
	if (fit == FIT_NONE || fit < best) {
		place->hidden = place->hidden || fit == FIT_NONE;
		return best;
	}
	struct text path = {0};
	text_format(&path, "%s%s", mount->point + (*mount->point == '/'), below);
	free(place->path);
	place->path = text_steal(&path);
	place->mount_length = strlen(mount->point) - (*mount->point == '/');
	place->version = place->path ? version : 0;
	return fit;
}

static void find_place(struct cursor cgroups, struct cursor mounts, const char *controller,
	struct cgroup_place *ret)
{
	struct cursor name_view, line, root, point;
	struct cgroup_place place = {0};
	enum fit best = FIT_NONE;
	if (!find_name(cgroups, controller, &name_view)) {
		return;
	}
	_cleanup_free_ char *name = copy_view(name_view);
	while (name && cursor_line(&mounts, &line)) {
		if (!is_mount(line, controller, &root, &point)) {
			continue;
		}
		struct mount mount = {file_unescape(root), file_unescape(point)};
		if (mount.root && mount.point) {
			best = consider_mount(&mount, name, controller ? 1 : 2, best, &place);
		}
		free(mount.root);
		free(mount.point);
	}
	place.hidden = place.hidden && place.version == 0;
	*ret = place;
}

void cgroup_places_parse(struct cursor cgroups, struct cursor mounts, struct cgroup_places *ret)
{
	struct cgroup_places places = {0};
	find_place(cgroups, mounts, NULL, &places.unified);
	for (size_t i = 0; i < N_CGROUP_CONTROLLERS; i++) {
		find_place(cgroups, mounts, controller_names[i], &places.legacy[i]);
	}
	*ret = places;
}

int cgroup_places_find(int root_fd, const char *pid, struct cgroup_places *ret, struct error *e)
{
	struct host_file cgroup_file = HOST_FILE_CLOSED, mount_file = HOST_FILE_CLOSED;
	struct cursor cgroups, mounts;
	char path[64];
	snprintf(path, sizeof(path), "proc/%s/cgroup", pid);
	int r = host_file_open(&cgroup_file, root_fd, path, e);
	if (r == 0) {
		r = host_file_open(&mount_file, root_fd, "proc/self/mountinfo", e);
	}
	if (r == 0) {
		r = host_file_read(&cgroup_file, &cgroups);
		r = r < 0 ? r : host_file_read_to_end(&mount_file, &mounts);
		if (r < 0) {
			error_errno(e, -r, "/%s", path);
		}
	}
	if (r == 0) {
		cgroup_places_parse(cgroups, mounts, ret);
	}
	host_file_close(&cgroup_file);
	host_file_close(&mount_file);
	return r;
}

void cgroup_places_done(struct cgroup_places *places)
{
	free(places->unified.path);
	for (size_t i = 0; i < N_CGROUP_CONTROLLERS; i++) {
		free(places->legacy[i].path);
	}
	*places = (struct cgroup_places){0};
}

bool cgroup_places_hidden(const struct cgroup_places *places)
{
	bool hidden = places->unified.hidden;
	for (size_t i = 0; i < N_CGROUP_CONTROLLERS; i++) {
		hidden = hidden || places->legacy[i].hidden;
	}
	return hidden;
}

const struct cgroup_place *cgroup_place_of(
	const struct cgroup_places *places, enum cgroup_controller controller)
{
	const struct cgroup_place *legacy = &places->legacy[controller];
	return legacy->version ? legacy : &places->unified;
}

int cgroupfs_read(int root_fd, const char *directory, const char *name, char *buffer, size_t size,
	struct cursor *ret, struct error *e)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path)) {
		return error_errno(e, ENAMETOOLONG, "/%s", directory);
	}
	return file_read_once(root_fd, path, buffer, size, ret, e);
}

// Reads one number from a file; -ENOENT if the file is missing or has none ("max").
static int read_number(int root_fd, const char *directory, const char *name, int64_t *ret)
{
	char buffer[64];
	struct cursor c;
	int64_t number;
	if (cgroupfs_read(root_fd, directory, name, buffer, sizeof(buffer), &c, NULL) < 0 ||
		!cursor_i64(&c, &number)) {
		return -ENOENT;
	}
	*ret = number;
	return 0;
}

// Returns the limit of one directory in the limit's unit; INFINITY if there is none.
typedef double limit_reader(int root_fd, const char *directory, int version);

static double memory_limit_of(int root_fd, const char *directory, int version)
{
	// v1 writes the largest number of whole pages for "no limit".
	const int64_t v1_unlimited = INT64_MAX - 65535;
	int64_t bytes;
	if (read_number(root_fd, directory, version == 2 ? "memory.max" : "memory.limit_in_bytes",
		    &bytes) < 0 ||
		bytes >= v1_unlimited) {
		return INFINITY;
	}
	return (double)bytes;
}

static double cpu_quota_of(int root_fd, const char *directory, int version)
{
	int64_t quota, period;
	if (version == 2) {
		char buffer[64];
		struct cursor c;
		if (cgroupfs_read(root_fd, directory, "cpu.max", buffer, sizeof(buffer), &c, NULL) <
				0 ||
			!cursor_i64(&c, &quota) || !cursor_i64(&c, &period)) {
			return INFINITY;
		}
	} else if (read_number(root_fd, directory, "cpu.cfs_quota_us", &quota) < 0 ||
		   read_number(root_fd, directory, "cpu.cfs_period_us", &period) < 0) {
		return INFINITY;
	}
	return quota > 0 && period > 0 ? (double)quota / (double)period : INFINITY;
}

// The smallest result of `read` from the directory up to the mount point, and its directory.
static double least_limit(
	int root_fd, const struct cgroup_place *place, limit_reader *read, char **ret_directory)
{
	_cleanup_free_ char *directory = place->version ? strdup(place->path) : NULL;
	_cleanup_free_ char *where = NULL;
	double least = INFINITY;
	while (directory) {
		double limit = read(root_fd, directory, place->version);
		if (limit < least) {
			least = limit;
			free(where);
			where = strdup(directory);
		}
		char *slash = strrchr(directory + place->mount_length, '/');
		if (!slash) {
			break;
		}
		*slash = '\0';
	}
	if (ret_directory && !isinf(least)) {
		*ret_directory = take_pointer(where);
	}
	return least;
}

int cgroupfs_memory_limit(
	int root_fd, const struct cgroup_places *places, uint64_t *ret_bytes, char **ret_directory)
{
	double least = least_limit(
		root_fd, cgroup_place_of(places, CGROUP_MEMORY), memory_limit_of, ret_directory);
	if (isinf(least)) {
		return -ENOENT;
	}
	*ret_bytes = (uint64_t)least;
	return 0;
}

int cgroupfs_cpu_quota(
	int root_fd, const struct cgroup_places *places, double *ret_cpus, char **ret_directory)
{
	double least = least_limit(
		root_fd, cgroup_place_of(places, CGROUP_CPU), cpu_quota_of, ret_directory);
	if (isinf(least)) {
		return -ENOENT;
	}
	*ret_cpus = least;
	return 0;
}

static size_t list_limits(int root_fd, const struct cgroup_place *place, limit_reader *read,
	struct cgroup_limit *ret, size_t n)
{
	_cleanup_free_ char *directory = place->version ? strdup(place->path) : NULL;
	size_t found = 0;
	while (directory && found < n) {
		double value = read(root_fd, directory, place->version);
		if (!isinf(value)) {
			ret[found] = (struct cgroup_limit){strdup(directory), value};
			found += ret[found].directory != NULL;
		}
		char *slash = strrchr(directory + place->mount_length, '/');
		if (!slash) {
			break;
		}
		*slash = '\0';
	}
	return found;
}

size_t cgroupfs_cpu_quotas(
	int root_fd, const struct cgroup_places *places, struct cgroup_limit *ret, size_t n)
{
	return list_limits(root_fd, cgroup_place_of(places, CGROUP_CPU), cpu_quota_of, ret, n);
}

size_t cgroupfs_memory_limits(
	int root_fd, const struct cgroup_places *places, struct cgroup_limit *ret, size_t n)
{
	return list_limits(
		root_fd, cgroup_place_of(places, CGROUP_MEMORY), memory_limit_of, ret, n);
}
