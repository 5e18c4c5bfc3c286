// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Plans that are wrong, each with its line; what right ones become.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants these before it.
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sweep/expression.h"
#include "sweep/plan.h"
#include "sweep/plan_kept.h"
#include "sweep/template.h"
#include "sweep/trials.h"
#include "messages.h"

#define ARGS "command: [job, \"${args}\"]\n"
#define PLAN ARGS "parameters: {b: {values: [1, 2]}}\n"
#define YAML(text) text, sizeof(text) - 1

struct bad_plan {
	const char *what;
	const char *yaml;
	size_t size;
	const char *names; // behind "plan.yaml:", as assert_says() takes it
};

// clang-format off
static const struct bad_plan bad_plans[] = {
	{"unknown key",
		YAML(PLAN "reptas: 3\n"),
		"3:1: ... 'reptas' ... 'repeats'"},
	{"unknown key, nothing near",
		YAML(PLAN "colour: red\n"),
		"3:1: ... 'colour'"},
	{"unknown key in stop",
		YAML(PLAN "stop: {epoch: 3}\n"),
		"3:8: stop: ... 'epoch' ... 'epochs'"},
	{"wrong type of repeats",
		YAML(PLAN "repeats: [3]\n"),
		"3:10: repeats: ... 1 ... 1000"},
	{"wrong type of repeats, text",
		YAML(PLAN "repeats: many\n"),
		"3:10: repeats: ... 1 ... 1000 ... 'many'"},
	{"no grace",
		YAML(PLAN "grace: 0\n"),
		"3:8: grace: ... seconds ... 10min ... '0'"},
	{"wrong type of command",
		YAML("command: {a: b}\n"),
		"1:10: command: ... 1000"},
	{"no command",
		YAML("parameters: {b: {values: [1]}}\n"),
		"1:1: command:"},
	{"empty",
		YAML(""),
		"1:1:"},
	{"only a comment",
		YAML("# nothing\n"),
		"1:1:"},
	{"a list",
		YAML("- command\n"),
		"1:1:"},
	{"empty list",
		YAML(ARGS "parameters:\n  b:\n    values: []\n"),
		"4:13: parameters.b: ... 1 ... 10000"},
	{"empty command",
		YAML("command: []\n"),
		"1:10: command: ... 1000"},
	{"values is no list",
		YAML(ARGS "parameters: {b: {values: 3}}\n"),
		"2:26: parameters.b: ... 1 ... 10000 ... '3'"},
	{"value is a list",
		YAML(ARGS "parameters: {b: {value: [3]}}\n"),
		"2:25: parameters.b:"},
	{"null value",
		YAML(ARGS "parameters: {b: {values: [1, ~]}}\n"),
		"2:30: parameters.b:"},
	{"nested list",
		YAML(ARGS "parameters: {b: {values: [1, [2, 3]]}}\n"),
		"2:30: parameters.b:"},
	{"undefined alias",
		YAML(ARGS "parameters:\n  b: {values: *batches}\n"),
		"3:16: ... '*batches' ... '&batches'"},
	{"alias within itself",
		YAML(ARGS "parameters: &p\n  b: {values: [*p]}\n"),
		"3:17: ... '*p' ... '&p'"},
	{"laughs",
		YAML("a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e]\ng: &g [*f, *f, *f, *f, *f, *f, *f, *f, *f]\nh: &h [*g, *g, *g, *g, *g, *g, *g, *g, *g]\ni: &i [*h, *h, *h, *h, *h, *h, *h, *h, *h]\ncommand: *i\n"),
		"1:1: ... 'a'"},
	{"laughs as values",
		YAML("command: [job, \"${b}\"]\nlabels:\n  a: 1\nparameters:\n  b:\n    values: [&a [1, 2], *a]\n"),
		"6:17: parameters.b:"},
	{"duplicate key",
		YAML(PLAN "repeats: 2\nrepeats: 3\n"),
		"4:1: repeats: ... 3"},
	{"duplicate parameter",
		YAML(ARGS "parameters:\n  b: {value: 1}\n  b: {value: 2}\n"),
		"4:3: b: ... 3"},
	{"duplicate value",
		YAML(ARGS "parameters: {b: {values: [1, 2, 1]}}\n"),
		"2:33: parameters.b: ... '1'"},
	{"placeholder without parameter",
		YAML("command: [job, \"--x=${batch}\"]\nparameters: {batch_size: {values: [1]}}\n"),
		"1:16: command: ... '${batch}'"},
	{"placeholder, near",
		YAML("command: [job, \"${batchsize}\"]\nparameters: {batch_size: {values: [1]}}\n"),
		"1:16: command: ... '${batchsize}' ... '${batch_size}'"},
	{"parameter without placeholder",
		YAML("command: [job, \"${a}\"]\nparameters:\n  a: {value: 1}\n  b: {value: 2}\n"),
		"4:3: parameters.b:"},
	{"placeholder without end",
		YAML("command: job ${b\nparameters: {b: {value: 1}}\n"),
		"1:10: command: ... '${b'"},
	{"placeholder without name",
		YAML("command: job ${}\n"),
		"1:10: command: ... '${}'"},
	{"args within a word",
		YAML("command: [job, \"x${args}\"]\nparameters: {b: {value: 1}}\n"),
		"1:16: command: ... 'x${args}'"},
	{"args in env",
		YAML("command: [job]\nenv: {A: \"${args}\"}\n"),
		"2:10: env.A: ... '${args}'"},
	{"an open quote",
		YAML("command: \"job 'a\"\n"),
		"1:10: command:"},
	{"a pipe",
		YAML("command: job | tee log\n"),
		"1:10: command: ... '|'"},
	{"cpus",
		YAML(PLAN "resources: {cpus: {values: [1, 0]}}\n"),
		"3:32: resources.cpus: ... 1 ... '0'"},
	{"memory",
		YAML(PLAN "resources: {memory: {values: [4GiB, 4Gib]}}\n"),
		"3:37: resources.memory: ... 1MiB ... 4GiB ... '4Gib'"},
	{"memory tiny",
		YAML(PLAN "resources: {memory: 1kB}\n"),
		"3:21: resources.memory: ... 1MiB ... 4GiB ... '1kB'"},
	{"rate",
		YAML(PLAN "resources:\n  disk_read: 100MB\n"),
		"4:14: resources.disk_read: ... 100MB ... '100MB'"},
	{"gpu type",
		YAML(PLAN "resources: {gpu_type: H100}\n"),
		"3:23: resources.gpu_type: ... 'H100'"},
	{"unknown resource",
		YAML(PLAN "resources: {cpu: 1}\n"),
		"3:13: resources: ... 'cpu' ... 'cpus'"},
	{"constraint removes all",
		YAML(PLAN "constraints: [\"b > 2\"]\n"),
		"3:15: constraints: ... 2"},
	{"constraint syntax",
		YAML(PLAN "constraints: [\"b >\"]\n"),
		"3:15: constraints: ... 4"},
	{"constraint rest",
		YAML(PLAN "constraints: [\"b < 2 < 3\"]\n"),
		"3:15: constraints: ... 7 ... 'and' ... 'or' ... '< 3'"},
	{"constraint name",
		YAML(PLAN "constraints: [\"batch > 2\"]\n"),
		"3:15: constraints: ... 'batch' ... 1"},
	{"constraint type",
		YAML(ARGS "parameters: {m: {values: [cnn]}}\nconstraints: [\"m > 2\"]\n"),
		"3:15: constraints: ... 1 ... 'cnn'"},
	{"constraint no truth",
		YAML(PLAN "constraints: [\"b + 1\"]\n"),
		"3:15: constraints: ... 3"},
	{"constraint zero",
		YAML(PLAN "constraints: [\"b / 0 > 1\"]\n"),
		"3:15: constraints: ... 3"},
	{"constraint hex",
		YAML(PLAN "constraints: [\"b > 0x10\"]\n"),
		"3:15: constraints: ... 5 ... '0x10'"},
	{"constraint quote",
		YAML(PLAN "constraints: ['b == \"x']\n"),
		"3:15: constraints: ... 6 ... '\"x'"},
	{"constraints no list",
		YAML(PLAN "constraints: b > 1\n"),
		"3:14: constraints: ... 1 ... 100 ... 'b > 1'"},
	{"method",
		YAML(PLAN "method: bayes\n"),
		"3:9: method: ... grid ... random ... 'bayes'"},
	{"random without trials",
		YAML(PLAN "method: random\n"),
		"3:9: trials:"},
	{"trials with grid",
		YAML(PLAN "trials: 3\n"),
		"3:9: trials: ... grid ... repeats ... '3'"},
	{"random too many",
		YAML(PLAN "method: random\ntrials: 3\n"),
		"4:9: trials: ... 3 ... 2"},
	{"interval with grid",
		YAML(ARGS "parameters: {lr: {min: 0, max: 1}}\n"),
		"2:18: parameters.lr: ... min ... max ... random"},
	{"interval half",
		YAML(ARGS "method: random\ntrials: 2\nparameters: {lr: {min: 0}}\n"),
		"4:18: parameters.lr: ... min ... max"},
	{"interval upside down",
		YAML(ARGS "method: random\ntrials: 2\nparameters: {lr: {min: 1, max: 0}}\n"),
		"4:24: parameters.lr: ... min ... max ... 1 ... 0"},
	{"log of zero",
		YAML(ARGS "method: random\ntrials: 2\nparameters: {lr: {min: 0, max: 1, distribution: log_uniform_values}}\n"),
		"4:24: parameters.lr: ... min ... 0 ... log_uniform_values ... 0"},
	{"distribution",
		YAML(ARGS "method: random\ntrials: 2\nparameters: {lr: {min: 0, max: 1, distribution: normal}}\n"),
		"4:49: parameters.lr: ... uniform ... int_uniform ... q_uniform ... log_uniform_values ... 'normal'"},
	{"values and value",
		YAML(ARGS "parameters: {b: {values: [1], value: 1}}\n"),
		"2:17: parameters.b: ... min ... max"},
	{"parameter key",
		YAML(ARGS "parameters: {b: {valuse: [1]}}\n"),
		"2:18: parameters.b: ... min ... max ... 'valuse' ... 'values'"},
	{"parameter list",
		YAML(ARGS "parameters: {b: [1, 2]}\n"),
		"2:17: parameters.b:"},
	{"parameter name",
		YAML(ARGS "parameters: {\"b c\": {value: 1}}\n"),
		"2:14: parameters: ... 64 ... 'b c'"},
	{"parameter name taken",
		YAML(ARGS "parameters: {trial: {value: 1}}\n"),
		"2:14: parameters: ... 'trial'"},
	{"repeats too many",
		YAML(PLAN "repeats: 1000000\n"),
		"3:10: repeats: ... 1 ... 1000 ... '1000000'"},
	{"order",
		YAML(PLAN "order: sorted\n"),
		"3:8: order: ... random ... 'sorted'"},
	{"stop epochs",
		YAML(PLAN "stop: {epochs: 0}\n"),
		"3:16: stop.epochs: ... 1 ... 1000000 ... '0'"},
	{"stop seconds",
		YAML(PLAN "stop: {seconds: soon}\n"),
		"3:17: stop.seconds: ... seconds ... 10min ... 'soon'"},
	{"stop error",
		YAML(PLAN "stop: {step_error: 3}\n"),
		"3:20: stop.step_error: ... 0.1% ... 100% ... '3'"},
	{"stop empty",
		YAML(PLAN "stop: {}\n"),
		"3:7: stop: ... epochs ... seconds ... step_error"},
	{"timeout",
		YAML(PLAN "timeout: 0\n"),
		"3:10: timeout: ... seconds ... 10min ... '0'"},
	{"executor",
		YAML(PLAN "executor: pbs\n"),
		"3:11: executor: ... 'pbs'"},
	{"slurm alone",
		YAML(PLAN "slurm: {time: 1h}\n"),
		"3:8: slurm: ... executor: slurm"},
	{"slurm key",
		YAML(PLAN "executor: slurm\nslurm: {partion: gpu}\n"),
		"4:9: slurm: ... 'partion' ... 'partition'"},
	{"slurm time",
		YAML(PLAN "executor: slurm\nslurm: {time: soon}\n"),
		"4:15: slurm.time: ... 'soon'"},
	{"slurm option of the sweep",
		YAML(PLAN "executor: slurm\nslurm: {options: [--qos=a, --arr=1-9]}\n"),
		"4:28: slurm.options: ... '--arr=1-9'"},
	{"slurm option without dash",
		YAML(PLAN "executor: slurm\nslurm: {options: [script.sh]}\n"),
		"4:19: slurm.options: ... 'script.sh'"},
	{"slurm requeue",
		YAML(PLAN "executor: slurm\nslurm: {requeue: maybe}\n"),
		"4:18: slurm.requeue: ... true or false ... 'maybe'"},
	{"baseline name",
		YAML(PLAN "baseline: {c: 1}\n"),
		"3:12: baseline: ... 'c'"},
	{"baseline value",
		YAML(PLAN "baseline: {b: 3}\n"),
		"3:15: baseline.b: ... '3'"},
	{"label",
		YAML(PLAN "labels: {b: 3}\n"),
		"3:10: labels: ... 'b'"},
	{"env name",
		YAML(PLAN "env: {\"A B\": 3}\n"),
		"3:7: env: ... 64 ... 'A B'"},
	{"tab",
		YAML("command: [job]\n\tname: x\n"),
		"2:1: ... YAML"},
	{"open bracket",
		YAML("command: [job\n"),
		"2:1: ... YAML"},
	{"two documents",
		YAML("command: [job]\n---\ncommand: [job]\n"),
		"2:1:"},
	{"merge key",
		YAML("a: &a {x: 1}\n<<: *a\ncommand: job\n"),
		"1:1: ... 'a'"},
	{"utf8",
		YAML("command: [job]\nname: \377\376\n"),
		"2:7: ... UTF-8 ... 0xff"},
	{"utf8 2",
		YAML("command: [job]\nname: \303\251\303\n"),
		"2:8: ... UTF-8 ... 0xc3"},
	{"nul",
		YAML("command: [job]\nname: a\000b\n"),
		"2:8: ... UTF-8 ... 0x00"},
	{"escaped nul",
		YAML("command: [job]\nname: \"a\\0b\"\n"),
		"2:7: ... NUL ... 'a'"},
	{"control",
		YAML("command: [job]\nname: \"a\\nb\"\n"),
		"2:7: name: ... 0x0a"},
	{"complex key",
		YAML("? [a]\n: b\n"),
		"1:3:"},
};
// clang-format on

