// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Derives several resolutions from one: buckets of the stored series are merged in powers of two
// until a window of time has about as many as there are pixels. Minimum and maximum are kept, so
// that no spike disappears at any width.

import type { Points } from './decode';

/** The first index with a time of at least t. */
export function lowerBound(times: ArrayLike<number>, t: number): number {
	let low = 0;
	let high = times.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (times[middle]! < t) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/** The points of a window, and one beyond each end, so that lines reach the edges. */
function slice(points: Points, from: number, to: number): Points {
	const first = Math.max(0, lowerBound(points.t, from) - 1);
	const last = Math.min(points.t.length, lowerBound(points.t, to) + 1);
	return {
		width: points.width,
		t: points.t.subarray(first, last),
		low: points.low.subarray(first, last),
		mean: points.mean.subarray(first, last),
		high: points.high.subarray(first, last),
	};
}

function merge(points: Points, width: number): Points {
	const t: number[] = [];
	const low: number[] = [];
	const mean: number[] = [];
	const high: number[] = [];
	const n = points.t.length;
	for (let i = 0; i < n;) {
		const bucket = Math.floor(points.t[i]! / width);
		const end = (bucket + 1) * width;
		let least = Infinity;
		let most = -Infinity;
		let sum = 0;
		let count = 0;
		for (; i < n && points.t[i]! < end; i++) {
			const value = points.mean[i]!;
			if (!Number.isNaN(value)) {
				least = Math.min(least, points.low[i]!);
				most = Math.max(most, points.high[i]!);
				sum += value;
				count++;
			}
		}
		t.push((bucket + 0.5) * width);
		low.push(count ? least : NaN);
		mean.push(count ? sum / count : NaN);
		high.push(count ? most : NaN);
	}
	return {
		width,
		t: Float64Array.from(t),
		low: Float32Array.from(low),
		mean: Float32Array.from(mean),
		high: Float32Array.from(high),
	};
}

/** A window of a series in about `wanted` buckets; all of its points if they are fewer. */
export function reduce(points: Points, from: number, to: number, wanted: number): Points {
	const window = slice(points, from, to);
	if (window.t.length <= 2 * wanted) {
		return window;
	}
	let width = points.width;
	while (width * wanted < to - from) {
		width *= 2;
	}
	return width > points.width ? merge(window, width) : window;
}

export interface Reading {
	low: number;
	mean: number;
	high: number;
}

/** The value of a series at time t, from the nearest bucket. Null before its first and after its last. */
export function readAt(points: Points, t: number): Reading | null {
	const n = points.t.length;
	if (n === 0) {
		return null;
	}
	const after = Math.min(lowerBound(points.t, t), n - 1);
	const before = Math.max(0, after - 1);
	const nearest = t - points.t[before]! < points.t[after]! - t ? before : after;
	const spacing = Math.max(points.width, n > 1 ? (points.t[n - 1]! - points.t[0]!) / (n - 1) : 1);
	if (t < points.t[0]! - 2 * spacing || t > points.t[n - 1]! + 2 * spacing) {
		return null;
	}
	return { low: points.low[nearest]!, mean: points.mean[nearest]!, high: points.high[nearest]! };
}
