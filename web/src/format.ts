// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Quantities and times for people: SI prefixes, three digits, no false precision.

import type { Unit } from './contract';

/** The format of a unit: value / factor, followed by the name. */
export interface Scale {
	factor: number;
	name: string;
}

const PREFIXES: [number, string][] = [
	[1e15, 'P'],
	[1e12, 'T'],
	[1e9, 'G'],
	[1e6, 'M'],
	[1e3, 'k'],
	[1, ''],
];

const PREFIXED: Record<string, string> = { By: 'B', 'By/s': 'B/s', Hz: 'Hz', 'bit/s': 'bit/s' };

const PLAIN: Record<string, Scale> = {
	'1': { factor: 0.01, name: '%' },
	'{cpu}': { factor: 1, name: 'CPUs' },
	W: { factor: 1, name: 'W' },
	Cel: { factor: 1, name: '°C' },
};

const TIMES: [number, string][] = [
	[3600, 'h'],
	[60, 'min'],
	[1, 's'],
	[1e-3, 'ms'],
	[1e-6, 'us'],
];

/** The scale for values up to `most`. */
export function scaleFor(unit: Unit, most: number): Scale {
	if (unit === 's') {
		const least = most > 0 ? most : 1;
		const [factor, name] = TIMES.find(([f]) => least >= (f > 1 ? 2 : 0.9995) * f) ?? [1e-6, 'us'];
		return { factor, name };
	}
	const base = PREFIXED[unit];
	if (base === undefined) {
		return PLAIN[unit] ?? { factor: 1, name: isCount(unit) ? '' : unit };
	}
	const [factor, prefix] = PREFIXES.find(([f]) => Math.abs(most) >= 0.9995 * f) ?? [1, ''];
	return { factor, name: prefix + base };
}

/** Three significant digits with trailing zeros, so that a changing value keeps its width. */
function threeDigits(value: number): string {
	const size = Math.abs(value);
	if (size >= 99.95 || size === 0) {
		return Math.round(value).toLocaleString('en');
	}
	return value.toFixed(size >= 9.995 ? 1 : 2);
}

/** The same, with more decimals for values below a tenth. */
function allDigits(value: number): string {
	const size = Math.abs(value);
	return size < 0.09995 && size > 0 ? value.toFixed(size >= 0.009995 ? 3 : 4) : threeDigits(value);
}

/** Three significant digits; integers without decimals. */
export function digits(value: number): string {
	const shown = allDigits(value);
	return shown.includes('.') ? shown.replace(/\.?0+$/, '') : shown;
}

/** A common format for these values: integers if all are, else all keep trailing zeros. */
export function digitsAmong(values: readonly number[]): (value: number) => string {
	return values.some((value) => digits(value).includes('.')) ? allDigits : digits;
}

/** A mean and half its interval: two significant digits of the half, and equal decimals for both (as in src/show/pivot_write.c). */
export function withInterval(mean: number, half: number): [string, string] {
	if (!(half > 0)) {
		return [digits(mean), '0'];
	}
	const magnitude = (value: number) => Math.floor(Math.log10(Math.abs(value)));
	let decimals = 1 - magnitude(half);
	decimals -= half * 10 ** decimals >= 99.5 ? 1 : 0;
	const least = mean === 0 ? decimals : -magnitude(mean);
	const places = decimals < 0 ? Math.max(decimals, least) : Math.min(decimals, 9);
	return [atPlace(mean, places), atPlace(half, places)];
}

function atPlace(value: number, places: number): string {
	const last = places < 0 ? 10 ** -places : 1;
	const rounded = places < 0 ? Math.round(value / last) * last : value;
	const shown = Math.max(places, 0);
	return rounded.toLocaleString('en', { minimumFractionDigits: shown, maximumFractionDigits: shown });
}

function isCount(unit: Unit): boolean {
	return unit.startsWith('{') && unit !== '{cpu}';
}

/** A share: "34 %", "0.4 %". */
export function percent(ratio: number): string {
	const value = ratio * 100;
	if (value > 0 && value < 0.05) {
		return 'under 0.1 %';
	}
	return `${value.toFixed(value >= 0.05 && value < 9.95 ? 1 : 0)} %`;
}

