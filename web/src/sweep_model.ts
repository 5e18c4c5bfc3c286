// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The trials of a sweep, their labels, and figures of their repeats.

import { amountOf, compareValues } from './label_values';
import { estimate, type Estimate } from './statistics';
import type { MeasureColumn, RunDetail, Sweep } from './sweep_contract';

export interface Outcome {
	word: string;
	/** A shape before the word, so that colour is not the only sign. */
	sign: string;
	/** CSS class: the meaning for a reader who scans a table. */
	tone: 'good' | 'bad' | 'late' | 'none' | 'live';
}

const OUTCOMES: Record<string, Outcome> = {
	success: { word: 'success', sign: '✓', tone: 'good' },
	stopped: { word: 'stopped', sign: '✓', tone: 'good' },
	out_of_memory: { word: 'out of memory', sign: '▲', tone: 'bad' },
	time_limit: { word: 'time limit', sign: '◷', tone: 'late' },
	crash: { word: 'crash', sign: '✕', tone: 'bad' },
	interrupted: { word: 'interrupted', sign: '◼', tone: 'late' },
	skipped: { word: 'skipped', sign: '○', tone: 'none' },
	refused: { word: 'refused', sign: '⊘', tone: 'late' },
	cancelled: { word: 'cancelled', sign: '◼', tone: 'late' },
	preempted: { word: 'preempted', sign: '◼', tone: 'late' },
	node_failure: { word: 'node failure', sign: '✕', tone: 'bad' },
	live: { word: 'still recorded', sign: '●', tone: 'live' },
	cut_off: { word: 'cut off', sign: '✂', tone: 'late' },
	unknown: { word: 'unknown', sign: '?', tone: 'none' },
};
export const OUTCOME_NAMES = Object.keys(OUTCOMES);

export function outcomeOf(name: string): Outcome {
	return OUTCOME_NAMES.includes(name) ? OUTCOMES[name]! : { word: name, sign: '?', tone: 'none' };
}

/** A label over all runs. */
export interface Label {
	name: string;
	/** One per run; null if it has none. */
	values: (string | null)[];
	/** Each value once, in order. */
	distinct: string[];
	varies: boolean;
	/** Differs between runs by nature, not by the plan: repeat, trial, rank. */
	aside: boolean;
	/** At least two values are numbers: it can be an axis. */
	numeric: boolean;
}

export interface Trial {
	index: number;
	name: string;
	outcome: string;
	/** Its figures count. */
	good: boolean;
	configuration: Configuration;
	/** All searchable text, in lower case. */
	searched: string;
}

export interface Configuration {
	index: number;
	trials: Trial[];
}

const ASIDE = /^(sweep|trial|repeat|RANK|LOCAL_RANK|SLURM_.*)$/;

export class Model {
	readonly labels: Label[];
	/** Labels that the plan varies. */
	readonly varying: Label[];
	readonly trials: Trial[] = [];
	readonly configurations: Configuration[] = [];
	/** Measures with a value in some run. */
	readonly measures: MeasureColumn[];
	private readonly byName = new Map<string, Trial>();
	private readonly byIdentity = new Map<string, Configuration>();
	private readonly labelByName: Map<string, Label>;

	constructor(readonly sweep: Sweep) {
		this.labels = sweep.labels.map((column) => this.label(column.name, column.values.map((v) => this.string(v))));
		this.addMachines();
		this.labelByName = new Map(this.labels.map((label) => [label.name, label]));
		this.varying = this.labels.filter((label) => label.varies && !label.aside);
		this.measures = sweep.measures.filter((measure) => measure.values.some((value) => value !== null));
		this.addTrials();
	}

	/** A string of the table; null for none. */
	string(index: number): string | null {
		return this.sweep.strings[index] ?? null;
	}

	findLabel(name: string | null): Label | null {
		return name === null ? null : (this.labelByName.get(name) ?? null);
	}

	findMeasure(name: string | null): MeasureColumn | null {
		return this.measures.find((measure) => measure.name === name) ?? null;
	}

	findTrial(name: string | null): Trial | null {
		return name === null ? null : (this.byName.get(name) ?? null);
	}

	detail(trial: Trial): RunDetail {
		return this.sweep.details[trial.index]!;
	}

	/** In a word; null also if a run was too short, or failed: then its outcome says more. */
	verdict(trial: Trial): string | null {
		const word = this.string(this.sweep.runs.verdicts[trial.index]!);
		return word === 'unknown' || !trial.good ? null : word;
	}

	/** The value of a measure for a successful trial. */
	value(trial: Trial, measure: MeasureColumn): number | null {
		return trial.good ? measure.values[trial.index]! : null;
	}

	/** Why a trial has no value of a measure. */
	reason(trial: Trial, measure: MeasureColumn): string {
		const { reasons } = measure;
		return this.string(reasons.length === 1 ? reasons[0]! : reasons[trial.index]!) ?? 'not known';
	}

