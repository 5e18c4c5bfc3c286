// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Costs against a stopwatch and a price list, by hand: each expected amount is written as the sum
// that a person would do on paper. Hostile price lists.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "run/allocation.h"
#include "study/prices.h"

// A job of 30 minutes on a node of 64 CPUs, 512 GB and 4 GPUs. It was allocated 16 CPUs, 128 GB and
// 2 GPUs, and used 2 CPUs, 32 GB and half of the time of the GPUs.
static struct digest half_an_hour(void)
{
	struct digest d = {.host = "node17",
		.gpu = "NVIDIA A100-SXM4-40GB",
		.machine = {64, 512e9, 4},
		.ranks = 1,
		.recorded_s = 1800};
	for (size_t i = 0; i < N_MEASURES; i++) {
		d.measures[i] = NAN;
		d.reasons[i] = "not measured";
	}
	const struct {
		enum measure_id id;
		double value;
	} known[] = {{MEASURE_DURATION, 1800}, {MEASURE_CPUS_ALLOCATED, 16},
		{MEASURE_CPU_HOURS_ALLOCATED, 8}, // 16 CPUs for half an hour
		{MEASURE_IDLE_CPU_HOURS, 7}, // 8 less 2 CPUs for half an hour
		{MEASURE_MEMORY_ALLOCATED, 128e9}, {MEASURE_GB_HOURS_ALLOCATED, 64},
		{MEASURE_IDLE_GB_HOURS, 48}, {MEASURE_GPUS_ALLOCATED, 2},
		{MEASURE_GPU_HOURS_ALLOCATED, 1}, {MEASURE_IDLE_GPU_HOURS, 0.5},
		{MEASURE_EPOCH, 360}, // a tenth of an hour
		{MEASURE_SAMPLES_PER_SECOND, 500}, {MEASURE_ENERGY, 1.8e6}, // half a kWh
		{MEASURE_HOST_ENERGY, 0.8e6}, // of that
		{MEASURE_VALIDATION_SECONDS, 900}};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		d.measures[known[i].id] = known[i].value;
		d.reasons[known[i].id] = NULL;
	}
	return d;
}

static void parse(struct prices *p, const char *text)
{
	struct error e = {0};
	if (prices_parse("prices.yaml", text, strlen(text), p, &e) < 0) {
		fail_msg("%s", e.text);
	}
}

// The run priced by a list with one entry.
static struct digest priced(struct digest d, struct prices *p, const char *entry)
{
	char text[512];
	snprintf(text, sizeof(text), "currency: USD\nmachines:\n  - {%s}\n", entry);
	parse(p, text);
	assert_int_equal(prices_tell(p, &d), 0);
	return d;
}

#define assert_costs(d, id, expected)                                                         \
	do {                                                                                  \
		double cost_is = (d).measures[id], cost_should = (expected);                  \
		if (!(fabs(cost_is - cost_should) <= 1e-9 * fabs(cost_should))) {             \
			fail_msg("%s: %.12g, by hand %.12g (%s)", measures[id].name, cost_is, \
				cost_should, (d).reasons[id] ? (d).reasons[id] : "");         \
		}                                                                             \
		assert_null((d).reasons[id]);                                                 \
	} while (0)

static void assert_missing(const struct digest *d, enum measure_id id, const char *why)
{
	assert_true(isnan(d->measures[id]));
	assert_non_null(d->reasons[id]);
	assert_non_null(strstr(d->reasons[id], why));
}

static void test_a_machine_by_the_hour(void **state)
{
	(void)state;
	struct prices p;
	struct digest d = priced(half_an_hour(), &p, "hour: 12");
	assert_string_equal(d.currency, "USD");
	assert_costs(d, MEASURE_COST, 6.00); // half an hour of 12 an hour
	// 2 of the machine's 4 GPUs were busy half of the time: 1/4 of it was used
	assert_costs(d, MEASURE_IDLE_COST, 4.50);
	assert_costs(d, MEASURE_COST_PER_EPOCH, 1.20); // 0.1 h
	assert_costs(d, MEASURE_COST_PER_MILLION_SAMPLES, 12.0 * 2000 / 3600); // 2,000 s
	assert_costs(d, MEASURE_SAMPLES_PER_COST, 150000); // 300 s for 1
	assert_costs(d, MEASURE_COST_TO_LOSS, 3.00); // a quarter of an hour
	digest_done(&d);
	prices_done(&p);
}

