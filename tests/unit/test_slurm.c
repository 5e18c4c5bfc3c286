// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What Slurm's commands print, and the tickets of trials that were handed to it.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sweep/slurm_client.h"
#include "sweep/slurm_ledger.h"
#include "sweep/slurm_text.h"

#define STRING(text) (text), sizeof(text) - 1

// Text ------------------------------------------------------------------------------------------

static void test_ids(void **state)
{
	static const struct {
		const char *text;
		uint64_t job; // 0: none
	} examples[] = {
		{"123\n", 123},
		{"123;cluster\n", 123},
		{"123", 123},
		{"", 0},
		{"0\n", 0},
		{"12x\n", 0},
		{"Submitted batch job 12\n", 0},
		{"99999999999999999999999\n", 0},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(examples); i++) {
		uint64_t job = 0;
		bool found = slurm_text_job(examples[i].text, strlen(examples[i].text), &job);
		assert_int_equal(found, examples[i].job > 0);
		assert_int_equal(job, examples[i].job);
	}
}

static void test_settings(void **state)
{
	static const char config[] = "Configuration data as of now\nMaxArraySize   = 1001\n"
				     "SLURM_VERSION           = 22.05.8\nMaxArraySizeX = 7\n";
	(void)state;
	_cleanup_free_ char *version = slurm_text_setting(STRING(config), "SLURM_VERSION"),
			    *size = slurm_text_setting(STRING(config), "MaxArraySize");
	assert_string_equal(version, "22.05.8");
	assert_string_equal(size, "1001");
	assert_null(slurm_text_setting(STRING(config), "Max"));
	assert_int_equal(slurm_text_version(version), 2205);
	assert_int_equal(slurm_text_version("17.11.2"), 1711);
	assert_int_equal(slurm_text_version("slurm"), 0);
	assert_int_equal(slurm_text_version("999999999999.1"), 0);
}

struct queue {
	struct slurm_queued lines[4];
	size_t n;
};

static void keep_line(void *context, const struct slurm_queued *line)
{
	struct queue *q = context;
	assert_true(q->n < ARRAY_LENGTH(q->lines));
	q->lines[q->n++] = *line;
}

static void test_queue(void **state)
{
	static const char text[] = "3|1|FAILED|n1|NonZeroExitCode|a-1\n"
				   "3|2|PENDING||Nodes|are|down|a-2\n"
				   "4|N/A|CANCELLED by 7|n[1-2]|None|b\n"
				   "5|1|NEW_WORD|n1|None|c\n"
				   "x|1|RUNNING|n1|None|a\n3|1|RUNNING\n3|-1|RUNNING|n1|None|a\n";
	struct queue q = {0};
	(void)state;
	assert_int_equal(slurm_text_queue(STRING(text), keep_line, &q), 3);
	assert_int_equal(q.n, 4);
	assert_int_equal(q.lines[0].state, SLURM_FAILED);
	assert_int_equal(q.lines[1].task, 2);
	assert_memory_equal(q.lines[1].name, "a-2\n", 4);
	assert_int_equal(q.lines[1].name_length, 3);
	assert_int_equal(q.lines[2].state, SLURM_CANCELLED);
	assert_int_equal(q.lines[3].state, SLURM_UNKNOWN);
	assert_false(slurm_state_is_final(SLURM_UNKNOWN));
	assert_false(slurm_state_is_final(SLURM_RUNNING));
	assert_true(slurm_state_is_final(SLURM_COMPLETED));
}

#define JOB(task, name, rest)                                                          \
	"JobId=7 ArrayJobId=3 ArrayTaskId=" task " JobName=" name " UserId=u(7) " rest \
	" Comment=JobState=COMPLETED ExitCode=0:0\n"

