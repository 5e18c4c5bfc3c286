// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The ranks of a job from several runs.

#include "show/joint_show.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/words.h"
#include "show/json.h"
#include "show/table.h"
#include "study/joint.h"
#include "study/prices.h"

static void table_cleanup(struct table **t)
{
	table_free(*t);
}
#define _cleanup_table_ __attribute__((cleanup(table_cleanup)))

enum { RANKS_SHOWN = 16, FAILURES_SHOWN = 3 };

enum {
	RANK_NUMBER,
	RANK_HOST,
	RANK_RUN,
	RANK_ITERATIONS,
	RANK_RATE,
	RANK_MEDIAN,
	RANK_OWN,
	RANK_WAITS,
	RANK_LATEST,
	RANK_CPUS,
	RANK_CPU_WAIT,
	RANK_MEMORY,
	RANK_CLOCK,
	RANK_SENDS,
	RANK_SENDS_RATE,
	RANK_VERDICT,
	RANK_OUTCOME,
	RANK_NOTE,
	N_RANK_COLUMNS,
};

static const struct column columns[N_RANK_COLUMNS] = {
	[RANK_NUMBER] = {"rank", "RANK", COLUMN_WHOLE, 0},
	[RANK_HOST] = {"host", "HOST", COLUMN_TEXT, 6},
	[RANK_RUN] = {"run", "RUN", COLUMN_TEXT, 7},
	[RANK_ITERATIONS] = {"iterations", "ITERATIONS", COLUMN_WHOLE, 3},
	[RANK_RATE] = {"samples_per_s", "SAMPLES/S", COLUMN_NUMBER, 2},
	[RANK_MEDIAN] = {"median_s", "MEDIAN", COLUMN_SECONDS, 4},
	[RANK_OWN] = {"own_s", "OWN WORK", COLUMN_SECONDS, 0},
	[RANK_WAITS] = {"waits", "WAITS", COLUMN_RATIO, 0},
	[RANK_LATEST] = {"latest", "LATEST", COLUMN_RATIO, 0},
	[RANK_CPUS] = {"cpus_used", "CPUS USED", COLUMN_NUMBER, 2},
	[RANK_CPU_WAIT] = {"cpu_wait", "WAIT FOR CPU", COLUMN_RATIO, 5},
	[RANK_MEMORY] = {"memory_bytes", "MEMORY", COLUMN_BYTES, 4},
	[RANK_CLOCK] = {"clock_s", NULL, COLUMN_SECONDS, 0},
	[RANK_SENDS] = {"sends_ratio", "SENDS", COLUMN_RATIO, 6},
	[RANK_SENDS_RATE] = {"sends_bytes_per_s", NULL, COLUMN_BYTES_PER_SECOND, 0},
	[RANK_VERDICT] = {"verdict", "VERDICT", COLUMN_LABEL, 1},
	[RANK_OUTCOME] = {"outcome", NULL, COLUMN_LABEL, 0},
	[RANK_NOTE] = {NULL, "", COLUMN_LABEL, 0},
};

static bool has_failed(const struct joint_rank *r)
{
	return r->run->state == RUN_FINISHED && !outcome_is_success(r->run->outcome);
}

// "the slowest"; how its run ended, if not well; that it has not ended, or was not all recorded.
const char *joint_show_note(const struct joint_rank *r)
{
	const struct digest *run = r->run;
	return has_failed(r)               ? outcome_word(run->outcome)
	       : run->state == RUN_LIVE    ? "still runs"
	       : run->state == RUN_CUT_OFF ? "end not recorded"
	       : run->damaged              ? "damaged"
	       : *run->partial             ? "partly recorded"
	       : r->rank.slowest           ? "the slowest"
	       : r->rank.iterations == 0   ? "no iterations"
	                                   : NULL;
}

