// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Adds stretches of time to a grid of buckets.

#include "show/lanes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "run/analysis.h"
#include "run/timeline.h"

#define ROW_UNKNOWN (-2)
#define ROW_NONE (-1)
#define CELLS ((size_t)1 << 20) // upper bound of the buckets of all series
#define BUCKETS_LEAST 4096
#define BUCKETS_MOST 65536

// The time of one series in each bucket of the grid, in ns.
struct lane_grid {
	float *time_ns;
};

// The row for each lane of the timeline.
struct row_index {
	int *rows; // ROW_UNKNOWN: not searched yet
	size_t n;
	size_t capacity;
};

// A stretch of a rank's own work that has not ended yet.
struct open_work {
	int64_t from_ns;
	int64_t to_ns;
};

struct lane_maker {
	const struct analysis *a;
	struct lane_list *lanes;
	unsigned doublings; // bucket length of the grid, as doublings of BUCKET_SHORTEST_US
	int64_t width_ns;
	size_t n; // buckets
	struct lane_grid phases[PHASES_MAX];
	struct lane_grid workers[LANE_ROWS_MAX];
	struct lane_grid ranks[LANE_ROWS_MAX];
	struct open_work work[LANE_ROWS_MAX]; // by rank
	int *worker_rows; // [n_workers], by worker of the analysis
	struct row_index prepares;
	struct row_index iterates;
	bool failed;
};

// The grid ----------------------------------------------------------------------------------------

static void choose_grid(struct lane_maker *m)
{
	size_t n = m->lanes->n_workers + m->lanes->n_ranks + 2;
	for (size_t i = 0; i < m->a->phases.n; i++) {
		n += m->a->phases.items[i].spans > 0;
	}
	size_t most = CELLS / n;
	most = most > BUCKETS_MOST ? BUCKETS_MOST : most < BUCKETS_LEAST ? BUCKETS_LEAST : most;
	int64_t end_ns = reader_end_ns(m->a->tables.reader);
	m->width_ns = (int64_t)BUCKET_SHORTEST_US * 1000;
	while (end_ns / m->width_ns >= (int64_t)most) {
		m->width_ns *= 2;
		m->doublings++;
	}
	m->n = (size_t)(end_ns > 0 ? end_ns / m->width_ns : 0) + 1;
}

static void grid_add(struct lane_maker *m, struct lane_grid *grid, int64_t from_ns, int64_t to_ns)
{
	if (!grid->time_ns) {
		grid->time_ns = calloc(m->n, sizeof(*grid->time_ns));
		m->failed = m->failed || !grid->time_ns;
	}
	int64_t end_ns = (int64_t)m->n * m->width_ns;
	to_ns = to_ns < end_ns ? to_ns : end_ns;
	while (grid->time_ns && from_ns < to_ns) {
		int64_t bucket = from_ns / m->width_ns;
		int64_t next_ns = (bucket + 1) * m->width_ns;
		next_ns = next_ns < to_ns ? next_ns : to_ns;
		grid->time_ns[bucket] += (float)(next_ns - from_ns);
		from_ns = next_ns;
	}
}

// Converts a grid to shares of its buckets.
static int grid_series(struct lane_maker *m, struct lane_grid *grid, struct lane_series *ret)
{
	int r = 0;
	buckets_init(&ret->buckets, m->n);
	ret->buckets.doublings = m->doublings;
	for (size_t i = 0; grid->time_ns && i < m->n && r == 0; i++) {
		double share = fmin(1, (double)grid->time_ns[i] / (double)m->width_ns);
		int64_t middle_us = ((int64_t)i * m->width_ns + m->width_ns / 2) / 1000;
		r = buckets_add(&ret->buckets, middle_us, share, share, share, 1);
	}
	free(grid->time_ns);
	grid->time_ns = NULL;
	return r;
}

// Rows of workers ---------------------------------------------------------------------------------

static char *worker_label(const struct analysis *a, const struct phase_worker *worker)
{
	struct text label = {0};
	process_list_append_label(
		&label, &a->processes, worker->entity, worker->pid, worker->thread);
	return text_steal(&label);
}

static int worker_number(const struct analysis *a, const struct phase_worker *worker)
{
	for (size_t i = 0; worker->entity && i < a->processes.n; i++) {
		if (a->processes.items[i].entity == worker->entity) {
			return a->processes.items[i].number;
		}
	}
	return -1;
}

