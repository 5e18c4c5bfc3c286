// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A line each: "drm-driver: xe", "drm-engine-compute: 9 ns" (i915), "drm-cycles-ccs: 9" and
// "drm-total-cycles-ccs: 99" (xe), "drm-engine-capacity-vcs: 2", "drm-resident-vram0: 5248 MiB".

#include "record/source/gpu_fdinfo.h"

#include <errno.h>
#include <stdio.h>

#include "base/parse.h"
#include "machine/file.h"
#include "runfile/metric.h"

#define FDINFO_MAX 16384u
#define CAPACITY_MAX 1024

static const char *const engine_names[N_ENGINES][2] = {
	[ENGINE_RENDER] = {"render", "rcs"},
	[ENGINE_COPY] = {"copy", "bcs"},
	[ENGINE_VIDEO] = {"video", "vcs"},
	[ENGINE_ENHANCE] = {"video-enhance", "vecs"},
	[ENGINE_COMPUTE] = {"compute", "ccs"},
	[ENGINE_OTHER] = {"other", "other"},
};

struct parser {
	struct gpu_fdinfo *f;
	const char *driver, *place; // that it must have
	bool has_driver, has_place;
	bool local_odd, system_odd; // a size in a unit that is not known
};

static size_t engine_of(struct cursor name)
{
	size_t i = 0;
	while (i < N_ENGINES && !cursor_is(name, engine_names[i][0]) &&
		!cursor_is(name, engine_names[i][1])) {
		i++;
	}
	return i;
}

// "12345 ns" or "12345".
static int64_t count_of(struct cursor value)
{
	int64_t number;
	bool read = cursor_i64(&value, &number) && number >= 0;
	cursor_skip_blanks(&value);
	(void)cursor_literal(&value, "ns");
	return read && value.at == value.end ? number : VALUE_MISSING;
}

// "4096", "192 KiB", "5248 MiB": the largest unit that divides it.
static int64_t bytes_of(struct cursor value)
{
	int64_t number;
	bool read = cursor_i64(&value, &number) && number >= 0;
	cursor_skip_blanks(&value);
	int64_t unit = cursor_literal(&value, "KiB")   ? 1 << 10
	               : cursor_literal(&value, "MiB") ? 1 << 20
	                                               : 1;
	bool whole = read && value.at == value.end;
	return whole && !__builtin_mul_overflow(number, unit, &number) ? number : VALUE_MISSING;
}

static void take_region(struct parser *p, struct cursor region, struct cursor value)
{
	bool local = cursor_literal(&region, "local") || cursor_literal(&region, "vram");
	bool system = !local &&
	              (cursor_literal(&region, "system") || cursor_literal(&region, "gtt"));
	int64_t bytes = bytes_of(value);
	p->f->has_local = p->f->has_local || local;
	if (bytes == VALUE_MISSING) {
		p->local_odd = p->local_odd || local;
		p->system_odd = p->system_odd || system;
	} else if (local || system) {
		int64_t *sum = local ? &p->f->local_bytes : &p->f->system_bytes;
		*sum = *sum == VALUE_MISSING ? 0 : *sum;
		if (__builtin_add_overflow(*sum, bytes, sum)) {
			*sum = INT64_MAX;
		}
	}
}

static bool is_word(struct cursor value, const char *word)
{
	struct cursor found;
	return cursor_word(&value, &found) && cursor_is(found, word);
}

static void take_line(struct parser *p, struct cursor key, struct cursor value)
{
	if (!cursor_literal(&key, "drm-")) {
		return;
	}
	p->f->silent = false;
	if (cursor_is(key, "driver")) {
		p->has_driver = is_word(value, p->driver);
	} else if (cursor_is(key, "pdev")) {
		p->has_place = is_word(value, p->place);
	} else if (cursor_is(key, "client-id")) {
		p->f->id = count_of(value);
	} else if (cursor_literal(&key, "resident-")) {
		take_region(p, key, value);
	} else {
		int64_t *numbers = cursor_literal(&key, "engine-capacity-") ? p->f->capacity
		                   : cursor_literal(&key, "engine-")        ? p->f->busy
		                   : cursor_literal(&key, "cycles-")        ? p->f->busy
		                   : cursor_literal(&key, "total-cycles-")  ? p->f->total
		                                                            : NULL;
		size_t engine = engine_of(key);
		if (numbers && engine < N_ENGINES) {
			numbers[engine] = count_of(value);
		}
	}
}

int gpu_fdinfo_read(int root_fd, pid_t pid, unsigned fd, const char *driver, const char *place,
	struct gpu_fdinfo *ret)
{
	char path[64], buffer[FDINFO_MAX];
	struct cursor text, key, value;
	struct parser p = {.f = ret, .driver = driver, .place = place};
	*ret = (struct gpu_fdinfo){.silent = true,
		.id = VALUE_MISSING,
		.local_bytes = VALUE_MISSING,
		.system_bytes = VALUE_MISSING};
	for (size_t i = 0; i < N_ENGINES; i++) {
		ret->busy[i] = ret->total[i] = VALUE_MISSING;
		ret->capacity[i] = 1;
	}
	snprintf(path, sizeof(path), "proc/%d/fdinfo/%u", (int)pid, fd);
	int r = file_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL);
	if (r < 0) {
		return r;
	}
	bool cut = (size_t)(text.end - text.at) >= sizeof(buffer) - 1; // maybe in a number
	while (file_next_key(&text, &key, &value)) {
		take_line(&p, key, value);
	}
	for (size_t i = 0; i < N_ENGINES; i++) {
		bool possible = ret->capacity[i] >= 1 && ret->capacity[i] <= CAPACITY_MAX;
		ret->busy[i] = possible ? ret->busy[i] : VALUE_MISSING;
	}
	ret->local_bytes = p.local_odd ? VALUE_MISSING : ret->local_bytes;
	ret->system_bytes = p.system_odd ? VALUE_MISSING : ret->system_bytes;
	return p.has_driver && p.has_place && ret->id != VALUE_MISSING && !cut ? 0 : -EBADMSG;
}