// What a rank waits, so that those that the others wait for come first. Unknown: by length.
static double sort_waits(const struct joint_rank *r)
{
	return r->rank.iterations == 0   ? INFINITY
	       : isfinite(r->rank.waits) ? r->rank.waits
	       : isfinite(r->rank.p50_s) ? -r->rank.p50_s
	                                 : INFINITY;
}

static int compare_numbers(const void *left, const void *right);

// Those that failed, the slowest, those that wait least, then by rank.
static int compare_worst(const void *left, const void *right)
{
	const struct joint_rank *a = *(struct joint_rank *const *)left;
	const struct joint_rank *b = *(struct joint_rank *const *)right;
	double one = sort_waits(a), other = sort_waits(b);
	return has_failed(a) != has_failed(b)       ? has_failed(b) - has_failed(a)
	       : a->rank.slowest != b->rank.slowest ? b->rank.slowest - a->rank.slowest
	       : one != other                       ? (one > other) - (one < other)
	                                            : compare_numbers(left, right);
}

static int compare_numbers(const void *left, const void *right)
{
	const struct joint_rank *a = *(struct joint_rank *const *)left;
	const struct joint_rank *b = *(struct joint_rank *const *)right;
	return (a->number > b->number) - (a->number < b->number);
}

int joint_show_worst(const struct joint *j, size_t most, const struct joint_rank ***ret)
{
	const struct joint_rank **order = calloc(j->n + 1, sizeof(struct joint_rank *));
	size_t n = j->n < most ? j->n : most;
	if (!order) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < j->n; i++) {
		order[i] = &j->ranks[i];
	}
	if (n < j->n) {
		qsort(order, j->n, sizeof(struct joint_rank *), compare_worst);
		qsort(order, n, sizeof(struct joint_rank *), compare_numbers);
	}
	*ret = order;
	return (int)n;
}

// The table of at most `most` ranks.
static int make_table(const struct joint *j, size_t most, struct table **ret)
{
	_cleanup_free_ const struct joint_rank **order = NULL;
	int n = joint_show_worst(j, most, &order);
	int r = n < 0 ? n : table_new(columns, N_RANK_COLUMNS, ret);
	for (int i = 0; i < n && r == 0; i++) {
		const struct joint_rank *rank = order[i];
		struct table *t = *ret;
		r = table_row(t);
		table_number(t, RANK_NUMBER, rank->number);
		table_text(t, RANK_HOST, rank->host);
		table_text(t, RANK_RUN, rank->run->name);
		table_number(t, RANK_ITERATIONS, (double)rank->rank.iterations);
		table_number(t, RANK_RATE, rank->rank.samples_per_s);
		table_number(t, RANK_MEDIAN, rank->rank.p50_s);
		table_number(t, RANK_OWN, phases_rank_own(&rank->rank));
		table_number(t, RANK_WAITS, rank->rank.waits);
		table_number(t, RANK_LATEST, rank->latest);
		table_number(t, RANK_CPUS, rank->cpus_used);
		table_number(t, RANK_CPU_WAIT, rank->cpu_wait_share);
		table_number(t, RANK_MEMORY, rank->memory_bytes);
		table_number(t, RANK_CLOCK, rank->clock_s);
		table_number(t, RANK_SENDS, rank->link.busy);
		table_number(t, RANK_SENDS_RATE, rank->link.rate);
		table_text(t, RANK_VERDICT, rank->run->verdict);
		table_text(t, RANK_OUTCOME, outcome_word(rank->run->outcome));
		table_text(t, RANK_NOTE, joint_show_note(rank));
	}
	return r;
}

// Of a rank's time that the others wait: the mean of theirs.
static double mean_waits(const struct joint *j)
{
	double sum = 0, n = 0;
	for (size_t i = 0; i < j->n; i++) {
		if (i != j->slowest && isfinite(j->ranks[i].rank.waits)) {
			sum += j->ranks[i].rank.waits;
			n++;
		}
	}
	return n > 0 ? sum / n : NAN;
}