// A row whose last worker has ended: that of the same number, else the first; n_workers: none.
static size_t free_row(
	const struct lane_list *lanes, const double *free_from_s, double first_s, int number)
{
	size_t found = lanes->n_workers;
	for (size_t row = lanes->n_workers; row-- > 0;) {
		bool same = number >= 0 && lanes->workers[row].number == number;
		if (free_from_s[row] <= first_s) {
			found = row;
			if (same) {
				return row;
			}
		}
	}
	return found;
}

// Workers that ran one after the other, such as those of each epoch, share a row.
static int assign_rows(struct lane_maker *m)
{
	const struct phases *p = &m->a->phases;
	struct lane_list *lanes = m->lanes;
	double free_from_s[LANE_ROWS_MAX];
	m->worker_rows = calloc(p->n_workers + 1, sizeof(*m->worker_rows));
	if (!m->worker_rows) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->n_workers; i++) { // sorted by first_s
		const struct phase_worker *worker = &p->workers[i];
		int number = worker_number(m->a, worker);
		size_t row = free_row(lanes, free_from_s, worker->first_s, number);
		if (row == LANE_ROWS_MAX) {
			m->worker_rows[i] = ROW_NONE;
			lanes->workers_left_out++;
			continue;
		}
		if (row == lanes->n_workers) {
			lanes->n_workers++;
			lanes->workers[row].label = worker_label(m->a, worker);
			lanes->workers[row].number = number;
		}
		lanes->workers[row].in_turn++;
		free_from_s[row] = worker->last_s;
		m->worker_rows[i] = (int)row;
	}
	return 0;
}

static void assign_ranks(struct lane_maker *m)
{
	const struct phases *p = &m->a->phases;
	struct lane_list *lanes = m->lanes;
	for (size_t i = 0; i < p->n_ranks && p->n_ranks > 1; i++) {
		const struct phase_rank *rank = &p->ranks[i];
		if (rank->place >= LANE_ROWS_MAX) {
			lanes->ranks_left_out++;
			continue;
		}
		struct text label = {0};
		text_format(&label, "rank %d", rank->number);
		lanes->ranks[rank->place] = (struct lane_row){
			.label = text_steal(&label), .number = rank->number, .in_turn = 1};
		lanes->n_ranks++;
	}
}

// The row of a worker.
static int find_worker(const struct lane_maker *m, const struct timeline_thread *lane)
{
	const struct phases *p = &m->a->phases;
	for (size_t i = 0; i < p->n_workers; i++) {
		if (p->workers[i].entity == lane->entity && p->workers[i].pid == lane->pid &&
			p->workers[i].thread == lane->thread) {
			return m->worker_rows[i];
		}
	}
	return ROW_NONE;
}

// The row of a rank.
static int find_rank(const struct lane_maker *m, const struct timeline_thread *lane)
{
	const struct phases *p = &m->a->phases;
	for (size_t i = 0; i < p->n_ranks && m->lanes->n_ranks > 0; i++) {
		const struct phase_rank *rank = &p->ranks[i];
		if (rank->entity == lane->entity && rank->pid == lane->pid &&
			rank->thread == lane->thread) {
			return rank->place < LANE_ROWS_MAX ? rank->place : ROW_NONE;
		}
	}
	return ROW_NONE;
}

typedef int find_row(const struct lane_maker *m, const struct timeline_thread *lane);

static int row_of_lane(struct lane_maker *m, struct row_index *index,
	const struct timeline_thread *lane, find_row *find)
{
	void *rows = index->rows;
	if (array_reserve(&rows, &index->capacity, lane->index + 1, sizeof(*index->rows)) < 0) {
		m->failed = true;
		return ROW_NONE;
	}
	index->rows = rows;
	while (index->n <= lane->index) {
		index->rows[index->n++] = ROW_UNKNOWN;
	}
	if (index->rows[lane->index] == ROW_UNKNOWN) {
		index->rows[lane->index] = find(m, lane);
	}
	return index->rows[lane->index];
}

// Windows at full rate ----------------------------------------------------------------------------

