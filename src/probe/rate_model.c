// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fits and evaluates the model of throughput.

#include "probe/rate_model.h"

#include <errno.h>
#include <gsl/gsl_fit.h>
#include <math.h>

enum { OBSERVATIONS_MAX = 64 };

// A loader is ahead of the training process if that waits at most this share of its time.
#define AHEAD 0.1
// Below this many threads that compute, more CPUs do not make computing faster.
#define ONE_THREAD 1.2
// What a worker needs for a batch is a constant only where it exceeds this share of its samples'.
#define SENDING 0.25
// Half of a 95 % interval, in standard deviations.
#define NORMAL_95 1.96
// Runs of the same configuration differ by this, even if each is known better.
#define RATE_REPEATS 0.01
// Too few iterations for an interval.
#define RATE_UNSURE 0.1

static const char *const bound_names[N_RATE_BOUNDS] = {
	[RATE_COMPUTE] = "compute",
	[RATE_PREPARE] = "prepare",
	[RATE_CPU] = "cpu",
	[RATE_STORAGE] = "storage",
};

const char *rate_bound_name(enum rate_bound bound)
{
	return bound_names[bound];
}

static double batch_of(const struct observation *o)
{
	return o->batch_size > 0          ? (double)o->batch_size
	       : o->loader_batch_size > 0 ? (double)o->loader_batch_size
	                                  : NAN;
}

static double ranks_of(const struct observation *o)
{
	return o->ranks > 1 ? (double)o->ranks : 1;
}

// CPUs for each of the ranks, which share them.
static double cpus_each(const struct observation *o)
{
	return o->cpus / ranks_of(o);
}

static bool is_usable(const struct observation *o)
{
	return isfinite(batch_of(o)) && o->iteration.value > 0 && o->compute > 0;
}

// Samples per second, with what begins an epoch.
static double seen_rate(const struct observation *o)
{
	return o->rate.value > 0 ? o->rate.value : batch_of(o) / o->iteration.value;
}

// Fits y = intercept + slope * x with both at least 0. One batch size gives a slope alone.
static void fit_line(
	const double *x, const double *y, size_t n, double *ret_intercept, double *ret_slope)
{
	double cov00, cov01, cov11, chi2, intercept = 0, slope = 0;
	double low = INFINITY, high = 0, sum_y = 0, product = 0, squares = 0;
	double weight[OBSERVATIONS_MAX];
	for (size_t i = 0; i < n; i++) {
		low = fmin(low, x[i]);
		high = fmax(high, x[i]);
		sum_y += y[i];
		product += 1 / y[i] / y[i] * x[i] * y[i];
		squares += 1 / y[i] / y[i] * x[i] * x[i];
		weight[i] = 1 / (y[i] * y[i]); // errors are relative
	}
	if (high > low) {
		gsl_fit_wlinear(x, 1, weight, 1, y, 1, n, &intercept, &slope, &cov00, &cov01,
			&cov11, &chi2);
	}
	if (!(high > low) || intercept < 0) {
		intercept = 0;
		slope = product / squares;
	} else if (slope < 0) {
		intercept = sum_y / (double)n;
		slope = 0;
	}
	*ret_intercept = intercept;
	*ret_slope = slope;
}

// Median of what is known.
static double median_of(double *values, size_t n)
{
	size_t known = 0;
	for (size_t i = 0; i < n; i++) {
		if (isfinite(values[i])) {
			values[known++] = values[i];
		}
	}
	for (size_t i = 1; i < known; i++) { // few values
		for (size_t k = i; k > 0 && values[k] < values[k - 1]; k--) {
			double swap = values[k];
			values[k] = values[k - 1];
			values[k - 1] = swap;
		}
	}
	return known == 0       ? NAN
	       : known % 2 == 1 ? values[known / 2]
	                        : (values[known / 2] + values[known / 2 - 1]) / 2;
}