// How many other ranks have the same verdict as the slowest.
static size_t same_verdict(const struct joint *j)
{
	size_t n = 0;
	for (size_t i = 0; i < j->n; i++) {
		n += i != j->slowest &&
		     strcmp(j->ranks[i].run->verdict, j->ranks[j->slowest].run->verdict) == 0;
	}
	return n;
}

static bool is_inferred(const struct joint *j)
{
	return j->waits == WAITS_IN_BACKWARD || j->waits == WAITS_IN_FORWARD;
}

// A host by its name.
static void append_host(struct text *t, const char *host)
{
	const char *name = *host ? host : "an unknown host";
	text_append_printable(t, name, strlen(name));
}

// "data is in transit to rank 0 (10.0.0.1) 97 % of the time, at 12 MB/s".
static void append_link(struct text *t, const struct joint_link *link)
{
	text_append_string(t, "data is in transit to ");
	if (link->to >= 0) {
		text_format(t, "rank %d (", link->to);
	}
	text_append_printable(t, link->peer, strlen(link->peer));
	text_append_string(t, link->to >= 0 ? ") " : " ");
	words_append_percent(t, link->busy);
	text_append_string(t, " of the time, at ");
	words_append_bytes(t, link->rate);
	text_append_string(t, "/s");
}

// How many ranks the run of a rank has.
static size_t count_ranks_of_run(const struct joint *j, const struct joint_rank *rank)
{
	size_t n = 0;
	for (size_t i = 0; i < j->n; i++) {
		n += j->ranks[i].run == rank->run;
	}
	return n;
}

// Whose connections those of a rank's run are: "rank 1", or the host of several ranks.
static void append_owner(struct text *t, const struct joint *j, const struct joint_rank *r)
{
	if (count_ranks_of_run(j, r) == 1) {
		text_format(t, "rank %d", r->number);
	} else {
		append_host(t, r->host);
	}
}

static void append_slow_link(struct text *t, const struct joint *j, const struct joint_rank *r)
{
	text_append_string(t, " sends slowly: its ");
	append_link(t, &r->link);
	if (isfinite(j->others_busy)) {
		text_append_string(t, "; that of the others at most ");
		words_append_percent(t, j->others_busy);
	}
}

static void append_distance(struct text *t, const struct joint *j, const struct joint_rank *r)
{
	char here[32], there[32];
	text_format(t,
		" is far from the others: the round trip to the nearest takes %s, between the "
		"others %s",
		text_seconds(here, sizeof(here), r->link.nearest_s),
		text_seconds(there, sizeof(there), j->others_nearest_s));
}

static void append_slowest(struct text *t, const struct joint *j)
{
	const struct joint_rank *r = &j->ranks[j->slowest];
	double waits = mean_waits(j);
	char seconds[32];
	if (j->reason == REASON_OWN || count_ranks_of_run(j, r) == 1) {
		text_format(t, "rank %d on ", r->number);
	}
	append_host(t, r->host);
	if (j->reason == REASON_LINK) {
		append_slow_link(t, j, r);
	} else if (j->reason == REASON_DISTANCE) {
		append_distance(t, j, r);
	} else if (isfinite(waits)) {
		text_append_string(t, ": the others wait for it during ");
		words_append_percent(t, waits);
		text_format(t, " of their iteration time%s", is_inferred(j) ? " (estimated)" : "");
	} else {
		text_append_string(t, ": it has the longest iterations");
	}
	if (isfinite(r->latest) && j->reason == REASON_OWN) {
		text_format(t, "; it is the last to arrive in ");
		words_append_percent(t, r->latest);
		text_format(t, " of %zu iterations", j->n_common);
	}
	if (j->phase >= 0) {
		bool pass = j->phase == PHASE_FORWARD || j->phase == PHASE_BACKWARD;
		bool other = j->phase == PHASE_OTHER;
		text_format(t,
			"\nits %s%s takes %s longer per iteration than the median of the others",
			other ? "time outside phases" : phase_id_name((enum phase_id)j->phase),
			other  ? ""
			: pass ? " pass"
			       : " phase",
			text_seconds(seconds, sizeof(seconds), j->longer_s));
	}
	text_append_string(t, "\n");
	size_t same = same_verdict(j);
	if (*r->run->headline) {
		text_append_string(t, "its verdict: ");
		text_append_printable(t, r->run->headline, strlen(r->run->headline));
		if (same > 0) {
			text_format(t, " (also the verdict of %zu other ranks)", same);
		}
		text_append_string(t, "\n");
	}
}