static void test_what_was_allocated_by_the_hour(void **state)
{
	(void)state;
	struct prices p;
	struct digest d = priced(half_an_hour(), &p, "cpu_hour: 0.05, gpu_hour: 3, gb_hour: 0.01");
	assert_costs(d, MEASURE_COST, 8 * 0.05 + 1 * 3 + 64 * 0.01); // 0.40 + 3.00 + 0.64
	assert_costs(d, MEASURE_IDLE_COST, 0.35 + 1.50 + 0.48);
	assert_costs(d, MEASURE_COST_PER_EPOCH, 4.04 / 5); // 5 epochs fit into half an hour
	digest_done(&d);
	prices_done(&p);
}

// 64 GB are 59.6 GiB.
static void test_a_gib_is_more_than_a_gb(void **state)
{
	(void)state;
	struct prices p;
	struct digest d = priced(half_an_hour(), &p, "gib_hour: 0.01");
	assert_costs(d, MEASURE_COST, 0.01 * 64e9 / 1073741824.0);
	digest_done(&d);
	prices_done(&p);
}

// 17,532 for 2 years used half of the time is 2 for each of 8,766 hours; 1.5 kW at 0.20 is 0.30.
static void test_a_bought_machine(void **state)
{
	(void)state;
	struct prices p;
	struct digest d = priced(half_an_hour(), &p,
		"price: 17532, years: 2, utilisation: 0.5, watts: 1500, kwh: 0.20");
	assert_costs(d, MEASURE_COST, 1.00 + 0.15);
	assert_costs(d, MEASURE_IDLE_COST, 1.15 * 0.75);
	digest_done(&d);
	prices_done(&p);
	d = priced(half_an_hour(), &p, "price: 17532, years: 2"); // used all of the time
	assert_costs(d, MEASURE_COST, 0.50);
	digest_done(&d);
	prices_done(&p);
	d = priced(half_an_hour(), &p, "price: 17532, years: 2, kwh: 0.20"); // measured: 0.5 kWh
	assert_costs(d, MEASURE_COST, 0.50 + 0.10);
	assert_costs(d, MEASURE_IDLE_COST, 0.50 * 0.75);
	digest_done(&d);
	prices_done(&p);
}

// The largest share is that of the GPUs: 2 of 4.
static void test_a_share_of_a_machine(void **state)
{
	(void)state;
	struct prices p;
	struct digest d = priced(half_an_hour(), &p, "hour: 12, charge: allocated");
	assert_costs(d, MEASURE_COST, 3.00);
	assert_costs(d, MEASURE_IDLE_COST, 1.50); // its GPUs were idle half of the time
	digest_done(&d);
	prices_done(&p);
	struct digest few = half_an_hour();
	few.measures[MEASURE_GPUS_ALLOCATED] = 0;
	few.measures[MEASURE_MEMORY_ALLOCATED] = 384e9;
	d = priced(few, &p, "hour: 12, charge: allocated"); // now that of the memory, 3/4
	assert_costs(d, MEASURE_COST, 4.50);
	digest_done(&d);
	prices_done(&p);
}

// Four ranks, each with its own run: together they pay for the machine once.
static void test_ranks_share_a_machine(void **state)
{
	(void)state;
	struct prices p;
	struct digest rank = half_an_hour();
	rank.ranks = 4;
	rank.measures[MEASURE_GPUS_ALLOCATED] = 1;
	rank.measures[MEASURE_IDLE_GPU_HOURS] = 0.125; // of 0.5
	struct digest d = priced(rank, &p, "hour: 12");
	assert_costs(d, MEASURE_COST, 6.00 / 4);
	assert_costs(d, MEASURE_IDLE_COST, 6.00 / 4 * 0.25);
	digest_done(&d);
	prices_done(&p);
}

// The machine's energy is shared; that of its GPUs is each rank's own.
static void test_ranks_pay_for_their_own_gpus(void **state)
{
	(void)state;
	struct prices p;
	struct digest rank = half_an_hour();
	rank.ranks = 4;
	struct digest d = priced(rank, &p, "kwh: 3.6"); // 1e-6 for a joule
	assert_costs(d, MEASURE_COST, 0.8 / 4 + 1.0);
	digest_done(&d);
	prices_done(&p);
	rank.ranks = 1;
	d = priced(rank, &p, "kwh: 3.6, charge: allocated"); // 2 of 4 GPUs: half of the machine
	assert_costs(d, MEASURE_COST, 0.8 / 2 + 1.0);
	digest_done(&d);
	prices_done(&p);
	rank.partial = "recorded 10 min of 30 min: the disk was full";
	d = priced(rank, &p, "kwh: 3.6");
	assert_missing(&d, MEASURE_COST, "the disk was full");
	digest_done(&d);
	prices_done(&p);
	d = priced(rank, &p, "hour: 12"); // that of the time is known
	assert_costs(d, MEASURE_COST, 6.00);
	digest_done(&d);
	prices_done(&p);
}