static int read_plan(
	const char *yaml, size_t size, struct plan *plan, struct trials *trials, struct error *e)
{
	int result = plan_read("plan.yaml", yaml, size, plan, e);
	if (result == 0 && (result = trials_make(plan, trials, e)) < 0) {
		plan_done(plan);
	}
	return result;
}

static void assert_bad(const char *what, const char *yaml, size_t size, const char *names)
{
	struct plan plan;
	struct trials trials;
	struct error e = {0};
	print_message("%s\n", what);
	assert_int_equal(read_plan(yaml, size, &plan, &trials, &e), -22);
	assert_int_equal(strncmp(e.text, "plan.yaml:", strlen("plan.yaml:")), 0);
	// Behind "YAML" are the library's own words.
	char *library = strstr(e.text, "YAML: ");
	if (library) {
		library[strlen("YAML")] = '\0';
	}
	assert_says(e.text + strlen("plan.yaml:"), names);
	assert_null(strchr(e.text, '\n'));
}

static void test_bad_plans(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(bad_plans); i++) {
		const struct bad_plan *bad = &bad_plans[i];
		assert_bad(bad->what, bad->yaml, bad->size, bad->names);
	}
}

static void append_numbers(struct text *t, const char *name, unsigned n)
{
	text_format(t, "  %s: {values: [", name);
	for (unsigned i = 0; i < n; i++) {
		text_format(t, "%s%u", i > 0 ? ", " : "", i);
	}
	text_append_string(t, "]}\n");
}