// When a run ended, in seconds since 1970; INFINITY: unknown.
static double end_of(const struct digest *run)
{
	double end_s = (double)run->start_utc_ns / 1e9 + run->measures[MEASURE_DURATION];
	return isfinite(end_s) ? end_s : INFINITY;
}

static int compare_ends(const void *left, const void *right)
{
	const struct joint_rank *a = *(struct joint_rank *const *)left;
	const struct joint_rank *b = *(struct joint_rank *const *)right;
	double one = end_of(a->run), other = end_of(b->run);
	return one != other ? (one > other) - (one < other) : compare_numbers(left, right);
}

const struct joint_rank *joint_show_first_failed(const struct joint *j)
{
	const struct joint_rank *first = NULL;
	for (size_t i = 0; i < j->n; i++) {
		const struct joint_rank *r = &j->ranks[i];
		if (has_failed(r) && (!first || compare_ends(&r, &first) < 0)) {
			first = r;
		}
	}
	return first;
}

// The first that failed first: others may have failed because of it. 0 or -ENOMEM.
static int append_failures(struct text *t, const struct joint *j)
{
	_cleanup_free_ const struct joint_rank **failed = calloc(
		j->n + 1, sizeof(struct joint_rank *));
	size_t n = 0;
	if (!failed) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < j->n; i++) {
		if (has_failed(&j->ranks[i])) {
			failed[n++] = &j->ranks[i];
		}
	}
	qsort(failed, n, sizeof(struct joint_rank *), compare_ends);
	for (size_t i = 0; i < n && i < FAILURES_SHOWN; i++) {
		const struct joint_rank *r = failed[i];
		text_format(t, "rank %d on ", r->number);
		append_host(t, r->host);
		text_format(t, " failed (%s)%s", outcome_word(r->run->outcome),
			*r->run->outcome_text ? ": " : "");
		text_append_printable(t, r->run->outcome_text, strlen(r->run->outcome_text));
		text_append_string(t, "\n");
	}
	if (n > FAILURES_SHOWN) {
		text_format(t, "%zu more failed, later\n", n - FAILURES_SHOWN);
	}
	return 0;
}

static void append_clocks(struct text *t, const struct joint *j)
{
	for (size_t i = 0; i < j->n; i++) {
		const struct joint_rank *r = &j->ranks[i];
		bool told = !isfinite(r->clock_s) || r->clock_s == 0;
		for (size_t k = 0; k < i && !told; k++) {
			told = strcmp(j->ranks[k].host, r->host) == 0;
		}
		if (!told) {
			char seconds[32];
			text_append_string(t, "the clock of ");
			append_host(t, r->host);
			text_format(t, " is %s %s that of ",
				text_seconds(seconds, sizeof(seconds), fabs(r->clock_s)),
				r->clock_s > 0 ? "ahead of" : "behind");
			append_host(t, j->ranks[0].host);
			text_append_string(t, ", by the ends of their iterations\n");
		}
	}
}

// What the samples of all runs are; "samples" if they differ or one does not say it.
const char *joint_show_unit(const struct joint *j)
{
	const char *unit = j->n > 0 ? j->ranks[0].run->unit : "";
	for (size_t i = 0; i < j->n && *unit; i++) {
		unit = strcmp(unit, j->ranks[i].run->unit) == 0 ? unit : "";
	}
	return *unit ? unit : "samples";
}

