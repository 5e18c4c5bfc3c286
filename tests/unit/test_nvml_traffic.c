// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// PCIe and NVLink traffic of the NVML source, by each of the ways in which it can be known.

#include "recording.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

// A fast GPU without GPM.
static struct recording *record_counters(const char *more)
{
	char script[4096];
	snprintf(script, sizeof(script), "%sgpu * gpm 0\n%s", training, more);
	return record(HOST_PIDS, NULL, script);
}

static void test_pcie_counters_wrap(void **state)
{
	(void)state;
	needs_new_driver();
	struct recording *r = record_counters("");
	play(r, 2010);
	// 30 GB/s wrap the counter every 143 ms.
	check_value(r, gpu(0), "strain.gpu.pcie.host_to_device", 60e9);
	check_value(r, gpu(0), "strain.gpu.pcie.device_to_host", 0.4e9);
	check_value(r, gpu(1), "strain.gpu.pcie.host_to_device", 0);
	assert_null(event(r, "lost"));
	assert_non_null(strstr(attributes(r, gpu(0)), "\"pcie_method\":\"byte counters\""));
	recording_free(r);
}

static void test_pcie_read_too_rarely_is_missing(void **state)
{
	(void)state;
	needs_new_driver();
	struct recording *r = record_counters("");
	play(r, 400);
	r->advance(500); // the recorder was held up
	r->now_ns += 500 * NS_PER_MS;
	play(r, 10);
	assert_true(last_row(r, gpu(0), "strain.gpu.pcie.host_to_device").value == VALUE_MISSING);
	const struct note *lost = event(r, "lost");
	assert_non_null(lost);
	assert_non_null(strstr(lost->text, "540 ms apart"));
	play(r, 100);
	assert_true(last_row(r, gpu(0), "strain.gpu.pcie.host_to_device").value != VALUE_MISSING);
	recording_free(r);
}

static void test_pcie_counters_are_given_up(void **state)
{
	(void)state;
	needs_new_driver();
	struct recording *r = record_counters("gpu * pcie.rate.receive 1000\n"
					      "gpu * pcie.rate.transmit 10\n");
	for (unsigned i = 0; i < 30; i++) { // a recorder that reads too rarely
		play(r, 10);
		r->advance(100);
		r->now_ns += 100 * NS_PER_MS;
	}
	assert_non_null(event(r, "pcie_method"));
	assert_non_null(strstr(attributes(r, gpu(0)), "estimated"));
	int64_t before = last_row(r, gpu(0), "strain.gpu.pcie.host_to_device").value;
	play(r, 4000);
	struct row row = last_row(r, gpu(0), "strain.gpu.pcie.host_to_device");
	assert_true(row.value != VALUE_MISSING && row.value > before);
	recording_free(r);
}

static void test_pcie_of_a_fast_link_from_gpm(void **state)
{
	(void)state;
	needs_new_driver();
	struct recording *r = record(HOST_PIDS, NULL, training);
	collect(r);
	assert_non_null(strstr(attributes(r, gpu(0)), "\"pcie_method\":\"GPM"));
	recording_free(r);
}

static void test_pcie_from_gpm(void **state)
{
	(void)state;
	needs_new_driver();
	struct recording *r = record(HOST_PIDS, NULL,
		"gpu 0 gpm 1\n"
		"gpu 0 gpm.21 1000\n"
		"gpu 0 gpm.20 25\n"
		"gpu 0 gpm.60 500\n"
		"gpu 0 gpm.61 error:3\n");
	play(r, 1210);
	check_value(r, gpu(0), "strain.gpu.pcie.host_to_device", 1000 * 1048576.0 * 1.2);
	check_value(r, gpu(0), "strain.gpu.pcie.device_to_host", 25 * 1048576.0 * 1.2);
	check_value(r, gpu(0), "strain.gpu.nvlink.receive", 500 * 1048576.0 * 1.2);
	assert_true(last_row(r, gpu(0), "strain.gpu.nvlink.transmit").value == VALUE_MISSING);
	assert_string_equal(missing_reason(r, gpu(0), "strain.gpu.nvlink.transmit"),
		"not supported by this GPU");
	assert_int_equal(r->calls("nvmlDeviceGetPcieThroughput"), 0);
	assert_non_null(strstr(attributes(r, gpu(0)), "\"pcie_method\":\"GPM"));
	recording_free(r);
}

static void test_pcie_sampled_slowly(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL,
		"gpu 0 pcie.rate.receive 2000\n"
		"gpu 0 pcie.rate.transmit 100\n");
	play(r, 4010);
	// One probe, then two calls each 0.96 s, the last at 3.84 s.
	check_value(r, gpu(0), "strain.gpu.pcie.host_to_device", 2000e3 * 3.84);
	check_value(r, gpu(0), "strain.gpu.pcie.device_to_host", 100e3 * 3.84);
	assert_int_equal(r->calls("nvmlDeviceGetPcieThroughput"), 1 + 2 * 5);
	assert_non_null(strstr(attributes(r, gpu(0)), "estimated"));
	recording_free(r);
}

int main(void)
{
	if (!fake_load()) {
		return 1;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pcie_counters_wrap),
		cmocka_unit_test(test_pcie_read_too_rarely_is_missing),
		cmocka_unit_test(test_pcie_counters_are_given_up),
		cmocka_unit_test(test_pcie_of_a_fast_link_from_gpm),
		cmocka_unit_test(test_pcie_from_gpm),
		cmocka_unit_test(test_pcie_sampled_slowly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
