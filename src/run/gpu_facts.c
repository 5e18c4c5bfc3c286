// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which GPUs belong to the job, and their load.

#include "run/gpu_facts.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "run/analysis.h"
#include "run/names.h"
#include "run/rate.h"

// A share of time. A GPU that only draws a desktop is busy for less.
#define BUSY_AT_ALL 0.05
// A CUDA context takes some 200 MB or more; less growth of memory may be the driver's.
#define CONTEXT_BYTES 100e6
// Processes are read once a second: with fewer readings, a short use can fall between two.
#define LOOKS_ENOUGH 2u
// The highest clock is that of an idle, cool board: in long runs, healthy boards run up to a tenth
// below it. Only a larger loss is a cause.
#define CLOCK_USUAL 0.10
// A series has ended if its last reading is older than this many of its intervals.
#define ENDED_INTERVALS 10
// Shares of a link's rate.
#define LINK_IN_USE 0.3
#define LINK_NARROW 0.6
#define LINK_READINGS 3u
// A smaller share is not a cause: a monitor or a desktop.
#define SHARED_WORTH 0.05

#define REASON_IDLE 1u
#define REASON_APPLICATION 2u
#define REASON_POWER 4u
// Bits of each enum gpu_slowing. A hardware slowdown comes with its reason on newer drivers.
static const unsigned slowing_bits[N_GPU_SLOWINGS] = {
	[GPU_SLOWED_HEAT] = 32u | 64u,
	[GPU_SLOWED_BRAKE] = 128u,
	[GPU_SLOWED_HARDWARE] = 8u,
	[GPU_SLOWED_GROUP] = 16u,
};

void gpu_facts_init(struct gpu_facts *g)
{
	*g = (struct gpu_facts){.index = -1,
		.busy = NAN,
		.sm_activity = NAN,
		.occupancy = NAN,
		.tensor_activity = NAN,
		.dram_activity = NAN,
		.fp32_activity = NAN,
		.fp64_activity = NAN,
		.least_busy = NAN,
		.least_index = -1,
		.clock_lost = NAN,
		.slowed = NAN,
		.throttled = NAN,
		.capped = NAN,
		.capped_lost = NAN,
		.slowing = N_GPU_SLOWINGS,
		.set_lost = NAN,
		.set_hz = NAN,
		.highest_hz = NAN,
		.hottest = NAN,
		.power_limit = NAN,
		.others = NAN,
		.others_busy = NAN,
		.others_bytes = NAN,
		.job_busy = NAN,
		.shared_index = -1,
		.to_device_rate = NAN,
		.link_rate = NAN,
		.link_best = NAN,
		.link_busy = NAN,
		.link_index = -1,
		.memory_bytes = NAN,
		.memory_peak_bytes = NAN,
		.errors_index = -1,
		.xid_index = -1,
		.lost_index = -1,
		.lost_at_s = NAN,
		.neighbour_index = -1,
		.neighbour_busy = NAN};
	for (size_t i = 0; i < N_GPU_ERRORS; i++) {
		g->errors[i] = NAN;
	}
}

// Owners ------------------------------------------------------------------------------------------

static bool is_hidden(const struct analysis *a, int64_t gpu)
{
	const struct entity *entity = entity_find(&a->tables.entities, gpu);
	return entity && json_is_false(json_object_get(entity->attributes, "visible"));
}

static enum gpu_vendor vendor_of(const struct analysis *a, int64_t gpu)
{
	const struct entity *entity = entity_find(&a->tables.entities, gpu);
	const char *vendor = entity ? json_string_value(
					      json_object_get(entity->attributes, "vendor"))
	                            : NULL;
	return !vendor                        ? GPU_NVIDIA
	       : strcmp(vendor, "AMD") == 0   ? GPU_AMD
	       : strcmp(vendor, "Intel") == 0 ? GPU_INTEL
	                                      : GPU_NVIDIA;
}

enum use { USE_UNKNOWN, USE_NONE, USE_SOME };

// Readings of a GPU's list of processes from a time on that gave one.
static size_t looks_from(const struct analysis *a, int64_t gpu, int64_t from_us)
{
	struct series s = {0};
	size_t n = 0;
	if (!a->tables.reader || reader_series(a->tables.reader, gpu, NAME_GPU_JOB_PROCESSES,
					 from_us, INT64_MAX, &s, NULL) < 0) {
		return 0;
	}
	for (size_t i = 0; i < s.n; i++) {
		n += isfinite(s.values[i]);
	}
	series_done(&s);
	return n;
}