static int detail_add(
	const struct lane_maker *m, struct lane_detail *details, const struct lane_piece *piece)
{
	int r = 0;
	for (size_t i = 0; i < m->lanes->n_windows && r == 0; i++) {
		int64_t from_ns = m->lanes->windows[i].from_us * 1000;
		int64_t to_ns = m->lanes->windows[i].to_us * 1000;
		struct lane_detail *detail = &details[i];
		void *pieces = detail->pieces;
		if (piece->to_ns <= from_ns || piece->from_ns >= to_ns ||
			detail->n > LANE_PIECES_MAX) {
			continue;
		}
		r = array_reserve(
			&pieces, &detail->capacity, detail->n + 1, sizeof(*detail->pieces));
		detail->pieces = pieces;
		if (r == 0) {
			struct lane_piece *added = &detail->pieces[detail->n++];
			*added = *piece;
			added->from_ns = piece->from_ns > from_ns ? piece->from_ns : from_ns;
			added->to_ns = piece->to_ns < to_ns ? piece->to_ns : to_ns;
		}
	}
	return r;
}

// The walk ----------------------------------------------------------------------------------------

static void put_row(struct lane_maker *m, struct lane_grid *grid, struct lane_detail *details,
	const struct lane_piece *piece)
{
	grid_add(m, grid, piece->from_ns, piece->to_ns);
	m->failed = m->failed || detail_add(m, details, piece) < 0;
}

static void put_work(struct lane_maker *m, size_t row)
{
	struct open_work *work = &m->work[row];
	if (work->from_ns < work->to_ns) {
		put_row(m, &m->ranks[row], m->lanes->rank_details,
			&(struct lane_piece){(uint32_t)row, work->from_ns, work->to_ns});
	}
	*work = (struct open_work){0};
}

// A rank works while it is in an iteration or a phase and does not wait for the others. Adjacent
// phases form one stretch.
static void take_work(struct lane_maker *m, size_t row, const struct timeline_piece *piece)
{
	struct open_work *work = &m->work[row];
	if (piece->phase < 0 || piece->phase == PHASE_COMMUNICATION) {
		return;
	}
	if (work->to_ns == piece->from_ns && work->to_ns > work->from_ns) {
		work->to_ns = piece->to_ns;
		return;
	}
	put_work(m, row);
	*work = (struct open_work){piece->from_ns, piece->to_ns};
}

static void take_piece(
	void *context, const struct timeline_thread *lane, const struct timeline_piece *piece)
{
	struct lane_maker *m = context;
	if (lane->index == 0 && piece->phase >= 0) {
		grid_add(m, &m->phases[piece->phase], piece->from_ns, piece->to_ns);
		struct lane_piece exact = {(uint32_t)piece->phase, piece->from_ns, piece->to_ns};
		m->failed = m->failed || detail_add(m, m->lanes->phase_details, &exact) < 0;
	}
	int row = row_of_lane(m, &m->iterates, lane, find_rank);
	if (row >= 0) {
		take_work(m, (size_t)row, piece);
	}
}

static void take_iteration(
	void *context, const struct timeline_thread *lane, const struct iteration *iteration)
{
	struct lane_maker *m = context;
	if (lane->index == 0 && !iteration->cut) {
		double seconds = (double)iteration->length_ns / 1e9;
		int64_t end_us = iteration->end_ns / 1000;
		struct lane_list *lanes = m->lanes;
		int r = buckets_add(&lanes->lengths.buckets, end_us, seconds, seconds, seconds, 1);
		r = r < 0 ? r
		          : buckets_add_detail(lanes->lengths_details, lanes->windows,
				    lanes->n_windows, end_us, seconds, seconds, seconds, 1);
		m->failed = m->failed || r < 0;
	}
}

static int take_prepare(void *context, const struct timeline_thread *lane, int64_t start_ns,
	int64_t end_ns, int64_t samples)
{
	struct lane_maker *m = context;
	int row = row_of_lane(m, &m->prepares, lane, find_worker);
	(void)samples;
	if (row >= 0) {
		put_row(m, &m->workers[row], m->lanes->worker_details,
			&(struct lane_piece){(uint32_t)row, start_ns, end_ns});
	}
	return m->failed ? -ENOMEM : 0;
}

static int make_series(struct lane_maker *m)
{
	int r = 0;
	for (size_t i = 0; i < PHASES_MAX; i++) {
		int made = grid_series(m, &m->phases[i], &m->lanes->phases[i]);
		r = r < 0 ? r : made;
	}
	for (size_t i = 0; i < LANE_ROWS_MAX; i++) {
		int made = grid_series(m, &m->workers[i], &m->lanes->workers[i].series);
		r = r < 0 ? r : made;
		made = grid_series(m, &m->ranks[i], &m->lanes->ranks[i].series);
		r = r < 0 ? r : made;
	}
	return r;
}

