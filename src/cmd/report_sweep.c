// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain report SWEEP: which runs, and what the plan knows of them.

#include "cmd/report_sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/catalogue.h"
#include "analyze/words.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cmd/command.h"
#include "experiment/plan.h"
#include "experiment/trials.h"
#include "render/page_sweep.h"

#define SHOW_EVERY_NS (NS_PER_S / 5)
#define MOST_PLAN ((size_t)1 << 20)

static bool is_directory(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool report_is_sweep(char *const *paths, size_t n_paths)
{
	for (size_t i = 0; i < n_paths; i++) {
		if (is_directory(paths[i])) {
			return true;
		}
	}
	return false;
}

// How far it is --------------------------------------------------------------------------------

struct sweep_progress {
	const char *doing;
	bool terminal;
	int64_t start_ns;
	int64_t shown_ns; // 0: not yet
};

static void show_progress(void *context, uint64_t done, uint64_t total)
{
	struct sweep_progress *p = context;
	int64_t now_ns = (int64_t)clock_monotonic_ns();
	if (!p->terminal || now_ns - p->shown_ns < (int64_t)SHOW_EVERY_NS) {
		return;
	}
	_cleanup_text_ struct text line = {0};
	double seconds = (double)(now_ns - p->start_ns) / 1e9;
	if (words_append_progress(&line, done, total, seconds) && line.data) {
		command_progress("strain: %s: %s", p->doing, line.data);
		p->shown_ns = now_ns;
	}
}

static struct sweep_progress begin_progress(const char *doing)
{
	return (struct sweep_progress){
		.doing = doing,
		.terminal = isatty(STDERR_FILENO),
		.start_ns = (int64_t)clock_monotonic_ns(),
	};
}

static void end_progress(const struct sweep_progress *p)
{
	if (p->shown_ns) {
		command_progress_end();
	}
}

// What is shown --------------------------------------------------------------------------------

static int read_catalogue(
	char *const *paths, size_t n_paths, struct catalogue *ret, struct error *e)
{
	struct sweep_progress progress = begin_progress("reading runs");
	struct catalogue_options options = {.progressed = show_progress, .context = &progress};
	int r = catalogue_read_with(paths, n_paths, &options, ret, e);
	end_progress(&progress);
	return r;
}

static void say_troubles(const struct catalogue *catalogue)
{
	for (size_t i = 0; i < catalogue->n_unreadable; i++) {
		command_fail("%s", catalogue->unreadable[i]);
	}
	for (size_t i = 0; i < catalogue->n_notices; i++) {
		command_note("%s", catalogue->notices[i]);
	}
}

// The directory's own name, without ".sweep"; of several how many.
static char *name_of(char *const *paths, size_t n_paths)
{
	struct text name = {0};
	if (n_paths > 1) {
		text_format(&name, "%zu folders", n_paths);
		return text_steal(&name);
	}
	_cleanup_free_ char *real = realpath(paths[0], NULL);
	const char *whole = real ? real : paths[0], *slash = strrchr(whole, '/');
	const char *last = slash && slash[1] ? slash + 1 : whole;
	size_t length = strlen(last), ending = strlen(".sweep");
	bool ends = length > ending && strcmp(last + length - ending, ".sweep") == 0;
	text_append(&name, last, ends ? length - ending : length);
	return text_steal(&name);
}

// The plan's text, of a single sweep; NULL: there is none.
static char *read_plan(const char *directory)
{
	_cleanup_text_ struct text path = {0};
	text_format(&path, "%s/plan.yaml", directory);
	_cleanup_fclose_ FILE *file = path.failed ? NULL : fopen(path.data, "re");
	struct text plan = {0};
	char part[4096];
	size_t n = 1;
	while (file && n > 0 && plan.length < MOST_PLAN) {
		n = fread(part, 1, sizeof(part), file);
		text_append(&plan, part, n);
	}
	if (!file || memchr(plan.data ? plan.data : "", '\0', plan.length)) {
		text_done(&plan);
		return NULL;
	}
	return text_steal(&plan);
}

// What the page takes from a plan. A directory without one, or with one that is wrong, has none.
struct plan_facts {
	char *text;
	char *command;
	struct run_label *baseline; // borrowed from the plan
	const char **names; // of what varies; borrowed
	size_t planned;
	bool read;
	struct plan plan;
};

static char *command_of(const struct plan *plan)
{
	struct text command = {0};
	for (size_t i = 0; i < plan->n_command; i++) {
		text_format(&command, "%s%s", i ? " " : "", plan->command[i]);
	}
	return text_steal(&command);
}

static size_t trials_of(const struct plan *plan)
{
	struct trials trials;
	struct error wrong = {0};
	if (trials_make(plan, &trials, &wrong) < 0) {
		return 0;
	}
	size_t n = trials.n;
	trials_done(&trials);
	return n;
}

static void plan_facts_done(struct plan_facts *facts)
{
	free(facts->text);
	free(facts->command);
	free(facts->baseline);
	free(facts->names);
	if (facts->read) {
		plan_done(&facts->plan);
	}
}

static void read_plan_facts(const char *directory, struct plan_facts *ret)
{
	struct error wrong = {0};
	*ret = (struct plan_facts){.text = read_plan(directory)};
	if (!ret->text ||
		plan_read("plan.yaml", ret->text, strlen(ret->text), &ret->plan, &wrong) < 0) {
		return;
	}
	ret->read = true;
	const struct plan *plan = &ret->plan;
	ret->command = command_of(plan);
	ret->planned = trials_of(plan);
	ret->baseline = calloc(plan->baseline.n + 1, sizeof(*ret->baseline));
	ret->names = calloc(plan->n_factors + 1, sizeof(*ret->names));
	for (size_t i = 0; ret->baseline && i < plan->baseline.n; i++) {
		ret->baseline[i].name = plan->baseline.items[i].name;
		ret->baseline[i].value = plan->baseline.items[i].value;
	}
	for (size_t i = 0; ret->names && i < plan->n_factors; i++) {
		ret->names[i] = plan->factors[i].name;
	}
}

static int write_catalogue(FILE *out, const struct catalogue *catalogue, char *const *paths,
	size_t n_paths, const char *output, struct error *e)
{
	struct sweep_progress progress = begin_progress("laying out runs");
	_cleanup_free_ char *name = name_of(paths, n_paths);
	__attribute__((cleanup(plan_facts_done))) struct plan_facts plan = {0};
	if (n_paths == 1) {
		read_plan_facts(paths[0], &plan);
	}
	struct page_sweep sweep = {
		.name = name ? name : "",
		.command = plan.command,
		.plan = plan.text,
		.baseline = plan.baseline,
		.n_baseline = plan.baseline ? plan.plan.baseline.n : 0,
		.label_order = plan.names,
		.n_label_order = plan.names ? plan.plan.n_factors : 0,
		.planned = plan.planned,
		.output = output,
		.progressed = show_progress,
		.context = &progress,
	};
	int r = page_sweep_write(out, &sweep, catalogue, e);
	end_progress(&progress);
	return r;
}

int report_sweep_write(FILE *out, char *const *paths, size_t n_paths, const char *output,
	size_t *ret_n, size_t *ret_of, struct error *e)
{
	struct catalogue catalogue = {0};
	int r = read_catalogue(paths, n_paths, &catalogue, e);
	if (r < 0) {
		return r;
	}
	say_troubles(&catalogue);
	if (catalogue.n == 0) {
		r = error_set(e, ENOENT, "%s: there is no run in it%s", paths[0],
			catalogue.n_unreadable > 0 ? " that can be read" : "");
	} else {
		r = write_catalogue(out, &catalogue, paths, n_paths, output, e);
	}
	*ret_n = catalogue.n;
	*ret_of = catalogue.n + catalogue.n_unreadable;
	catalogue_done(&catalogue);
	return r;
}