// Whether a list of processes was read while the job trained: it may have come to a GPU only then.
static bool looked_in_training(const struct analysis *a, int64_t gpu)
{
	return a->phases.n_iterations == 0 ||
	       looks_from(a, gpu, a->phases.iterations[0].start_ns / 1000) > 0;
}

// Whether the hooks saw a framework hold memory of a GPU.
static bool holds_memory(const struct analysis *a)
{
	return a->tables.reader &&
	       reader_run_i64(a->tables.reader, "device_memory_reserved", 0) > 0;
}

// Whether the lists of processes show that the job uses the GPU. Hooks that saw it use one prove
// which one if it has no choice.
static enum use use_of(const struct analysis *a, int64_t gpu)
{
	double processes = tables_figure(&a->tables, gpu, NAME_GPU_JOB_PROCESSES, FIGURE_MAX);
	double memory = tables_figure(&a->tables, gpu, NAME_GPU_JOB_MEMORY, FIGURE_MAX);
	// A runtime that only opens a GPU holds a little memory of it (AMD, Intel).
	if (isfinite(processes) ? processes > 0 : memory > 0) {
		return USE_SOME;
	}
	if (holds_memory(a)) {
		return a->overview.n_gpus == 1 ? USE_SOME : USE_UNKNOWN;
	}
	bool listed = isfinite(processes) || isfinite(memory);
	return listed && looked_in_training(a, gpu) ? USE_NONE : USE_UNKNOWN;
}

static bool any_in_use(const struct analysis *a)
{
	for (size_t i = 0; i < a->overview.n_gpus; i++) {
		if (use_of(a, a->overview.gpus[i].entity) == USE_SOME) {
			return true;
		}
	}
	return false;
}

enum gpu_owner gpu_owner(const struct analysis *a, size_t gpu)
{
	int64_t id = a->overview.gpus[gpu].entity;
	enum use use = use_of(a, id);
	if (use == USE_SOME) {
		return GPU_OF_JOB;
	}
	if (is_hidden(a, id)) {
		return GPU_OF_OTHERS;
	}
	return use == USE_NONE || any_in_use(a) ? GPU_SPARE : GPU_OF_JOB;
}

const char *gpu_owner_words(const struct analysis *a, size_t gpu)
{
	static const char *const names[N_GPU_OWNERS] = {
		[GPU_OF_JOB] = "uses it", [GPU_SPARE] = "may use it", [GPU_OF_OTHERS] = "may not"};
	enum gpu_owner owner = gpu_owner(a, gpu);
	bool known = use_of(a, a->overview.gpus[gpu].entity) == USE_SOME;
	return owner == GPU_OF_JOB && !known ? "not known" : names[owner];
}

// Figures of the stretch --------------------------------------------------------------------------

// Readings must cover this share of a stretch: a driver that no longer answers, or a GPU that is
// lost, says nothing about the rest.
#define COVERED 0.5

// The mean over the stretch if readings cover enough of it; else that over the run if the stretch
// lies between readings, NAN if these ended before.
static double mean_if_covered(const struct analysis *a, int64_t gpu, const char *metric,
	const struct stretch *stretch, const struct series *s, double sum, double time)
{
	double length = (double)(stretch->to_us - stretch->from_us);
	size_t known = 0, last = 0;
	for (size_t i = 0; i < s->n; i++) {
		last = isfinite(s->values[i]) ? i : last;
		known += isfinite(s->values[i]);
	}
	bool ended = known > 1 && s->t_us[last] < stretch->to_us &&
	             (double)(s->t_us[last] - stretch->from_us) < COVERED * length &&
	             stretch->to_us - s->t_us[last] >
	                     ENDED_INTERVALS * (s->t_us[last] - s->t_us[0]) / (int64_t)known;
	return ended      ? NAN
	       : time > 0 ? sum / time
	                  : tables_figure(&a->tables, gpu, metric, FIGURE_MEAN);
}

