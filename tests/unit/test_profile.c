// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Samples of CPU time: which code does what, names of functions, lines of /proc/PID/maps.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/profile.h"
#include "run/symbols.h"
#include "base/cleanup.h"
#include "machine/procfs.h"
#include "machine/perf.h"

static void code_has_a_class(void **state)
{
	static const struct {
		const char *path;
		const char *symbol;
		enum code_class class;
	} examples[] = {
		{"[kernel]", NULL, CODE_SYSTEM},
		{"/usr/lib/x86_64-linux-gnu/libc.so.6", "__sched_yield", CODE_SPINNING},
		{"/usr/lib/x86_64-linux-gnu/libc.so.6", "malloc", CODE_ALLOCATION},
		{"/usr/lib/x86_64-linux-gnu/libc.so.6", "__memcpy_avx_unaligned", CODE_COPYING},
		{"/usr/lib/x86_64-linux-gnu/libc.so.6", NULL, CODE_COPYING},
		{"/usr/lib/x86_64-linux-gnu/libc.so.6", "qsort_r", CODE_OTHER},
		{"/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0", NULL, CODE_SPINNING},
		{"/x/torch/lib/libgomp-a34b3233.so.1", "do_wait", CODE_SPINNING},
		{"/usr/lib/libopenblasp-r0.3.21.so", "blas_thread_server", CODE_SPINNING},
		{"/usr/lib/libopenblasp-r0.3.21.so", "sgemm_kernel_HASWELL", CODE_KERNELS},
		{"/usr/lib/libtorch_cpu.so", "_ZN4dnnl4impl3cpu", CODE_KERNELS},
		{"/usr/lib/libtorch_cpu.so", "_ZN2at6native3addE", CODE_FRAMEWORK},
		{"/x/libtorch_cpu.so", "mkl_vml_kernel_sSqrt_EXHAynn", CODE_FRAMEWORK},
		{"/x/libtorch_cpu.so", "mkl_blas_def_sgemm_kernel_0_zen", CODE_KERNELS},
		{"/usr/lib/libtorch_cpu.so", NULL, CODE_FRAMEWORK},
		{"/usr/bin/python3.11", "_PyEval_EvalFrameDefault", CODE_INTERPRETER},
		{"/usr/bin/python3.11", "gc_collect_main", CODE_COLLECTION},
		{"/x/numpy/random/mtrand.cpython-311-x86_64-linux-gnu.so", NULL, CODE_FRAMEWORK},
		{"/x/PIL/_imaging.cpython-311-x86_64-linux-gnu.so", NULL, CODE_DECODING},
		{"/usr/lib/libjpeg.so.62.3.0", "jsimd_idct", CODE_DECODING},
		{"[jit]", NULL, CODE_KERNELS},
		{"/home/me/train", "spin", CODE_OTHER},
		{"", NULL, CODE_OTHER},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(examples); i++) {
		enum code_class class = profile_classify(
			examples[i].path, examples[i].symbol, CODE_KERNELS);
		if (class != examples[i].class) {
			fail_msg("%s %s: %s", examples[i].path,
				examples[i].symbol ? examples[i].symbol : "",
				code_class_name(class));
		}
	}
	assert_int_equal(profile_classify("[jit]", NULL, CODE_OTHER), CODE_OTHER);
}

// Names as PyTorch's libraries have them.
static void functions_that_lead_to_an_operation(void **state)
{
	(void)state;
	static const char *const lead[] = {"_ZN2at4_ops4item4callERKNS_6TensorE",
		"_ZN3c1010TensorImplD1Ev", "_ZNK3c106ScalarngEv",
		"_ZN5torch8autograd22DifferentiableViewMetaC2E",
		"_ZN2at18TensorIteratorBase13compute_shapeERKNS_20TensorIteratorConfigE",
		"_ZN2at6detail13empty_genericE"};
	static const char *const compute[] = {NULL, "_ZN2at15CPUGeneratorImpl8random64Ev",
		"_ZN3c1012function_refIFvPPcPKlllEE11callback_"
		"fnIN2at6native4AVX216VectorizedLoop2d",
		"_ZNK2at18TensorIteratorBase15serial_for_eachE", "Sleef_finz_expf8_u10avx2",
		"mkl_vml_kernel_sTanh_EXHAynn", "_ZN2at6native3addE"};
	for (size_t i = 0; i < ARRAY_LENGTH(lead); i++) {
		assert_true(profile_dispatches(lead[i]));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(compute); i++) {
		assert_false(profile_dispatches(compute[i]));
	}
}