static void test_too_much(void **state)
{
	(void)state;
	_cleanup_text_ struct text many = {0}, more = {0}, deep = {0}, alternate = {0}, wide = {0};
	text_append_string(&many, ARGS "repeats: 1000\nparameters:\n");
	append_numbers(&many, "a", 100);
	append_numbers(&many, "c", 100);
	assert_bad("trials", many.data, many.length, "2:10: repeats: ... 100000 ... 10000000");
	text_append_string(&more, ARGS "parameters:\n");
	append_numbers(&more, "a", 2000);
	append_numbers(&more, "c", 2000);
	assert_bad("configurations", more.data, more.length, "4:3: parameters: ... 1000000");
	text_append_string(&deep, "command: ");
	for (unsigned i = 0; i < 100; i++) {
		text_append_string(&deep, "[");
	}
	assert_bad("levels", deep.data, deep.length, "1:41: ... 32");
	text_append_string(&alternate, PLAN "constraints: ['");
	for (unsigned i = 0; i < 200; i++) {
		text_append_string(&alternate, "(");
	}
	text_append_string(&alternate, "']\n");
	assert_bad("parentheses", alternate.data, alternate.length,
		"3:15: constraints: ... 51 ... '(((((((((((((((((((('");
	text_append_string(&wide, PLAN "name: ");
	for (unsigned i = 0; i < 5000; i++) {
		text_append_string(&wide, "x");
	}
	assert_bad("a long line", wide.data, wide.length, "3:7: name: ... 4096 ... 5000");
}

