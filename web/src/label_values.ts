// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Values of labels: text, some of which are numbers, sizes or rates ("32", "4GiB", "100MB/s").

import type { Unit } from './contract';

export interface Amount {
	value: number;
	unit: Unit;
}

const NUMBER = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(.*)$/i;
const PREFIXES: Record<string, number> = {
	'': 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12, p: 1e15,
	ki: 2 ** 10, mi: 2 ** 20, gi: 2 ** 30, ti: 2 ** 40, pi: 2 ** 50,
};
const PLAIN: Record<string, Amount> = {
	'%': { value: 0.01, unit: '1' },
	s: { value: 1, unit: 's' },
	ms: { value: 1e-3, unit: 's' },
	min: { value: 60, unit: 's' },
	h: { value: 3600, unit: 's' },
};

/** The value of a label as a number, or null. */
export function amountOf(text: string): Amount | null {
	const found = NUMBER.exec(text.trim());
	if (!found) {
		return null;
	}
	const value = Number(found[1]);
	const name = found[2]!;
	if (name === '') {
		return { value, unit: '{}' };
	}
	const plain = PLAIN[name];
	if (plain) {
		return { value: value * plain.value, unit: plain.unit };
	}
	const size = /^([kmgtp]?i?)b?(\/s)?$/i.exec(name);
	const factor = size ? PREFIXES[size[1]!.toLowerCase()] : undefined;
	return factor === undefined ? null : { value: value * factor, unit: size![2] ? 'By/s' : 'By' };
}

/** Words for "no limit": sorted after all numbers, and on no axis. */
const ENDLESS = new Set(['unlimited', 'none', 'max', 'inf']);

/** Numbers by size, then words for no limit, then other text in natural order. */
export function compareValues(a: string, b: string): number {
	const rank = (text: string) => {
		const amount = amountOf(text);
		return amount ? amount.value : ENDLESS.has(text) ? Infinity : NaN;
	};
	const [first, second] = [rank(a), rank(b)];
	const [isText, otherIsText] = [Number.isNaN(first), Number.isNaN(second)];
	if (isText || otherIsText) {
		return isText && otherIsText
			? a.localeCompare(b, 'en', { numeric: true })
			: Number(isText) - Number(otherIsText);
	}
	return first === second ? 0 : first - second;
}
