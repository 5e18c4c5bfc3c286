// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Configurations against each other: ratios, and which of many comparisons are beyond noise.

import { difference, holm, LEVEL, type Difference } from './statistics';
import { digits } from './format';
import type { MeasureColumn } from './sweep_contract';
import type { Configuration, Model, Trial } from './sweep_model';

export interface Compared extends Difference {
	/** Among all that were compared with it; null where there are too few repeats to tell. */
	beyondNoise: boolean | null;
}

interface Pair {
	of: Configuration;
	first: number[];
	second: number[];
}

function compare(pairs: Pair[]): Map<Configuration, Compared> {
	const found = pairs.map(({ of, first, second }) => ({ of, difference: difference(first, second) }));
	const corrected = holm(found.map((one) => one.difference?.probability ?? null));
	const result = new Map<Configuration, Compared>();
	found.forEach(({ of, difference: one }, i) => {
		const probability = corrected[i]!;
		if (one) {
			result.set(of, { ratio: one.ratio, probability, beyondNoise: probability === null ? null : probability < LEVEL });
		}
	});
	return result;
}

/** The trials of each configuration among some, in the order of their first. */
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

/** Each configuration against the one that has the baseline's values instead of its own. */
export function againstBaseline(model: Model, trials: Trial[], measure: MeasureColumn): Map<Configuration, Compared> {
	const pairs = [...grouped(trials)].flatMap(([of, group]): Pair[] => {
		const base = model.baselineOf(of);
		return base && base !== of
			? [{ of, first: model.values(base.trials, measure), second: model.values(group, measure) }]
			: [];
	});
	return compare(pairs);
}

/** Others against one. */
export function againstOne(model: Model, one: Trial[], others: Trial[][], measure: MeasureColumn): Map<Configuration, Compared> {
	const first = model.values(one, measure);
	return compare(others.map((group) => ({ of: group[0]!.configuration, first, second: model.values(group, measure) })));
}

/** "34 % less than", "2.1 times": how a ratio reads before what it is compared with. */
export function ratioText(ratio: number): string {
	if (ratio >= 2) {
		return `${digits(ratio)} times`;
	}
	const change = Math.abs(ratio - 1) * 100;
	if (change < 0.05) {
		return 'the same as';
	}
	return `${change.toFixed(change < 9.95 ? 1 : 0)} % ${ratio > 1 ? 'more than' : 'less than'}`;
}
