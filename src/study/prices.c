// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Price lists, and what a run cost by them.

#include "study/prices.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/text.h"
#include "study/kept_advice.h"

#define SECONDS_PER_HOUR 3600.0
#define HOURS_PER_YEAR 8766.0 // 365.25 days
#define JOULES_PER_KWH 3.6e6
#define BYTES_PER_GB 1e9
#define BYTES_PER_GIB 0x1p30
#define NUMBER_MAX 1e12
#define GLOB_BYTES_MAX 200

// Reading -----------------------------------------------------------------------------------------

struct list_reading {
	struct prices *prices;
	const struct yaml *yaml;
	struct error *e;
};

static bool is_scalar(const struct yaml_node *node)
{
	return node && node->kind == YAML_SCALAR && !yaml_is_null(node);
}

// Only decimal digits: strtod alone would take "nan", "inf" and "0x10".
static bool parse_number(const char *text, double *ret)
{
	char *end;
	if (!*text || text[strspn(text, "0123456789.eE+-")]) {
		return false;
	}
	*ret = strtod(text, &end);
	return end != text && !*end && isfinite(*ret);
}

struct number_key {
	const char *name;
	size_t offset; // in struct price_entry
	double factor; // to the unit of the field
	double least, most; // as written
	bool bought; // part of what a bought machine costs; else of a rented one
};

#define FIELD(name) offsetof(struct price_entry, name)
static const struct number_key number_keys[] = {
	{"hour", FIELD(hour), 1, 0, NUMBER_MAX, false},
	{"cpu_hour", FIELD(cpu_hour), 1, 0, NUMBER_MAX, false},
	{"gpu_hour", FIELD(gpu_hour), 1, 0, NUMBER_MAX, false},
	{"gb_hour", FIELD(gb_hour), 1, 0, NUMBER_MAX, false},
	{"gib_hour", FIELD(gb_hour), BYTES_PER_GB / BYTES_PER_GIB, 0, NUMBER_MAX, false},
	{"price", FIELD(price), 1, 0, NUMBER_MAX, true},
	{"years", FIELD(years), 1, 0.001, 100, true},
	{"utilisation", FIELD(utilisation), 1, 0.0001, 1, true},
	{"watts", FIELD(watts), 1, 0, 1e6, true},
	{"kwh", FIELD(kwh), 1, 0, NUMBER_MAX, true},
};
#undef FIELD

static const char *const other_keys[] = {"host", "gpu", "charge"};

static double *field_of(struct price_entry *entry, const struct number_key *key)
{
	return (void *)((char *)entry + key->offset);
}

static int unknown_key(const struct list_reading *r, const struct yaml_node *key,
	const struct suggestion_of_word *nearest)
{
	_cleanup_text_ struct text shown = {0};
	yaml_append(&shown, key);
	return yaml_error(r->yaml, key, r->e, "", "expected a valid key, found '%s'%s%s%s",
		shown.data ? shown.data : "", nearest->word ? "; did you mean '" : "",
		nearest->word ? nearest->word : "", nearest->word ? "'?" : "");
}

// An empty value has no place in the file, so its key is named.
static int check_value(
	const struct list_reading *r, const struct yaml_node *key, const struct yaml_node *value)
{
	_cleanup_text_ struct text shown = {0};
	yaml_append(&shown, key);
	return !yaml_is_null(value) ? 0
	                            : yaml_error(r->yaml, key, r->e, shown.data ? shown.data : "",
					      "expected a value, found nothing");
}

static int read_number(const struct list_reading *r, const struct number_key *key,
	const struct yaml_node *node, struct price_entry *entry)
{
	double number = NAN;
	if (!is_scalar(node) || !parse_number(node->text, &number) || number < key->least ||
		number > key->most) {
		return yaml_wrong(r->yaml, node, r->e, key->name, "a number from %g to %g",
			key->least, key->most);
	}
	*field_of(entry, key) = number * key->factor;
	return 0;
}