// CPU time of the training process per iteration, without preparing batches.
static double own_cpu(const struct observation *o)
{
	double preparing = o->workers == 0 ? o->wait : 0;
	double cpu = o->main_cpu - preparing;
	return isfinite(cpu) && cpu > 0 ? cpu : o->compute;
}

// CPU seconds of preparing a sample. Without workers the wait for data is the preparation, but for
// the part of it in which the process did not run, if storage is a cause.
static double preparing(const struct observation *o)
{
	if (o->workers > 0) {
		return o->prepare_cpu;
	}
	double cpu = fmax(0, fmin(o->wait, o->main_cpu - o->compute));
	return (o->waits_for_storage ? cpu : o->wait) / batch_of(o);
}

// Bytes per second that storage delivered where it was a cause of lost time; NAN: it was not.
static double storage_rate(const struct observation *o)
{
	double batch = batch_of(o);
	if (!o->waits_for_storage || !(o->stored > 0)) {
		return NAN;
	}
	double reading = o->workers > 0 ? NAN : o->wait - preparing(o) * batch;
	return reading > 0 ? o->stored * batch / reading : o->storage_rate;
}

// What receiving a batch costs if the workers are ahead. Its memory is shared, not copied.
static double receiving(const struct observation *o)
{
	bool ahead = o->workers > 0 && o->wait < AHEAD * o->iteration.value;
	return ahead ? o->wait : NAN;
}

// What a worker needs for a batch beside its samples: known if the training process waited for it,
// and not for storage. NAN: not known.
static double sending(const struct rate_model *m, const struct observation *o)
{
	bool waited = o->wait >= AHEAD * o->iteration.value;
	if (o->workers < 1 || !waited || o->waits_for_storage ||
		(double)o->workers >= cpus_each(o)) {
		return NAN;
	}
	double prepare = m->p * batch_of(o);
	double rest = (double)o->workers * o->iteration.value - prepare;
	return rest > SENDING * prepare ? rest : 0;
}

static double sending_cpu(const struct rate_model *m, const struct observation *o)
{
	double prepare = m->p * batch_of(o), rest = o->prepare_cpu * batch_of(o) - prepare;
	return o->workers < 1 || !isfinite(rest) ? NAN : rest > SENDING * prepare ? rest : 0;
}

// Share of computing in which GPUs work.
static double gpu_share(const struct observation *o)
{
	return o->gpu_busy > 0 ? fmin(1, o->gpu_busy * o->iteration.value / o->compute) : 0;
}

static double residual_of(
	const struct rate_model *m, const struct observation *observations, size_t n)
{
	double squares = 0;
	size_t known = 0;
	for (size_t i = 0; i < n; i++) {
		const struct observation *o = &observations[i];
		if (is_usable(o)) {
			struct rate_config at = rate_config_of(m, batch_of(o), (double)o->workers);
			at.cpus = isfinite(o->cpus) ? o->cpus : at.cpus;
			double rate = rate_model_predict(m, &at).rate.value;
			double seen = seen_rate(o);
			squares += pow(log(rate / seen), 2);
			known++;
		}
	}
	return known >= 3 ? sqrt(squares / (double)known) : NAN;
}

static void fit_sending(const struct observation *observations, size_t n, struct rate_model *m)
{
	double send[OBSERVATIONS_MAX], cpu[OBSERVATIONS_MAX];
	for (size_t i = 0; i < n; i++) {
		bool usable = is_usable(&observations[i]);
		send[i] = usable ? sending(m, &observations[i]) : NAN;
		cpu[i] = usable ? sending_cpu(m, &observations[i]) : NAN;
	}
	m->send = median_of(send, n);
	m->send = isfinite(m->send) ? m->send : 0;
	m->send_cpu = median_of(cpu, n);
	m->send_cpu = isfinite(m->send_cpu) ? m->send_cpu : 0;
}