// The mean of a gauge over the stretch; each reading is valid until the next one. Without readings
// in the stretch, the mean over the run.
static double mean_over(
	const struct analysis *a, int64_t gpu, const char *metric, const struct stretch *stretch)
{
	struct series s = {0};
	double sum = 0, time = 0;
	if (!a->tables.reader || reader_series(a->tables.reader, gpu, metric, INT64_MIN,
					 stretch->to_us, &s, NULL) < 0) {
		s.n = 0;
	}
	for (size_t i = 0; i < s.n; i++) {
		int64_t from = s.t_us[i] > stretch->from_us ? s.t_us[i] : stretch->from_us;
		int64_t to = i + 1 < s.n ? s.t_us[i + 1] : stretch->to_us;
		if (isfinite(s.values[i]) && to > from) {
			sum += s.values[i] * (double)(to - from);
			time += (double)(to - from);
		}
	}
	double mean = mean_if_covered(a, gpu, metric, stretch, &s, sum, time);
	series_done(&s);
	return mean;
}

// The same of a metric of which each reading is about the time since the one before. A reading that
// is also about another time counts only if there is no other.
static double mean_since(
	const struct analysis *a, int64_t gpu, const char *metric, const struct stretch *stretch)
{
	struct series s = {0};
	double sum[2] = {0, 0},
	       time[2] = {0, 0}; // of readings that reach out of the stretch, others
	if (!a->tables.reader ||
		reader_series(a->tables.reader, gpu, metric, INT64_MIN, INT64_MAX, &s, NULL) < 0) {
		s.n = 0;
	}
	for (size_t i = 1; i < s.n && s.t_us[i - 1] < stretch->to_us; i++) {
		int64_t from = s.t_us[i - 1] > stretch->from_us ? s.t_us[i - 1] : stretch->from_us;
		int64_t to = s.t_us[i] < stretch->to_us ? s.t_us[i] : stretch->to_us;
		bool inside = s.t_us[i - 1] >= stretch->from_us && s.t_us[i] <= stretch->to_us;
		if (isfinite(s.values[i]) && to > from) {
			sum[inside] += s.values[i] * (double)(to - from);
			time[inside] += (double)(to - from);
		}
	}
	bool inside = time[true] > 0;
	double mean = mean_if_covered(a, gpu, metric, stretch, &s, sum[inside], time[inside]);
	series_done(&s);
	return mean;
}

static int index_of(const struct analysis *a, int64_t gpu)
{
	const struct entity *entity = entity_find(&a->tables.entities, gpu);
	double index = entity ? entity_number(entity, "index") : NAN;
	return index >= 0 && index < 1e6 ? (int)index : 0;
}

// Clocks ------------------------------------------------------------------------------------------

struct clocks { // over readings in which the GPU was not idle
	size_t n;
	size_t n_slowed;
	size_t n_by[N_GPU_SLOWINGS]; // of these
	size_t n_capped;
	size_t n_set;
	double lost;
	double lost_slowed;
	double lost_capped;
};

static enum gpu_slowing slowing_of(unsigned reasons)
{
	for (unsigned i = 0; i < N_GPU_SLOWINGS; i++) {
		if (reasons & slowing_bits[i]) {
			return (enum gpu_slowing)i;
		}
	}
	return N_GPU_SLOWINGS;
}

static void add_clock(
	struct clocks *c, unsigned reasons, double clock, double highest, double application)
{
	double asked = (reasons & REASON_APPLICATION) && application > 0 && application < highest
	                       ? application
	                       : highest;
	double lost = fmin(1, fmax(0, 1 - clock / asked));
	if (reasons & REASON_IDLE) {
		return;
	}
	enum gpu_slowing slowing = slowing_of(reasons);
	c->n++;
	c->lost += lost;
	c->n_set += (reasons & REASON_APPLICATION) && asked < highest;
	if (slowing < N_GPU_SLOWINGS) {
		c->n_slowed++;
		c->n_by[slowing]++;
		c->lost_slowed += lost;
	} else if (reasons & REASON_POWER) {
		c->n_capped++;
		c->lost_capped += lost;
	}
}

