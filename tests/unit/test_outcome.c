// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What became of jobs, by what they left behind.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/outcome.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "runfile/writer.h"

#define EXIT(status) W_EXITCODE(status, 0)
#define KILLED(number) W_EXITCODE(0, number)
#define AT_LIMIT "the kernel killed 1 of the job's processes at the limit of 419 MB, set by /x"

struct example {
	struct outcome_evidence evidence;
	enum outcome outcome;
	const char *text;
};

#define ELASTIC_END                                                             \
	"Traceback (most recent call last):\n  File \"run.py\"\n"               \
	"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" \
	"=====\nt.py FAILED\n-----\nFailures:\n  <NO_OTHER_FAILURES>\n-----\n"  \
	"Root Cause (first observed failure):\n[0]:\n  time      : 2026-01-01_00:00:00\n"

#define OUTPUT(string) .output = (string), .output_length = sizeof(string) - 1

static const struct example examples[] = {
	{{.status = EXIT(0)}, OUTCOME_SUCCESS, ""},
	{{.status = EXIT(0), .kill = AT_LIMIT, OUTPUT("CUDA out of memory, with less now")},
		OUTCOME_SUCCESS, ""},
	{{.status = EXIT(3)}, OUTCOME_CRASH, "exit status 3"},
	{{.status = EXIT(1), OUTPUT("Traceback:\nValueError: no\n\n")}, OUTCOME_CRASH,
		"exit status 1: ValueError: no"},
	{{.status = EXIT(1), OUTPUT(" 10 %\r 20 %\r")}, OUTCOME_CRASH, "exit status 1: 20 %"},
	{{.status = EXIT(1), OUTPUT("\x1b[1mbold\xff\n")}, OUTCOME_CRASH,
		"exit status 1: \\x1b[1mbold\\xff"},
	{{.status = KILLED(SIGSEGV)}, OUTCOME_CRASH, "terminated by SIGSEGV"},
	{{.status = KILLED(35)}, OUTCOME_CRASH, "terminated by signal 35"},
	{{.status = EXIT(139)}, OUTCOME_CRASH, "terminated by SIGSEGV (exit status 139)"},
	{{.status = EXIT(255)}, OUTCOME_CRASH, "exit status 255"},
	{{.status = KILLED(SIGKILL)}, OUTCOME_CRASH,
		"killed (SIGKILL); no sign that memory ran out"},
	{{.status = KILLED(SIGKILL), .kill = AT_LIMIT}, OUTCOME_OUT_OF_MEMORY,
		"cgroup out of memory: " AT_LIMIT},
	{{.status = EXIT(1), .kill = AT_LIMIT, OUTPUT("worker exited unexpectedly")},
		OUTCOME_OUT_OF_MEMORY, "cgroup out of memory: " AT_LIMIT},
	{{.status = EXIT(137),
		 .kill = "the kernel killed 1 of the job's processes: the machine's memory was "
			 "used up"},
		OUTCOME_OUT_OF_MEMORY,
		"out of host memory: the kernel killed 1 of the job's processes: the machine's "
		"memory was used up"},
	{{.status = KILLED(SIGKILL), .kill_nearby = "the kernel killed 1 process"},
		OUTCOME_OUT_OF_MEMORY,
		"out of host memory (probably): the kernel killed 1 process"},
	{{.status = EXIT(1), .kill_nearby = "the kernel killed 1 process"}, OUTCOME_CRASH,
		"exit status 1"}, // it can have been anybody's
	{{.status = EXIT(1), OUTPUT("MemoryError\n")}, OUTCOME_OUT_OF_MEMORY,
		"out of host memory: MemoryError"},
	{{.status = EXIT(1),
		 OUTPUT("  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
			"Exception ignored\n")},
		OUTCOME_OUT_OF_MEMORY,
		"out of device memory: torch.OutOfMemoryError: CUDA out of memory. Tried to "
		"allocate 2.00 GiB"},
	{{.status = EXIT(1),
		 OUTPUT("RuntimeError: [enforce fail at alloc_cpu.cpp:66] . DefaultCPUAllocator: "
			"can't allocate memory")},
		OUTCOME_OUT_OF_MEMORY,
		"out of host memory: RuntimeError: [enforce fail at alloc_cpu.cpp:66] . "
		"DefaultCPUAllocator: can't allocate memory"},
	{{.status = EXIT(1),
		 OUTPUT("OOM when allocating tensor with shape[9] on "
			"/job:localhost/device:CPU:0")},
		OUTCOME_OUT_OF_MEMORY,
		"out of host memory: OOM when allocating tensor with shape[9] on "
		"/job:localhost/device:CPU:0"},
	{{.status = EXIT(1), OUTPUT("OOM when allocating tensor on device:GPU:0\ndevice:CPU")},
		OUTCOME_OUT_OF_MEMORY,
		"out of device memory: OOM when allocating tensor on device:GPU:0"},
	{{.status = EXIT(1),
		 OUTPUT("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
			"allocate 5 bytes.")},
		OUTCOME_OUT_OF_MEMORY,
		"out of device memory: XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while "
		"trying to allocate 5 bytes."},
	{{.status = KILLED(SIGABRT),
		 OUTPUT("step 4\rterminate called after throwing an instance of 'std::bad_alloc'")},
		OUTCOME_OUT_OF_MEMORY,
		"out of host memory: terminate called after throwing an instance of "
		"'std::bad_alloc'"},
	// Python goes on after its traceback; one that was caught, and others' lines, are no
        // reason.
	{{.status = EXIT(1),
		 OUTPUT("Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: "
			"'a'\n"
			"\nDuring handling of the above exception, another exception occurred:\n\n"
			"Traceback (most recent call last):\n  File \"x.py\", line 3, in <module>\n"
			"    f()\nValueError: no\nsrun: error: host: task 0: Exited with exit code "
			"1\n")},
		OUTCOME_CRASH, "exit status 1: ValueError: no"},
	{{.status = EXIT(1),
		 OUTPUT("[rank1]: Traceback (most recent call last):\n[rank0]: fine\n"
			"[rank1]:   File \"x.py\", line 1\nstep 4\n[rank1]: ValueError: "
			"no\n[rank0]: bye\n")},
		OUTCOME_CRASH, "exit status 1: ValueError: no"},
	{{.status = EXIT(1),
		 OUTPUT("RuntimeError: Caught IndexError in DataLoader worker process 1.\n"
			"Original Traceback (most recent call last):\n  File \"w.py\"\nIndexError: "
			"9\n\n")},
		OUTCOME_CRASH, "exit status 1: IndexError: 9"},
	{{.status = EXIT(1), OUTPUT("Traceback (most recent call last):\n  File \"x.py\", li")},
		OUTCOME_CRASH, "exit status 1: File \"x.py\", li"},
	{{.status = EXIT(1), OUTPUT("Traceback (most recent call last):")}, OUTCOME_CRASH,
		"exit status 1: Traceback (most recent call last):"},
	{{.status = EXIT(1),
		 OUTPUT("Traceback (most recent call last):\n  File \"t.py\"\nValueError: "
			"no\n" ELASTIC_END "  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: "
			"12)\n  error_file: <N/A>\n"
			"  traceback : To enable traceback see: elsewhere\n=====\n")},
		OUTCOME_CRASH, "exit status 1: rank 1 failed with exit status 1: ValueError: no"},
	{{.status = EXIT(1),
		 OUTPUT(ELASTIC_END
			 "  rank      : 13 (local_rank: 5)\n  exitcode  : -11 (pid: 12)\n")},
		OUTCOME_CRASH, "exit status 1: rank 13 was terminated by SIGSEGV"},
	{{.status = EXIT(1),
		 OUTPUT(ELASTIC_END
			 "  rank      : 1\n  exitcode  : -9223372036854775808 (pid: 1)\n")},
		OUTCOME_CRASH, "exit status 1: exitcode  : -9223372036854775808 (pid: 1)"},
	{{.status = EXIT(1), OUTPUT(ELASTIC_END "  rank      : 99999999999999999999\n")},
		OUTCOME_CRASH, "exit status 1: rank      : 99999999999999999999"},
	{{.status = EXIT(1),
		 OUTPUT("torch.OutOfMemoryError: CUDA out of memory.\n" ELASTIC_END
			"  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 12)\n")},
		OUTCOME_OUT_OF_MEMORY,
		"out of device memory: torch.OutOfMemoryError: CUDA out of memory."},
	{{.status = EXIT(1),
		 OUTPUT("Traceback (most recent call last):\n  File \"x.py\", line 3, in f\n"
			"    raise ValueError(\"no\") from MemoryError()\nValueError: no\n")},
		OUTCOME_CRASH, "exit status 1: ValueError: no"},
	{{.status = KILLED(SIGTERM)}, OUTCOME_INTERRUPTED, "terminated by SIGTERM"},
	{{.status = KILLED(SIGTERM),
		 OUTPUT("slurmstepd-n1: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 "
			"DUE "
			"TO TIME LIMIT ***\n")},
		OUTCOME_TIME_LIMIT, "not done at the time limit of Slurm"},
	{{.status = KILLED(SIGTERM),
		 OUTPUT("slurmstepd-n1: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 "
			"***\n")},
		OUTCOME_CANCELLED, "cancelled in Slurm"},
	{{.status = KILLED(SIGTERM),
		 OUTPUT("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 "
			"DUE TO TIME LIMIT ***\n")},
		OUTCOME_TIME_LIMIT, "not done at the time limit of Slurm"},
	{{.status = KILLED(SIGTERM), OUTPUT("*** JOB 7 ON n1 CANCELLED AT 2026 ***\n")},
		OUTCOME_INTERRUPTED, "terminated by SIGTERM"},
	{{.status = KILLED(SIGINT), OUTPUT("KeyboardInterrupt\n")}, OUTCOME_INTERRUPTED,
		"terminated by SIGINT"},
	{{.status = EXIT(130)}, OUTCOME_INTERRUPTED, "terminated by SIGINT"},
	{{.status = KILLED(SIGHUP)}, OUTCOME_INTERRUPTED, "terminated by SIGHUP"},
	{{.status = EXIT(1),
		 OUTPUT("torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 "
			"got "
			"signal: 15\n")},
		OUTCOME_INTERRUPTED, "terminated by SIGTERM"},
	{{.status = EXIT(77), OUTPUT("starting\nno GPU on this machine\n")}, OUTCOME_SKIPPED,
		"no GPU on this machine"},
	{{.status = EXIT(77)}, OUTCOME_SKIPPED, "exit status 77"},
	{{.state = RUN_LIVE, .status = -1}, OUTCOME_LIVE, "still running"},
	{{.state = RUN_CUT_OFF, .status = -1}, OUTCOME_CUT_OFF,
		"cut off: the end was not recorded"},
	{{.status = -1}, OUTCOME_UNKNOWN, "ended; the exit status is not known"},
	{{.status = 0x7f}, OUTCOME_UNKNOWN, "ended; the exit status is not known"},
	{{.status = INT64_MAX}, OUTCOME_UNKNOWN, "ended; the exit status is not known"},
	{{.word = "stopped", .text = "3 epochs", .status = KILLED(SIGTERM)}, OUTCOME_STOPPED,
		"3 epochs"},
	{{.word = "refused", .text = "no\nCPUs", .state = RUN_CUT_OFF, .status = -1},
		OUTCOME_REFUSED, "no\\nCPUs"},
	{{.word = "of a later version", .status = EXIT(0)}, OUTCOME_SUCCESS, ""},
};