// Each level names the one before it nine times: a tree that were expanded would have 9^30 leaves.
static void test_laughs(void **state)
{
	(void)state;
	_cleanup_text_ struct text yaml = {0};
	text_append_string(&yaml, "labels: {a0: &a0 [x, x, x, x, x, x, x, x, x],\n");
	for (unsigned i = 1; i <= 30; i++) {
		text_format(&yaml, " a%u: &a%u [", i, i);
		for (unsigned k = 0; k < 9; k++) {
			text_format(&yaml, "%s*a%u", k > 0 ? ", " : "", i - 1);
		}
		text_append_string(&yaml, "],\n");
	}
	text_append_string(&yaml, " }\ncommand: *a30\n");
	assert_bad("laughs", yaml.data, yaml.length, "30:12: command:");
}

static void assert_words(char **words, const char *const *expected)
{
	size_t n = 0;
	assert_non_null(words);
	for (; expected[n]; n++) {
		assert_non_null(words[n]);
		assert_string_equal(words[n], expected[n]);
	}
	assert_null(words[n]);
	template_free_words(words);
}

static void test_commands(void **state)
{
	static const char yaml[] = "command: python3 'my train.py' --model=${model} \\\"q\\\" "
				   "${args} $${model} \"a\"'b'\n"
				   "env: {OMP_NUM_THREADS: \"${threads}\"}\n"
				   "parameters:\n"
				   "  model: {value: cnn}\n"
				   "  batch_size: {values: [032, 1e3]}\n"
				   "  threads: {value: 2}\n"
				   "  flag: {value: 'yes'}\n"
				   "resources: {memory: 4GiB}\n";
	struct plan plan;
	struct trials trials;
	(void)state;
	assert_int_equal(read_plan(YAML(yaml), &plan, &trials, NULL), 0);
	assert_int_equal(trials.n, 2);
	// As written, and what the command names itself is not among ${args}.
	assert_words(trials_command(&trials, 1),
		(const char *[]){"python3", "my train.py", "--model=cnn", "\"q\"",
			"--batch-size=032", "--flag=yes", "${model}", "ab", NULL});
	assert_words(trials_environment(&trials, 2), (const char *[]){"OMP_NUM_THREADS=2", NULL});
	assert_string_equal(trials_value_of(&trials, 2, "batch_size"), "1e3");
	assert_string_equal(trials_value_of(&trials, 2, "memory"), "4GiB");
	assert_null(trials_value_of(&trials, 2, "cpus"));
	trials_done(&trials);
	plan_done(&plan);
}