// Clock and reasons are read together; a pair with one missing is skipped. If the clock is not
// known for the whole run, the reasons are counted without their cost.
static void read_clocks(const struct analysis *a, const struct entity *gpu,
	const struct stretch *stretch, struct clocks *ret)
{
	struct series clock = {0}, reasons = {0};
	double highest = entity_number(gpu, "clock_sm_max_hz");
	double application = entity_number(gpu, "clock_sm_application_hz");
	bool read = reader_series(a->tables.reader, gpu->id, NAME_GPU_CLOCK, stretch->from_us,
			    stretch->to_us, &clock, NULL) == 0 &&
	            reader_series(a->tables.reader, gpu->id, NAME_GPU_THROTTLE, stretch->from_us,
			    stretch->to_us, &reasons, NULL) == 0;
	bool known = isfinite(tables_figure(&a->tables, gpu->id, NAME_GPU_CLOCK, FIGURE_MEAN));
	for (size_t i = 0, j = 0; read && i < reasons.n; i++) {
		while (j < clock.n && clock.t_us[j] < reasons.t_us[i]) {
			j++;
		}
		bool together = j < clock.n && clock.t_us[j] == reasons.t_us[i];
		double hertz = together ? clock.values[j] : NAN;
		bool bits = reasons.values[i] >= 0 && reasons.values[i] < (double)UINT32_MAX;
		if (bits && (isfinite(hertz) || !known)) {
			add_clock(ret, (unsigned)reasons.values[i], hertz, highest, application);
		}
	}
	series_done(&clock);
	series_done(&reasons);
}

static void fill_clocks(
	const struct analysis *a, const struct stretch *stretch, struct gpu_facts *g)
{
	const struct entity *gpu = entity_find(&a->tables.entities, g->entity);
	struct clocks c = {0};
	if (!a->tables.reader || !gpu) {
		return;
	}
	read_clocks(a, gpu, stretch, &c);
	if (c.n == 0) {
		return;
	}
	double n = (double)c.n;
	bool known = isfinite(entity_number(gpu, "clock_sm_max_hz")) &&
	             isfinite(tables_figure(&a->tables, g->entity, NAME_GPU_CLOCK, FIGURE_MEAN));
	g->slowed = (double)c.n_slowed / n;
	g->capped = (double)c.n_capped / n;
	g->clock_lost = known ? c.lost / n : NAN;
	g->throttled = known ? c.lost_slowed / n : NAN;
	g->capped_lost = known && c.n_capped > 0 ? c.lost_capped / (double)c.n_capped : NAN;
	for (unsigned i = 0; i < N_GPU_SLOWINGS; i++) {
		bool more = g->slowing == N_GPU_SLOWINGS || c.n_by[i] > c.n_by[g->slowing];
		g->slowing = c.n_by[i] > 0 && more ? (enum gpu_slowing)i : g->slowing;
	}
	g->highest_hz = entity_number(gpu, "clock_sm_max_hz");
	g->set_hz = entity_number(gpu, "clock_sm_application_hz");
	g->set_lost = (double)c.n_set / n * (1 - g->set_hz / g->highest_hz);
	g->hottest = tables_figure(&a->tables, g->entity, NAME_GPU_TEMPERATURE, FIGURE_MAX);
	g->power_limit = tables_figure(&a->tables, g->entity, NAME_GPU_POWER_LIMIT, FIGURE_MAX);
}

const char *gpu_slowing_words(enum gpu_slowing slowing)
{
	static const char *const words[N_GPU_SLOWINGS + 1] = {
		[GPU_SLOWED_HEAT] = "heat",
		[GPU_SLOWED_BRAKE] = "a power brake",
		[GPU_SLOWED_HARDWARE] = "a hardware slowdown",
		[GPU_SLOWED_GROUP] = "a slower GPU of its group (sync boost)",
		[N_GPU_SLOWINGS] = "heat or hardware",
	};
	return words[slowing];
}

double gpu_facts_throttled(const struct gpu_facts *g)
{
	if (!isfinite(g->throttled)) {
		return g->slowed > 0 ? NAN : 0;
	}
	// The loss for these reasons, averaged over busy time, must exceed the usual variation.
	bool considerable = g->throttled >= CLOCK_USUAL;
	return considerable ? g->throttled * (isfinite(g->busy) ? g->busy : 1) : 0;
}

// Errors ------------------------------------------------------------------------------------------