static void test_a_machine_without_gpus(void **state)
{
	(void)state;
	struct prices p;
	struct digest plain = half_an_hour();
	plain.gpu = "";
	plain.machine[ALLOCATED_GPUS] = 0;
	plain.measures[MEASURE_GPUS_ALLOCATED] = 0;
	plain.measures[MEASURE_GPU_HOURS_ALLOCATED] = 0;
	plain.measures[MEASURE_IDLE_GPU_HOURS] = 0;
	struct digest d = priced(plain, &p, "hour: 12, host: '*'");
	assert_costs(d, MEASURE_IDLE_COST, 6.00 * 62 / 64); // 2 of 64 CPUs were used
	digest_done(&d);
	prices_done(&p);
	d = priced(plain, &p, "cpu_hour: 1, gpu_hour: 5");
	assert_costs(d, MEASURE_COST, 8.00);
	digest_done(&d);
	prices_done(&p);
}

// --- what is not known

static void test_an_unknown_part_makes_the_cost_unknown(void **state)
{
	(void)state;
	struct prices p;
	struct digest blind = half_an_hour();
	blind.measures[MEASURE_GPU_HOURS_ALLOCATED] = NAN;
	blind.reasons[MEASURE_GPU_HOURS_ALLOCATED] = "the driver is not loaded";
	blind.measures[MEASURE_SAMPLES_PER_SECOND] = NAN;
	blind.reasons[MEASURE_SAMPLES_PER_SECOND] = "no iterations";
	struct digest d = priced(blind, &p, "cpu_hour: 0.05, gpu_hour: 3");
	assert_missing(&d, MEASURE_COST, "the driver is not loaded");
	assert_missing(&d, MEASURE_COST_PER_EPOCH, "the driver is not loaded");
	assert_costs(d, MEASURE_IDLE_COST, 7 * 0.05 + 0.5 * 3);
	digest_done(&d);
	prices_done(&p);
	d = priced(blind, &p, "cpu_hour: 0.05"); // the GPUs cost nothing here
	assert_costs(d, MEASURE_COST, 0.40);
	assert_missing(&d, MEASURE_SAMPLES_PER_COST, "no iterations");
	assert_missing(&d, MEASURE_COST_PER_MILLION_SAMPLES, "no iterations");
	digest_done(&d);
	prices_done(&p);
	d = priced(half_an_hour(), &p, "hour: 0");
	assert_costs(d, MEASURE_COST, 0.0);
	assert_missing(&d, MEASURE_SAMPLES_PER_COST, "nothing");
	digest_done(&d);
	prices_done(&p);
}

static void test_the_first_entry_that_matches_counts(void **state)
{
	(void)state;
	struct prices p;
	struct digest d = half_an_hour();
	parse(&p, "currency: EUR\nmachines:\n"
		  "  - {host: 'login*', hour: 1}\n"
		  "  - {host: 'NODE1?', gpu: '*h100*', hour: 2}\n"
		  "  - {host: 'NODE1?', gpu: '*a100*', hour: 3}\n"
		  "  - {gpu: '*a100*', hour: 4}\n");
	assert_int_equal(prices_entry(&p, &d)->line, 5);
	d.gpu = "";
	assert_null(prices_entry(&p, &d));
	assert_int_equal(prices_tell(&p, &d), 0);
	assert_missing(&d, MEASURE_COST, "prices.yaml has no entry for host 'node17'");
	d.host = "";
	assert_null(prices_entry(&p, &d));
	digest_done(&d);
	prices_done(&p);
	d = half_an_hour();
	assert_int_equal(prices_tell(NULL, &d), 0);
	assert_missing(&d, MEASURE_COST, "--prices");
	assert_null(d.currency);
	digest_done(&d);
}

