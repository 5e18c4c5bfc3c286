// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Unpacks a series. It has five columns, one after the other, each in blocks of 64 values with a
// Rice code per block: 5 bits k, then per value a unary quotient and k bits. k = 31: all values are
// 0. A quotient of 24: the value follows in 32 bits. Bits fill bytes from the lowest.
//
//   index  of the bucket, minus the one before, minus 1 (the first: minus -1, minus 1)
//   gap    1 if the value could not be read
//   mean   zigzag of the difference to the mean before (gaps are skipped)
//   above  maximum minus mean
//   below  mean minus minimum

import type { Detail, Series } from './contract';

const STEPS = 1024;
const BLOCK = 64;
const ESCAPE = 24;

/** Buckets in order of time; NaN if the value could not be read. */
export interface Points {
	/** Length of a bucket in seconds. */
	width: number;
	/** Middles of the buckets. */
	t: Float64Array;
	low: Float32Array;
	mean: Float32Array;
	high: Float32Array;
}

class BitReader {
	private at = 0;
	private hold = 0;
	private held = 0;

	constructor(private readonly bytes: Uint8Array) {}

	private bit(): number {
		if (this.held === 0) {
			this.hold = this.bytes[this.at++] ?? 0;
			this.held = 8;
		}
		const bit = this.hold & 1;
		this.hold >>>= 1;
		this.held--;
		return bit;
	}

	bits(n: number): number {
		let value = 0;
		let filled = 0;
		while (filled < n) {
			if (this.held === 0) {
				this.hold = this.bytes[this.at++] ?? 0;
				this.held = 8;
			}
			const take = Math.min(n - filled, this.held);
			value += (this.hold & ((1 << take) - 1)) * 2 ** filled;
			this.hold >>>= take;
			this.held -= take;
			filled += take;
		}
		return value;
	}

	rice(k: number): number {
		let quotient = 0;
		while (quotient < ESCAPE && this.bit() === 1) {
			quotient++;
		}
		return quotient === ESCAPE ? this.bits(32) : quotient * 2 ** k + this.bits(k);
	}

	column(n: number): Float64Array {
		const values = new Float64Array(n);
		for (let start = 0; start < n; start += BLOCK) {
			const k = this.bits(5);
			const end = Math.min(n, start + BLOCK);
			for (let i = start; k !== 31 && i < end; i++) {
				values[i] = this.rice(k);
			}
		}
		return values;
	}
}

function bytesOf(base64: string): Uint8Array {
	const text = atob(base64);
	const bytes = new Uint8Array(text.length);
	for (let i = 0; i < text.length; i++) {
		bytes[i] = text.charCodeAt(i);
	}
	return bytes;
}

export function decode(series: Series | Detail): Points {
	const n = series.points;
	const reader = new BitReader(bytesOf(series.data));
	const [index, gap, mean, above, below] = [0, 1, 2, 3, 4].map(() => reader.column(n)) as [
		Float64Array, Float64Array, Float64Array, Float64Array, Float64Array,
	];
	const points: Points = {
		width: series.width,
		t: new Float64Array(n),
		low: new Float32Array(n),
		mean: new Float32Array(n),
		high: new Float32Array(n),
	};
	const value = (code: number) => series.unit * Math.sinh(code / STEPS);
	let bucket = -1;
	let code = 0;
	for (let i = 0; i < n; i++) {
		bucket += index[i]! + 1;
		points.t[i] = (bucket + 0.5) * series.width;
		if (gap[i]) {
			points.low[i] = points.mean[i] = points.high[i] = NaN;
			continue;
		}
		const zigzag = mean[i]!;
		code += zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
		points.mean[i] = value(code);
		points.low[i] = below[i] ? value(code - below[i]!) : points.mean[i]!;
		points.high[i] = above[i] ? value(code + above[i]!) : points.mean[i]!;
	}
	return points;
}