// Symbols -----------------------------------------------------------------------------------------

// Names as compilers make them, some cut at the 200 bytes that are kept.
static void cpp_names_become_short(void **state)
{
	static const struct {
		const char *name, *shown;
	} examples[] = {
		{"sgemm_kernel_HASWELL", "sgemm_kernel_HASWELL"},
		{"", ""},
		{"_Z", "_Z"},
		{"_ZdlPv", "_ZdlPv"}, // operator delete
		{"_ZN2at16CPUGeneratorImpl8random64Ev", "at::CPUGeneratorImpl::random64"},
		{"_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEE",
			"torch::autograd::Engine::evaluate_function"},
		{"_ZN3c1012function_refIFvPPcPKlllEE11callback_fnIN2at6native4AVX216"
		 "VectorizedLoop2dIZZZNS9_12_GLOBAL__N_110mul_kernelERNS8_18TensorIteratorBaseE",
			"mul_kernel"},
		{"_ZN3c1012function_refIFvPPcPKlllEE11callback_fnIZN2at18TensorIteratorBase15"
		 "loop_2d_from_1dIZNS8_6native4AVX217cpu_serial_kernelIZZZNSB_9templates3cpu16"
		 "bernoulli_kernelIPNS7_16CPUGeneratorImplE",
			"bernoulli_kernel"},
		{"_ZZN2at6native12_GLOBAL__N_139batch_norm_cpu_backward_contiguous_implIfEE",
			"at::native::batch_norm_cpu_backward_contiguous_impl"},
		{"_ZZNK4dnnl4impl3cpu3x6434jit_avx2_convolution_bwd_weights_t24execute_"
		 "backward_weightsERKNS0_10exec_ctx_tEENKUliiE_clEii.isra.0",
			"execute_backward_weights"},
		{"_ZN2at6native12_GLOBAL__N_120_vec_softmax_lastdimIfEE",
			"at::native::_vec_softmax_lastdim"},
		{"_ZL10amerge_at_IN3npy9float_tagE", "amerge_at_"},
		{"_ZN2at8internal15invoke_parallelIZNS_12parallel_forIZNS_6native12_GLOBAL__N_112"
		 "cpu_max_poolIfLb0EEEvRKNS_6TensorES8_S8_",
			"native::cpu_max_pool"},
		{"_ZN3c1010TensorImplC2EOS0_", "c10::TensorImpl"},
		{"_ZNSt6vectorIiSaIiEE9push_backERKi", "vector"},
		{"_Z99999999999999999999f", "_Z99999999999999999999f"}, // longer than the name
		{"_ZN0a3fooE", "foo"},
		{"_ZS_T_Lb1EC", "_ZS_T_Lb1EC"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(examples); i++) {
		char shown[57];
		symbols_shorten(examples[i].name, shown, sizeof(shown));
		assert_string_equal(shown, examples[i].shown);
	}
	char small[8];
	symbols_shorten("_ZN2at16CPUGeneratorImpl8random64Ev", small, sizeof(small));
	assert_string_equal(small, "random6");
}

// Functions of one name and class are one.
static void functions_of_one_name_add_up(void **state)
{
	static const char file[] = "/x/libtorch_cpu.so";
	struct code_group_samples g = {0};
	(void)state;
	profile_count(&g, file, "_ZN2at6native10mul_kernelIfEE", CODE_FRAMEWORK, 3);
	profile_count(&g, file, "sgemm", CODE_KERNELS, 5);
	profile_count(&g, file, NULL, CODE_FRAMEWORK, 1);
	profile_count(&g, file, "_ZN2at6native10mul_kernelIdEE", CODE_FRAMEWORK, 4);
	profile_count(&g, file, "none", CODE_FRAMEWORK, 0);
	profile_settle(&g);
	assert_int_equal(g.samples, 13);
	assert_int_equal(g.n_tops, 3);
	assert_string_equal(g.tops[0].name, "mul_kernel (libtorch_cpu.so)");
	assert_int_equal(g.tops[0].samples, 7);
	assert_string_equal(g.tops[1].name, "sgemm (libtorch_cpu.so)");
	assert_string_equal(g.tops[2].name, "libtorch_cpu.so");
	for (int i = 0; i < 100; i++) {
		char symbol[16];
		snprintf(symbol, sizeof(symbol), "f%d", i);
		profile_count(&g, file, symbol, CODE_OTHER, i < 90 ? 1 : 20);
	}
	profile_settle(&g);
	assert_int_equal(g.n_tops, CODE_TOPS);
	assert_int_equal(g.tops[CODE_TOPS - 1].samples, 20);
}

__attribute__((noinline)) static int a_function_of_this_test(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value + 1;
}

// Where the function is in the file that this program runs from.
static bool find_offset(uint64_t address, uint64_t *ret)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;
	while (maps && !found && fgets(line, sizeof(line), maps)) {
		struct mapping m;
		found = procfs_take_maps_line(cursor_of(line, strcspn(line, "\n")), &m) &&
		        address >= m.from && address < m.to;
		*ret = found ? address - m.from + m.offset : *ret;
	}
	if (maps) {
		fclose(maps);
	}
	return found;
}