	values(trials: Trial[], measure: MeasureColumn): number[] {
		return trials.map((trial) => this.value(trial, measure)).filter((value): value is number => value !== null);
	}

	/**
	 * The mean over trials of one or several configurations. Each configuration has the same weight,
	 * however often it was repeated. The interval is that of repeats, so only one configuration has it.
	 */
	figure(trials: Trial[], measure: MeasureColumn): Figure | null {
		const groups = new Map<Configuration, number[]>();
		for (const trial of trials) {
			const value = this.value(trial, measure);
			if (value !== null) {
				const group = groups.get(trial.configuration) ?? [];
				group.push(value);
				groups.set(trial.configuration, group);
			}
		}
		const means = [...groups.values()].map((values) => estimate(values)!);
		const first = means[0];
		if (!first) {
			return null;
		}
		const n = means.reduce((sum, one) => sum + one.n, 0);
		const mean = means.reduce((sum, one) => sum + one.mean, 0) / means.length;
		return means.length === 1
			? { ...first, configurations: 1 }
			: { mean, half: null, n, configurations: means.length };
	}

	/** The configuration with the baseline's values where this one differs; null: there is none. */
	baselineOf(configuration: Configuration): Configuration | null {
		const { baseline } = this.sweep;
		if (baseline.length === 0 || !baseline.every(([name]) => this.labelByName.has(name))) {
			return null;
		}
		return this.byIdentity.get(this.identity(configuration.trials[0]!.index, new Map(baseline))) ?? null;
	}

	/** The labels that distinguish configurations, as text: "batch_size 32, workers 2". */
	describe(trial: Trial, most = 6): string {
		const words = this.varying
			.filter((label) => label.values[trial.index] !== null)
			.map((label) => `${shortened(label.name)} ${shortened(label.values[trial.index]!)}`);
		const left = words.length - most;
		return words.length === 0
			? trial.name
			: words.slice(0, most).join(', ') + (left > 0 ? ` and ${left} more` : '');
	}

	private label(name: string, values: (string | null)[]): Label {
		const distinct = [...new Set(values.filter((value): value is string => value !== null))].sort(compareValues);
		const missing = values.some((value) => value === null);
		return {
			name,
			values,
			distinct,
			varies: distinct.length > 1 || (missing && distinct.length > 0),
			aside: ASIDE.test(name),
			numeric: distinct.filter((value) => amountOf(value) !== null).length > 1,
		};
	}

	/** If runs are from several machines and no label distinguishes them, adds the machine as a label. */
	private addMachines(): void {
		const hosts = this.sweep.runs.hosts.map((host) => this.string(host));
		const machine = this.label('machine', hosts);
		if (machine.varies && !this.labels.some((label) => label.name === 'machine')) {
			this.labels.push(machine);
		}
	}

	/** Runs with the same labels are repeats; without labels, runs with the same command. */
	private identity(index: number, instead: Map<string, string>): string {
		const told = this.labels.filter((label) => !label.aside);
		const values = told.map((label) => instead.get(label.name) ?? label.values[index] ?? null);
		const unlabelled = values.every((value) => value === null);
		return JSON.stringify(unlabelled ? this.sweep.runs.commands[index] : values);
	}

	private addTrials(): void {
		const { names, outcomes } = this.sweep.runs;
		const same = new Map<string, string>();
		names.forEach((name, index) => {
			const identity = this.identity(index, same);
			const configuration = this.byIdentity.get(identity) ?? { index: this.byIdentity.size, trials: [] };
			this.byIdentity.set(identity, configuration);
			const outcome = outcomes[index]!;
			const good = outcomeOf(outcome).tone === 'good';
			const trial = { index, name, outcome, good, configuration, searched: this.searched(index) };
			configuration.trials.push(trial);
			this.trials.push(trial);
			this.byName.set(name, trial);
		});
		this.configurations.push(...this.byIdentity.values());
	}

	private searched(index: number): string {
		const { names, outcomes, outcome_texts, verdicts } = this.sweep.runs;
		const words = this.labels
			.filter((label) => label.values[index] !== null)
			.map((label) => `${label.name}=${label.values[index]} ${label.name} ${label.values[index]}`);
		const outcome = outcomeOf(outcomes[index]!).word;
		const rest = [names[index], outcome, this.string(outcome_texts[index]!), this.string(verdicts[index]!)];
		return [...rest, ...words].join('\n').toLowerCase();
	}
}

/** Limits the length of hostile strings. */
function shortened(text: string): string {
	return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}

export interface Figure extends Estimate {
	/** Number of configurations in the mean, which differ in other labels. */
	configurations: number;
}

/** Negative if a comes first; unknown values always come last. */
export function order(a: number | string | null, b: number | string | null, down: boolean): number {
	if (a === null || b === null) {
		return Number(a === null) - Number(b === null);
	}
	const sign = down ? -1 : 1;
	if (typeof a === 'number' && typeof b === 'number') {
		return sign * (a - b);
	}
	return sign * compareValues(String(a), String(b));
}
