// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// libstrain-nvtx.so as a program with NVTX meets it: what is pushed, started and marked comes to
// the ring, and what nobody should do harms nothing.

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../tools/nvtx_loader.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "record/mark/ring.h"
#include "record/mark/marker_directory.h"

enum { MARKS_MAX = 4096 };

static struct marker_directory directory;
static uint64_t start_ns;
static const struct nvtx_functions *nvtx;

// Rings -------------------------------------------------------------------------------------------

struct reading {
	int directory_fd;
	struct ring_names *names;
	struct ring *ring;
	struct ring_mark marks[MARKS_MAX];
	size_t n;
};

static void note(void *context, const struct ring_mark *mark)
{
	struct reading *reading = context;
	if (reading->n < MARKS_MAX) {
		reading->marks[reading->n++] = *mark;
	}
}

// The ring whose name begins with "ring-PID-TID-".
static void find_ring(const char *prefix, char *ret, size_t size)
{
	char command[128];
	snprintf(command, sizeof(command), "ls %s | grep ^%s | head -n 1", directory.path, prefix);
	FILE *list = popen(command, "r");
	assert_non_null(list);
	assert_non_null(fgets(ret, (int)size, list));
	ret[strcspn(ret, "\n")] = '\0';
	pclose(list);
}

static struct reading *reading_new(pid_t pid)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	struct error e = {0};
	char prefix[32], name[128];
	assert_non_null(reading);
	snprintf(prefix, sizeof(prefix), "ring-%d-", (int)pid);
	find_ring(prefix, name, sizeof(name));
	reading->directory_fd = open(directory.path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(ring_names_new(&reading->names), 0);
	assert_int_equal(ring_open(reading->directory_fd, name, start_ns, reading->names,
				 &reading->ring, &e),
		0);
	return reading;
}

static void reading_free(struct reading *reading)
{
	ring_free(reading->ring);
	ring_names_free(reading->names);
	close(reading->directory_fd);
	free(reading);
}

static struct reading *own; // of the first thread

// How many marks came since the last look.
static size_t look(struct reading *reading)
{
	struct error e = {0};
	reading->n = 0;
	int r = ring_read(reading->ring, clock_monotonic_ns(), SIZE_MAX / 2, note, reading, &e);
	assert_true(r >= 0);
	return reading->n;
}

static void assert_mark(size_t i, enum strain_mark_kind kind, const char *name, int64_t number)
{
	assert_true(i < own->n);
	assert_int_equal(own->marks[i].kind, kind);
	if (name) {
		assert_string_equal(own->marks[i].name, name);
	}
	assert_int_equal(own->marks[i].number, number);
}

static int set_up(void **state)
{
	(void)state;
	nvtx->mark_bytes("first");
	own = reading_new(getpid());
	return look(own) > 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	reading_free(own);
	return 0;
}

// The program does as it should -------------------------------------------------------------------

static struct nvtx_event bytes(const char *message)
{
	return nvtx_event_of(NVTX_MESSAGE_BYTES, (uintptr_t)message, -1);
}

static void pushes_and_pops_nest(void **state)
{
	(void)state;
	struct nvtx_event event = bytes("inner");
	assert_int_equal(nvtx->push_bytes("outer"), 0);
	assert_int_equal(nvtx->push_event(&event), 1);
	assert_int_equal(nvtx->push_wide(L"wide \u00fc\U0001f600\xd800"), 2);
	assert_int_equal(nvtx->pop(), 2);
	assert_int_equal(nvtx->pop(), 1);
	assert_int_equal(nvtx->pop(), 0);
	assert_int_equal(look(own), 6);
	assert_true(ring_owner(own->ring)->nvtx);
	assert_mark(0, STRAIN_MARK_BEGIN, "outer", -1);
	assert_mark(1, STRAIN_MARK_BEGIN, "inner", -1);
	assert_mark(2, STRAIN_MARK_BEGIN, "wide \u00fc\U0001f600?", -1);
	assert_int_equal(own->marks[2].depth, 2);
	assert_mark(5, STRAIN_MARK_END, NULL, -1);
	assert_int_equal(own->marks[5].depth, 0);
	assert_int_equal(nvtx->tool_version, 3);
}