static void test_jobs(void **state)
{
	static const char text[] = JOB("1", "a", "JobState=FAILED Reason=None ExitCode=3:0")
		JOB("2", "x JobState=RUNNING",
			"JobState=NODE_FAIL ExitCode=999:77 BatchHost=n\x1b[1m"
			" Restarts=2");
	struct slurm_job job = {0};
	(void)state;
	assert_true(slurm_text_find_job(STRING(text), 1, &job));
	assert_int_equal(job.state, SLURM_FAILED);
	assert_int_equal(job.exit_status, 3);
	assert_true(slurm_text_find_job(STRING(text), 2, &job));
	assert_int_equal(job.state, SLURM_NODE_FAIL);
	assert_int_equal(job.exit_status, -1);
	assert_int_equal(job.restarts, 2);
	assert_string_equal(job.node, "n\\x1b[1m");
	assert_false(slurm_text_find_job(STRING(text), 3, &job));
	assert_false(slurm_text_find_job(STRING("JobState=FAILED\n"), 0, &job));
}

#define STEPD "slurmstepd-n1: error: "

// What a build without MULTIPLE_SLURMD writes: its slurmstepd does not name the node.
static char *without_node(const char *output)
{
	static const char node[] = "-n1: ";
	char *copy = strdup(output);
	for (char *at; copy && (at = strstr(copy, node));) {
		memmove(at, at + strlen("-n1"), strlen(at + strlen("-n1")) + 1);
	}
	return copy;
}

static void check_judgement(const struct slurm_job *job, const char *output, enum outcome expected,
	const char *expected_why)
{
	_cleanup_text_ struct text why = {0};
	enum outcome outcome = slurm_text_judge(job, output, strlen(output), &why);
	if (outcome != expected || !strstr(why.data, expected_why)) {
		fail_msg("'%s': outcome %d, '%s'", output, (int)outcome, why.data);
	}
}

static void test_judgements(void **state)
{
	static const struct {
		struct slurm_job job;
		const char *output;
		enum outcome outcome;
		const char *why;
	} examples[] = {
		{{.state = SLURM_FAILED, .exit_signal = 9},
			STEPD "StepId=1.batch exceeded memory limit (2 > 1), being killed\n" STEPD
			      "*** JOB 1 ON n1 CANCELLED AT 2026 ***\n",
			OUTCOME_OUT_OF_MEMORY, "memory"},
		{{.state = SLURM_CANCELLED}, STEPD "*** JOB 1 ON n1 CANCELLED AT 2026 ***\n",
			OUTCOME_CANCELLED, "cancelled"},
		{{.state = SLURM_CANCELLED}, "", OUTCOME_CANCELLED, "cancelled"},
		{{.state = SLURM_TIMEOUT}, "", OUTCOME_TIME_LIMIT, "time limit"},
		{{.state = SLURM_GONE},
			STEPD "*** JOB 1 ON n1 CANCELLED AT 2026 DUE TO TIME LIMIT ***",
			OUTCOME_TIME_LIMIT, "time limit"},
		{{.state = SLURM_GONE}, "", N_OUTCOMES, "not know"},
		{{.state = SLURM_PREEMPTED}, "", OUTCOME_PREEMPTED, "preempted"},
		{{.state = SLURM_NODE_FAIL, .node = "n7"}, "", OUTCOME_NODE_FAILURE, "n7"},
		{{.state = SLURM_FAILED, .exit_status = 1}, "strain: no space\n", N_OUTCOMES,
			"exit status 1"},
		// of a job that runs again
		{{.state = SLURM_UNKNOWN},
			STEPD "*** JOB 1 ON n1 CANCELLED AT 2026 DUE TO JOB REQUEUE ***",
			N_OUTCOMES, ""},
		// of its first start; then it was cancelled
		{{.state = SLURM_CANCELLED},
			STEPD "*** JOB 1 ON n1 CANCELLED AT 2026 DUE TO PREEMPTION ***",
			OUTCOME_CANCELLED, "cancelled"},
		{{.state = SLURM_CANCELLED},
			STEPD "*** JOB 1 ON n1 CANCELLED AT 2026 DUE TO NODE FAILURE ***",
			OUTCOME_CANCELLED, "cancelled"},
		// not slurmstepd's
		{{.state = SLURM_UNKNOWN}, "*** JOB 1 ON n1 CANCELLED AT 2026 ***", N_OUTCOMES, ""},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(examples); i++) {
		_cleanup_free_ char *plain = without_node(examples[i].output);
		assert_non_null(plain);
		check_judgement(
			&examples[i].job, examples[i].output, examples[i].outcome, examples[i].why);
		check_judgement(&examples[i].job, plain, examples[i].outcome, examples[i].why);
	}
}

