// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Prints docs/studies.md from the table of layouts (data/studies). Fails where a row of
// it contradicts itself.

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/measures.h"
#include "study/layout.h"

static const char introduction[] =
	"# Studies\n\n`make docs` generates this page from `data/studies`: change those files, "
	"not this page.\n\nThis page lists every table and figure of four studies, with the "
	"command that prints or draws it from\nyour own runs. A layout selects runs by their "
	"labels (`batch_size`, `framework`, ...). `strain sweep`\nand `strain run --label "
	"NAME=VALUE` set labels; any runs with these labels can be used. If a label or a\nrun "
	"is missing, `strain compare` reports it and shows the rest.\n\n`--beside published` "
	"adds the published numbers, with their source. For most figures the documents "
	"give no\nnumbers, and a message reports that. Without `-o`, a figure of plain numbers "
	"is printed as a table.\n`--where LABEL=VALUE` selects runs, `--format latex` prints a "
	"table for a paper, and\n`--keep-script FOLDER` keeps the gnuplot script of a "
	"figure.\n\nSome tables show answers of `strain advise`. `strain advise` keeps each "
	"answer in the folder of its runs: give these\nfolders as arguments. The answer "
	"belongs to the first run of the folder, which has the label `step=now` and the "
	"labels\nof `strain advise --label NAME=VALUE`; the label `memory` is the limit. "
	"`strain compare --value help` lists the\nmeasures of answers.\n\n![torres2021-fig7 of "
	"the 21 runs of examples/torres2021.yaml on a machine of two cores without a GPU: host "
	"memory over time by batch size](torres2021-fig7.png)\n";

static bool needs_runs(const struct layout *l)
{
	return l->kind != LAYOUT_PUBLISHED && l->kind != LAYOUT_WAITS;
}

static bool has_numbers(const struct layout *l)
{
	bool columns = false;
	for (size_t i = 0; i < LAYOUT_VALUES && l->values[i].measure; i++) {
		columns = columns || l->values[i].published;
	}
	return l->published && (columns || !needs_runs(l));
}

// "torres2021" of "examples/torres2021.yaml"
static void print_name(const char *path)
{
	const char *name = strrchr(path, '/');
	name = name ? name + 1 : path;
	printf("%.*s", (int)strcspn(name, "."), name);
}

static void print_command(const struct layout *l)
{
	const struct document *d = &documents[l->document];
	if (l->kind == LAYOUT_WAITS) {
		printf("waits for %s", l->waits);
		return;
	}
	fputs("`strain compare ", stdout);
	if (layout_is_of_advice(l) && d->advice) {
		print_name(d->advice);
		fputs("/*.advice ", stdout);
	} else if (needs_runs(l) && d->plan) {
		print_name(d->plan);
		fputs(".sweep ", stdout);
	}
	printf("--layout %s", l->name);
	if (layout_is_figure(l)) {
		printf(" -o %s.pdf", l->name);
	}
	putchar('`');
}

static void print_remarks(const struct layout *l)
{
	const char *between = "";
	if (has_numbers(l) && needs_runs(l)) {
		fputs("published numbers", stdout);
		between = "; ";
	} else if (has_numbers(l) && l->waits) {
		fputs("published facts: `--beside published`", stdout);
		between = "; ";
	}
	if (l->said) {
		printf("%sthe text says: %s", between, l->said);
		between = "; ";
	}
	if (l->note) {
		printf("%s%s", between, l->note);
	}
}

static void print_document(size_t document)
{
	const struct document *d = &documents[document];
	printf("\n## %s\n\n", d->source);
	if (d->plan) {
		printf("The runs: `strain sweep %s`\n\n", d->plan);
	}
	if (d->advice) {
		printf("The answers of `strain advise`: `sh %s`\n\n", d->advice);
	}
	printf("| | what | command | |\n| --- | --- | --- | --- |\n");
	for (size_t i = 0; i < n_layouts; i++) {
		const struct layout *l = &layouts[i];
		if (l->document == document) {
			printf("| %s | %s | ", l->item, l->title);
			print_command(l);
			fputs(" | ", stdout);
			print_remarks(l);
			fputs(" |\n", stdout);
		}
	}
}

static int complain(const struct layout *l, const char *what, const char *name)
{
	fprintf(stderr, "layout %s: %s %s\n", l->name, what, name);
	return 1;
}

static int check_published(const struct layout *l)
{
	struct published table;
	struct error e = {0};
	if (published_read(l->published, &table, &e) < 0) {
		return complain(l, e.text, "");
	}
	int found = table.n_rows == 0 ? complain(l, "no rows in", l->published) : 0;
	for (size_t i = 0; i < LAYOUT_VALUES && l->values[i].measure; i++) {
		const char *column = l->values[i].published;
		if (column && !published_field(&table, 0, column)) {
			found += complain(l, "no published column", column);
		}
	}
	published_done(&table);
	return found;
}

static int check(const struct layout *l)
{
	int found = 0;
	const char *prefix = documents[l->document].prefix;
	if (strncmp(l->name, prefix, strlen(prefix)) != 0) {
		found += complain(l, "does not begin with", prefix);
	}
	for (size_t i = 0; i < LAYOUT_VALUES && l->values[i].measure; i++) {
		const struct layout_value *value = &l->values[i];
		const char *instead = value->instead ? value->instead : value->measure;
		if (measure_by_name(value->measure) == N_MEASURES) {
			found += complain(l, "no measure", value->measure);
		}
		if (measure_by_name(instead) == N_MEASURES) {
			found += complain(l, "no measure", instead);
		}
	}
	if (layout_is_of_advice(l) && !documents[l->document].advice) {
		found += complain(l, "no script makes answers for", documents[l->document].prefix);
	}
	if ((l->kind == LAYOUT_WAITS) != (l->waits != NULL)) {
		found += complain(l, "waits, or does not:", l->waits ? l->waits : "");
	}
	return found + (l->published ? check_published(l) : 0);
}

int main(void)
{
	int found = 0;
	for (size_t i = 0; i < n_layouts; i++) {
		found += check(&layouts[i]);
		if (layout_by_name(layouts[i].name) != &layouts[i]) {
			found += complain(&layouts[i], "appears twice", "");
		}
	}
	if (found > 0) {
		return EXIT_FAILURE;
	}
	fputs(introduction, stdout);
	for (size_t i = 0; i < n_documents; i++) {
		print_document(i);
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