static void a_number_is_no_part_of_the_name(void **state)
{
	(void)state;
	static const struct {
		const char *message, *name;
		int64_t number;
	} cases[] = {{"step 17", "step", 17}, {"epoch=3", "epoch", 3}, {"batch #5", "batch", 5},
		{"layer1", "layer1", -1}, {"conv_2", "conv_2", -1}, {"17", "17", -1},
		{" 17", " 17", -1}, {"step ", "step ", -1},
		{"at 12345678901234567890", "at 12345678901234567890", -1}, {"a: 007", "a", 7}};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		nvtx->push_bytes(cases[i].message);
		nvtx->pop();
		uintptr_t handle = nvtx->register_bytes(0, cases[i].message);
		struct nvtx_event event = nvtx_event_of(NVTX_MESSAGE_REGISTERED, handle, -1);
		nvtx->push_event(&event);
		nvtx->pop();
		look(own);
		assert_mark(0, STRAIN_MARK_BEGIN, cases[i].name, cases[i].number);
		assert_mark(2, STRAIN_MARK_BEGIN, cases[i].name, cases[i].number);
	}
	struct nvtx_event event = nvtx_event_of(NVTX_MESSAGE_BYTES, (uintptr_t) "copy", 4096);
	nvtx->push_event(&event);
	nvtx->pop();
	look(own);
	assert_mark(0, STRAIN_MARK_BEGIN, "copy", 4096);
}

static void marks_have_values(void **state)
{
	(void)state;
	struct nvtx_event event = bytes("loss");
	event.payload_type = NVTX_PAYLOAD_DOUBLE;
	event.payload.real = 0.25;
	nvtx->mark_event(&event);
	event.payload_type = NVTX_PAYLOAD_FLOAT;
	event.payload.single = 0.5F;
	nvtx->mark_event(&event);
	event.payload_type = NVTX_PAYLOAD_INT32;
	event.payload.int32 = -3;
	nvtx->mark_event(&event);
	event.payload_type = 77; // one of a later version
	nvtx->mark_event(&event);
	nvtx->mark_bytes("here");
	nvtx->mark_wide(L"there");
	assert_int_equal(look(own), 6);
	assert_mark(0, STRAIN_MARK_POINT, "loss", -1);
	assert_true(own->marks[0].value == 0.25);
	assert_true(own->marks[1].value == 0.5);
	assert_true(own->marks[2].value == -3);
	assert_true(isnan(own->marks[3].value));
	assert_true(isnan(own->marks[4].value));
	assert_mark(5, STRAIN_MARK_POINT, "there", -1);
}

static void domains_nest_each_for_itself(void **state)
{
	(void)state;
	uintptr_t a = nvtx->create_bytes("a"), b = nvtx->create_wide(L"b");
	struct nvtx_event one = bytes("one"), two = bytes("two");
	assert_int_not_equal(a, 0);
	assert_int_not_equal(b, 0);
	assert_int_equal(nvtx->create_bytes("a"), a);
	assert_int_equal(nvtx->domain_push(a, &one), 0);
	assert_int_equal(nvtx->domain_push(b, &two), 0);
	assert_int_equal(nvtx->domain_push(0, &one), 0); // the default domain
	assert_int_equal(nvtx->domain_push(a, &two), 1);
	assert_int_equal(nvtx->domain_pop(b), 0);
	assert_int_equal(nvtx->domain_pop(a), 1);
	assert_int_equal(nvtx->domain_pop(a), 0);
	assert_int_equal(nvtx->pop(), 0);
	assert_true(nvtx->domain_pop(a) < 0);
	assert_int_equal(look(own), 5);
	assert_mark(0, STRAIN_MARK_BEGIN, "one", -1);
	assert_mark(1, STRAIN_MARK_SPAN, "b/two", -1);
	assert_mark(2, STRAIN_MARK_SPAN, "a/two", -1);
	assert_mark(3, STRAIN_MARK_SPAN, "a/one", -1);
	assert_mark(4, STRAIN_MARK_END, NULL, -1);
	assert_true(own->marks[3].began_ns < own->marks[1].began_ns);
	assert_true(own->marks[1].began_ns < own->marks[0].time_ns);
}

