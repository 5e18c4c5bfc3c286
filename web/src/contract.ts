// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The data that src/show/page.c writes into a page and this program reads: the only connection
// between the two. Times are seconds since the run's start; null is "not known", never 0.

/** The unit of a panel's stored values; format.ts defines how each is shown. */
export type Unit = 'By' | 'By/s' | '1' | '{cpu}' | '{process}' | 'W' | 'Cel' | 'Hz' | string;

export interface Series {
	label: string;
	/** The origin of the values, for the tooltip. */
	help: string;
	/** Index into the palette: the same thing has the same colour in every panel. */
	hue: number;
	/** Length of one bucket, in seconds. A point may be a single sample. */
	width: number;
	/** Points in `data`, and the number of samples in them. */
	points: number;
	samples: number;
	/** value = unit * sinh(code / 1024) */
	unit: number;
	/** Base64 of the packed columns: see decode.ts. */
	data: string;
	details?: Detail[];
	/** Minimum, maximum and mean of the whole run; null without a value. */
	minimum: number | null;
	mean: number | null;
	maximum: number | null;
}

export interface Limit {
	label: string;
	value: number;
}

/** A stretch of time with a line at full rate. */
export interface Detail {
	from: number;
	to: number;
	width: number;
	points: number;
	unit: number;
	data: string;
}

/** A stretch of time with exact shares: series, start, end, ..., in us from `from`. */
export interface Exact {
	from: number;
	to: number;
	pieces: number[];
}

/** An iteration to mark in the panel of lengths. */
export interface Mark {
	t: number;
	start: number;
	value: number;
}

export interface Panel {
	/** "stack": shares of a bucket's time, stacked; "lanes": shares, a row per series. */
	kind: 'lines' | 'stack' | 'lanes';
	title: string;
	unit: Unit;
	help: string;
	/** Least end of the axis, so that noise does not look like load. */
	floor: number | null;
	/** Greatest end of the axis: 1 for shares. */
	ceiling: number | null;
	limits: Limit[];
	series: Series[];
	marks?: Mark[];
	exact?: Exact[];
	/** The activity in the lanes: "prepare". */
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
	/** Mean number of CPUs used over its life. */
	cpu: number | null;
	memory_peak: number | null;
	asked: number | null;
	storage: number | null;
	start: number;
	end: number | null;
	ending: string | null;
}

/** A row of the table of epochs; `values` belong to Run.epoch_columns. */
export interface EpochRow {
	name: string;
	start: number;
	end: number | null;
	values: (string | null)[];
}

/** A row of the summary: a metric of an entity over the whole run. */
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

/** A phase of iterations; seconds, of steady iterations unless stated otherwise. */
export interface Phase {
	name: string;
	hue: number;
	/** Not part of iterations: only has a total. */
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
	/** In no iteration and no phase, or in unrecorded iterations. */
	outside: number;
	/** Seconds, in the order of Iterations.phases. */
	phases: number[];
}

export interface PhaseSeconds {
	name: string;
	hue: number;
	seconds: number;
}

/** One of several ranks that train together. */
export interface RankPhases {
	name: string;
	/** The figures of the run are those of this rank. */
	leads: boolean;
	/** The others wait for this rank. */
	slowest: boolean;
	iterations: number;
	p50: number | null;
	rate: number | null;
	/** Share of its iterations spent waiting for the others. */
	waits: number | null;
	/** Of the mean iteration. */
	phases: PhaseSeconds[];
}

/** A rank of a job whose ranks each have a run. */
export interface JobRank extends RankPhases {
	number: number;
	host: string | null;
	run: string | null;
	/** Mean iteration without the waits for other ranks, in seconds. */
	own: number | null;
	/** Share of the iterations of all ranks in which only this one kept the others waiting. */
	latest: number | null;
	/** CPUs used, and share of its run in which it was ready without a CPU. */
	cpus: number | null;
	cpu_wait: number | null;
	memory: number | null;
	/** The bottleneck in a word, and in a sentence. */
	verdict: string | null;
	headline: string | null;
	/** "the slowest", how it failed; null: nothing. */
	note: string | null;
}

/** A job of several runs. */
export interface Job {
	ranks: JobRank[];
	ranks_left_out: number;
	unit: string;
}

export interface Histogram {
	start: number;
	width: number;
	bars: number[];
	/** Number of iterations longer than all bars. */
	beyond: number;
}

export interface SlowIteration {
	start: number;
	end: number;
	length: number;
	/** As text: a job's numbers may be too large for a number here. */
	epoch: string | null;
	number: string | null;
	why: string;
}

export interface Iterations {
	count: number;
	steady: number;
	warm_up: number;
	/** Iterations after the warm-up that are excluded because the framework compiled code in them, and their seconds. */
	compiled: number;
	compiled_s: number;
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
	/** What samples are, for rates: "samples", or a word of the job. */
	unit: string;
	/** Why there are no iterations, why no phases, and what is missing of both. */
	missing: string | null;
	phases_missing: string | null;
	incomplete: string | null;
	phases: Phase[];
	epochs: EpochPhases[];
	/** Sorted by number; empty for a single rank. */
	ranks: RankPhases[];
	histogram: Histogram | null;
	slowest: SlowIteration[];
}

/** All spans of one name given by the job's author, at one place in the tree of such spans. */
export interface OwnSpan {
	name: string;
	/** Number of enclosing spans; a span comes after its parent. */
	depth: number;
	/** It is one of the longest, or encloses one. */
	first: boolean;
	/** Its share refers to the time of iterations, else to the run. */
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

/** A function, or a file without names of functions. */
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
	/** Most samples first. */
	functions: CodeFunction[];
}

/** CPU time by class of code, over the whole run. */
export interface CpuTime {
	/** Samples per second of CPU time. */
	rate: number;
	classes: CodeClass[];
	/** Of training processes, by the phase of their training thread. */
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
	/** Duration of the job in seconds. */
	lasted: number | null;
	/** "exit 0", "SIGKILL", "cut off"; "live" if it has not ended. */
	ended: string | null;
	/** Known versions: "pytorch 1.13.0", "Linux 6.1.0 x86_64", "strain 0.1.0". */
	versions: string[];
}

export interface Run {
	name: string;
	command: string;
	about: About;
	/** Wall clock at the start, seconds since 1970 (UTC); null if not known. */
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
	/** Null if the job marked nothing. */
	iterations: Iterations | null;
	/** Null: out of memory. */
	cpu_time: CpuTime | null;
	own_spans: OwnSpan[];
	processes: Process[];
	/** Number of processes not in the table: the least busy of very many. */
	processes_left_out: number;
	summary: SummaryRow[];
	notes: Note[];
	missing: Missing[];
	/** Of a job whose ranks each have a run: this is no run, but all of them. */
	job?: Job;
}

export interface Report {
	version: 1;
	generator: string;
	runs: Run[];
}