static int read_glob(const struct list_reading *r, const char *name, const struct yaml_node *node,
	const char **ret)
{
	if (!is_scalar(node) || !*node->text || strlen(node->text) > GLOB_BYTES_MAX) {
		return yaml_wrong(r->yaml, node, r->e, name,
			"a name with * and ?, of at most %d bytes", GLOB_BYTES_MAX);
	}
	*ret = node->text;
	return 0;
}

static int read_charge(
	const struct list_reading *r, const struct yaml_node *node, enum price_charge *ret)
{
	bool allocated = is_scalar(node) && strcmp(node->text, "allocated") == 0;
	if (!allocated && !(is_scalar(node) && strcmp(node->text, "machine") == 0)) {
		return yaml_wrong(r->yaml, node, r->e, "charge", "machine or allocated");
	}
	*ret = allocated ? CHARGE_ALLOCATED : CHARGE_MACHINE;
	return 0;
}

static int read_pair(const struct list_reading *r, const struct yaml_node *key,
	const struct yaml_node *value, struct price_entry *entry)
{
	struct suggestion_of_word nearest = SUGGEST_NONE;
	int result = check_value(r, key, value);
	for (size_t i = 0; i < ARRAY_LENGTH(number_keys) && result == 0; i++) {
		if (strcmp(key->text, number_keys[i].name) == 0) {
			return read_number(r, &number_keys[i], value, entry);
		}
		suggest_consider(&nearest, key->text, number_keys[i].name);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(other_keys); i++) {
		suggest_consider(&nearest, key->text, other_keys[i]);
	}
	return result < 0                         ? result
	       : strcmp(key->text, "host") == 0   ? read_glob(r, "host", value, &entry->host)
	       : strcmp(key->text, "gpu") == 0    ? read_glob(r, "gpu", value, &entry->gpu)
	       : strcmp(key->text, "charge") == 0 ? read_charge(r, value, &entry->charge)
	                                          : unknown_key(r, key, &nearest);
}

// Whether the keys of an entry belong together.
static int check_entry(
	const struct list_reading *r, const struct yaml_node *node, struct price_entry *entry)
{
	const char *rented = NULL, *bought = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(number_keys); i++) {
		const struct number_key *key = &number_keys[i];
		const char **kind = key->bought ? &bought : &rented;
		*kind = !*kind && yaml_get(node, key->name) ? key->name : *kind;
	}
	if (rented && bought) {
		return yaml_error(r->yaml, node, r->e, "",
			"expected a rented machine (hour, cpu_hour, ...) or a bought one (price, "
			"watts, ...), found %s and %s",
			rented, bought);
	}
	if (yaml_get(node, "gb_hour") && yaml_get(node, "gib_hour")) {
		return yaml_error(r->yaml, node, r->e, "gb_hour",
			"expected a price of GB (10^9 bytes) or of GiB, found both");
	}
	if (yaml_get(node, "charge") && !bought && !yaml_get(node, "hour")) {
		return yaml_error(r->yaml, node, r->e, "charge",
			"expected with the price of a machine (hour, price, kwh, ...), found only "
			"prices of what is allocated");
	}
	const char *lacking = !rented && !bought                                        ? "a price"
	                      : isfinite(entry->price) && !isfinite(entry->years)       ? "years"
	                      : isfinite(entry->years) && !isfinite(entry->price)       ? "a price"
	                      : isfinite(entry->utilisation) && !isfinite(entry->price) ? "a price"
	                      : isfinite(entry->watts) && !isfinite(entry->kwh)         ? "kwh"
	                                                                                : NULL;
	if (lacking) {
		return yaml_error(r->yaml, node, r->e, "",
			"expected %s in this entry, found none%s", lacking,
			strcmp(lacking, "a price") == 0 ? " (hour, cpu_hour, price, kwh, ...)"
							: "");
	}
	entry->utilisation = isfinite(entry->utilisation) ? entry->utilisation : 1;
	return 0;
}