/** A value with its unit: "2.94 GB", "34 %". */
export function quantity(unit: Unit, value: number): string {
	if (unit === '1') {
		return percent(value);
	}
	if (unit === 's') {
		return duration(value);
	}
	const scale = scaleFor(unit, value);
	const shown = isCount(unit) ? digits(Math.round(value)) : digits(value / scale.factor);
	if (unit === '{cpu}' && shown === '1') {
		return '1 CPU';
	}
	return isCount(unit) ? shown : `${shown} ${scale.name}`;
}

/** A value in a given scale, without the unit's name. */
export function number(unit: Unit, scale: Scale, value: number): string {
	return digits(isCount(unit) ? Math.round(value) : value / scale.factor);
}

/** The same for a value that changes under a cursor: its width is stable. */
export function steady(unit: Unit, scale: Scale, value: number): string {
	return isCount(unit) ? digits(Math.round(value)) : threeDigits(value / scale.factor);
}

const two = (value: number) => String(value).padStart(2, '0');

/** A point of time, precise enough for steps of `step` seconds: "20 s", "4:30", "3:20 h". */
export function clock(t: number, step: number): string {
	const sign = t < 0 ? '-' : '';
	const decimals = step >= 1 ? 0 : Math.min(4, Math.ceil(-Math.log10(step) - 1e-9));
	const units = 10 ** decimals;
	const whole = Math.round(Math.abs(t) * units);
	const seconds = whole / units;
	if (seconds < 120) {
		return `${sign}${seconds.toFixed(decimals)} s`;
	}
	const minutes = Math.floor(seconds / 60);
	const rest = (seconds - minutes * 60).toFixed(decimals);
	const padded = rest.indexOf('.') === 1 || rest.length === 1 ? `0${rest}` : rest;
	if (step % 3600 === 0 && minutes % 60 === 0) {
		return `${sign}${minutes / 60} h`;
	}
	if (step % 60 === 0) {
		return minutes < 60 ? `${sign}${minutes} min` : `${sign}${Math.floor(minutes / 60)}:${two(minutes % 60)} h`;
	}
	return minutes < 60
		? `${sign}${minutes}:${padded}`
		: `${sign}${Math.floor(minutes / 60)}:${two(minutes % 60)}:${padded}`;
}

/** A duration: "86 ms", "41.2 s", "2 min 4 s", "3 h 12 min". */
export function duration(seconds: number): string {
	if (seconds < 0.9995) {
		return seconds < 0.0009995 ? `${digits(seconds * 1e6)} us` : `${digits(seconds * 1e3)} ms`;
	}
	if (seconds < 99.95) {
		return `${threeDigits(seconds)} s`;
	}
	const whole = Math.round(seconds);
	if (whole < 3600) {
		return `${Math.floor(whole / 60)} min ${whole % 60} s`;
	}
	const minutes = Math.round(seconds / 60);
	return minutes < 1440
		? `${Math.floor(minutes / 60)} h ${minutes % 60} min`
		: `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

/** Date and time in the reader's time zone, with its offset from UTC: "2026-11-22 04:24:03 +01:00". */
export function date(seconds: number): string {
	const at = new Date(seconds * 1000);
	const offset = -at.getTimezoneOffset();
	const away = Math.abs(offset);
	const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
	const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
	return `${day} ${time} ${offset < 0 ? '-' : '+'}${two(Math.floor(away / 60))}:${two(away % 60)}`;
}

const STEPS = [1, 2, 5];
const TIME_STEPS = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** The smallest round step of time that is at least `wanted` seconds. */
export function timeStep(wanted: number): number {
	if (wanted > 5) {
		return TIME_STEPS.find((step) => step >= wanted) ?? 86400 * Math.ceil(wanted / 86400);
	}
	return roundStep(wanted);
}

/** The smallest of 1, 2, 5 times a power of ten that is at least `wanted`. */
export function roundStep(wanted: number): number {
	const power = 10 ** Math.floor(Math.log10(wanted));
	const step = STEPS.find((s) => s * power >= wanted * 0.9999) ?? 10;
	return step * power;
}