static void test_wrong_lists_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *says[3]; // place, and what the line must name
	} lists[] = {
		{"", {"prices.yaml:1:1:", "currency"}},
		{"- 1\n", {"prices.yaml:1:1:", "currency"}},
		{"currency: USD\n", {"prices.yaml:1:1:", "machines"}},
		{"machines: [{hour: 1}]\n", {"prices.yaml:1:1:", "currency"}},
		{"currency: ''\nmachines: [{hour: 1}]\n", {":1:11:", "currency", "USD"}},
		{"currency: 'US $'\nmachines: [{hour: 1}]\n", {":1:11:", "currency", "US $"}},
		{"currency: USD\nmachines: []\n", {":2:11:", "machines"}},
		{"currency: USD\nmachines: [1]\n", {":2:12:", "machines"}},
		{"currency: USD\nmachine: [{hour: 1}]\n", {":2:1:", "'machine'", "'machines'?"}},
		{"currency: USD\nmachines:\n  - hour: -1\n", {":3:11:", "hour:", "'-1'"}},
		{"currency: USD\nmachines:\n  - hour: nan\n", {":3:11:", "hour:", "'nan'"}},
		{"currency: USD\nmachines:\n  - hour: .inf\n", {":3:11:", "hour:", "'.inf'"}},
		{"currency: USD\nmachines:\n  - hour: 1e999\n", {":3:11:", "hour:", "1e999"}},
		{"currency: USD\nmachines:\n  - hour: 0x10\n", {":3:11:", "hour:", "0x10"}},
		{"currency: USD\nmachines:\n  - hour: 1,50\n", {":3:11:", "hour:", "1,50"}},
		{"currency: USD\nmachines:\n  - hour:\n", {":3:", "hour:", "nothing"}},
		{"currency: USD\nmachines:\n  - hour: [1]\n", {":3:11:", "hour:", "a list"}},
		{"currency: USD\nmachines:\n  - hour: 1\n    hour: 2\n",
			{":4:5:", "hour", "line 3"}},
		{"currency: USD\nmachines:\n  - gpu_hours: 1\n",
			{":3:5:", "'gpu_hours'", "'gpu_hour'?"}},
		{"currency: USD\nmachines:\n  - host: a\n", {":3:5:", "a price"}},
		{"currency: USD\nmachines:\n  - {hour: 1, watts: 5}\n", {":3:5:", "hour", "watts"}},
		{"currency: USD\nmachines:\n  - price: 5\n", {":3:5:", "years"}},
		{"currency: USD\nmachines:\n  - years: 5\n", {":3:5:", "a price"}},
		{"currency: USD\nmachines:\n  - {price: 5, years: 0}\n",
			{":3:23:", "years", "'0'"}},
		{"currency: USD\nmachines:\n  - {price: 5, years: 1, utilisation: 20}\n",
			{":3:39:", "utilisation", "'20'"}},
		{"currency: USD\nmachines:\n  - {price: 5, years: 1, watts: 5}\n",
			{":3:5:", "kwh"}},
		{"currency: USD\nmachines:\n  - {gb_hour: 1, gib_hour: 1}\n",
			{":3:5:", "gb_hour", "GiB"}},
		{"currency: USD\nmachines:\n  - {hour: 1, charge: all}\n",
			{":3:23:", "charge", "'all'"}},
		{"currency: USD\nmachines:\n  - {gpu_hour: 1, charge: allocated}\n",
			{":3:5:", "charge", "machine"}},
		{"currency: USD\nmachines:\n  - {hour: 1, host: ''}\n", {":3:21:", "host"}},
		{"currency: USD\nmachines:\n  - {hour: 1\n", {"prices.yaml:", "YAML"}},
	};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct prices p;
		struct error e = {0};
		const char *text = lists[i].text;
		if (prices_parse("prices.yaml", text, strlen(text), &p, &e) != -EINVAL) {
			fail_msg("taken: %s", text);
		}
		for (size_t k = 0; k < 3 && lists[i].says[k]; k++) {
			if (!strstr(e.text, lists[i].says[k]) || strchr(e.text, '\n')) {
				fail_msg("%s\nexpected %s, found: %s", text, lists[i].says[k],
					e.text);
			}
		}
	}
}

static void test_a_list_is_a_file(void **state)
{
	(void)state;
	struct prices p;
	struct error e = {0};
	assert_int_equal(prices_open("/dev/zero", &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "/dev/zero"));
	assert_int_equal(prices_open("/nonexistent/prices.yaml", &p, &e), -ENOENT);
}