// Collects what the observations say of each sample.
static void fit_samples(const struct observation *observations, size_t n, struct rate_model *m)
{
	double prepare[OBSERVATIONS_MAX], handover[OBSERVATIONS_MAX], stored[OBSERVATIONS_MAX];
	double asked[OBSERVATIONS_MAX], alone[OBSERVATIONS_MAX];
	m->storage_rate = NAN;
	for (size_t i = 0; i < n; i++) {
		const struct observation *o = &observations[i];
		bool usable = is_usable(o);
		prepare[i] = usable ? preparing(o) : NAN;
		alone[i] = o->workers == 0 ? prepare[i] : NAN;
		handover[i] = usable ? receiving(o) : NAN;
		stored[i] = o->stored;
		asked[i] = o->asked;
		m->workers_max = fmax(m->workers_max, (double)o->workers);
		m->storage_rate = fmax(m->storage_rate, storage_rate(o));
	}
	// Without workers, sending is not part of it.
	m->p = median_of(alone, n);
	m->p = isfinite(m->p) ? m->p : median_of(prepare, n);
	m->prepare_known = isfinite(m->p);
	m->p = m->prepare_known ? m->p : 0;
	fit_sending(observations, n, m);
	m->handover = median_of(handover, n);
	m->handover = isfinite(m->handover) ? m->handover : 0;
	m->epoch_samples = n > 0 ? observations[0].epoch_samples : NAN;
	m->stored = median_of(stored, n);
	m->asked = median_of(asked, n);
}

// Amdahl's share from two observations that differ in their CPUs alone:
// compute = t (1 - f + f / C). NAN: they do not tell.
static double parallel_of(const struct observation *one, const struct observation *other)
{
	double cpus = cpus_each(one), others = cpus_each(other);
	bool same = batch_of(one) == batch_of(other) && one->workers == other->workers &&
	            one->ranks == other->ranks;
	if (!same || !(cpus > 0) || !(others > 0) || cpus == others) {
		return NAN;
	}
	double ratio = one->compute / other->compute;
	double share = (1 - ratio) / ((1 - ratio) - (1 / cpus - ratio / others));
	return isfinite(share) ? fmin(1, fmax(0, share)) : NAN;
}

// One thread computes on one CPU however many there are.
static void fit_cpus(const struct observation *observations, size_t n, struct rate_model *m)
{
	double threads[OBSERVATIONS_MAX], shares[OBSERVATIONS_MAX];
	size_t n_shares = 0;
	m->cpus_min = INFINITY;
	for (size_t i = 0; i < n; i++) {
		const struct observation *o = &observations[i];
		threads[i] = is_usable(o) ? o->threads : NAN;
		m->cpus = fmax(m->cpus, o->cpus);
		m->ranks = fmax(m->ranks, ranks_of(o));
		m->cpus_min = fmin(m->cpus_min, isfinite(o->cpus) ? o->cpus : INFINITY);
		for (size_t k = 0; k < i && n_shares < OBSERVATIONS_MAX; k++) {
			bool both = is_usable(o) && is_usable(&observations[k]);
			double share = both ? parallel_of(o, &observations[k]) : NAN;
			if (isfinite(share)) {
				shares[n_shares++] = share;
			}
		}
	}
	m->threads = median_of(threads, n);
	m->parallel = median_of(shares, n_shares);
	// On one CPU, a job that divides its computing has one thread, too.
	if (!isfinite(m->parallel) && m->threads < ONE_THREAD && m->cpus > m->ranks) {
		m->parallel = 0;
	}
}

// The share of computing that the threads of the observations divided among them, if they all
// computed the same: an upper bound, since they may also have waited busily for each other.
static double parallel_at_most(const struct rate_model *m)
{
	double cpus = m->cpus / m->ranks;
	bool threads = m->threads >= ONE_THREAD && cpus > 1;
	return threads ? fmin(1, (1 - 1 / m->threads) / (1 - 1 / cpus)) : NAN;
}

// The share of computing that fewer CPUs make longer.
static double parallel_for(const struct rate_model *m, double cpus, double parallel)
{
	return isfinite(parallel) || !(cpus < m->cpus) ? parallel : parallel_at_most(m);
}