int lanes_collect(const struct analysis *a, struct lane_list *ret, struct error *e)
{
	const struct timeline_sink sink = {
		.piece = take_piece, .iteration = take_iteration, .prepare = take_prepare};
	*ret = (struct lane_list){0};
	struct lane_maker m = {.a = a, .lanes = ret};
	buckets_init(&ret->lengths.buckets, BUCKETS_MOST);
	ret->n_windows = buckets_detail_windows(&a->phases, ret->windows);
	int r = assign_rows(&m);
	assign_ranks(&m);
	choose_grid(&m);
	if (r == 0 && a->phases.timeline) {
		struct timeline_sink ours = sink;
		ours.context = &m;
		r = timeline_walk(a->phases.timeline, &ours, e);
	}
	for (size_t i = 0; i < LANE_ROWS_MAX; i++) {
		put_work(&m, i);
	}
	int made = make_series(&m); // also frees the grids
	r = r == -ENOMEM || made < 0 || m.failed ? -ENOMEM : r;
	free(m.worker_rows);
	free(m.prepares.rows);
	free(m.iterates.rows);
	if (r == -ENOMEM) {
		lanes_done(ret);
		return error_errno(e, ENOMEM, "cannot lay out the page");
	}
	return r;
}

// Shares have one value per bucket: minimum and maximum of joined buckets are not drawn.
static void series_coarsen(struct lane_series *series)
{
	buckets_coarsen(&series->buckets);
	for (size_t i = 0; i < series->buckets.n; i++) {
		struct bucket *bucket = &series->buckets.items[i];
		bucket->minimum = bucket->maximum = (float)bucket_mean(bucket);
	}
}

static int pack_rows(struct lane_row *rows, size_t n, size_t *total)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = buckets_pack(&rows[i].series.buckets, &rows[i].series.packed);
		*total += rows[i].series.packed.base64.length;
	}
	return r;
}

static int pack_all(struct lane_list *lanes, size_t *total)
{
	int r = buckets_pack(&lanes->lengths.buckets, &lanes->lengths.packed);
	*total = lanes->lengths.packed.base64.length;
	for (size_t i = 0; i < PHASES_MAX && r == 0; i++) {
		r = buckets_pack(&lanes->phases[i].buckets, &lanes->phases[i].packed);
		*total += lanes->phases[i].packed.base64.length;
	}
	r = r < 0 ? r : pack_rows(lanes->workers, lanes->n_workers, total);
	return r < 0 ? r : pack_rows(lanes->ranks, lanes->n_ranks, total);
}

int lanes_pack(struct lane_list *lanes, size_t most)
{
	size_t total;
	int r = pack_all(lanes, &total);
	for (int i = 0; i < 12 && r == 0 && total > most; i++) {
		buckets_coarsen(&lanes->lengths.buckets);
		for (size_t k = 0; k < PHASES_MAX; k++) {
			series_coarsen(&lanes->phases[k]);
		}
		for (size_t k = 0; k < lanes->n_workers; k++) {
			series_coarsen(&lanes->workers[k].series);
		}
		for (size_t k = 0; k < lanes->n_ranks; k++) {
			series_coarsen(&lanes->ranks[k].series);
		}
		r = pack_all(lanes, &total);
	}
	return r < 0 ? r
	             : buckets_pack_details(
			       lanes->lengths_details, lanes->n_windows, &lanes->lengths.buckets);
}

static void lane_series_done(struct lane_series *series)
{
	buckets_done(&series->buckets);
	text_done(&series->packed.base64);
}

void lanes_done(struct lane_list *lanes)
{
	lane_series_done(&lanes->lengths);
	buckets_details_done(lanes->lengths_details, DETAILS_MAX);
	for (size_t i = 0; i < PHASES_MAX; i++) {
		lane_series_done(&lanes->phases[i]);
	}
	for (size_t i = 0; i < LANE_ROWS_MAX; i++) {
		lane_series_done(&lanes->workers[i].series);
		free(lanes->workers[i].label);
		lane_series_done(&lanes->ranks[i].series);
		free(lanes->ranks[i].label);
	}
	for (size_t i = 0; i < DETAILS_MAX; i++) {
		free(lanes->phase_details[i].pieces);
		free(lanes->worker_details[i].pieces);
		free(lanes->rank_details[i].pieces);
	}
	*lanes = (struct lane_list){0};
}