static const char *const error_names[N_GPU_ERRORS] = {
	[GPU_ERROR_UNCORRECTED] = NAME_GPU_UNCORRECTED,
	[GPU_ERROR_CORRECTED] = NAME_GPU_CORRECTED,
	[GPU_ERROR_PAGES] = NAME_GPU_PAGES,
	[GPU_ERROR_ROWS] = NAME_GPU_ROWS,
	[GPU_ERROR_REPLAYS] = NAME_GPU_REPLAYS,
	[GPU_ERROR_XIDS] = NAME_GPU_XIDS,
};

static void add_errors(const struct analysis *a, int64_t gpu, struct gpu_facts *g)
{
	enum gpu_error worst = N_GPU_ERRORS;
	for (size_t i = 0; i < N_GPU_ERRORS; i++) {
		double n = tables_figure(&a->tables, gpu, error_names[i], FIGURE_TOTAL);
		bool first = !(g->errors[i] > 0);
		if (n > 0 && first && worst == N_GPU_ERRORS) {
			worst = (enum gpu_error)i;
		}
		if (isfinite(n)) {
			g->errors[i] = n + (isfinite(g->errors[i]) ? g->errors[i] : 0);
		}
	}
	bool worse = true; // than the errors of the GPUs before
	for (size_t i = 0; i < (size_t)worst && i < N_GPU_ERRORS; i++) {
		worse = worse && !(g->errors[i] > 0);
	}
	if (worst < N_GPU_ERRORS && worse) {
		g->errors_index = index_of(a, gpu);
	}
}

// Hardware faults only: Xids that programs cause (13, 31, 43, 45, ...) are excluded.
static bool is_fault(uint64_t xid)
{
	static const uint64_t faults[] = {48, 64, 74, 79, 94, 95, 119, 120};
	for (size_t i = 0; i < ARRAY_LENGTH(faults); i++) {
		if (faults[i] == xid) {
			return true;
		}
	}
	return false;
}

// The Xid in "GPU 0 (H100): Xid 79, ..."
static uint64_t xid_of(const char *text)
{
	static const char word[] = ": Xid ";
	const char *at = strstr(text, word);
	uint64_t xid = 0;
	if (at) {
		struct cursor rest = cursor_of(at + strlen(word), strlen(at) - strlen(word));
		xid = cursor_u64(&rest, &xid) ? xid : 0;
	}
	return xid;
}

static void add_events(const struct analysis *a, int64_t gpu, struct gpu_facts *g)
{
	for (size_t i = 0; i < a->tables.events.n; i++) {
		const struct event_row *event = &a->tables.events.items[i];
		if (event->entity != gpu) {
			continue;
		}
		if (strcmp(event->kind, "gpu_lost") == 0) {
			g->lost_index = index_of(a, gpu);
			g->lost_at_s = event->t_s;
		} else if (strcmp(event->kind, "gpu_xid") == 0 && g->xid == 0 &&
			   is_fault(xid_of(event->text))) {
			g->xid = xid_of(event->text);
			g->xid_index = index_of(a, gpu);
		}
	}
}

bool gpu_facts_fault(const struct gpu_facts *g)
{
	return g->errors[GPU_ERROR_UNCORRECTED] > 0 || g->xid != 0 || g->lost_index >= 0;
}

// One GPU -----------------------------------------------------------------------------------------

// Of Intel's GPUs, utilization is an upper bound; what the job had of one is exact.
static double busy_of(
	const struct analysis *a, const struct stretch *stretch, const struct gpu_figures *gpu)
{
	double busy = mean_since(a, gpu->entity, NAME_GPU_BUSY, stretch);
	busy = isfinite(busy) ? busy : gpu->busy;
	double own = vendor_of(a, gpu->entity) == GPU_INTEL
	                     ? mean_over(a, gpu->entity, NAME_GPU_JOB_BUSY, stretch)
	                     : NAN;
	return fmin(busy, own); // of the known ones
}