static int read_entry(
	const struct list_reading *r, const struct yaml_node *node, struct price_entry *ret)
{
	if (node->kind != YAML_MAP) {
		return yaml_wrong(r->yaml, node, r->e, "machines", "a map for each machine");
	}
	*ret = (struct price_entry){.line = node->line};
	for (size_t i = 0; i < ARRAY_LENGTH(number_keys); i++) {
		*field_of(ret, &number_keys[i]) = NAN;
	}
	for (size_t i = 0; i + 1 < node->n; i += 2) {
		int result = read_pair(r, node->items[i], node->items[i + 1], ret);
		if (result < 0) {
			return result;
		}
	}
	return check_entry(r, node, ret);
}

static int read_entries(const struct list_reading *r, const struct yaml_node *list)
{
	if (list->kind != YAML_LIST || list->n == 0 || list->n > PRICES_ENTRIES_MAX) {
		return yaml_wrong(r->yaml, list, r->e, "machines", "a list of 1 to %d machines",
			PRICES_ENTRIES_MAX);
	}
	r->prices->entries = calloc(list->n, sizeof(*r->prices->entries));
	if (!r->prices->entries) {
		return error_errno(r->e, ENOMEM, "%s", r->yaml->name);
	}
	for (; r->prices->n < list->n; r->prices->n++) {
		int result = read_entry(
			r, list->items[r->prices->n], &r->prices->entries[r->prices->n]);
		if (result < 0) {
			return result;
		}
	}
	return 0;
}

// A word such as USD: it is printed beside each amount.
static int read_currency(const struct list_reading *r, const struct yaml_node *node)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
	if (!is_scalar(node) || !*node->text || strlen(node->text) > PRICES_CURRENCY_MAX ||
		node->text[strspn(node->text, letters)]) {
		return yaml_wrong(r->yaml, node, r->e, "currency",
			"a word of at most %d letters such as USD", PRICES_CURRENCY_MAX);
	}
	r->prices->currency = node->text;
	return 0;
}

static int read_list(const struct list_reading *r)
{
	static const char *const keys[] = {"currency", "machines"};
	const struct yaml_node *root = r->yaml->root;
	if (!root || root->kind != YAML_MAP) {
		return yaml_wrong(r->yaml, root, r->e, "", "a map with currency and machines");
	}
	for (size_t i = 0; i + 1 < root->n; i += 2) {
		struct suggestion_of_word nearest = SUGGEST_NONE;
		for (size_t k = 0; k < ARRAY_LENGTH(keys); k++) {
			suggest_consider(&nearest, root->items[i]->text, keys[k]);
		}
		if (!nearest.word || nearest.distance > 0) {
			return unknown_key(r, root->items[i], &nearest);
		}
		int empty = check_value(r, root->items[i], root->items[i + 1]);
		if (empty < 0) {
			return empty;
		}
	}
	for (size_t k = 0; k < ARRAY_LENGTH(keys); k++) {
		if (!yaml_get(root, keys[k])) {
			return yaml_error(r->yaml, root, r->e, keys[k],
				"expected in a price list, found none");
		}
	}
	int result = read_currency(r, yaml_get(root, "currency"));
	return result < 0 ? result : read_entries(r, yaml_get(root, "machines"));
}

int prices_parse(
	const char *path, const char *data, size_t size, struct prices *ret, struct error *e)
{
	struct error ignored = {0};
	struct prices p = {.path = strdup(path)};
	struct list_reading r = {&p, &p.yaml, e ? e : &ignored};
	int result = p.path ? yaml_parse(path, data, size, &p.yaml, r.e)
	                    : error_errno(r.e, ENOMEM, "%s", path);
	result = result < 0 ? result : read_list(&r);
	if (result < 0) {
		prices_done(&p);
		return result;
	}
	*ret = p;
	return 0;
}

// The file may be anything: a FIFO would block, /dev/zero has no end.
static int read_file(int fd, const char *path, struct text *ret, struct error *e)
{
	char buffer[8192];
	struct stat status;
	ssize_t n = 0;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		return error_set(
			e, EINVAL, "%s: expected a price list, found no regular file", path);
	}
	while (ret->length <= YAML_MAX_BYTES && (n = read(fd, buffer, sizeof(buffer))) > 0) {
		text_append(ret, buffer, (size_t)n);
	}
	return n < 0         ? error_errno(e, errno, "%s", path)
	       : ret->failed ? error_errno(e, ENOMEM, "%s", path)
	                     : 0;
}