static void strings_are_registered_with_their_domain(void **state)
{
	(void)state;
	uintptr_t domain = nvtx->create_bytes("library");
	uintptr_t plain = nvtx->register_bytes(0, "plain");
	uintptr_t inside = nvtx->register_wide(domain, L"inside 8");
	assert_int_equal(nvtx->register_bytes(0, "plain"), plain);
	struct nvtx_event event = nvtx_event_of(NVTX_MESSAGE_REGISTERED, plain, -1);
	nvtx->push_event(&event);
	nvtx->pop();
	event.message.registered = inside;
	nvtx->domain_mark(domain, &event);
	assert_int_equal(look(own), 3);
	assert_mark(0, STRAIN_MARK_BEGIN, "plain", -1);
	assert_mark(2, STRAIN_MARK_POINT, "library/inside", 8);
}

static uint64_t crossing;

static void *end_it(void *context)
{
	nvtx->end(crossing);
	nvtx->push_bytes("elsewhere");
	nvtx->pop();
	return context;
}

static void starts_and_ends_cross(void **state)
{
	(void)state;
	uint64_t first = nvtx->start_bytes("first"), second = nvtx->start_wide(L"second 2");
	uintptr_t domain = nvtx->create_bytes("a");
	struct nvtx_event event = bytes("third");
	uint64_t third = nvtx->domain_start(domain, &event);
	crossing = nvtx->start_event(&event);
	assert_true(first && second && third && crossing);
	nvtx->end(first);
	nvtx->end(first); // ended already
	nvtx->domain_end(domain, third);
	nvtx->end(second);
	assert_int_equal(look(own), 3);
	assert_mark(0, STRAIN_MARK_SPAN, "first", -1);
	assert_mark(1, STRAIN_MARK_SPAN, "a/third", -1);
	assert_mark(2, STRAIN_MARK_SPAN, "second", 2);
	assert_true(own->marks[0].began_ns < own->marks[2].began_ns);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, end_it, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(look(own), 0); // the other thread has a ring of its own
	nvtx->end(crossing);
	assert_int_equal(look(own), 0);
}

// The program does what it should not
// --------------------------------------------------------------

static void messages_that_are_none(void **state)
{
	(void)state;
	char *huge = malloc(1 << 20);
	assert_non_null(huge);
	memset(huge, 'x', (1 << 20) - 1);
	huge[(1 << 20) - 1] = '\0';
	struct nvtx_event small = bytes("not read"), unknown = bytes("x"), zeros = {0};
	small.size = 8;
	unknown.message_type = 99;
	nvtx->push_bytes(NULL);
	nvtx->push_wide(NULL);
	nvtx->push_event(NULL);
	nvtx->push_event(&small);
	nvtx->push_event(&unknown);
	nvtx->push_event(&zeros);
	nvtx->push_bytes("");
	nvtx->push_bytes(huge);
	nvtx->push_bytes("\x80\xff\n");
	for (int i = 0; i < 12; i++) {
		nvtx->pop();
	}
	nvtx->mark_event(NULL);
	nvtx->mark_bytes(NULL);
	nvtx->end(nvtx->start_event(NULL));
	nvtx->end(nvtx->start_bytes(huge));
	assert_int_equal(nvtx->register_bytes(0, NULL), 0);
	assert_int_equal(nvtx->create_wide(NULL), 0);
	assert_int_equal(look(own), 22);
	for (size_t i = 0; i < 7; i++) {
		assert_mark(i, STRAIN_MARK_BEGIN, "(other)", -1);
	}
	assert_int_equal(strlen(own->marks[7].name), STRAIN_RING_NAME_BYTES - 1);
	assert_int_equal(strlen(own->marks[21].name), STRAIN_RING_NAME_BYTES - 1);
	free(huge);
}