static void test_every_end_has_its_word_and_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(examples); i++) {
		enum outcome outcome;
		_cleanup_free_ char *text = NULL;
		assert_int_equal(outcome_judge(&examples[i].evidence, &outcome, &text), 0);
		assert_string_equal(text, examples[i].text);
		assert_string_equal(outcome_word(outcome), outcome_word(examples[i].outcome));
	}
}

static void test_words_are_read_as_they_are_written(void **state)
{
	(void)state;
	enum outcome outcome;
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		assert_true(outcome_parse(outcome_word((enum outcome)i), &outcome));
		assert_int_equal(outcome, i);
		assert_int_equal(outcome_is_success(outcome),
			outcome == OUTCOME_SUCCESS || outcome == OUTCOME_STOPPED);
	}
	assert_false(outcome_parse("", &outcome));
	assert_false(outcome_parse("Success", &outcome));
}

static void test_a_long_line_is_cut_between_characters(void **state)
{
	(void)state;
	char output[4096];
	for (size_t i = 0; i + 1 < sizeof(output); i += 2) {
		memcpy(output + i, "\xc3\xa4", 2);
	}
	output[0] = 'x';
	output[1] = 'y';
	output[2] = 'z'; // the next byte is the second half of a character
	struct outcome_evidence evidence = {
		.status = EXIT(1), .output = output, .output_length = 4096};
	enum outcome outcome;
	_cleanup_free_ char *text = NULL;
	assert_int_equal(outcome_judge(&evidence, &outcome, &text), 0);
	assert_int_equal(outcome, OUTCOME_CRASH);
	assert_true(strlen(text) < 300);
	assert_string_equal(text + strlen(text) - 3, "...");
	assert_null(strchr(text + 20, '?'));
}

