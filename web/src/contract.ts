// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What src/show/page.c writes into a page and this program reads: the only joint between the
// two. Times are seconds since the run's start; null is "not known", never 0.

/** The unit in which a panel's values are stored; format.ts says how each is shown. */
export type Unit = 'By' | 'By/s' | '1' | '{cpu}' | '{process}' | 'W' | 'Cel' | 'Hz' | string;

export interface Series {
	label: string;
	/** Where the values are from, for the tooltip. */
	help: string;
	/** Index into the palette: the same thing has the same colour in every panel. */
	hue: number;
	/** Length of one bucket, in seconds. A point may be a single sample. */
	width: number;
	/** Points in `data`, and samples that they were made of. */
	points: number;
	samples: number;
	/** value = unit * sinh(code / 1024) */
	unit: number;
	/** Base64 of the packed columns: see decode.ts. */
	data: string;
	details?: Detail[];
	/** Least and greatest value of the whole run, and its mean; null without a value. */
	minimum: number | null;
	mean: number | null;
	maximum: number | null;
}

export interface Limit {
	label: string;
	value: number;
}

/** A stretch of time in which a line is held at full rate. */
export interface Detail {
	from: number;
	to: number;
	width: number;
	points: number;
	unit: number;
	data: string;
}

/** A stretch of time in which shares are known exactly: series, start, end in turn, in us from `from`. */
export interface Exact {
	from: number;
	to: number;
	pieces: number[];
}

/** An iteration to point at in the panel of their lengths. */
export interface Mark {
	t: number;
	start: number;
	value: number;
}

export interface Panel {
	/** "stack": shares of a bucket's time on top of each other; "lanes": shares, a row per series. */
	kind: 'lines' | 'stack' | 'lanes';
	title: string;
	unit: Unit;
	help: string;
	/** The axis ends at this value at least, so that noise does not look like load. */
	floor: number | null;
	/** And at most here: 1 for shares. */
	ceiling: number | null;
	limits: Limit[];
	series: Series[];
	marks?: Mark[];
	exact?: Exact[];
	/** What those of the lanes do: "prepare". */
	verb?: string;
}

export interface Span {
	name: string;
	start: number;
	end: number | null;
}

export interface EventMark {
	t: number;
	kind: string;
	text: string;
}

export interface Tile {
	value: string;
	of: string | null;
	label: string;
}

export interface Advice {
	gain: string | null;
	title: string;
	text: string | null;
}

export interface Evidence {
	what: string;
	value: string;
}

export interface Verdict {
	title: string;
	text: string[];
	evidence: Evidence[];
	advice: Advice[];
}

export interface Process {
	pid: number | null;
	role: string;
	name: string;
	command: string;
	cpu_seconds: number | null;
	/** CPUs in use, on average over its life. */
	cpu: number | null;
	memory_peak: number | null;
	asked: number | null;
	storage: number | null;
	start: number;
	end: number | null;
	ending: string | null;
}

/** One row of the table of epochs; `values` stand under Run.epoch_columns. */
export interface EpochRow {
	name: string;
	start: number;
	end: number | null;
	values: (string | null)[];
}

/** One row of the summary: a metric of one entity over the whole run. */
export interface SummaryRow {
	entity: string;
	metric: string;
	unit: string;
	total: number | null;
	mean: number | null;
	p50: number | null;
	p95: number | null;
	max: number | null;
}

/** What iterations spend their time on; seconds, of steady iterations where not said otherwise. */
export interface Phase {
	name: string;
	hue: number;
	/** In no iteration: has a total only. */
	apart: boolean;
	share: number | null;
	low: number | null;
	high: number | null;
	mean: number | null;
	p50: number | null;
	p95: number | null;
	/** Over the whole run. */
	total: number;
}

export interface EpochPhases {
	name: string;
	start: number;
	seconds: number;
	iterations: number;
	rate: number | null;
	/** In no iteration and no phase, or in iterations that were not recorded. */
	outside: number;
	/** Seconds, in the order of Iterations.phases. */
	phases: number[];
}

export interface PhaseSeconds {
	name: string;
	hue: number;
	seconds: number;
}

