// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What src/show/page_sweep.c writes into the page of a sweep and this program reads. Everything
// of a run stands in columns, one value per run; a string stands once, in `strings`, and elsewhere
// as its index there, -1 for none. null is "not known", never 0.

import type { Unit } from './contract';

export interface LabelColumn {
	name: string;
	/** Indices of strings. */
	values: number[];
}

export interface MeasureColumn {
	name: string;
	unit: Unit;
	/** What it is, in a sentence. */
	help: string;
	/** Which way is better: 1 more, -1 less, 0 neither. */
	better: number;
	/** It tells how fast a job is: held against another, how many times as fast; else how many times as much. */
	speed: boolean;
	values: (number | null)[];
	/** Why there is no value, where there is none: indices of strings; one alone is that of all runs. */
	reasons: number[];
}

/** A line of the coarse panels of a run. */
export interface LineKind {
	panel: string;
	label: string;
	unit: Unit;
	hue: number;
}

/** What is looked at when a run is opened. Pairs of indices of strings follow each other flat. */
export interface RunDetail {
	/** Verdict: headline, shares, what to try; indices of strings. */
	headline: number;
	shares: number;
	next: number;
	/** What, value. */
	evidence: number[];
	/** What limited it, how. */
	limits: number[];
	/** Number and seconds of epochs in turn; null: it is open, or nobody knows when it began. */
	epochs: (number | null)[];
	/** Lines end epochs, which does not tell when the first began. */
	first_epoch_with_start: boolean;
	epochs_left_out: number;
	/** The last of its output, and how many bytes of what is kept stand before it. */
	output: string | null;
	output_left_out: number;
	/** Kind, greatest value, packed points in turn: see sweep_run.ts. */
	lines: (number | string)[];
	/** A report of it lies beside it, at this address. */
	report: string | null;
}

export interface RunColumns {
	/** Unique within the page. */
	names: string[];
	/** As strain was told to read it. */
	paths: string[];
	outcomes: string[];
	outcome_texts: number[];
	/** Wall clock, seconds since 1970. */
	started: (number | null)[];
	durations: (number | null)[];
	commands: number[];
	hosts: number[];
	/** What limits it, in one word. */
	verdicts: number[];
	/** Worth saying of the file: damaged, cut off. */
	notices: number[];
}

export interface Sweep {
	version: 1;
	generator: string;
	name: string;
	/** The plan's command, with its placeholders; the plan as it was started. */
	command: string | null;
	plan: string | null;
	/** Labels and values that others are compared with. */
	baseline: [string, string][];
	/** Trials that the plan has; 0: there is none. */
	planned: number;
	/** The measure to choose at first. */
	measure: string | null;
	machines: string[];
	/** Files that are no readable run, and why. */
	unreadable: [string, string][];
	strings: string[];
	runs: RunColumns;
	labels: LabelColumn[];
	/** Values of labels that found no room. */
	labels_left_out: number;
	measures: MeasureColumn[];
	line_kinds: LineKind[];
	details: RunDetail[];
}