static void test_grid(void **state)
{
	static const char yaml[] = ARGS
		"parameters:\n"
		"  m: {values: [small, big]}\n"
		"  workers: {values: [0, 2, 4]}\n"
		"resources: {cpus: {values: [1, 2]}}\n"
		"repeats: 3\n"
		"constraints: [\"workers <= 2 * cpus\", \"not (m == 'big' and workers == 0)\"]\n"
		"baseline: {m: small}\n";
	struct plan plan;
	struct trials trials;
	(void)state;
	assert_int_equal(read_plan(YAML(yaml), &plan, &trials, NULL), 0);
	// 2 models, 3 numbers of workers, 2 of CPUs: 12, less those with 4 workers on 1 CPU and
	// those of the big model without workers.
	assert_int_equal(trials.n_configurations, 8);
	assert_int_equal(trials.excluded, 4);
	assert_int_equal(trials.n, 24);
	assert_string_equal(trials_value(&trials, 1, 0), "small");
	assert_string_equal(trials_value(&trials, 2, 2), "2"); // the last varies fastest
	assert_int_equal(trials_baseline(&trials, 1), 1);
	assert_int_equal(trials_baseline(&trials, 6), 3);
	unsigned seen[9][4] = {0};
	for (size_t i = 0; i < trials.n; i++) {
		struct trial_place place = trials.order[i];
		assert_in_range(place.configuration, 1, 8);
		// Every configuration has its first repeat before any has its second.
		assert_int_equal(place.repeat, i / 8 + 1);
		assert_int_equal(seen[place.configuration][place.repeat]++, 0);
	}
	struct trials again;
	assert_int_equal(trials_make(&plan, &again, NULL), 0);
	assert_memory_equal(trials.order, again.order, trials.n * sizeof(*trials.order));
	trials_done(&again);
	trials_done(&trials);
	plan_done(&plan);
}

