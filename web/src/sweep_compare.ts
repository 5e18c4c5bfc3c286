// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Compares configurations: speed-ups and ratios, and which of many comparisons are significant.
// Texts, numbers and tests are those of strain compare.

import { difference, holm, LEVEL } from './statistics';
import type { MeasureColumn } from './sweep_contract';
import type { Configuration, Model, Trial } from './sweep_model';

export interface Compared {
	/** Speed-up for a time or a rate, else a ratio. */
	against: number;
	/** p-value of the difference; null with too few repeats. */
	probability: number | null;
	/** Significant among all comparisons; null with too few repeats. */
	beyondNoise: boolean | null;
}

interface Pair {
	of: Configuration;
	first: number[];
	second: number[];
}

/** The name of the number next to a measure's value. */
export function againstWord(measure: MeasureColumn | null): string {
	return measure?.speed ? 'speed-up' : 'ratio';
}

function compare(pairs: Pair[], measure: MeasureColumn): Map<Configuration, Compared> {
	const isTime = measure.speed && measure.better < 0;
	const found = pairs.map(({ of, first, second }) => ({ of, difference: difference(first, second) }));
	const corrected = holm(found.map((one) => one.difference?.probability ?? null));
	const result = new Map<Configuration, Compared>();
	found.forEach(({ of, difference: one }, i) => {
		const probability = corrected[i]!;
		if (one) {
			const against = isTime ? 1 / one.ratio : one.ratio;
			result.set(of, { against, probability, beyondNoise: probability === null ? null : probability < LEVEL });
		}
	});
	return result;
}

/** The trials grouped by configuration, in the order of their first. */
export function grouped(trials: Trial[]): Map<Configuration, Trial[]> {
	const groups = new Map<Configuration, Trial[]>();
	for (const trial of trials) {
		const group = groups.get(trial.configuration);
		if (group) {
			group.push(trial);
		} else {
			groups.set(trial.configuration, [trial]);
		}
	}
	return groups;
}

/** Compares each configuration with the one that has the baseline's values instead of its own. */
export function againstBaseline(model: Model, trials: Trial[], measure: MeasureColumn): Map<Configuration, Compared> {
	const pairs = [...grouped(trials)].flatMap(([of, group]): Pair[] => {
		const base = model.baselineOf(of);
		return base && base !== of
			? [{ of, first: model.values(base.trials, measure), second: model.values(group, measure) }]
			: [];
	});
	return compare(pairs, measure);
}

/** Compares others with one. */
export function againstOne(model: Model, one: Trial[], others: Trial[][], measure: MeasureColumn): Map<Configuration, Compared> {
	const first = model.values(one, measure);
	return compare(others.map((group) => ({ of: group[0]!.configuration, first, second: model.values(group, measure) })), measure);
}

/** "1.33×", "1.004×", "12.5×": a value near 1 is not shown as 1. */
export function againstText(against: number): string {
	const size = Math.abs(against);
	const places = size >= 99.95 ? 0 : size >= 9.995 ? 1 : Math.abs(against - 1) < 0.0995 ? 3 : size >= 0.0995 ? 2 : 1 - Math.floor(Math.log10(size));
	return `${against.toFixed(Math.min(places, 9))}×`;
}

/** "1.33× as fast as", "0.39×": precedes the name of the compared configuration. */
export function againstPhrase(measure: MeasureColumn, against: number): string {
	return measure.speed ? `${againstText(against)} as fast as` : againstText(against);
}
