// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Statistics of repeats: a mean with Student's interval, and the p-value of a difference of two
// means (Welch's test, Holm's correction), as in src/run/statistics.c. All tests of the page are
// here.

/** Significance level. */
export const LEVEL = 0.05;
export const TEST_NAME = "Welch's t-test, Holm's correction";

export interface Estimate {
	mean: number;
	/** Half of the 95 % interval; null with fewer than two values. */
	half: number | null;
	n: number;
}

export interface Difference {
	/** Second mean over the first; not defined if either is 0. */
	ratio: number;
	/** p-value of the difference; null with too few repeats. */
	probability: number | null;
}

function logGamma(x: number): number {
	const terms = [76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 0.1208650973866179e-2, -0.5395239384953e-5];
	const start = x + 5.5 - (x + 0.5) * Math.log(x + 5.5);
	const sum = terms.reduce((total, term, i) => total + term / (x + 1 + i), 1.000000000190015);
	return -start + Math.log((2.5066282746310005 * sum) / x);
}

/** The continued fraction of the incomplete beta function, by Lentz's method. */
function betaFraction(x: number, a: number, b: number): number {
	const tiny = 1e-300;
	const apart = (value: number) => (Math.abs(value) < tiny ? tiny : value);
	let c = 1;
	let d = 1 / apart(1 - ((a + b) * x) / (a + 1));
	let result = d;
	for (let m = 1; m <= 300; m++) {
		const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
		d = 1 / apart(1 + even * d);
		c = apart(1 + even / c);
		result *= d * c;
		const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
		d = 1 / apart(1 + odd * d);
		c = apart(1 + odd / c);
		result *= d * c;
		if (Math.abs(d * c - 1) < 1e-13) {
			break;
		}
	}
	return result;
}

/** The regularised incomplete beta function. */
function incompleteBeta(x: number, a: number, b: number): number {
	if (x <= 0 || x >= 1) {
		return x <= 0 ? 0 : 1;
	}
	const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x));
	return x < (a + 1) / (a + b + 2)
		? (front * betaFraction(x, a, b)) / a
		: 1 - (front * betaFraction(1 - x, b, a)) / b;
}

/** The probability that |t| is larger than this, with these degrees of freedom. */
function beyond(t: number, freedom: number): number {
	return incompleteBeta(freedom / (freedom + t * t), freedom / 2, 0.5);
}

/** The 97.5 % quantile: 95 % of the distribution lie within plus and minus it. */
function studentQuantile(freedom: number): number {
	let low = 0;
	let high = 1e3;
	for (let i = 0; i < 60; i++) {
		const middle = (low + high) / 2;
		[low, high] = beyond(middle, freedom) > LEVEL ? [middle, high] : [low, middle];
	}
	return (low + high) / 2;
}

const quantiles = new Map<number, number>();

function quantileOf(freedom: number): number {
	const known = quantiles.get(freedom) ?? studentQuantile(freedom);
	quantiles.set(freedom, known);
	return known;
}

function meanOf(values: number[]): number {
	return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The square of the standard error of the mean. */
function errorSquare(values: number[]): number {
	const mean = meanOf(values);
	const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
	return squares / (values.length - 1) / values.length;
}

export function estimate(values: number[]): Estimate | null {
	const n = values.length;
	if (n === 0) {
		return null;
	}
	const half = n > 1 ? quantileOf(n - 1) * Math.sqrt(errorSquare(values)) : null;
	return { mean: meanOf(values), half, n };
}

/** The second sample compared with the first. */
export function difference(first: number[], second: number[]): Difference | null {
	if (first.length === 0 || second.length === 0 || meanOf(first) === 0 || meanOf(second) === 0) {
		return null;
	}
	const ratio = meanOf(second) / meanOf(first);
	if (first.length < 2 || second.length < 2) {
		return { ratio, probability: null };
	}
	const [a, b] = [errorSquare(first), errorSquare(second)];
	const apart = Math.abs(meanOf(second) - meanOf(first));
	if (a + b === 0) {
		return { ratio, probability: apart > 0 ? 0 : 1 };
	}
	const freedom = (a + b) ** 2 / (a ** 2 / (first.length - 1) + b ** 2 / (second.length - 1));
	return { ratio, probability: beyond(apart / Math.sqrt(a + b), freedom) };
}

/** Applies Holm's correction; null values are not counted and stay null. */
export function holm(probabilities: (number | null)[]): (number | null)[] {
	const known = probabilities
		.map((probability, i) => ({ probability, i }))
		.filter((one): one is { probability: number; i: number } => one.probability !== null)
		.sort((a, b) => a.probability - b.probability);
	const corrected = [...probabilities];
	let least = 0;
	known.forEach(({ probability, i }, rank) => {
		least = Math.max(least, Math.min(1, probability * (known.length - rank)));
		corrected[i] = least;
	});
	return corrected;
}