// The example in the sources is a list, and the first machine of its comments costs what they say.
static void test_the_example(void **state)
{
	(void)state;
	char path[512];
	struct prices p;
	struct error e = {0};
	struct digest d = half_an_hour();
	snprintf(path, sizeof(path), "%s/examples/prices.yaml", getenv("SOURCE_ROOT"));
	if (prices_open(path, &p, &e) < 0) {
		fail_msg("%s", e.text);
	}
	d.host = "workstation3";
	assert_int_equal(prices_tell(&p, &d), 0);
	assert_costs(d, MEASURE_COST, 0.5 * (2400 / (4 * 8766 * 0.5) + 0.350 * 0.30));
	digest_done(&d);
	static const struct {
		const char *gpu;
		double gpus, hour, gpu_hour; // of its entry; NAN: not given
	} machines[] = {{"NVIDIA A100-SXM4-40GB", 8, 21.957642, NAN},
		{"NVIDIA H100 80GB HBM3", 8, 55.04, NAN}, {"Tesla T4", 1, 0.526, NAN},
		{"Tesla P100-PCIE-16GB", 1, NAN, 1.46}, {"Tesla K80", 2, NAN, 0.45},
		{"", 0, NAN, NAN}};
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		d = half_an_hour();
		d.host = "vm";
		d.gpu = machines[i].gpu;
		d.machine[ALLOCATED_GPUS] = machines[i].gpus;
		const struct price_entry *entry = prices_entry(&p, &d);
		assert_non_null(entry);
		assert_true(entry->hour == machines[i].hour ||
			    (isnan(entry->hour) && isnan(machines[i].hour)));
		assert_true(entry->gpu_hour == machines[i].gpu_hour ||
			    (isnan(entry->gpu_hour) && isnan(machines[i].gpu_hour)));
	}
	// Other GPUs, and one of which nothing is known, are not free.
	static const char *const others[] = {
		"NVIDIA T400 4GB", "Quadro P1000", "NVIDIA RTX A1000", "none", ""};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		d = half_an_hour();
		d.host = "vm";
		d.gpu = others[i];
		d.machine[ALLOCATED_GPUS] = *d.gpu ? 1 : NAN;
		assert_null(prices_entry(&p, &d));
	}
	prices_done(&p);
}

// --- amounts for people

static void test_amounts_are_readable(void **state)
{
	(void)state;
	static const struct {
		double amount;
		const char *text;
	} amounts[] = {{0, "0.00 USD"}, {1234.5, "1234.50 USD"}, {0.25, "0.25 USD"},
		{0.0031, "0.0031 USD"}, {0.000097, "0.000097 USD"}};
	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
		struct text t = {0};
		prices_append_amount(&t, amounts[i].amount, "USD");
		assert_string_equal(t.data, amounts[i].text);
		text_done(&t);
	}
}

// --- Slurm's list of tasks

static void test_tasks_of_a_node(void **state)
{
	(void)state;
	assert_true(allocation_slurm_tasks("4", 0) == 4);
	assert_true(allocation_slurm_tasks("2(x3),1", 0) == 2);
	assert_true(allocation_slurm_tasks("2(x3),1", 2) == 2);
	assert_true(allocation_slurm_tasks("2(x3),1", 3) == 1);
	static const char *const wrong[] = {"", "x", "2(x", "2(x3", "0", "-1", "2(x0),",
		"2(x99999999999999999999)", "99999999999999999999"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_true(isnan(allocation_slurm_tasks(wrong[i], 0)));
	}
	assert_true(isnan(allocation_slurm_tasks("2(x3),1", 4)));
	assert_true(isnan(allocation_slurm_tasks("2", -1)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_machine_by_the_hour),
		cmocka_unit_test(test_what_was_allocated_by_the_hour),
		cmocka_unit_test(test_a_gib_is_more_than_a_gb),
		cmocka_unit_test(test_a_bought_machine),
		cmocka_unit_test(test_a_share_of_a_machine),
		cmocka_unit_test(test_ranks_share_a_machine),
		cmocka_unit_test(test_ranks_pay_for_their_own_gpus),
		cmocka_unit_test(test_a_machine_without_gpus),
		cmocka_unit_test(test_an_unknown_part_makes_the_cost_unknown),
		cmocka_unit_test(test_the_first_entry_that_matches_counts),
		cmocka_unit_test(test_wrong_lists_are_refused),
		cmocka_unit_test(test_a_list_is_a_file),
		cmocka_unit_test(test_the_example),
		cmocka_unit_test(test_amounts_are_readable),
		cmocka_unit_test(test_tasks_of_a_node),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