static void handles_that_were_never_given(void **state)
{
	(void)state;
	struct nvtx_event event = nvtx_event_of(NVTX_MESSAGE_REGISTERED, 4095, -1);
	nvtx->mark_event(&event);
	event.message.registered = UINTPTR_MAX;
	nvtx->mark_event(&event);
	event = bytes("x");
	nvtx->domain_mark(UINTPTR_MAX, &event);
	assert_true(nvtx->domain_pop(UINTPTR_MAX) < 0);
	nvtx->end(0);
	nvtx->end(1);
	nvtx->end(UINT64_MAX);
	nvtx->domain_end(77, 1025);
	assert_int_equal(look(own), 3);
	assert_mark(0, STRAIN_MARK_POINT, "(other)", -1);
	assert_string_equal(own->marks[1].name, "(other)");
	assert_string_equal(own->marks[2].name, "x");
}

static void more_than_there_is_room_for(void **state)
{
	(void)state;
	char name[32];
	uintptr_t domain = 0;
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "domain%d", i);
		domain = nvtx->create_bytes(name);
		assert_int_not_equal(domain, 0);
		struct nvtx_event event = bytes("x");
		nvtx->domain_push(domain, &event);
		nvtx->domain_pop(domain);
	}
	assert_int_equal(look(own), 300);
	assert_mark(0, STRAIN_MARK_SPAN, "domain0/x", -1);
	assert_mark(99, STRAIN_MARK_SPAN, "domain99/x", -1);
	assert_mark(299, STRAIN_MARK_SPAN, "(other)", -1); // names have an end too
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "string%d", i);
		nvtx->register_bytes(0, name);
	}
	uint64_t ids[2000];
	for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
		ids[i] = nvtx->start_bytes("started");
	}
	assert_int_equal(ids[1999], 0);
	for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
		nvtx->end(ids[i]);
	}
	assert_int_equal(look(own), 1024);
	assert_true(ring_dropped(own->ring) >= 2000 - 1024);
	nvtx->end(nvtx->start_bytes("again"));
	assert_int_equal(look(own), 1);
}

static void deeper_than_there_is_room_for(void **state)
{
	(void)state;
	uintptr_t domain = nvtx->create_bytes("domain0");
	struct nvtx_event event = bytes("deep");
	for (int i = 0; i < 100; i++) {
		assert_true(nvtx->push_bytes("x") == i);
		assert_true(nvtx->domain_push(domain, &event) >= 0);
	}
	for (int i = 0; i < 101; i++) {
		assert_true((nvtx->pop() >= 0) == (i < 100));
		assert_true((nvtx->domain_pop(domain) >= 0) == (i < 100));
	}
	assert_int_equal(look(own), STRAIN_RING_DEPTH * 2 + 64);
	assert_int_equal(nvtx->push_bytes("x"), 0);
	assert_int_equal(nvtx->pop(), 0);
	look(own);
}

enum { THREADS = 8, ROUNDS = 500 };

static void *push_and_start(void *context)
{
	char name[32];
	for (int i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "name%d", i % 50);
		uint64_t id = nvtx->start_bytes(name);
		nvtx->push_bytes(name);
		nvtx->register_bytes(0, name);
		nvtx->pop();
		nvtx->end(id);
	}
	return context;
}

static void threads_do_not_meet(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, push_and_start, NULL), 0);
	}
	push_and_start(NULL);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	assert_int_equal(look(own), 3 * ROUNDS);
	for (size_t i = 0; i < own->n; i += 3) {
		assert_string_equal(own->marks[i].name, own->marks[i + 2].name);
	}
}