int prices_open(const char *path, struct prices *ret, struct error *e)
{
	_cleanup_text_ struct text data = {0};
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		return error_errno(e, errno, "%s", path);
	}
	int r = read_file(fd, path, &data, e);
	return r < 0 ? r : prices_parse(path, data.data ? data.data : "", data.length, ret, e);
}

void prices_done(struct prices *p)
{
	free(p->entries);
	free(p->path);
	yaml_done(&p->yaml);
	*p = (struct prices){0};
}

// Cost --------------------------------------------------------------------------------------------
//
// A cost is a sum of parts. If a part is not known, neither is the sum.

struct sum {
	double value;
	const char *why; // why it is not known; NULL: it is
};

static void add(struct sum *s, double value, const char *why)
{
	if (!s->why && !isfinite(value)) {
		s->why = why ? why : "not known";
	}
	s->value += value;
}

static bool matches(const char *glob, const char *name)
{
	return !glob || (*name && fnmatch(glob, name, FNM_CASEFOLD) == 0);
}

// "none": the machine is known to have no GPU.
static bool matches_gpu(const char *glob, const struct digest *d)
{
	bool none = glob && strcasecmp(glob, "none") == 0;
	return none ? d->machine[ALLOCATED_GPUS] == 0 : matches(glob, d->gpu);
}

const struct price_entry *prices_entry(const struct prices *p, const struct digest *d)
{
	for (size_t i = 0; i < p->n; i++) {
		if (matches(p->entries[i].host, d->host) && matches_gpu(p->entries[i].gpu, d)) {
			return &p->entries[i];
		}
	}
	return NULL;
}

// The measures of a resource that the job was allocated.
struct resource {
	enum allocated_kind kind;
	enum measure_id amount, held, idle;
};

static const struct resource resources[N_ALLOCATED] = {
	{ALLOCATED_CPUS, MEASURE_CPUS_ALLOCATED, MEASURE_CPU_HOURS_ALLOCATED,
		MEASURE_IDLE_CPU_HOURS},
	{ALLOCATED_MEMORY, MEASURE_MEMORY_ALLOCATED, MEASURE_GB_HOURS_ALLOCATED,
		MEASURE_IDLE_GB_HOURS},
	{ALLOCATED_GPUS, MEASURE_GPUS_ALLOCATED, MEASURE_GPU_HOURS_ALLOCATED,
		MEASURE_IDLE_GPU_HOURS},
};

// The share of the machine that is charged.
static struct sum charged_share(const struct price_entry *entry, const struct digest *d)
{
	struct sum share = {.value = 1 / d->ranks};
	if (entry->charge == CHARGE_MACHINE) {
		return share;
	}
	share.value = 0;
	for (size_t i = 0; i < N_ALLOCATED; i++) {
		enum measure_id amount = resources[i].amount;
		double machine = d->machine[i];
		if (machine == 0) {
			continue;
		}
		if (!isfinite(d->measures[amount]) || !isfinite(machine)) {
			return (struct sum){NAN, d->reasons[amount]
							 ? d->reasons[amount]
							 : "the size of the machine is not known"};
		}
		share.value = fmax(share.value, fmin(1, d->measures[amount] / machine));
	}
	return share;
}

// The price of the whole machine for an hour, without measured energy.
static double machine_hour(const struct price_entry *entry)
{
	double bought = entry->price / (entry->years * HOURS_PER_YEAR * entry->utilisation);
	double power = entry->watts / 1000 * entry->kwh;
	return (isfinite(entry->hour) ? entry->hour : 0) + (isfinite(bought) ? bought : 0) +
	       (isfinite(power) ? power : 0);
}

static double resource_hour(const struct price_entry *entry, enum allocated_kind kind)
{
	return kind == ALLOCATED_CPUS     ? entry->cpu_hour
	       : kind == ALLOCATED_MEMORY ? entry->gb_hour
	                                  : entry->gpu_hour;
}