// Sets the figures of the busiest GPU of the job.
static void add_busy(const struct analysis *a, const struct stretch *stretch,
	const struct gpu_figures *gpu, struct gpu_facts *g)
{
	double busy = busy_of(a, stretch, gpu);
	const struct entity *entity = entity_find(&a->tables.entities, gpu->entity);
	if (!(busy >= g->least_busy)) {
		g->least_busy = isfinite(busy) ? busy : g->least_busy;
		g->least_index = isfinite(busy) ? index_of(a, gpu->entity) : g->least_index;
	}
	if (g->index >= 0 && !(busy > g->busy) && !(isfinite(busy) && !isfinite(g->busy))) {
		return;
	}
	g->index = index_of(a, gpu->entity);
	g->entity = gpu->entity;
	g->divided = entity && entity_flag(entity, "mig");
	g->vendor = vendor_of(a, gpu->entity);
	g->busy = busy;
	g->sm_activity = mean_since(a, gpu->entity, NAME_GPU_SM, stretch);
	g->occupancy = mean_since(a, gpu->entity, NAME_GPU_OCCUPANCY, stretch);
	g->tensor_activity = mean_since(a, gpu->entity, NAME_GPU_TENSOR, stretch);
	g->dram_activity = mean_since(a, gpu->entity, NAME_GPU_DRAM, stretch);
	g->fp32_activity = mean_since(a, gpu->entity, NAME_GPU_FP32, stretch);
	g->fp64_activity = mean_since(a, gpu->entity, NAME_GPU_FP64, stretch);
}

static void add_sharing(
	const struct analysis *a, const struct stretch *stretch, int64_t gpu, struct gpu_facts *g)
{
	double others = mean_over(a, gpu, NAME_GPU_OTHERS, stretch);
	double busy = mean_over(a, gpu, NAME_GPU_OTHERS_BUSY, stretch);
	bool more = !isfinite(g->others) || busy > g->others_busy ||
	            (!isfinite(g->others_busy) && others > g->others);
	if (!isfinite(others) || !more) {
		return;
	}
	g->others = others;
	g->others_busy = busy;
	g->others_bytes = mean_over(a, gpu, NAME_GPU_OTHERS_MEMORY, stretch);
	g->job_busy = mean_over(a, gpu, NAME_GPU_JOB_BUSY, stretch);
	g->shared_index = others >= 0.5 ? index_of(a, gpu) : -1;
}

double gpu_facts_shared(const struct gpu_facts *g)
{
	if (g->shared_index < 0) {
		return isfinite(g->others) ? 0 : NAN;
	}
	return !isfinite(g->others_busy)        ? NAN
	       : g->others_busy >= SHARED_WORTH ? g->others_busy
	                                        : 0;
}

static double link_bytes(double generation, double width)
{
	static const double lane_bytes[] = {0, 250e6, 500e6, 985e6, 1969e6, 3938e6, 7563e6};
	return generation >= 1 && generation < (double)ARRAY_LENGTH(lane_bytes) && width >= 1
	               ? width * lane_bytes[(size_t)generation]
	               : NAN;
}

bool gpu_facts_link_narrow(const struct gpu_facts *g)
{
	// An idle GPU lowers its link by itself.
	bool in_use = g->to_device_rate >= LINK_IN_USE * g->link_rate ||
	              g->link_busy >= LINK_IN_USE;
	return in_use && g->link_rate <= LINK_NARROW * g->link_best;
}

// The largest value of a state within the stretch; NAN: it was read too rarely to be the largest.
static double most_of(
	const struct analysis *a, int64_t gpu, const char *metric, const struct stretch *stretch)
{
	struct series s = {0};
	double most = NAN;
	size_t n = 0;
	if (!a->tables.reader || reader_series(a->tables.reader, gpu, metric, stretch->from_us,
					 stretch->to_us, &s, NULL) < 0) {
		return NAN;
	}
	for (size_t i = 0; i < s.n; i++) {
		most = fmax(most, s.values[i]); // fmax ignores NAN
		n += isfinite(s.values[i]);
	}
	series_done(&s);
	return n >= LINK_READINGS ? most : NAN;
}

// The link as fast as it was seen: it is slower while the GPU is idle.
static void add_link(const struct analysis *a, const struct stretch *stretch,
	const struct gpu_figures *gpu, struct gpu_facts *g)
{
	const struct entity *entity = entity_find(&a->tables.entities, gpu->entity);
	bool faster = gpu->to_device_bytes_per_s > g->to_device_rate;
	if (!faster && isfinite(g->to_device_rate)) {
		return;
	}
	double generation = most_of(a, gpu->entity, NAME_GPU_LINK_GENERATION, stretch);
	double width = most_of(a, gpu->entity, NAME_GPU_LINK_WIDTH, stretch);
	g->to_device_rate = gpu->to_device_bytes_per_s;
	g->link_busy = mean_since(a, gpu->entity, NAME_GPU_BUSY, stretch);
	g->link_best = entity ? link_bytes(entity_number(entity, "pcie_generation_max"),
					entity_number(entity, "pcie_width_max"))
	                      : NAN;
	g->link_rate = fmin(link_bytes(generation, width), g->link_best); // fmin ignores NAN
	g->link_generation = generation >= 1 && generation < 100 ? (unsigned)generation : 0;
	g->link_width = width >= 1 && width < 100 ? (unsigned)width : 0;
	g->link_index = index_of(a, gpu->entity);
}