static void test_order_of_plan(void **state)
{
	struct plan plan;
	struct trials trials;
	(void)state;
	assert_int_equal(
		read_plan(YAML(PLAN "repeats: 2\norder: plan\n"), &plan, &trials, NULL), 0);
	static const struct trial_place expected[] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}};
	assert_int_equal(trials.n, 4);
	assert_memory_equal(trials.order, expected, sizeof(expected));
	trials_done(&trials);
	plan_done(&plan);
}

static void test_random(void **state)
{
	static const char yaml[] = ARGS
		"method: random\ntrials: 50\nseed: 7\n"
		"parameters:\n"
		"  lr: {min: 0.001, max: 0.1, distribution: log_uniform_values}\n"
		"  workers: {min: 0, max: 8}\n"
		"  step: {min: 0, max: 1, q: 0.25, distribution: q_uniform}\n"
		"  model: {values: [cnn, alexnet], distribution: categorical}\n"
		"constraints: [\"workers % 2 == 0\"]\n";
	struct plan plan;
	struct trials trials;
	(void)state;
	assert_int_equal(read_plan(YAML(yaml), &plan, &trials, NULL), 0);
	assert_int_equal(trials.n, 50);
	assert_true(trials.excluded > 0);
	for (size_t i = 1; i <= 50; i++) {
		double lr, workers, step;
		assert_true(expression_number(trials_value(&trials, i, 0), &lr));
		assert_true(expression_number(trials_value(&trials, i, 1), &workers));
		assert_true(expression_number(trials_value(&trials, i, 2), &step));
		assert_true(lr >= 0.001 && lr <= 0.1);
		assert_true(workers >= 0 && workers <= 8 && (int)workers % 2 == 0);
		assert_true(step * 4 == (int)(step * 4) && step >= 0 && step <= 1);
	}
	trials_done(&trials);
	plan_done(&plan);
}

struct expression_case {
	const char *text;
	bool holds;
};