// Computing on so many CPUs over computing on all of the observed ones.
static double slower_by(const struct rate_model *m, double cpus, double parallel)
{
	parallel = parallel_for(m, cpus, parallel);
	if (!(cpus > 0) || !(m->cpus > 0) || !(parallel > 0)) {
		return 1;
	}
	double each = parallel * m->ranks; // ranks share the CPUs
	return (1 - parallel + each / cpus) / (1 - parallel + each / m->cpus);
}

// How much of a deviation from the line is more than noise: all of one that is large beside the
// interval of its run.
static double believed(double deviation, const struct observation *o)
{
	double error = (o->iteration.high - o->iteration.low) / (2 * NORMAL_95) /
	               o->iteration.value;
	error = isfinite(error) ? fmax(error, RATE_REPEATS) : RATE_UNSURE;
	return deviation * deviation / (deviation * deviation + error * error);
}

static void add_knot(struct rate_model *m, double batch, double deviation)
{
	size_t at = 0;
	while (at < m->n_knots && m->knots[at].batch < batch) {
		at++;
	}
	if (at == m->n_knots || m->knots[at].batch != batch) {
		if (m->n_knots == RATE_KNOTS_MAX) {
			return;
		}
		for (size_t i = m->n_knots; i > at; i--) {
			m->knots[i] = m->knots[i - 1];
		}
		m->knots[at] = (struct rate_knot){.batch = batch};
		m->n_knots++;
	}
	m->knots[at].sum += deviation;
	m->knots[at].runs++;
}

// What computing deviates from the line at the batch sizes that ran: caches, and algorithms that
// libraries choose by size, make it other than straight.
static void fit_knots(
	const struct observation *observations, size_t n, bool beside, struct rate_model *m)
{
	for (size_t i = 0; i < n; i++) {
		const struct observation *o = &observations[i];
		if (is_usable(o) && (!beside || o->workers > 0)) {
			bool receives = isfinite(receiving(o));
			double line = m->a + m->b * batch_of(o) + (receives ? m->handover : 0);
			double seconds = o->compute + (receives ? o->wait : 0);
			double deviation = log(seconds / slower_by(m, o->cpus, m->parallel) / line);
			add_knot(m, batch_of(o),
				isfinite(deviation) ? deviation * believed(deviation, o) : 0);
		}
	}
}

static double deviation_of(const struct rate_knot *knot)
{
	return knot->sum / knot->runs;
}

double rate_model_deviation(const struct rate_model *m, double batch)
{
	if (m->n_knots == 0) {
		return 1;
	}
	const struct rate_knot *last = &m->knots[m->n_knots - 1];
	if (!(batch > m->knots[0].batch)) {
		return exp(deviation_of(&m->knots[0]));
	}
	for (size_t i = 1; i < m->n_knots; i++) {
		const struct rate_knot *left = &m->knots[i - 1], *right = &m->knots[i];
		if (batch <= right->batch) {
			double place = log(batch / left->batch) / log(right->batch / left->batch);
			return exp(deviation_of(left) * (1 - place) + deviation_of(right) * place);
		}
	}
	return exp(deviation_of(last));
}

// Computing without workers beside it, from the runs that had none. Computing of the others is the
// model's already.
static void fit_alone(const struct observation *observations, size_t n, struct rate_model *m)
{
	double sum = 0, runs = 0;
	for (size_t i = 0; i < n; i++) {
		const struct observation *o = &observations[i];
		double line = (m->a + m->b * batch_of(o)) * rate_model_deviation(m, batch_of(o));
		double factor = log(o->compute / slower_by(m, o->cpus, m->parallel) / line);
		if (is_usable(o) && o->workers == 0 && isfinite(factor)) {
			sum += factor * believed(factor, o);
			runs++;
		}
	}
	m->alone = runs > 0 ? exp(sum / runs) : 1;
}