/** One of several that train side by side. */
export interface RankPhases {
	name: string;
	/** The figures of the run are its. */
	leads: boolean;
	/** The others wait for it. */
	slowest: boolean;
	iterations: number;
	p50: number | null;
	rate: number | null;
	/** Share of its iterations in which it waits for the others. */
	waits: number | null;
	/** Of its mean iteration. */
	phases: PhaseSeconds[];
}

export interface Histogram {
	start: number;
	width: number;
	bars: number[];
	/** Iterations longer than all bars. */
	beyond: number;
}

export interface SlowIteration {
	start: number;
	end: number;
	length: number;
	/** As text: a job may give numbers that are none in this language. */
	epoch: string | null;
	number: string | null;
	why: string;
}

export interface Iterations {
	count: number;
	steady: number;
	warm_up: number;
	mean: number | null;
	low: number | null;
	high: number | null;
	p50: number | null;
	p95: number | null;
	p99: number | null;
	max: number | null;
	rate: number | null;
	rate_low: number | null;
	rate_high: number | null;
	/** Why there are no iterations, no phases; what of both is missing. */
	missing: string | null;
	phases_missing: string | null;
	incomplete: string | null;
	phases: Phase[];
	epochs: EpochPhases[];
	/** By number; empty where there is one rank. */
	ranks: RankPhases[];
	histogram: Histogram | null;
	slowest: SlowIteration[];
}

/** All spans of one name that the job's author gave, at one place among the others. */
export interface OwnSpan {
	name: string;
	/** How many hold it: it stands behind the one that does. */
	depth: number;
	/** Among the longest, or holds one of them. */
	first: boolean;
	/** Its share is of the time of iterations; else of the run. */
	inside: boolean;
	threads: number;
	count: number;
	p50: number | null;
	max: number | null;
	total: number;
	share: number | null;
}

export interface CodeClass {
	name: string;
	hue: number;
}

/** A function, or a file that does not name its functions. */
export interface CodeFunction {
	name: string;
	/** Index into CpuTime.classes. */
	class: number;
	samples: number;
}

/** Samples of CPU time of one phase or one role. */
export interface CodeBar {
	name: string;
	samples: number;
	/** In the order of CpuTime.classes. */
	classes: number[];
	/** The most samples first. */
	functions: CodeFunction[];
}

/** What CPU time went into, over the whole run. */
export interface CpuTime {
	/** Samples of a second of CPU time. */
	rate: number;
	classes: CodeClass[];
	/** Of the processes that train, by the phase of their training thread. */
	phases: CodeBar[];
	roles: CodeBar[];
	/** Why there are no samples, and why none by phase. */
	missing: string | null;
	phases_missing: string | null;
}

export interface Missing {
	what: string;
	reason: string;
}

export interface Note {
	title: string;
	text: string;
}

export interface About {
	host: string | null;
	/** Of the job, in seconds. */
	lasted: number | null;
	/** "exit 0", "SIGKILL", "cut off"; "live" where it has not ended. */
	ended: string | null;
	/** "pytorch 1.13.0", "Linux 6.1.0 x86_64", "strain 0.1.0": those that are known. */
	versions: string[];
}

export interface Run {
	name: string;
	command: string;
	about: About;
	/** Wall clock at the start, seconds since 1970 (UTC); null where the run does not say. */
	started: number | null;
	duration: number;
	notice: string | null;
	chips: string[];
	verdict: Verdict | null;
	tiles: Tile[];
	epochs: Span[];
	epoch_columns: string[];
	epoch_rows: EpochRow[];
	events: EventMark[];
	panels: Panel[];
	/** Null where the job marked nothing. */
	iterations: Iterations | null;
	/** Null where memory was short. */
	cpu_time: CpuTime | null;
	own_spans: OwnSpan[];
	processes: Process[];
	/** Processes that the table leaves out: the least busy of very many. */
	processes_left_out: number;
	summary: SummaryRow[];
	notes: Note[];
	missing: Missing[];
}

export interface Report {
	version: 1;
	generator: string;
	runs: Run[];
}