static bool has_measured_energy(const struct price_entry *entry)
{
	return isfinite(entry->kwh) && !isfinite(entry->watts);
}

// Of the machine, its share; the energy of GPUs is that of the job's own. Of a run that was
// recorded in part, the rest is not known.
static struct sum energy(const struct digest *d, struct sum share)
{
	double all = d->measures[MEASURE_ENERGY], host = d->measures[MEASURE_HOST_ENERGY];
	struct sum joules = {.value = NAN};
	if (d->partial && *d->partial) {
		joules.why = d->partial;
	} else {
		add(&joules, all, d->reasons[MEASURE_ENERGY]);
		add(&joules, host, d->reasons[MEASURE_HOST_ENERGY]);
		add(&joules, share.value, share.why);
		joules.value = share.value * host + (all - host);
	}
	return joules;
}

static struct sum cost(const struct price_entry *entry, const struct digest *d)
{
	struct sum total = {0}, share = charged_share(entry, d);
	double machine = machine_hour(entry);
	if (machine > 0) {
		add(&total,
			machine * share.value * d->measures[MEASURE_DURATION] / SECONDS_PER_HOUR,
			share.why ? share.why : d->reasons[MEASURE_DURATION]);
	}
	if (has_measured_energy(entry)) {
		struct sum joules = energy(d, share);
		add(&total, entry->kwh * joules.value / JOULES_PER_KWH, joules.why);
	}
	for (size_t i = 0; i < N_ALLOCATED; i++) {
		double hour = resource_hour(entry, resources[i].kind);
		if (isfinite(hour)) {
			add(&total, hour * d->measures[resources[i].held],
				d->reasons[resources[i].held]);
		}
	}
	return total;
}

// The share of the charged machine that was idle: of its GPUs, if it has any, else of its CPUs.
static struct sum idle_share(
	const struct price_entry *entry, const struct digest *d, double recorded_h)
{
	bool gpus = d->machine[ALLOCATED_GPUS] != 0; // also if it is not known
	const struct resource *r = &resources[gpus ? ALLOCATED_GPUS : ALLOCATED_CPUS];
	double amount = d->measures[r->amount], idle = d->measures[r->idle];
	double used = amount * recorded_h - idle; // hours
	double charged = entry->charge == CHARGE_ALLOCATED ? amount
	                                                   : d->machine[r->kind] / d->ranks;
	struct sum share = {.value = fmin(1, fmax(0, 1 - used / (charged * recorded_h)))};
	if (amount == 0 && charged > 0) {
		share.value = 1;
	}
	if (!isfinite(idle) || !isfinite(charged) || !(charged > 0) || !(recorded_h > 0)) {
		share = (struct sum){NAN, d->reasons[r->idle]
						  ? d->reasons[r->idle]
						  : "the size of the machine is not known"};
	}
	return share;
}

// Of the recorded time. Measured energy is no part of it: what is idle draws little.
static struct sum idle_cost(const struct price_entry *entry, const struct digest *d)
{
	struct sum total = {0}, share = charged_share(entry, d);
	double machine = machine_hour(entry), recorded_h = d->recorded_s / SECONDS_PER_HOUR;
	if (machine > 0) {
		struct sum idle = idle_share(entry, d, recorded_h);
		add(&total, machine * share.value * recorded_h * idle.value,
			share.why  ? share.why
			: idle.why ? idle.why
				   : "the recorded time is not known");
	}
	for (size_t i = 0; i < N_ALLOCATED; i++) {
		double hour = resource_hour(entry, resources[i].kind);
		if (isfinite(hour)) {
			add(&total, hour * d->measures[resources[i].idle],
				d->reasons[resources[i].idle]);
		}
	}
	return total;
}

// Measures ----------------------------------------------------------------------------------------

static void put(struct digest *d, enum measure_id measure, double value, const char *why)
{
	d->measures[measure] = isfinite(value) ? value : NAN;
	d->reasons[measure] = isfinite(value) ? NULL : why ? why : "not known";
}

static void put_none(struct digest *d, const char *why)
{
	for (size_t i = 0; i < N_MEASURES; i++) {
		if (measure_is_priced((enum measure_id)i)) {
			put(d, (enum measure_id)i, NAN, why);
		}
	}
}