static void test_the_last_lines(void **state)
{
	(void)state;
	struct cursor lines[3];
	assert_int_equal(outcome_last_lines("", 3, lines), 0);
	assert_int_equal(outcome_last_lines("\n \r\n", 3, lines), 0);
	assert_int_equal(outcome_last_lines("one", 3, lines), 1);
	assert_true(cursor_is(lines[0], "one"));
	assert_int_equal(outcome_last_lines("0\n1\n\n  2 \r 30 %\r\n", 3, lines), 3);
	assert_true(cursor_is(lines[0], "1"));
	assert_true(cursor_is(lines[1], "  2"));
	assert_true(cursor_is(lines[2], " 30 %"));
	// What strain wrote to the same file is not the job's.
	static const char own[] = "strain: cannot write here\nlost\n\nstrain: mostly idle\n"
				  "        ran 2 s\n        strain show x.strain\n";
	assert_int_equal(outcome_last_lines(own, 3, lines), 2);
	assert_memory_equal(lines[1].at, "lost\n", 5);
	assert_int_equal(outcome_last_lines("strain: alone", 3, lines), 0);
	assert_int_equal(outcome_last_lines("        indented\n", 3, lines), 1);
	assert_int_equal(outcome_last_lines("        indented\n        too\n", 3, lines), 2);
	assert_int_equal(outcome_last_lines("a\nb\n", 1, lines), 1);
	assert_true(cursor_is(lines[0], "b"));
}

