// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/command.h"
#include "record/job/name.h"

// Splits at blanks; an argument that holds blanks is written with '_' for them here.
static void expect(const char *line, const char *wanted)
{
	char words[256], *command[32], *rest = words, name[80];
	size_t n = 0;
	snprintf(words, sizeof(words), "%s", line);
	for (char *word; (word = strsep(&rest, " "));) {
		command[n++] = word;
	}
	command[n] = NULL;
	command_name(command, name, sizeof(name));
	if (strcmp(name, wanted) != 0) {
		print_error("%s\n", line);
	}
	assert_string_equal(name, wanted);
}

static void test_a_program_is_its_own_name(void **state)
{
	(void)state;
	expect("./train", "train");
	expect("/opt/bin/a.out --epochs 3", "a.out");
	expect("train", "train");
	expect("make -j4", "make");
}

static void test_an_interpreter_gives_way_to_its_script(void **state)
{
	(void)state;
	expect("python3 train.py --lr 0.1", "train");
	expect("python -u x/train.py", "train");
	expect("/usr/bin/python3.11 -X importtime -W ignore train.py", "train");
	expect("python3 -m pkg.train --x", "train");
	expect("python3 -um pkg.train", "train");
	expect("python3 -m pkg", "pkg");
	expect("python3 -c import_torch", "python3");
	expect("python3", "python3");
	expect("python3 - x", "run");
	expect("bash -c exit", "bash");
	expect("bash -ec exit", "bash");
	expect("bash ./run.sh a b", "run");
	expect("sh x.sh", "x");
	expect("Rscript fit.R", "fit");
	expect("julia -p 4 fit.jl", "fit");
}

static void test_runners_are_looked_through(void **state)
{
	(void)state;
	expect("env FOO=1 BAR=2 python3 train.py", "train");
	expect("env -u FOO -i python3 train.py", "train");
	expect("nice -n 10 ionice -c 3 ./train", "train");
	expect("numactl --cpunodebind=0 --membind=0 python train.py", "train");
	expect("numactl -N 0 -m 0 python train.py", "train");
	expect("taskset 0x3 ./train", "train");
	expect("taskset -c 0-3 ./train", "train");
	expect("timeout -k 5 1h python3 train.py", "train");
	expect("stdbuf -oL ./train", "train");
	expect("srun -n 4 --gres=gpu:1 python3 -u train.py", "train");
	expect("srun --ntasks 4 python3 -u train.py", "train");
	expect("mpirun -np 4 python train.py", "train");
	expect("nice -- ./train", "train");
	expect("env FOO=1", "env");
	expect("nice -n", "nice");
}

static void test_launchers_of_python_name_the_script(void **state)
{
	(void)state;
	expect("torchrun --nproc_per_node 4 --rdzv-id 7 train.py --lr 1", "train");
	expect("torchrun --nproc_per_node=4 -m pkg.train", "train");
	expect("accelerate launch --mixed_precision fp16 train.py", "train");
	expect("deepspeed --num_gpus 2 train.py", "train");
	expect("python3 -m torch.distributed.run train.py", "run");
	expect("torchrun --help", "torchrun");
}

static void test_a_name_is_fit_for_a_file(void **state)
{
	(void)state;
	expect("./we!rd$name;", "we_rd_name_");
	expect("./..hidden", "hidden");
	expect("./-rf", "rf");
	expect("/", "run");
	expect("./a)_R_1_(b", "a__R_1__b");
	expect("./\xff\xfe", "run");
	char line[300] = "./";
	memset(line + 2, 'x', 200);
	char wanted[65];
	memset(wanted, 'x', 64);
	wanted[64] = '\0';
	expect(line, wanted);
}

static void test_date_and_rank_follow(void **state)
{
	(void)state;
	char train[] = "./train", *command[] = {train, NULL}, name[128];
	setenv("TZ", "UTC", 1);
	unsetenv("RANK");
	setenv("SLURM_PROCID", "7", 1);
	name_of_run(command, 1795171331, name, sizeof(name));
	assert_string_equal(name, "train-20261120-104211-rank7");
	setenv("RANK", "3", 1);
	name_of_run(command, 1795171331, name, sizeof(name));
	assert_string_equal(name, "train-20261120-104211-rank3");
	setenv("RANK", "../../x", 1);
	unsetenv("SLURM_PROCID");
	name_of_run(command, 1795171331, name, sizeof(name));
	assert_string_equal(name, "train-20261120-104211");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_program_is_its_own_name),
		cmocka_unit_test(test_an_interpreter_gives_way_to_its_script),
		cmocka_unit_test(test_runners_are_looked_through),
		cmocka_unit_test(test_launchers_of_python_name_the_script),
		cmocka_unit_test(test_a_name_is_fit_for_a_file),
		cmocka_unit_test(test_date_and_rank_follow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