void joint_show_append_heading(struct text *t, const struct joint *j)
{
	text_append_string(t, "job ");
	text_append_printable(t, j->name, strlen(j->name));
	text_format(t, " (%s): %zu", j->named_by, j->n);
	if (j->world > 0 && (uint64_t)j->world != j->n) {
		text_format(t, " of %" PRId64, j->world);
	}
	text_format(t, " rank%s on %zu host%s, from %zu runs", j->n == 1 ? "" : "s", j->n_hosts,
		j->n_hosts == 1 ? "" : "s", j->n_runs);
	if (isfinite(j->samples_per_s)) {
		text_append_string(t, "; ");
		words_append_number(t, j->samples_per_s);
		text_format(t, " %s/s", joint_show_unit(j));
	}
	text_append_string(t, "\n");
}

// What the runs were allocated, together. NAN: not known of one.
struct totals {
	double cpu_hours, idle_cpu_hours;
	double cost, idle_cost; // in the currency of the runs
};

static void add_host(const struct joint *j, const char *host, struct totals *ret)
{
	double hours = 0, idle = 0, cost = 0, idle_cost = 0, machine = NAN, longest_s = 0;
	const struct digest *last = NULL;
	for (size_t i = 0; i < j->n; i++) {
		const struct digest *run = j->ranks[i].run;
		if (strcmp(j->ranks[i].host, host) == 0 && run != last) { // of several ranks once
			hours += run->measures[MEASURE_CPU_HOURS_ALLOCATED];
			idle += run->measures[MEASURE_IDLE_CPU_HOURS];
			cost += run->measures[MEASURE_COST];
			idle_cost += run->measures[MEASURE_IDLE_COST];
			machine = run->host_cpus;
			longest_s = fmax(longest_s, run->measures[MEASURE_DURATION]);
			last = run;
		}
	}
	// Ranks that nothing bounds were each allocated the whole machine.
	double most = machine * longest_s / 3600;
	double share = most < hours ? most / hours : 1;
	double used = hours - idle;
	double left = fmax(0, share * hours - used);
	ret->cpu_hours += share * hours;
	ret->idle_cpu_hours += left;
	ret->cost += share * cost;
	ret->idle_cost += share * idle_cost;
}

static struct totals find_totals(const struct joint *j)
{
	struct totals sum = {0, 0, 0, 0};
	for (size_t i = 0; i < j->n; i++) {
		bool seen = false;
		for (size_t k = 0; k < i && !seen; k++) {
			seen = strcmp(j->ranks[k].host, j->ranks[i].host) == 0;
		}
		if (!seen) {
			add_host(j, j->ranks[i].host, &sum);
		}
	}
	return sum;
}

// "allocated 2.0 h of CPU time, of which 1.5 h idle; 1.20 USD, of which 0.90 USD idle".
static void append_allocated(struct text *t, const struct joint *j)
{
	struct totals all = find_totals(j);
	const char *currency = j->n > 0 ? j->ranks[0].run->currency : NULL;
	if (!isfinite(all.cpu_hours) || !isfinite(all.idle_cpu_hours)) {
		return;
	}
	text_append_string(t, "allocated ");
	words_append_seconds(t, 3600 * all.cpu_hours);
	text_append_string(t, " of CPU time, of which ");
	words_append_seconds(t, 3600 * all.idle_cpu_hours);
	text_append_string(t, " idle");
	if (currency && isfinite(all.cost)) {
		text_append_string(t, "; ");
		prices_append_amount(t, all.cost, currency);
	}
	if (currency && isfinite(all.cost) && isfinite(all.idle_cost)) {
		text_append_string(t, ", of which ");
		prices_append_amount(t, all.idle_cost, currency);
		text_append_string(t, " idle");
	}
	text_append_string(t, "\n");
}