// Ledger ------------------------------------------------------------------------------------------

struct place {
	char path[64];
	int sweep;
	int ledger;
};

static int make_place(void **state)
{
	static struct place place;
	snprintf(place.path, sizeof(place.path), "/tmp/strain-ledger-XXXXXX");
	place.sweep = mkdtemp(place.path) ? open(place.path, O_RDONLY | O_DIRECTORY) : -1;
	place.ledger = place.sweep < 0 ? -1
	                               : slurm_ledger_open(place.sweep, place.path, true, NULL);
	*state = &place;
	return place.ledger < 0 ? -1 : 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;
	close(place->ledger);
	int result = unlinkat(place->sweep, SLURM_LEDGER, AT_REMOVEDIR);
	close(place->sweep);
	return result < 0 || rmdir(place->path) < 0 ? -1 : 0;
}

static const struct slurm_ticket ticket = {
	.trial = {7, 2}, .attempt = 1, .token = "0123456789abcdef", .task = 3};

static void test_names(void **state)
{
	static const char *const wrong[] = {"", "0007-2", "0007-2.1.0123456789abcdef.0",
		"0007-2.1.0123456789abcdeF.3", "0007-2.1.0123456789abcde.3",
		"0007-2.1.0123456789abcdef.3x", "0-2.1.0123456789abcdef.3",
		"0007-2.1.0123456789abcdef.99999999999", "../7-2.1.0123456789abcdef.3"};
	struct slurm_ticket read;
	(void)state;
	_cleanup_free_ char *stem = slurm_ticket_stem(&ticket);
	assert_string_equal(stem, "0007-2.1.0123456789abcdef.3");
	assert_true(slurm_ticket_parse(stem, strlen(stem), &read));
	assert_memory_equal(&read, &ticket, sizeof(ticket));
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		assert_false(slurm_ticket_parse(wrong[i], strlen(wrong[i]), &read));
	}
}

static void test_a_ticket_is_taken_or_revoked(void **state)
{
	struct place *place = *state;
	_cleanup_free_ char *owner = NULL, *second = NULL;
	assert_int_equal(slurm_ledger_write(place->ledger, &ticket), 0);
	assert_int_equal(slurm_ledger_write(place->ledger, &ticket), -EEXIST);
	assert_true(slurm_ledger_has_tickets(place->ledger));
	assert_true(slurm_ledger_revoke(place->ledger, &ticket));
	assert_int_equal(slurm_ledger_take(place->ledger, &ticket, false, &owner), -ENOENT);
	assert_int_equal(slurm_ledger_write(place->ledger, &ticket), 0);
	assert_int_equal(slurm_ledger_take(place->ledger, &ticket, false, &owner), 0);
	assert_false(slurm_ledger_revoke(place->ledger, &ticket));
	assert_true(slurm_ledger_owns(place->ledger, &ticket, owner));
	// A second task of the array does not get it; one that Slurm has started again does.
	assert_int_equal(slurm_ledger_take(place->ledger, &ticket, false, &second), -ENOENT);
	assert_int_equal(slurm_ledger_take(place->ledger, &ticket, true, &second), 0);
	assert_false(slurm_ledger_owns(place->ledger, &ticket, owner));
	assert_true(slurm_ledger_owns(place->ledger, &ticket, second));
	slurm_ledger_remove(place->ledger, &ticket);
	assert_false(slurm_ledger_owns(place->ledger, &ticket, second));
	assert_false(slurm_ledger_has_tickets(place->ledger));
}

enum { TICKETS = 2000 };

static struct slurm_ticket ticket_of(uint32_t i)
{
	struct slurm_ticket one = ticket;
	one.trial.configuration = i + 1;
	one.task = i + 1;
	return one;
}

struct taker {
	int ledger;
	int result;
	atomic_bool ended;
};