static void a_function_is_named(void **state)
{
	uint64_t offset = 0;
	char *names[2];
	(void)state;
	assert_int_equal(a_function_of_this_test(1), 2);
	assert_true(find_offset((uint64_t)(uintptr_t)a_function_of_this_test, &offset));
	const int64_t offsets[] = {(int64_t)offset, INT64_MAX};
	int r = symbols_of_file("/proc/self/exe", offsets, 2, names);
	if (r == -ENOSYS) {
		skip(); // built without libelf
	}
	assert_int_equal(r, 0);
	assert_non_null(names[0]);
	assert_non_null(strstr(names[0], "a_function_of_this_test"));
	assert_null(names[1]); // nowhere
	free(names[0]);
}

// Whatever is in a file: no names, and nothing else happens.
static void hostile_files_have_no_names(void **state)
{
	static const char header[] = "\x7f"
				     "ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0\x3e\0\1\0\0\0";
	const int64_t offsets[] = {0, 64, 4096};
	char path[] = "/tmp/strain-symbols-XXXXXX";
	char *names[3];
	(void)state;
	assert_true(symbols_of_file("/nowhere/at/all", offsets, 3, names) < 0);
	assert_true(symbols_of_file("/dev/zero", offsets, 3, names) < 0);
	assert_true(symbols_of_file("/proc", offsets, 3, names) < 0);
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_true(symbols_of_file(path, offsets, 3, names) < 0); // empty
	assert_int_equal(write(fd, header, sizeof(header) - 1), sizeof(header) - 1);
	assert_true(symbols_of_file(path, offsets, 3, names) < 0); // cut short
	for (unsigned i = 0; i < 200; i++) { // and followed by anything
		unsigned char bytes[64];
		for (size_t k = 0; k < sizeof(bytes); k++) {
			bytes[k] = (unsigned char)(i * 37 + k * 11 + (i ^ k));
		}
		assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
		int r = symbols_of_file(path, offsets, 3, names);
		for (size_t k = 0; k < 3 && r == 0; k++) {
			free(names[k]);
		}
	}
	close(fd);
	unlink(path);
}

// Maps --------------------------------------------------------------------------------------------

static bool take(const char *line, struct mapping *ret)
{
	return procfs_take_maps_line(cursor_of(line, strlen(line)), ret);
}