static const char *value_of(const void *context, const char *name)
{
	(void)context;
	return strcmp(name, "workers") == 0  ? "4"
	       : strcmp(name, "memory") == 0 ? "4GiB"
	       : strcmp(name, "rate") == 0   ? "unlimited"
	       : strcmp(name, "model") == 0  ? "resnet50"
	                                     : "auto";
}

static void test_expressions(void **state)
{
	static const struct expression_case cases[] = {
		{"workers == 4", true}, {"workers <= 2 * 2 and memory >= 4GiB", true},
		{"memory > 4096 * 1MiB", false}, {"rate > 100GB/s", true},
		{"rate == 'unlimited'", true},
		{"model == \"resnet50\" and not model == 'cnn'", true}, {"threads == 'auto'", true},
		{"threads == 4", false}, // a text is no number
		{"1 + 2 * 3 == 7 and (1 + 2) * 3 == 9", true},
		{"-workers < 0 and 7 % workers == 3", true},
		{"not workers == 4 or 10 / workers == 2.5", true},
		{"2 - 1 - 1 == 0", true}, // from the left
		{"1 < 2 and 2 < 1 or 1 == 1", true}, // `and` binds closer
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct expression *x = NULL;
		struct error e = {0};
		size_t at = 0;
		bool holds = false;
		print_message("%s\n", cases[i].text);
		assert_int_equal(expression_parse(cases[i].text, &x, &at, &e), 0);
		assert_int_equal(expression_holds(x, value_of, NULL, &holds, &at, &e), 0);
		assert_int_equal(holds, cases[i].holds);
		expression_free(x);
	}
}

struct change {
	const char *was;
	const char *is;
	const char *what; // NULL: nothing
};

