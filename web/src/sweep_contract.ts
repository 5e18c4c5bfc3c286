// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The data that src/show/page_sweep.c writes into the page of a sweep and this program reads.
// Figures of runs are in columns, one value per run. Each string is stored once, in `strings`;
// elsewhere it is an index, -1 for none. null is "not known", never 0.

import type { Unit } from './contract';

export interface LabelColumn {
	name: string;
	/** Indices of strings. */
	values: number[];
}

export interface MeasureColumn {
	name: string;
	unit: Unit;
	/** Description in a sentence. */
	help: string;
	/** Which direction is better: 1 more, -1 less, 0 neither. */
	better: number;
	/** Measures speed: compared as speed-up; other measures as ratio. */
	speed: boolean;
	values: (number | null)[];
	/** Why a value is missing: indices of strings; a single one is for all runs. */
	reasons: number[];
}

/** A line of the coarse panels of a run. */
export interface LineKind {
	panel: string;
	label: string;
	unit: Unit;
	hue: number;
}

/** Details of an opened run. Pairs of indices of strings are in flat lists. */
export interface RunDetail {
	/** The verdict: headline, shares, advice; indices of strings. */
	headline: number;
	shares: number;
	next: number;
	/** Name, value. */
	evidence: number[];
	/** Limit, how it was set. */
	limits: number[];
	/** Number and seconds of epochs, alternating; null: still open, or its start is not known. */
	epochs: (number | null)[];
	/** Lines end epochs, so the start of the first is not known. */
	first_epoch_with_start: boolean;
	epochs_left_out: number;
	/** The end of its output, and how many bytes of the stored output come before it. */
	output: string | null;
	output_left_out: number;
	/** Kind, maximum, packed points, ...: see sweep_run.ts. */
	lines: (number | string)[];
	/** Address of its report, in the same directory. */
	report: string | null;
}

export interface RunColumns {
	/** Unique within the page. */
	names: string[];
	/** The path as given to strain. */
	paths: string[];
	outcomes: string[];
	outcome_texts: number[];
	/** Wall clock, seconds since 1970. */
	started: (number | null)[];
	durations: (number | null)[];
	commands: number[];
	hosts: number[];
	/** The bottleneck, in one word. */
	verdicts: number[];
	/** Problems of the file: damaged, cut off. */
	notices: number[];
}

export interface Sweep {
	version: 1;
	generator: string;
	name: string;
	/** The command of the plan, with placeholders; the plan at its start. */
	command: string | null;
	plan: string | null;
	/** What `strain advise` printed of its answer: lines; null: this is no folder of it. */
	advice: string | null;
	/** Labels and values of the baseline. */
	baseline: [string, string][];
	/** Number of trials of the plan; 0: no plan. */
	planned: number;
	/** The measure that is selected initially. */
	measure: string | null;
	machines: string[];
	/** Files that are not readable runs, and why. */
	unreadable: [string, string][];
	strings: string[];
	runs: RunColumns;
	labels: LabelColumn[];
	/** Number of labels for which there was no room. */
	labels_left_out: number;
	measures: MeasureColumn[];
	line_kinds: LineKind[];
	details: RunDetail[];
}