static const char *own_no_entry(const struct prices *p, struct digest *d)
{
	_cleanup_text_ struct text why = {0};
	text_format(&why, "%s has no entry for host '%.100s'%s%.100s%s", p->path, d->host,
		*d->gpu ? " with GPU '" : "", d->gpu, *d->gpu ? "'" : " and no known GPU");
	return why.failed ? NULL : digest_own(d, why.data);
}

// Measures of a rate: what a second of the job costs, over times and samples.
static void put_rates(struct digest *d, double per_s, const char *why)
{
	double rate = d->measures[MEASURE_SAMPLES_PER_SECOND];
	const char *why_rate = d->reasons[MEASURE_SAMPLES_PER_SECOND];
	put(d, MEASURE_COST_PER_EPOCH, per_s * d->measures[MEASURE_EPOCH],
		why ? why : d->reasons[MEASURE_EPOCH]);
	put(d, MEASURE_COST_TO_LOSS, per_s * d->measures[MEASURE_VALIDATION_SECONDS],
		why                                      ? why
		: d->reasons[MEASURE_VALIDATION_SECONDS] ? d->reasons[MEASURE_VALIDATION_SECONDS]
							 : kept_advice_none);
	put(d, MEASURE_COST_PER_MILLION_SAMPLES, rate > 0 ? per_s * 1e6 / rate : NAN,
		why ? why : why_rate);
	put(d, MEASURE_SAMPLES_PER_COST, per_s > 0 ? rate / per_s : NAN,
		why          ? why
		: per_s == 0 ? "the run cost nothing"
			     : why_rate);
}

double prices_per_second(const struct digest *d)
{
	double duration_s = d->measures[MEASURE_DURATION];
	return duration_s > 0 ? d->measures[MEASURE_COST] / duration_s : NAN;
}

int prices_tell(const struct prices *p, struct digest *d)
{
	const struct price_entry *entry = p ? prices_entry(p, d) : NULL;
	d->currency = p ? p->currency : NULL;
	if (!p || d->job_only) {
		put_none(d,
			p ? "not all of the run was read" : "no price list was given (--prices)");
		return 0;
	}
	if (!entry) {
		const char *why = own_no_entry(p, d);
		put_none(d, why);
		return why ? 0 : -ENOMEM;
	}
	double duration_s = d->measures[MEASURE_DURATION];
	struct sum all = cost(entry, d), idle = idle_cost(entry, d);
	put(d, MEASURE_COST, all.why ? NAN : all.value, all.why);
	put(d, MEASURE_IDLE_COST, idle.why ? NAN : idle.value, idle.why);
	put_rates(d, prices_per_second(d),
		all.why          ? all.why
		: duration_s > 0 ? NULL
				 : "the duration of the run is not known");
	return 0;
}

// For people --------------------------------------------------------------------------------------

void prices_append_amount(struct text *t, double amount, const char *currency)
{
	int decimals = amount >= 1 || amount == 0 ? 2 : 1 - (int)floor(log10(amount));
	text_format(t, "%.*f %s", decimals > 12 ? 12 : decimals, amount, currency);
}

void prices_append(struct text *t, const struct prices *p, const struct digest *d)
{
	if (!p) {
		return;
	}
	const struct price_entry *entry = prices_entry(p, d);
	double all = d->measures[MEASURE_COST], idle = d->measures[MEASURE_IDLE_COST];
	if (isfinite(all)) {
		prices_append_amount(t, all, p->currency);
	} else {
		text_format(t, "not known: %s", d->reasons[MEASURE_COST]);
	}
	if (isfinite(all) && isfinite(idle)) {
		text_append_string(t, ", of which ");
		prices_append_amount(t, idle, p->currency);
		text_append_string(t, " idle");
	} else if (isfinite(all)) {
		text_format(t, "; idle: not known: %s", d->reasons[MEASURE_IDLE_COST]);
	}
	if (entry) {
		text_format(t, " (%s:%u)", p->path, entry->line);
	}
}