static void lines_of_maps_are_parsed(void **state)
{
	struct mapping m;
	(void)state;
	assert_true(take("7f00-8000 r-xp 00000200 08:01 42    /usr/lib/a b.so (deleted)", &m));
	assert_true(m.from == 0x7f00 && m.to == 0x8000 && m.offset == 0x200 && m.runs);
	assert_true(cursor_is(m.path, "/usr/lib/a b.so (deleted)"));
	assert_true(take("7f00-8000 rw-p 00000000 00:00 0", &m));
	assert_false(m.runs);
	assert_true(m.path.at == m.path.end);
	static const char *const refused[] = {"", "7f00", "7f00-", "7f00-8000", "7f00-8000 r-xp",
		"8000-7f00 r-xp 00000200 08:01 42 /a", "x-y r-xp 0 08:01 42 /a",
		"11111111111111111-8000 r-xp 0 08:01 42 /a"};
	for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
		assert_false(take(refused[i], &m));
	}
}

// Children ----------------------------------------------------------------------------------------

static void *nothing(void *unused)
{
	return unused;
}

static void start_and_wait(void)
{
	pid_t child = fork();
	if (child == 0) {
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

// A page holds 128 forks.
static void processes_that_a_thread_starts_are_counted(void **state)
{
	enum { CHILDREN = 200 };
	struct perf_event event = PERF_CLOSED;
	struct perf_counts counts = {0};
	struct perf_sample samples[8];
	(void)state;
	if (perf_open(&event, 0, 4) < 0) {
		skip();
	}
	for (size_t i = 0; i < CHILDREN; i++) {
		start_and_wait();
	}
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	while (perf_take(&event, samples, ARRAY_LENGTH(samples), &counts) > 0) {
	}
	perf_close(&event);
	assert_int_equal(counts.children + counts.lost, CHILDREN);
	assert_int_equal(counts.lost, 0);
}

// As seen: OpenBLAS under a model of float64, and one of float32 with a function for doubles in it;
// XLA's functions, which other threads run.
static void matrices_of_doubles(void **state)
{
	static const char blas[] = "/usr/lib/libopenblasp-r0.3.21.so",
			  jax[] = "/v/libjax_common.so";
	static const char eigen[] = "_ZNK5Eigen8internal11gebp_kernelIddlNS0_16blas_data_mapper";
	struct code_profile p = {0};
	struct code_group_samples *leader = &p.groups[CODE_LEADER],
				  *threads = &p.groups[CODE_THREADS];
	(void)state;
	profile_count(leader, blas, "dgemm_kernel_SKYLAKEX", CODE_KERNELS, 328);
	profile_count(leader, blas, "dgemm_oncopy_SKYLAKEX", CODE_KERNELS, 39);
	assert_true(profile_multiplies_doubles(&p));
	profile_count(leader, blas, "sgemm_kernel_SKYLAKEX", CODE_KERNELS, 400);
	assert_false(profile_multiplies_doubles(&p));
	profile_count(threads, jax, "_ZN3ynn25dot_fp64_6x8x1_1x4x1_fma3EmmmPv",
		profile_classify(jax, "_ZN3ynn25dot_fp64_6x8x1_1x4x1_fma3EmmmPv", CODE_OTHER),
		1325);
	profile_count(threads, jax, eigen, profile_classify(jax, eigen, CODE_OTHER), 995);
	assert_int_equal(threads->by_class[CODE_KERNELS], 2320);
	assert_true(profile_multiplies_doubles(&p));
	profile_settle(leader);
	profile_settle(threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matrices_of_doubles),
		cmocka_unit_test(code_has_a_class),
		cmocka_unit_test(functions_that_lead_to_an_operation),
		cmocka_unit_test(cpp_names_become_short),
		cmocka_unit_test(functions_of_one_name_add_up),
		cmocka_unit_test(a_function_is_named),
		cmocka_unit_test(hostile_files_have_no_names),
		cmocka_unit_test(lines_of_maps_are_parsed),
		cmocka_unit_test(processes_that_a_thread_starts_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