// Whether runs with workers, and others without, show what these take from computing. Those with
// workers must show how computing follows the batch size, or all runs have the same.
static bool shows_alone(const struct observation *observations, size_t n)
{
	double low = INFINITY, high = 0, lowest = INFINITY, highest = 0;
	bool alone = false;
	for (size_t i = 0; i < n; i++) {
		const struct observation *o = &observations[i];
		if (!is_usable(o)) {
			continue;
		}
		lowest = fmin(lowest, batch_of(o));
		highest = fmax(highest, batch_of(o));
		if (o->workers > 0) {
			low = fmin(low, batch_of(o));
			high = fmax(high, batch_of(o));
		}
		alone = alone || o->workers == 0;
	}
	return alone && high > 0 && (high > low || highest == lowest);
}

// What processes that share all CPUs lose to each other, where runs were bound by them.
static void fit_cpu_loss(const struct observation *observations, size_t n, struct rate_model *m)
{
	double losses[OBSERVATIONS_MAX];
	for (size_t i = 0; i < n; i++) {
		const struct observation *o = &observations[i];
		losses[i] = NAN;
		if (is_usable(o) && o->workers > 0) {
			struct rate_config at = rate_config_of(m, batch_of(o), (double)o->workers);
			at.cpus = isfinite(o->cpus) ? o->cpus : at.cpus;
			struct rate_prediction p = rate_model_predict(m, &at);
			double seconds = batch_of(o) / p.rate.value;
			losses[i] = p.bound == RATE_CPU ? batch_of(o) / seen_rate(o) / seconds
			                                : NAN;
		}
	}
	double loss = median_of(losses, n);
	m->cpu_loss = isfinite(loss) ? fmax(1, loss) : 1;
}

// Bytes from storage per sample.
static double stored_bytes(const struct rate_model *m, const struct rate_config *c)
{
	double bytes = isfinite(c->hit) ? (1 - c->hit) * m->asked : m->stored;
	return isfinite(bytes) ? fmax(0, bytes) : 0;
}

static void find_bounds(const struct rate_model *m, const struct rate_config *c, double parallel,
	double bounds[N_RATE_BOUNDS])
{
	double storage_rate = isfinite(c->storage_rate) ? c->storage_rate : m->storage_rate;
	double bytes = stored_bytes(m, c) * c->batch;
	double p = m->p / c->cpu_speed;
	double main_cpu = (m->c0 + m->c1 * c->batch) / c->cpu_speed;
	double send = c->workers > 0 ? m->send / c->cpu_speed : 0;
	double send_cpu = c->workers > 0 ? m->send_cpu / c->cpu_speed : 0;
	double deviation = rate_model_deviation(m, c->batch);
	double compute = (m->a + m->b * c->batch) * slower_by(m, c->cpus, parallel);
	compute *= (1 - m->gpu_share) / c->cpu_speed + m->gpu_share / c->gpu_speed;
	compute = c->workers > 0 ? compute + m->handover / c->cpu_speed : m->alone * compute;
	bounds[RATE_COMPUTE] = compute * deviation;
	bounds[RATE_PREPARE] = (send + p * c->batch) / fmax(1, c->workers);
	bounds[RATE_CPU] = c->cpus > 0 ? m->cpu_loss * m->ranks *
	                                         (main_cpu + send_cpu + p * c->batch) / c->cpus
	                               : 0;
	bounds[RATE_STORAGE] = bytes > 0 && storage_rate > 0 ? bytes / storage_rate : 0;
}

// What an epoch takes beyond its iterations, because the first batch is not ready and no batch is
// prepared during the last one: the time of a batch in the one of both stages that is the faster.
// All workers prepare their first batch at the same time.
static double filling(
	const struct rate_model *m, const struct rate_config *c, const double bounds[N_RATE_BOUNDS])
{
	double share = c->cpus > 0 ? fmax(1, c->workers * m->ranks / c->cpus) : 1;
	double prepare = bounds[RATE_PREPARE], compute = bounds[RATE_COMPUTE];
	return prepare * c->workers * share + compute - fmax(prepare, compute);
}