static void test_changes(void **state)
{
	static const struct change changes[] = {
		{PLAN, "# a comment\n" PLAN "\n", NULL},
		{PLAN "repeats: 2\n", "repeats: 2\n" PLAN, NULL},
		{PLAN, PLAN "repeats: 2\n", "repeats: was nothing, is 2"},
		{PLAN, ARGS "parameters: {b: {values: [1, 2, 3]}}\n",
			"parameters.b.values: was [1, 2], is [1, 2, 3]"},
		{PLAN, ARGS "parameters: {b: {value: 1}}\n",
			"parameters.b.values: was [1, 2], is nothing"},
		{ARGS "parameters: {a: 1, b: 2}\n", ARGS "parameters: {b: 2, a: 1}\n",
			"parameters: the order of their names"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
		struct plan was, is;
		char *what = NULL;
		const struct change *c = &changes[i];
		assert_int_equal(plan_read("a", c->was, strlen(c->was), &was, NULL), 0);
		assert_int_equal(plan_read("b", c->is, strlen(c->is), &is, NULL), 0);
		assert_int_equal(plan_differs(&was, &is, &what), c->what != NULL);
		if (c->what) {
			assert_string_equal(what, c->what);
		}
		free(what);
		plan_done(&was);
		plan_done(&is);
	}
}

static char *kept_of(const char *yaml, size_t size, int wanted)
{
	struct plan plan;
	struct error e = {0};
	struct text kept = {0};
	int read = plan_read("plan.yaml", yaml, size, &plan, &e);
	assert_string_equal(e.text, "");
	assert_int_equal(read, 0);
	assert_int_equal(plan_kept(&plan, yaml, size, &kept, &e), wanted);
	plan_done(&plan);
	return text_steal(&kept);
}

static void test_what_is_kept(void **state)
{
	(void)state;
	static const char plain[] = "command: [train, --token, '${HF}', --lr, '${lr}'] # as it is\n"
				    "parameters: {lr: {values: [0.1, 0.2]}, HF: a}\n";
	_cleanup_free_ char *same = kept_of(YAML(plain), 0);
	assert_string_equal(same, plain);
	_cleanup_free_ char *comment = kept_of(YAML("# password: S3cr3t\ncommand: [train]\n"), 0);
	assert_string_equal(comment, "# password: ***\ncommand: [train]\n");
	_cleanup_free_ char *trailing = kept_of(
		YAML("command: [train, a] # it's hf_token: S3cr3t\nrepeats: 2 # lr: 1\n"), 0);
	assert_string_equal(
		trailing, "command: [train, a] # it's hf_token: ***\nrepeats: 2 # lr: 1\n");
	_cleanup_free_ char *quoted = kept_of(
		YAML("command: [train, a]\nlabels: {note: 'a # token: S3cr3t'}\n"), 0);
	assert_string_equal(quoted,
		PLAN_MASKED "\ncommand: [train, a]\nlabels: {note: \"a # token: S3cr3t\"}\n");
	_cleanup_free_ char *masked = kept_of(
		YAML("command:\n  - train\n  - --token\n  - S3cr3t\n  - --lr=${lr}\n"
		     "parameters: {lr: {values: [0.10, '0x2', null1]}}\n"
		     "env: {WANDB_API_KEY: S3cr3t, URL: 'https://u:S3cr3t@h', A: 'b \u00e9'} # "
		     "S3cr3t\n"
		     "labels: {who: hf_AbCdEfGhIjKlMnOpQr0123}\n"
		     "repeats: 3\n"),
		0);
	assert_string_equal(masked, PLAN_MASKED
		"\ncommand: [train, \"--token\", \"***\", \"--lr=${lr}\"]\n"
		"parameters: {lr: {values: [0.10, \"0x2\", null1]}}\n"
		"env: {WANDB_API_KEY: \"***\", URL: \"https://u:***@h\", A: \"b \u00e9\"}\n"
		"labels: {who: \"***\"}\n"
		"repeats: 3\n");
	_cleanup_free_ char *line = kept_of(YAML("command: mysql -pS3cr3t db\n"), 0);
	assert_string_equal(line, PLAN_MASKED "\ncommand: \"mysql -p*** db\"\n");
	// ${lr} would be gone with the secret.
	free(kept_of(YAML("command: [train, '--token=x${lr}']\nparameters: {lr: 1}\n"), -EINVAL));
}

static void test_kept_plans_are_compared(void **state)
{
	(void)state;
	static const char yaml[] = "command: [train, --password, S3cr3t, '${lr}']\n"
				   "parameters: {lr: {values: [1, 2]}}\n";
	static const char other[] = "command: [train, --password, other, '${lr}']\n"
				    "parameters: {lr: {values: [1, 3]}}\n";
	_cleanup_free_ char *text = kept_of(YAML(yaml), 0);
	_cleanup_free_ char *what = NULL;
	struct plan kept, is;
	struct error e = {0};
	bool differs = true;
	assert_int_equal(plan_read("kept", text, strlen(text), &kept, &e), 0);
	assert_true(kept.masked);
	assert_int_equal(plan_read("plan.yaml", YAML(yaml), &is, &e), 0);
	assert_false(is.masked);
	assert_int_equal(plan_kept_differs(&kept, &is, &differs, &what, &e), 0);
	assert_false(differs);
	plan_done(&is);
	assert_int_equal(plan_read("plan.yaml", YAML(other), &is, &e), 0);
	assert_int_equal(plan_kept_differs(&kept, &is, &differs, &what, &e), 0);
	assert_true(differs);
	assert_string_equal(what, "parameters.lr.values: was [1, 2], is [1, 3]");
	plan_done(&is);
	plan_done(&kept);
}

static void test_values_that_are_secrets(void **state)
{
	(void)state;
	struct plan plan;
	struct error e = {0};
	static const char yaml[] = "command: [train, '${x}']\n"
				   "parameters: {x: {values: [a, hf_AbCdEfGhIjKlMnOpQr0123]}}\n";
	assert_int_equal(plan_read("plan.yaml", YAML(yaml), &plan, &e), -EINVAL);
	assert_string_equal(e.text,
		"plan.yaml:2:14: parameters.x: expected no secrets, because parameters become "
		"labels of runs (set them in the environment of strain sweep)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_plans),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_laughs),
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_grid),
		cmocka_unit_test(test_order_of_plan),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_what_is_kept),
		cmocka_unit_test(test_kept_plans_are_compared),
		cmocka_unit_test(test_values_that_are_secrets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
