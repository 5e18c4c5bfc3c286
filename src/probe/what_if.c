// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Predicts a recorded job on another machine.

#include "probe/what_if.h"

#include <errno.h>
#include <math.h>

// Place between the two bounds of the hit ratio if the run does not tell; and by how much a place
// may be wrong.
#define PLACE 0.25
#define PLACE_ERROR 0.25
// A job that asks for fewer bytes a second reads no data from files.
#define READS_NOTHING 1e6
// A share of bytes from storage below this is noise.
#define NOTHING_STORED 0.005

static const char *const names[N_WHAT_IF] = {
	[WHAT_IF_CPUS] = "cpus",
	[WHAT_IF_MEMORY] = "memory",
	[WHAT_IF_DISK_READ] = "disk_read",
	[WHAT_IF_GPU_SPEED] = "gpu_speed",
	[WHAT_IF_CPU_SPEED] = "cpu_speed",
};

const char *what_if_name(enum what_if_kind kind)
{
	return names[kind];
}

struct what_if_values what_if_unchanged(void)
{
	return (struct what_if_values){{NAN, NAN, NAN, NAN, NAN}};
}

struct what_if_values what_if_recorded(const struct what_if *w)
{
	struct what_if_values values = what_if_unchanged();
	values.of[WHAT_IF_CPUS] = w->base.cpus;
	values.of[WHAT_IF_MEMORY] = w->base.memory_total;
	values.of[WHAT_IF_DISK_READ] = w->model.storage_rate;
	values.of[WHAT_IF_GPU_SPEED] = w->model.gpu_share > 0 ? 1 : NAN;
	values.of[WHAT_IF_CPU_SPEED] = 1;
	return values;
}

static double batch_of(const struct observation *o)
{
	return (double)(o->batch_size > 0 ? o->batch_size : o->loader_batch_size);
}

int what_if_begin(const struct observation *seen, size_t n, struct what_if *ret, struct error *e)
{
	struct what_if w = {.data = NAN, .between = NAN};
	if (n == 0 || !(seen[0].rate.value > 0) || !(batch_of(&seen[0]) > 0)) {
		const char *why = n > 0 ? seen[0].rate_missing : NULL;
		return error_set(e, ENODATA, "the rate of the job is not known: %s",
			why ? why : "the job does not count its samples");
	}
	int r = rate_model_fit(seen, n, &w.model, e);
	if (r < 0) {
		return r;
	}
	w.base = seen[0];
	rate_model_anchor(&w.model, &w.base);
	w.held = observation_held(&w.base);
	if (w.base.epoch_samples > 0) {
		bool reads = w.base.asked * w.base.rate.value >= READS_NOTHING;
		w.data = reads ? w.base.asked * w.base.epoch_samples : NAN;
		double between = w.base.epoch - w.base.epoch_samples / w.base.rate.value;
		w.between = isfinite(between) ? fmax(0, between) : NAN;
	}
	*ret = w;
	return 0;
}

// The page cache ----------------------------------------------------------------------------------

static double dropped_oldest(double share)
{
	return share >= 1 ? 1 : share <= 0 ? 0 : share + (1 - share) * log1p(-share);
}

static double hit_at(double share, double place)
{
	double low = dropped_oldest(share), high = fmin(1, fmax(0, share));
	return low + fmin(1, fmax(0, place)) * (high - low);
}

static double recorded_hit(const struct what_if *w)
{
	return w->base.asked > 0 ? fmin(1, fmax(0, 1 - w->base.stored / w->base.asked)) : NAN;
}

// Share of the data that the page cache holds beside the job.
static double cached_share(const struct what_if *w, double memory)
{
	return (memory - w->held) / w->data;
}

static struct estimate predict_hit(const struct what_if *w, double memory)
{
	double seen = recorded_hit(w), was = cached_share(w, w->base.memory_total);
	double share = cached_share(w, memory);
	double low = dropped_oldest(was), high = fmin(1, was);
	bool known = was > 0 && was < 1 && isfinite(seen);
	double place = known ? fmin(1, fmax(0, (seen - low) / (high - low))) : PLACE;
	struct estimate hit = {hit_at(share, place), hit_at(share, place - PLACE_ERROR),
		hit_at(share, place + PLACE_ERROR)};
	// The run read its data for the first time if the page cache had room for all of it.
	bool cold = was >= 1 && seen < 1;
	double most = cold || memory < w->base.memory_total ? seen : 1;
	return (struct estimate){fmin(hit.value, most), fmin(hit.low, most), fmin(hit.high, most)};
}

// Cases -------------------------------------------------------------------------------------------

static bool changes(const struct what_if_case *c, enum what_if_kind kind)
{
	return isfinite(c->values.of[kind]);
}

static void set_unknown(struct what_if_case *c, const char *why)
{
	c->at.rate = (struct estimate){NAN, NAN, NAN};
	c->note = why;
}