static void add_memory(const struct gpu_figures *gpu, struct gpu_facts *g)
{
	if (!(g->memory_peak_bytes >= gpu->memory_peak_bytes)) {
		g->memory_peak_bytes = gpu->memory_peak_bytes;
		g->memory_bytes = gpu->memory_bytes;
	}
}

// Whether the GPU's memory filled while the job ran. Used if the owners of the processes are not
// known.
static bool filled(const struct analysis *a, int64_t gpu)
{
	struct series s = {0};
	double first = NAN, most = NAN;
	if (!a->tables.reader || reader_series(a->tables.reader, gpu, NAME_GPU_MEMORY, INT64_MIN,
					 INT64_MAX, &s, NULL) < 0) {
		return false;
	}
	for (size_t i = 0; i < s.n; i++) {
		first = isfinite(first) ? first : s.values[i];
		most = fmax(most, s.values[i]);
	}
	series_done(&s);
	return most - first >= CONTEXT_BYTES;
}

static void add_neighbour(const struct analysis *a, const struct stretch *stretch,
	const struct gpu_figures *gpu, struct gpu_facts *g)
{
	double busy = mean_since(a, gpu->entity, NAME_GPU_BUSY, stretch);
	g->n_neighbours += busy >= BUSY_AT_ALL;
	if (busy >= BUSY_AT_ALL && !(busy <= g->neighbour_busy)) {
		g->neighbour_busy = busy;
		g->neighbour_index = index_of(a, gpu->entity);
	}
}

// Adds a GPU that the job uses or may be using.
static void add_own(const struct analysis *a, const struct stretch *stretch,
	const struct gpu_figures *gpu, struct gpu_facts *g)
{
	enum use use = use_of(a, gpu->entity);
	g->n_used += use == USE_SOME;
	g->used = g->used || use == USE_SOME || gpu->busy >= BUSY_AT_ALL || filled(a, gpu->entity);
	add_busy(a, stretch, gpu, g);
	add_sharing(a, stretch, gpu->entity, g);
	add_link(a, stretch, gpu, g);
	add_memory(gpu, g);
	add_errors(a, gpu->entity, g);
	add_events(a, gpu->entity, g);
}

void gpu_facts_fill(const struct analysis *a, const struct stretch *stretch, struct gpu_facts *ret)
{
	const struct overview *o = &a->overview;
	bool enough = true;
	gpu_facts_init(ret);
	ret->known = true;
	ret->held = holds_memory(a);
	for (size_t i = 0; i < o->n_gpus; i++) {
		enum gpu_owner owner = gpu_owner(a, i);
		ret->n += owner != GPU_OF_OTHERS;
		ret->n_hidden += owner == GPU_OF_OTHERS;
		if (owner != GPU_OF_OTHERS) {
			ret->known = ret->known && use_of(a, o->gpus[i].entity) != USE_UNKNOWN;
			enough = enough &&
			         looks_from(a, o->gpus[i].entity, INT64_MIN) >= LOOKS_ENOUGH;
		}
		if (owner == GPU_OF_JOB) {
			add_own(a, stretch, &o->gpus[i], ret);
		} else {
			add_neighbour(a, stretch, &o->gpus[i], ret);
		}
	}
	for (size_t i = 0; i < o->n_gpus && ret->index < 0; i++) {
		enum gpu_vendor vendor = vendor_of(a, o->gpus[i].entity);
		ret->vendor = i == 0 || ret->vendor == vendor ? vendor : GPU_NVIDIA;
	}
	fill_clocks(a, stretch, ret);
	ret->unused = ret->n > 0 && ret->known && enough && ret->n_used == 0;
}
