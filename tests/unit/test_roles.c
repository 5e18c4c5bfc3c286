// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Roles: who trains, who prepares batches, who only starts others.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "run/processes.h"

// Entity ids are 1, 2, ... in the order given.
static struct process_row process(
	int64_t entity, int64_t parent, const char *command, double cpu, double first, double last)
{
	return (struct process_row){
		.entity = entity,
		.parent = parent,
		.name = "",
		.command = (char *)(uintptr_t)command, // only read
		.cpu_seconds = cpu,
		.first_s = first,
		.last_s = last,
		.rank = -1,
	};
}

static void test_a_shell_that_starts_python_with_loader_workers(void **state)
{
	(void)state;
	struct process_row rows[] = {
		process(1, 0, "sh -c 'python3 train.py'", 0.01, 0, 100),
		process(2, 1, "/usr/bin/python3 train.py", 50, 0.1, 100),
		process(3, 2, "/usr/bin/python3 train.py", 30, 5, 50),
		process(4, 2, "/usr/bin/python3 train.py", 30, 5, 50),
		process(5, 2, "/usr/bin/python3 train.py", 30, 51, 99),
		process(6, 2, "/usr/bin/python3 train.py", 30, 51, 99),
		process(7, 2, "lscpu", 0.01, 1, 1.1),
		process(8, 2, "/usr/bin/python3 train.py", 0, 1, 1.01), // about to exec
		process(9, 2, "python3 -c from multiprocessing.resource_tracker import main", 0, 5,
			99),
	};
	assert_int_equal(processes_assign_roles(rows, 9), 0);
	assert_int_equal(rows[2].role, ROLE_CHILD); // for what, nobody said
	assert_int_equal(rows[2].number, -1);
	rows[1].iterates = true;
	assert_int_equal(processes_assign_roles(rows, 9), 0);
	assert_int_equal(rows[0].role, ROLE_LAUNCHER);
	assert_int_equal(rows[1].role, ROLE_MAIN);
	const int numbers[] = {0, 1, 0, 1}; // the second pair takes the numbers of the first
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(rows[2 + i].role, ROLE_LOADER);
		assert_int_equal(rows[2 + i].number, numbers[i]);
	}
	assert_int_equal(rows[6].role, ROLE_HELPER);
	assert_int_equal(rows[7].role, ROLE_HELPER);
	assert_int_equal(rows[8].role, ROLE_HELPER);
	rows[3].prepares = true; // then who does not is another child
	assert_int_equal(processes_assign_roles(rows, 9), 0);
	assert_int_equal(rows[2].role, ROLE_CHILD);
	assert_int_equal(rows[3].role, ROLE_LOADER);
	assert_int_equal(rows[3].number, 0);
}

// A step of a script that is called "prepare" as the batches of loader workers are.
static void test_who_prepares_feeds_a_training(void **state)
{
	(void)state;
	struct process_row rows[] = {
		process(1, 0, "bash job.sh", 1, 0, 100),
		process(2, 1, "python3 train.py", 90, 10, 100),
		process(3, 2, "bash fetch.sh", 5, 10, 99),
		process(4, 2, "python3 -c forkserver", 0.1, 11, 100),
		process(5, 4, "python3 -c forkserver", 40, 11, 100), // not its own child
		process(6, 1, "./feeder", 5, 9, 100),
	};
	rows[0].prepares = rows[2].prepares = rows[4].prepares = rows[5].prepares = true;
	rows[1].iterates = true;
	assert_int_equal(processes_assign_roles(rows, 6), 0);
	assert_int_equal(rows[0].role, ROLE_LAUNCHER);
	assert_int_equal(rows[1].role, ROLE_MAIN);
	assert_int_equal(rows[2].role, ROLE_HELPER);
	assert_int_equal(rows[4].role, ROLE_LOADER);
	assert_int_equal(rows[5].role, ROLE_LOADER);
	rows[1].iterates = false; // then a process beside it feeds nobody that is known
	assert_int_equal(processes_assign_roles(rows, 6), 0);
	assert_int_equal(rows[4].role, ROLE_LOADER); // the hooks' workers, before any iteration
	assert_int_equal(rows[5].role, ROLE_HELPER);
	struct process_row alone = process(1, 0, "sh job.sh", 1, 0, 2);
	alone.prepares = true;
	assert_int_equal(processes_assign_roles(&alone, 1), 0);
	assert_int_equal(alone.role, ROLE_MAIN);
}

// A `strain run` in the job: its recorder may take more CPU time than what it records.
static void test_strain_is_passed_through(void **state)
{
	(void)state;
	struct process_row rows[] = {
		process(1, 0, "run -o x python3 train.py", 0.1, 0, 100),
		process(2, 1, "run -o x python3 train.py", 5, 0, 100),
		process(3, 1, "python3 train.py", 2, 0.1, 100),
		process(4, 3, "python3 train.py", 2, 1, 100),
		process(5, 1, "strain finish x", 9, 99, 100),
	};
	rows[0].strain = rows[1].strain = rows[4].strain = true;
	rows[2].iterates = true;
	assert_int_equal(processes_assign_roles(rows, 5), 0);
	assert_int_equal(rows[0].role, ROLE_STRAIN);
	assert_int_equal(rows[1].role, ROLE_STRAIN);
	assert_int_equal(rows[2].role, ROLE_MAIN);
	assert_int_equal(rows[3].role, ROLE_LOADER);
	assert_int_equal(rows[4].role, ROLE_STRAIN);
	rows[2].strain = true; // nothing but strain
	assert_int_equal(processes_assign_roles(rows, 3), 0);
	assert_int_equal(rows[2].role, ROLE_STRAIN);
}