// Sets the hit ratio. Returns whether it is known.
static bool place_memory(const struct what_if *w, struct what_if_case *c, struct rate_config *at)
{
	double seen = recorded_hit(w);
	c->hit = (struct estimate){seen, seen, seen};
	if (!changes(c, WHAT_IF_MEMORY)) {
		return true;
	}
	double memory = c->values.of[WHAT_IF_MEMORY];
	c->too_small = memory < w->held;
	if (c->too_small) {
		set_unknown(c, "does not fit: the job uses more");
		return false;
	}
	if (!(w->base.asked * w->base.rate.value >= READS_NOTHING)) {
		c->note = "it reads no files while it iterates";
		return true;
	}
	if (memory >= w->base.memory_total && seen > 1 - NOTHING_STORED) {
		c->note = "all data already comes from the page cache";
		return true;
	}
	if (!isfinite(w->data)) {
		set_unknown(c, "the size of its data is not known: no whole epoch was recorded");
		return false;
	}
	c->hit = predict_hit(w, memory);
	at->hit = c->hit.value;
	if (fabs(c->hit.value - seen) < NOTHING_STORED) {
		c->note = seen > 1 - NOTHING_STORED ? "all data still fits in the page cache"
		                                    : "the run read its data for the first time";
	}
	return true;
}

// Sets the rate of storage. Returns whether it is known.
static bool place_storage(const struct what_if *w, struct what_if_case *c, struct rate_config *at)
{
	double seen = recorded_hit(w), from_storage = 1 - c->hit.low;
	if (changes(c, WHAT_IF_DISK_READ)) {
		at->storage_rate = c->values.of[WHAT_IF_DISK_READ];
		if (!(from_storage > NOTHING_STORED)) {
			c->note = "no bytes come from storage";
		}
	} else if (from_storage > 1 - seen + NOTHING_STORED && !isfinite(w->model.storage_rate)) {
		set_unknown(c, "the speed of storage was not observed: set --disk-read");
		return false;
	}
	return true;
}

static void place_processors(
	const struct what_if *w, struct what_if_case *c, struct rate_config *at)
{
	if (changes(c, WHAT_IF_CPUS)) {
		at->cpus = c->values.of[WHAT_IF_CPUS];
		if (at->cpus > w->model.cpus && !isfinite(w->model.parallel)) {
			c->note = "scaling to more CPUs was not observed";
		}
	}
	if (changes(c, WHAT_IF_CPU_SPEED)) {
		at->cpu_speed = c->values.of[WHAT_IF_CPU_SPEED];
	}
	if (changes(c, WHAT_IF_GPU_SPEED)) {
		at->gpu_speed = c->values.of[WHAT_IF_GPU_SPEED];
		c->note = w->model.gpu_share > 0 ? c->note : "the job used no GPU";
	}
}

// The rate with the interval of the hit ratio.
static void predict_rate(const struct what_if *w, struct what_if_case *c, struct rate_config *at)
{
	c->at = rate_model_predict(&w->model, at);
	if (isfinite(at->hit)) {
		at->hit = c->hit.low;
		c->at.rate.low = rate_model_predict(&w->model, at).rate.low;
		at->hit = c->hit.high;
		c->at.rate.high = rate_model_predict(&w->model, at).rate.high;
	}
}

static bool is_same(const struct estimate *a, const struct estimate *b)
{
	return fabs(a->value / b->value - 1) < 1e-6 && fabs(a->high / b->high - 1) < 1e-6;
}

static double epoch_at(const struct what_if *w, double rate)
{
	return w->base.epoch_samples / rate + (isfinite(w->between) ? w->between : 0);
}

struct what_if_case what_if_predict(const struct what_if *w, const struct what_if_values *values)
{
	struct what_if_case c = {.values = *values};
	struct rate_config at = rate_config_of(
		&w->model, batch_of(&w->base), fmax(0, (double)w->base.workers));
	at.cpus = w->base.cpus > 0 ? w->base.cpus : at.cpus;
	const struct rate_prediction recorded = rate_model_predict(&w->model, &at);
	place_processors(w, &c, &at);
	if (place_memory(w, &c, &at) && place_storage(w, &c, &at)) {
		predict_rate(w, &c, &at);
	}
	if (is_same(&c.at.rate, &recorded.rate)) { // as measured
		c.at.rate = w->base.rate;
		c.at.extrapolated = false;
	}
	double now = w->base.rate.value;
	c.gain = (struct estimate){
		c.at.rate.value / now, c.at.rate.low / now, c.at.rate.high / now};
	c.epoch = (struct estimate){epoch_at(w, c.at.rate.value), epoch_at(w, c.at.rate.high),
		epoch_at(w, c.at.rate.low)};
	return c;
}