// What starting each worker adds: the rest of what an epoch's first batch was waited for.
static void fit_start(const struct observation *observations, size_t n, struct rate_model *m)
{
	double start[OBSERVATIONS_MAX], bounds[N_RATE_BOUNDS];
	for (size_t i = 0; i < n; i++) {
		const struct observation *o = &observations[i];
		start[i] = NAN;
		if (is_usable(o) && o->workers > 0) {
			struct rate_config at = rate_config_of(m, batch_of(o), (double)o->workers);
			at.cpus = isfinite(o->cpus) ? o->cpus : at.cpus;
			find_bounds(m, &at, m->parallel, bounds);
			double rest = o->epoch_start - filling(m, &at, bounds);
			start[i] = fmax(0, rest) / at.workers;
			m->starts = m->starts || o->epoch_start > 0;
		}
	}
	m->start = median_of(start, n);
	m->start = m->starts && isfinite(m->start) ? m->start : 0;
}

int rate_model_fit(
	const struct observation *observations, size_t n, struct rate_model *ret, struct error *e)
{
	double batch[OBSERVATIONS_MAX], compute[OBSERVATIONS_MAX], cpu[OBSERVATIONS_MAX];
	struct rate_model m = {
		.batch_min = INFINITY, .scale = 1, .ranks = 1, .alone = 1, .cpu_loss = 1};
	size_t used = 0;
	n = n < OBSERVATIONS_MAX ? n : OBSERVATIONS_MAX;
	bool alone = shows_alone(observations, n); // the line is that of the runs with workers
	size_t beside = 0; // of those
	double beside_batch[OBSERVATIONS_MAX], beside_compute[OBSERVATIONS_MAX];
	fit_cpus(observations, n, &m);
	for (size_t i = 0; i < n; i++) {
		const struct observation *o = &observations[i];
		if (is_usable(o)) {
			batch[used] = batch_of(o);
			compute[used] = o->compute / slower_by(&m, o->cpus, m.parallel);
			m.gpu_share = fmax(m.gpu_share, gpu_share(o));
			cpu[used] = own_cpu(o);
			m.batch_min = fmin(m.batch_min, batch[used]);
			m.batch_max = fmax(m.batch_max, batch[used]);
			if (!alone || o->workers > 0) {
				beside_batch[beside] = batch[used];
				beside_compute[beside++] = compute[used];
			}
			used++;
		}
	}
	if (used == 0) {
		const char *why = n > 0 ? observations[0].rate_missing : NULL;
		return error_set(e, ENODATA, "no run shows the time of an iteration: %s",
			why ? why : "samples are not counted");
	}
	fit_line(beside_batch, beside_compute, beside, &m.a, &m.b);
	fit_line(batch, cpu, used, &m.c0, &m.c1);
	m.one_batch_size = m.batch_min == m.batch_max;
	fit_samples(observations, n, &m);
	fit_start(observations, n, &m);
	fit_cpu_loss(observations, n, &m);
	m.bent = residual_of(&m, observations, n);
	m.cpu_loss = 1;
	fit_knots(observations, n, alone, &m);
	if (alone) {
		fit_alone(observations, n, &m);
	}
	fit_cpu_loss(observations, n, &m);
	m.residual = residual_of(&m, observations, n);
	*ret = m;
	return 0;
}

void rate_model_anchor(struct rate_model *m, const struct observation *at)
{
	struct rate_config config = rate_config_of(m, batch_of(at), fmax(0, (double)at->workers));
	config.cpus = isfinite(at->cpus) ? at->cpus : config.cpus;
	m->scale = 1;
	double rate = rate_model_predict(m, &config).rate.value;
	if (is_usable(at) && rate > 0) {
		m->scale = seen_rate(at) / rate;
	}
}