static void *take_all(void *context)
{
	struct taker *taker = context;
	for (uint32_t i = 0; i < TICKETS && taker->result == 0; i++) {
		const struct slurm_ticket one = ticket_of(i);
		_cleanup_free_ char *owner = NULL;
		taker->result = slurm_ledger_take(taker->ledger, &one, false, &owner);
	}
	atomic_store(&taker->ended, true);
	return NULL;
}

struct seen {
	bool tickets[TICKETS];
};

static int note_ticket(void *context, const struct slurm_ticket *one)
{
	struct seen *seen = context;
	assert_in_range(one->task, 1, TICKETS);
	seen->tickets[one->task - 1] = true;
	return 0;
}

static void test_a_list_has_tickets_that_are_taken_meanwhile(void **state)
{
	struct place *place = *state;
	struct taker taker = {.ledger = place->ledger};
	pthread_t thread;
	struct seen seen;
	for (uint32_t i = 0; i < TICKETS; i++) {
		const struct slurm_ticket one = ticket_of(i);
		assert_int_equal(slurm_ledger_write(place->ledger, &one), 0);
	}
	assert_int_equal(pthread_create(&thread, NULL, take_all, &taker), 0);
	do {
		seen = (struct seen){0};
		assert_int_equal(slurm_ledger_list(place->ledger, note_ticket, &seen), 0);
		for (size_t i = 0; i < TICKETS; i++) {
			assert_true(seen.tickets[i]);
		}
	} while (!atomic_load(&taker.ended));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(taker.result, 0);
	for (uint32_t i = 0; i < TICKETS; i++) {
		const struct slurm_ticket one = ticket_of(i);
		slurm_ledger_remove(place->ledger, &one);
	}
}

static void test_a_ledger_that_others_can_write(void **state)
{
	struct place *place = *state;
	struct error e = {0};
	assert_int_equal(fchmod(place->ledger, 0770), 0);
	assert_int_equal(slurm_ledger_open(place->sweep, place->path, true, &e), -EPERM);
	assert_non_null(strstr(e.text, "/slurm: others can write it"));
}

static void test_arrays(void **state)
{
	struct place *place = *state;
	char token[SLURM_TOKEN_SIZE], other[SLURM_TOKEN_SIZE];
	assert_int_equal(slurm_ledger_new_token(token), 0);
	assert_int_equal(slurm_ledger_new_token(other), 0);
	assert_string_not_equal(token, other);
	assert_int_equal(slurm_ledger_job(place->ledger, token), 0);
	assert_int_equal(slurm_ledger_write_job(place->ledger, token, 4711), 0);
	assert_int_equal(slurm_ledger_job(place->ledger, token), 4711);
	assert_false(slurm_ledger_is_cancelled(place->ledger, token));
	assert_int_equal(slurm_ledger_cancel(place->ledger, token), 0);
	assert_true(slurm_ledger_is_cancelled(place->ledger, token));
	slurm_ledger_forget(place->ledger, token);
	assert_int_equal(slurm_ledger_job(place->ledger, token), 0);
}

// An answer of which the end is cut off is no answer: the jobs in it would count as ended.
static void test_answers_are_whole(void **state)
{
	(void)state;
	static const struct {
		const char *const words[3];
		int expected;
		size_t length;
		const char *line;
	} cases[] = {
		{{"head", "-c", "16777216"}, 0, 16 << 20, ""},
		{{"head", "-c", "16777217"}, -EFBIG, 0,
			"head printed more than the 16 MiB that strain reads"},
	};
	_cleanup_free_ char *input = calloc(1, 17 << 20);
	assert_non_null(input);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct slurm_command command = {0};
		struct slurm_answer answer;
		struct error e = {0};
		slurm_command_add_words(&command, cases[i].words, 3);
		assert_int_equal(slurm_client_run(&command, input, 17 << 20, &answer, &e),
			cases[i].expected);
		assert_string_equal(e.text, cases[i].line);
		if (cases[i].expected == 0) {
			assert_int_equal(answer.output.length, cases[i].length);
		}
		slurm_answer_done(&answer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_judgements),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_answers_are_whole),
		cmocka_unit_test_setup_teardown(
			test_a_ticket_is_taken_or_revoked, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_list_has_tickets_that_are_taken_meanwhile, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_ledger_that_others_can_write, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_arrays, make_place, remove_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