int joint_show_append(struct text *t, const struct joint *j)
{
	int r = append_failures(t, j);
	if (j->slowest < j->n) {
		append_slowest(t, j);
	} else if (j->busiest < j->n) {
		text_format(t, "the network between the ranks is %s: ",
			j->network_limits ? "the limit" : "busy");
		append_owner(t, j, &j->ranks[j->busiest]);
		text_append_string(t, "'s ");
		append_link(t, &j->ranks[j->busiest].link);
		text_append_string(t, isfinite(j->others_busy)
					      ? "; no rank sends much more slowly than the others\n"
					      : "\n");
	} else {
		text_append_string(
			t, j->waits != WAITS_UNKNOWN
				   ? "no rank is known to be slower than the others\n"
				   : "it is not known whether the ranks wait for each other\n");
	}
	append_allocated(t, j);
	append_clocks(t, j);
	return r;
}

int joint_show_text(const struct joint *j, bool all, FILE *stream)
{
	_cleanup_table_ struct table *table = NULL;
	_cleanup_text_ struct text t = {0};
	joint_show_append_heading(&t, j);
	int r = joint_show_append(&t, j);
	text_append_string(&t, "\n");
	if (r < 0 || t.failed) {
		return -ENOMEM;
	}
	fputs(t.data, stream);
	size_t most = all ? j->n : RANKS_SHOWN;
	r = make_table(j, most, &table);
	const struct table_style style = table_style_for(stream);
	r = r < 0 ? r : table_print(table, stream, &style);
	if (r == 0 && j->n > most) {
		fprintf(stream, "and %zu more (--all)\n", j->n - most);
	}
	if (r == 0 && j->n_others > 0) {
		fprintf(stream,
			"\n%zu more job%s with several runs in this directory: --job NAME selects "
			"one\n",
			j->n_others, j->n_others == 1 ? "" : "s");
	}
	return r;
}

static json_t *slowest_json(const struct joint *j)
{
	if (j->slowest >= j->n) {
		return json_null();
	}
	const struct joint_rank *r = &j->ranks[j->slowest];
	const char *phase = j->phase >= 0 ? phase_id_name((enum phase_id)j->phase) : NULL;
	static const char *const reasons[] = {[REASON_OWN] = "own work",
		[REASON_LINK] = "network",
		[REASON_DISTANCE] = "distance"};
	return json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:i}", "rank", r->number, "reason",
		reasons[j->reason], "others_wait", json_from_number(mean_waits(j)), "latest",
		json_from_number(r->latest), "phase", json_from_text(phase), "longer_s",
		json_from_number(j->phase >= 0 ? j->longer_s : NAN), "headline",
		json_from_text(r->run->headline), "same_verdict", (int)same_verdict(j));
}

int joint_show_json(const struct joint *j, FILE *stream)
{
	_cleanup_table_ struct table *table = NULL;
	int r = make_table(j, j->n, &table);
	if (r < 0) {
		return r;
	}
	struct totals all = find_totals(j);
	json_t *json = json_pack(
		"{s:o, s:s, s:i, s:o, s:i, s:o, s:b, s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "job",
		json_from_text(j->name), "named_by", j->named_by, "runs", (int)j->n_runs, "world",
		j->world > 0 ? json_integer(j->world) : json_null(), "hosts", (int)j->n_hosts,
		"samples_per_s", json_from_number(j->samples_per_s), "waits_inferred",
		is_inferred(j), "common_iterations", (int)j->n_common, "other_jobs",
		(int)j->n_others, "slowest", slowest_json(j), "ranks", table_to_json(table),
		"cpu_hours_allocated", json_from_number(all.cpu_hours), "idle_cpu_hours",
		json_from_number(all.idle_cpu_hours), "cost", json_from_number(all.cost));
	return json ? json_write(json, stream) : -ENOMEM;
}