static void test_a_run_is_asked(void **state)
{
	(void)state;
	char directory[] = "/tmp/strain-test-XXXXXX", path[64];
	struct writer *w = NULL;
	struct error e = {0};
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/x.strain", directory);
	assert_int_equal(writer_create(path, &(struct writer_options){0}, &w, &e), 0);
	assert_int_equal(writer_put_event(w, 1, "output", 0, "earlier: std::bad_alloc"), 0);
	assert_int_equal(writer_put_event(w, 2, "output", 0, "CUDA out of memory"), 0);
	assert_int_equal(writer_finish(w, 3, EXIT(1), &e), 0);
	writer_free(w);
	struct reader *reader = NULL;
	enum outcome outcome;
	_cleanup_free_ char *text = NULL;
	assert_int_equal(reader_open(path, &reader, &e), 0);
	assert_int_equal(outcome_of(reader, &outcome, &text, &e), 0);
	assert_string_equal(text, "out of device memory: CUDA out of memory");
	assert_int_equal(outcome, OUTCOME_OUT_OF_MEMORY);
	reader_free(reader);
	unlink(path);
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_end_has_its_word_and_line),
		cmocka_unit_test(test_words_are_read_as_they_are_written),
		cmocka_unit_test(test_a_long_line_is_cut_between_characters),
		cmocka_unit_test(test_the_last_lines),
		cmocka_unit_test(test_a_run_is_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