static void test_ranks_under_a_launcher(void **state)
{
	(void)state;
	struct process_row rows[] = {
		process(1, 0, "torchrun --nproc-per-node 2 train.py", 1, 0, 100),
		process(2, 1, "python3 train.py", 90, 1, 99),
		process(3, 1, "python3 train.py", 80, 1, 99),
		process(4, 3, "python3 train.py", 20, 5, 99),
		process(5, 1, "nvidia-smi", 0.1, 1, 2),
	};
	rows[2].iterates = true;
	assert_int_equal(processes_assign_roles(rows, 5), 0);
	assert_int_equal(rows[0].role, ROLE_LAUNCHER);
	assert_int_equal(rows[1].role, ROLE_RANK);
	assert_int_equal(rows[2].role, ROLE_RANK);
	assert_int_equal(rows[2].number, 1);
	assert_int_equal(rows[3].role, ROLE_LOADER);
	assert_int_equal(rows[4].role, ROLE_HELPER);
}

// A script that starts training beside other programs, which together take most of the time.
static void test_training_beside_other_programs(void **state)
{
	(void)state;
	struct process_row rows[] = {
		process(1, 0, "bash run.sh", 0.01, 0, 100),
		process(2, 1, "python3 pack.py 0", 40, 0.1, 100),
		process(3, 1, "python3 pack.py 1", 40, 0.1, 100),
		process(4, 1, "python3 train.py", 50, 0.2, 100),
		process(5, 4, "python3 train.py", 5, 5, 99),
	};
	assert_int_equal(processes_assign_roles(rows, 5), 0);
	assert_int_equal(rows[0].role, ROLE_MAIN); // which of them trains, nobody said
	rows[3].iterates = true;
	assert_int_equal(processes_assign_roles(rows, 5), 0);
	assert_int_equal(rows[0].role, ROLE_LAUNCHER);
	assert_int_equal(rows[1].role, ROLE_HELPER);
	assert_int_equal(rows[3].role, ROLE_MAIN);
	assert_int_equal(rows[4].role, ROLE_LOADER);
	rows[3].iterates = false;
	rows[0].iterates = true; // the script marks what it starts
	assert_int_equal(processes_assign_roles(rows, 5), 0);
	assert_int_equal(rows[0].role, ROLE_MAIN);
}

// A rank that another forked has its command line, as loader workers have.
static void test_ranks_that_marks_tell(void **state)
{
	(void)state;
	struct process_row rows[] = {
		process(1, 0, "python3 train.py", 90, 0, 100), // starts the others and waits
		process(2, 1, "python3 train.py", 80, 1, 99),
		process(3, 1, "python3 train.py", 80, 1, 99),
		process(4, 1, "python3 train.py", 80, 1, 99), // does not iterate
		process(5, 3, "python3 train.py", 20, 5, 99),
	};
	assert_int_equal(processes_assign_roles(rows, 5), 0);
	assert_int_equal(rows[0].role, ROLE_MAIN);
	assert_int_equal(rows[1].role, ROLE_CHILD);
	rows[1].rank = 0;
	rows[1].iterates = true;
	assert_int_equal(processes_assign_roles(rows, 5), 0);
	assert_int_equal(rows[1].role, ROLE_CHILD); // one alone is none
	rows[2].rank = 1;
	rows[2].iterates = true;
	assert_int_equal(processes_assign_roles(rows, 5), 0);
	assert_int_equal(rows[0].role, ROLE_LAUNCHER);
	assert_int_equal(rows[1].role, ROLE_RANK);
	assert_int_equal(rows[2].role, ROLE_RANK);
	assert_int_equal(rows[2].number, 1);
	assert_int_equal(rows[3].role, ROLE_CHILD);
	assert_int_equal(rows[4].role, ROLE_LOADER);
	assert_int_equal(rows[4].number, 0);
	rows[0].rank = 2; // forked them, and trains
	rows[0].iterates = true;
	assert_int_equal(processes_assign_roles(rows, 5), 0);
	assert_int_equal(rows[0].role, ROLE_RANK);
	assert_int_equal(rows[3].role, ROLE_LOADER);
}

static void test_a_script_of_many_commands_is_main_itself(void **state)
{
	(void)state;
	struct process_row rows[] = {
		process(1, 0, "bash ./all.sh", 1, 0, 10),
		process(2, 1, "gzip a", 1, 0, 1),
		process(3, 1, "gzip b", 1, 1, 2),
		process(4, 1, "gzip c", 1, 2, 3),
	};
	assert_int_equal(processes_assign_roles(rows, 4), 0);
	assert_int_equal(rows[0].role, ROLE_MAIN);
	assert_int_equal(rows[1].role, ROLE_HELPER);
}

static void test_strange_trees(void **state)
{
	(void)state;
	struct process_row none[1];
	assert_int_equal(processes_assign_roles(none, 0), 0);
	// Parents that are not there, that are themselves, that form a circle; no command lines.
	struct process_row rows[] = {
		process(1, 1, "", NAN, 0, 1),
		process(2, 3, "", NAN, 0, 1),
		process(3, 2, "sh", NAN, 0, 1),
		process(4, 99, "  ", NAN, 5, 1),
	};
	assert_int_equal(processes_assign_roles(rows, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_shell_that_starts_python_with_loader_workers),
		cmocka_unit_test(test_who_prepares_feeds_a_training),
		cmocka_unit_test(test_strain_is_passed_through),
		cmocka_unit_test(test_ranks_under_a_launcher),
		cmocka_unit_test(test_training_beside_other_programs),
		cmocka_unit_test(test_ranks_that_marks_tell),
		cmocka_unit_test(test_a_script_of_many_commands_is_main_itself),
		cmocka_unit_test(test_strange_trees),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