struct rate_config rate_config_of(const struct rate_model *m, double batch, double workers)
{
	return (struct rate_config){.batch = batch,
		.workers = workers,
		.cpus = m->cpus,
		.storage_rate = NAN,
		.hit = NAN,
		.gpu_speed = 1,
		.cpu_speed = 1};
}

static double seconds_of(
	const struct rate_model *m, const struct rate_config *c, const double bounds[N_RATE_BOUNDS])
{
	double longest = 0, sum = 0;
	for (enum rate_bound i = 0; i < N_RATE_BOUNDS; i++) {
		longest = fmax(longest, bounds[i]);
	}
	if (c->workers < 1) { // one after the other
		return bounds[RATE_COMPUTE] + bounds[RATE_PREPARE] + bounds[RATE_STORAGE];
	}
	for (enum rate_bound i = 0; i < N_RATE_BOUNDS; i++) {
		sum += pow(bounds[i] / longest, RATE_OVERLAP);
	}
	double start = m->starts ? m->start * c->workers + filling(m, c, bounds) : 0;
	double epochs = m->epoch_samples > 0 ? fmin(1, c->batch / m->epoch_samples) : 0;
	return longest * pow(sum, 1 / RATE_OVERLAP) + start * epochs;
}

static bool is_extrapolated(const struct rate_model *m, const struct rate_config *c)
{
	bool batch = c->batch < m->batch_min || c->batch > m->batch_max;
	bool faster = c->gpu_speed != 1 || c->cpu_speed != 1 || isfinite(c->storage_rate) ||
	              isfinite(c->hit);
	return batch || faster || c->cpus > m->cpus || c->cpus < m->cpus_min ||
	       (c->workers > 0 && !m->prepare_known);
}

// Half the 90 % interval, relative: grows with the distance from the observed batch sizes.
static double error_of(const struct rate_model *m, const struct rate_config *c)
{
	double beyond = fmax(c->batch / m->batch_max, m->batch_min / c->batch);
	double doublings = beyond > 1 ? log2(beyond) : 0;
	double error = RATE_MODEL_ERROR * (1 + 0.5 * doublings);
	if (m->one_batch_size && c->batch != m->batch_max) {
		error *= 1.5;
	}
	if (c->cpus > m->cpus) {
		error *= 1 + 0.5 * log2(c->cpus / m->cpus);
	}
	error = isfinite(m->residual) ? fmax(error, 2 * m->residual) : error;
	return isfinite(m->bent) ? fmax(error, m->bent)
	                         : error; // what is between the knots is a guess
}

// The rate if more CPUs divide all of computing among them, or fewer CPUs cost half of what they
// may, where it is not known how much.
static double rate_at_most(
	const struct rate_model *m, const struct rate_config *c, double otherwise)
{
	double bounds[N_RATE_BOUNDS], fewer = parallel_at_most(m) / 2;
	bool more = c->cpus > m->cpus;
	if (isfinite(m->parallel) || c->cpus == m->cpus || (!more && !isfinite(fewer))) {
		return otherwise;
	}
	find_bounds(m, c, more ? 1 - m->gpu_share : fewer, bounds);
	return fmax(otherwise, m->scale * c->batch / seconds_of(m, c, bounds));
}

struct rate_prediction rate_model_predict(
	const struct rate_model *m, const struct rate_config *config)
{
	struct rate_prediction result = {.extrapolated = is_extrapolated(m, config)};
	find_bounds(m, config, m->parallel, result.bounds);
	for (enum rate_bound i = 0; i < N_RATE_BOUNDS; i++) {
		result.bound = result.bounds[i] > result.bounds[result.bound] ? i : result.bound;
	}
	double seconds = seconds_of(m, config, result.bounds), error = error_of(m, config);
	if (seconds > 0) {
		double rate = m->scale * config->batch / seconds;
		double most = rate_at_most(m, config, rate);
		result.rate = (struct estimate){rate, rate / (1 + error), most * (1 + error)};
	} else {
		result.rate = (struct estimate){NAN, NAN, NAN};
	}
	return result;
}
