// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "record/source/gpu_visible.h"

// Verdicts as text: V visible, - hidden, u unknown.
static void check(
	const struct gpu_identity *gpus, const char *list, const char *order, const char *expected)
{
	enum gpu_visible verdicts[3];
	char text[4] = "";
	gpu_visible(list, order, gpus, 3, verdicts);
	for (size_t i = 0; i < 3; i++) {
		text[i] = "-Vu"[verdicts[i]];
	}
	assert_string_equal(text, expected);
}

static const struct gpu_identity alike[] = {
	{.uuid = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", .name = "A100", .mig = false},
	{.uuid = "GPU-89aaaaaa-0000-0000-0000-000000000000", .name = "A100", .mig = false},
	{.uuid = "GPU-deadbeef-0000-0000-0000-000000000000", .name = "A100", .mig = false},
};

static void test_indices(void **state)
{
	(void)state;
	static const struct {
		const char *list;
		const char *expected;
	} cases[] = {
		{NULL, "VVV"},
		{"", "---"},
		{"0", "V--"},
		{"2,1", "-VV"},
		{" 0 , 2 ", "V-V"},
		{"0,2,-1,1", "V-V"},
		{"0,3,1", "V--"},
		{"-1", "---"},
		{"NoDevFiles", "---"},
		{"0,,1", "V--"},
		{"1x", "---"},
		{"18446744073709551616", "---"},
		{"1,1", "-V-"},
		{",", "---"},
		{"4294967296", "---"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		check(alike, cases[i].list, NULL, cases[i].expected);
	}
}

static void test_uuids(void **state)
{
	(void)state;
	check(alike, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", NULL, "V--");
	check(alike, "GPU-8932", NULL, "V--");
	check(alike, "GPU-dead,0", NULL, "V-V");
	check(alike, "GPU-89", NULL, "---"); // two begin so
	check(alike, "GPU-77,0", NULL, "---");
	check(alike, "gpu-8932", NULL, "---");
	check(alike, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6-more", NULL, "---");
}

static void test_an_index_says_nothing_where_models_differ(void **state)
{
	(void)state;
	static const struct gpu_identity mixed[] = {{.uuid = "GPU-1", .name = "T4", .mig = false},
		{.uuid = "GPU-2", .name = "A100", .mig = false},
		{.uuid = "GPU-3", .name = "A100", .mig = false}};
	check(mixed, "0", NULL, "uuu");
	check(mixed, "0", "FASTEST_FIRST", "uuu");
	check(mixed, "0", "PCI_BUS_ID", "V--");
	check(mixed, "GPU-2", NULL, "-V-");
	check(mixed, "GPU-2,0", NULL, "uVu");
	check(mixed, "", NULL, "---");
}

static void test_instances(void **state)
{
	(void)state;
	static const struct gpu_identity one[] = {
		{.uuid = "GPU-8932f937", .name = "A100", .mig = true},
		{.uuid = "GPU-2", .name = "A100", .mig = false},
		{.uuid = "GPU-3", .name = "A100", .mig = false}};
	static const struct gpu_identity two[] = {
		{.uuid = "GPU-8932f937", .name = "A100", .mig = true},
		{.uuid = "GPU-2", .name = "A100", .mig = true},
		{.uuid = "GPU-3", .name = "A100", .mig = false}};
	check(one, "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", NULL, "V--");
	check(two, "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", NULL, "uu-");
	check(two, "MIG-GPU-8932f937/1/0", NULL, "V--");
	check(alike, "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", NULL, "---");
}

static void test_instances_whose_uuids_are_known(void **state)
{
	(void)state;
	static const struct gpu_identity two[] = {
		{.uuid = "GPU-8932f937",
			.name = "A100",
			.mig = true,
			.instances = {"MIG-c6d4", "MIG-c777"},
			.n_instances = 2},
		{.uuid = "GPU-2",
			.name = "A100",
			.mig = true,
			.instances = {"MIG-0f00"},
			.n_instances = 1},
		{.uuid = "GPU-3", .name = "A100", .mig = false},
	};
	check(two, "MIG-c6d4", NULL, "V--");
	check(two, "MIG-0f", NULL, "-V-");
	check(two, "MIG-beef", NULL, "---");
	check(two, "MIG-GPU-8932f937/1/0", NULL, "V--");
	assert_int_equal(gpu_visible_instance("MIG-c777", &two[0]), 1);
	assert_int_equal(gpu_visible_instance(" MIG-c6d4 , MIG-0f00", &two[0]), 0);
	assert_int_equal(gpu_visible_instance("MIG-c6d4,MIG-c777", &two[0]), -1);
	assert_int_equal(gpu_visible_instance("MIG-c", &two[0]), -1); // of two
	assert_int_equal(gpu_visible_instance("0", &two[0]), -1);
	assert_int_equal(gpu_visible_instance(NULL, &two[0]), -1);
	assert_int_equal(gpu_visible_instance(NULL, &two[1]), 0); // there is no other
	assert_int_equal(gpu_visible_instance("MIG-c6d4", &two[2]), -1);
}

static void check_hip(const char *rocr, const char *hip, const char *expected)
{
	static const struct gpu_identity four[] = {{.uuid = "GPU-11aa"}, {.uuid = "GPU-22bb"},
		{.uuid = "GPU-33cc"}, {.uuid = "pci-0000:04:00.0"}};
	enum gpu_visible found[ARRAY_LENGTH(four)];
	gpu_visible_hip(rocr, hip, NULL, four, ARRAY_LENGTH(four), found);
	for (size_t i = 0; i < ARRAY_LENGTH(four); i++) {
		assert_int_equal(found[i], expected[i] == 'V' ? GPU_VISIBLE : GPU_HIDDEN);
	}
}

// HIP's indices count what ROCr leaves, in the order of its list.
static void test_rocm(void **state)
{
	(void)state;
	check_hip(NULL, NULL, "VVVV");
	check_hip("", NULL, "----");
	check_hip("2", NULL, "--V-");
	check_hip("2,0", "1", "V---");
	check_hip("0,9,1", NULL, "V---");
	check_hip(" 3 ,1", NULL, "-V-V");
	check_hip("GPU-22bb,3", NULL, "-V-V");
	check_hip("GPU-22", "0", "-V--");
	check_hip("GPU-", NULL, "----");
	check_hip("0", "1", "----");
	check_hip("1x", NULL, "----");
	check_hip("0,1,2,3,0,1,2,3,0", NULL, "VVVV");
	check_hip("0,0,1", NULL, "V---"); // one again ends it
	check_hip("0x1, gpu-33Cc", NULL, "-VV-");
	check_hip("-1", NULL, "----");
	check_hip("GPU-1234567890123456789012345678901234567890", NULL, "----");
	check_hip(NULL, "3,1", "-V-V");
	check_hip(NULL, " 3,1", "----"); // HIP takes plain decimals only
	check_hip(NULL, "1,0x2", "-V--");
	check_hip(NULL, "1,1,2", "-VV-");
	check_hip(NULL, "-1", "----");
	check_hip(NULL, "GPU-33", "--V-");
	check_hip(NULL, "", "VVVV"); // as if it were not set
	enum gpu_visible found[1];
	const struct gpu_identity one[] = {{.uuid = "GPU-11aa"}};
	gpu_visible_hip(NULL, "", "1", one, 1, found);
	assert_int_equal(found[0], GPU_HIDDEN); // CUDA's counts then
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_indices),
		cmocka_unit_test(test_uuids),
		cmocka_unit_test(test_an_index_says_nothing_where_models_differ),
		cmocka_unit_test(test_instances),
		cmocka_unit_test(test_instances_whose_uuids_are_known),
		cmocka_unit_test(test_rocm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