static void a_child_has_ranges_of_its_own(void **state)
{
	(void)state;
	uintptr_t domain = nvtx->create_bytes("domain0");
	struct nvtx_event event = bytes("of the parent");
	nvtx->push_bytes("parent");
	nvtx->domain_push(domain, &event);
	uint64_t id = nvtx->start_bytes("started");
	int gate[2];
	assert_int_equal(pipe(gate), 0);
	pid_t child = fork();
	if (child == 0) {
		char byte;
		nvtx->end(id); // the parent's
		bool fine = nvtx->pop() < 0 && nvtx->domain_pop(domain) < 0;
		nvtx->push_bytes("child");
		fine = fine && nvtx->pop() == 0;
		_exit(fine && read(gate[0], &byte, 1) == 1 ? 0 : 1);
	}
	int status = 0;
	assert_int_equal(write(gate[1], "x", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	struct reading *others = reading_new(child);
	assert_int_equal(look(others), 2);
	assert_string_equal(others->marks[0].name, "child");
	reading_free(others);
	nvtx->end(id);
	nvtx->domain_pop(domain);
	nvtx->pop();
	assert_int_equal(look(own), 4);
	close(gate[0]);
	close(gate[1]);
}

// Programs that are not as they should be
// ----------------------------------------------------------

static int no_module(enum nvtx_module module, nvtx_function ***table, unsigned int *size)
{
	(void)module;
	(void)table;
	*size = 1000;
	return 0;
}

static int empty_module(enum nvtx_module module, nvtx_function ***table, unsigned int *size)
{
	(void)module;
	*table = NULL;
	*size = 1000;
	return 1;
}

static nvtx_function short_module_function;
static nvtx_function *short_table[2] = {&short_module_function, NULL};

static int short_module(enum nvtx_module module, nvtx_function ***table, unsigned int *size)
{
	(void)module;
	*table = short_table;
	*size = 2;
	return 1;
}

static struct nvtx_callbacks odd_callbacks;

static const void *odd_table(uint32_t table)
{
	return table == NVTX_TABLE_CALLBACKS && odd_callbacks.size > 0 ? &odd_callbacks : NULL;
}

static void odd_tables_are_left_alone(void **state)
{
	(void)state;
	void *library = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
	assert_non_null(library);
	void *symbol = dlsym(library, "InitializeInjectionNvtx2");
	int (*initialize)(nvtx_get_table) = NULL;
	memcpy(&initialize, &symbol, sizeof(symbol));
	assert_non_null(initialize);
	assert_int_equal(initialize(NULL), 0);
	assert_int_equal(initialize(odd_table), 0); // no tables at all
	odd_callbacks = (struct nvtx_callbacks){8, no_module};
	assert_int_equal(initialize(odd_table), 0); // shorter than it should be
	odd_callbacks = (struct nvtx_callbacks){sizeof(odd_callbacks), NULL};
	assert_int_equal(initialize(odd_table), 0);
	odd_callbacks.get_module = no_module;
	assert_int_equal(initialize(odd_table), 0);
	odd_callbacks.get_module = empty_module;
	assert_int_equal(initialize(odd_table), 0);
	odd_callbacks.get_module = short_module;
	assert_int_equal(initialize(odd_table), 1);
	assert_null(short_module_function); // place 0 is nobody's
	setenv("STRAIN_MARKERS", "", 1);
	assert_int_equal(initialize(odd_table), 0);
	setenv("STRAIN_MARKERS", directory.path, 1);
	dlclose(library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushes_and_pops_nest),
		cmocka_unit_test(a_number_is_no_part_of_the_name),
		cmocka_unit_test(marks_have_values),
		cmocka_unit_test(domains_nest_each_for_itself),
		cmocka_unit_test(strings_are_registered_with_their_domain),
		cmocka_unit_test(starts_and_ends_cross),
		cmocka_unit_test(messages_that_are_none),
		cmocka_unit_test(handles_that_were_never_given),
		cmocka_unit_test(threads_do_not_meet),
		cmocka_unit_test(a_child_has_ranges_of_its_own),
		cmocka_unit_test(odd_tables_are_left_alone),
		cmocka_unit_test(deeper_than_there_is_room_for),
		cmocka_unit_test(more_than_there_is_room_for),
	};
	char path[4096];
	snprintf(path, sizeof(path), "%s/libstrain-nvtx.so", getenv("BUILD_ROOT"));
	setenv("NVTX_INJECTION64_PATH", path, 1);
	start_ns = clock_monotonic_ns();
	if (marker_directory_make(&directory, NULL) < 0 ||
		setenv("STRAIN_MARKERS", directory.path, 1) < 0 || !nvtx_load(&nvtx)) {
		fprintf(stderr, "%s could not be loaded\n", path);
		return 1;
	}
	int failed = cmocka_run_group_tests(tests, set_up, tear_down);
	marker_directory_remove(&directory);
	marker_directory_done(&directory);
	return failed;
}
