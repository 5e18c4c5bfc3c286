// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One panel: its label with a key per series, and a uPlot chart of the means, with the range
// between minimum and maximum behind them. The timeline controls the window of time and the cursor.

import uPlot from 'uplot';

import type { Detail, Mark, Panel, Series, Span } from './contract';
import { decode, type Points } from './decode';
import { button, key, make } from './dom';
import { number, quantity, roundStep, scaleFor, steady, type Scale } from './format';
import { readAt, reduce } from './reduce';
import type { Palette } from './theme';

/** Width of the numbers at the vertical axis; also in report.css. */
export const GUTTER = 52;
const BUCKETS = 1000;
const HEADROOM = 1.06;
const DOT_SPACING = 28;

/** Common to all panels. */
export interface Shared {
	palette: Palette;
	epochs: Span[];
	events: number[];
	end: number;
}

/** The interface of any kind of panel for the timeline. */
export interface PanelView {
	readonly element: HTMLElement;
	readonly plot: HTMLElement;
	/** Shows a window of time. */
	show(from: number, to: number): void;
	/** Draws at a width in pixels; the first call creates the chart. */
	resize(width: number): void;
	repaint(): void;
	/** Writes the values at time t next to the cursor at x pixels; returns them as text. */
	read(t: number, x: number, width: number): string;
	hideReading(): void;
	/** The longest bucket in view; 0 if every sample is shown. */
	bucket(): number;
	/** A marked iteration within `reach` seconds of t. */
	markAt(t: number, reach: number): Mark | null;
}

/** Draws bands behind every second epoch. */
export function paintEpochs(chart: uPlot, shared: Shared): void {
	const { ctx, bbox } = chart;
	ctx.save();
	ctx.fillStyle = shared.palette.band;
	shared.epochs.forEach((epoch, i) => {
		const left = Math.max(bbox.left, chart.valToPos(epoch.start, 'x', true));
		const right = Math.min(bbox.left + bbox.width, chart.valToPos(epoch.end ?? shared.end, 'x', true));
		// Narrow bands would only tint the whole panel.
		if (i % 2 === 0 && right - left >= 4) {
			ctx.fillRect(left, bbox.top, right - left, bbox.height);
		}
	});
	ctx.restore();
}

/** Draws dotted lines at events. */
export function paintEvents(chart: uPlot, shared: Shared, from: number, to: number): void {
	const { ctx, bbox } = chart;
	const ratio = uPlot.pxRatio;
	ctx.save();
	ctx.lineWidth = ratio;
	ctx.setLineDash([ratio, 3 * ratio]);
	ctx.strokeStyle = shared.palette.mark;
	for (const t of shared.events.filter((e) => e >= from && e <= to)) {
		const x = Math.round(chart.valToPos(t, 'x', true)) + ratio / 2;
		ctx.beginPath();
		ctx.moveTo(x, bbox.top);
		ctx.lineTo(x, bbox.top + bbox.height);
		ctx.stroke();
	}
	ctx.restore();
}

/** Puts a readout next to the cursor at x pixels, on the side with room. */
export function placeReadout(readout: HTMLElement, parts: HTMLElement[], x: number, width: number): void {
	readout.replaceChildren(...parts);
	readout.style.display = 'flex';
	const left = x > width / 2;
	readout.classList.toggle('left', left);
	readout.style.left = left ? '' : `${GUTTER + x + 6}px`;
	readout.style.right = left ? `${width - x + 6}px` : '';
}

/** A stretch of a line at full rate, unpacked at first use. */
interface Stretch {
	detail: Detail;
	points: Points | null;
}

interface Line {
	series: Series;
	points: Points;
	stretches: Stretch[];
	view: Points;
	shown: boolean;
}

/** The finest data that covers the whole window. */
function pointsFor(line: Line, from: number, to: number): Points {
	const stretch = line.stretches.find(({ detail }) => detail.from <= from && to <= detail.to);
	if (!stretch) {
		return line.points;
	}
	stretch.points ??= decode(stretch.detail);
	return stretch.points;
}

type Column = (number | null | undefined)[];

/** The times of all lines, each once. */
function unionOfTimes(lines: Line[]): number[] {
	const times = new Set<number>();
	for (const line of lines) {
		for (const t of line.view.t) {
			times.add(t);
		}
	}
	return Float64Array.from(times).sort() as unknown as number[];
}

/** Values at the panel's times: undefined without a point of this line, null for a gap. */
function column(times: ArrayLike<number>, view: Points, values: Float32Array): Column {
	const result: Column = new Array(times.length);
	let next = 0;
	for (let i = 0; i < times.length; i++) {
		if (next < view.t.length && view.t[next] === times[i]) {
			const value = values[next++]!;
			result[i] = Number.isNaN(value) ? null : value;
		} else {
			result[i] = undefined;
		}
	}
	return result;
}

export class PanelChart implements PanelView {
	readonly element: HTMLElement;
	readonly plot = make('div', 'plot');
	private readonly readout = make('div', 'readout');
	private readonly unit = make('small', '');
	private readonly lines: Line[];
	private readonly height: number;
	private chart: uPlot | null = null;
	private scale: Scale;
	private top = 1;
	private from = 0;
	private to = 1;

	constructor(
		private readonly panel: Panel,
		private readonly shared: Shared,
	) {
		this.lines = panel.series.map((series) => {
			const points = decode(series);
			const stretches = (series.details ?? []).map((detail) => ({ detail, points: null }));
			return { series, points, stretches, view: points, shown: true };
		});
		this.scale = scaleFor(panel.unit, this.greatest());
		this.height = Math.max(88, 46 + 18 * (panel.series.length + panel.limits.length));
		this.plot.append(this.readout);
		this.element = make('figure', 'panel', this.label(), this.plot);
		this.element.setAttribute('aria-label', this.description());
	}

	private label(): HTMLElement {
		const label = make('figcaption', 'label', make('span', 'title', this.panel.title), this.unit);
		label.title = this.panel.help;
		for (const line of this.lines) {
			const toggle = button('series', '', () => this.toggle(line, toggle));
			toggle.append(key(line.series.hue), make('span', '', line.series.label));
			toggle.title = `${line.series.help} (click to hide or show)`;
			toggle.setAttribute('aria-pressed', 'true');
			label.append(toggle);
		}
		for (const limit of this.panel.limits) {
			const text = `${limit.label} ${quantity(this.panel.unit, limit.value)}`;
			label.append(make('small', 'limit', make('span', 'dash'), text));
		}
		return label;
	}

	/** A description of the panel, for screen readers. */
	private description(): string {
		const say = (value: number | null) =>
			value === null ? 'not known' : quantity(this.panel.unit, value);
		const lines = this.lines.map(
			({ series }) =>
				`${series.label}: mean ${say(series.mean)}, minimum ${say(series.minimum)}, maximum ${say(series.maximum)}`,
		);
		return `${this.panel.title}. ${lines.join('; ')}`;
	}

	private toggle(line: Line, control: HTMLButtonElement): void {
		line.shown = !line.shown;
		control.setAttribute('aria-pressed', String(line.shown));
		const first = 1 + 3 * this.lines.indexOf(line);
		for (const index of [first, first + 1, first + 2]) {
			this.chart?.setSeries(index, { show: line.shown });
		}
		this.show(this.from, this.to);
	}

	private greatest(): number {
		return this.lines.reduce((most, line) => Math.max(most, line.series.maximum ?? 0), 0);
	}

	/** The end of the vertical axis for the window; includes limits that are near. */
	private ending(): number {
		let most = this.panel.floor ?? 0;
		for (const line of this.lines.filter((l) => l.shown)) {
			for (let i = 0; i < line.view.t.length; i++) {
				const inside = line.view.t[i]! >= this.from - line.view.width && line.view.t[i]! <= this.to + line.view.width;
				most = inside && line.view.high[i]! > most ? line.view.high[i]! : most;
			}
		}
		for (const limit of this.panel.limits) {
			most = most >= 0.3 * limit.value ? Math.max(most, limit.value) : most;
		}
		return Math.min(most > 0 ? most : 1, this.panel.ceiling ?? Infinity);
	}

	show(from: number, to: number): void {
		this.from = from;
		this.to = to;
		for (const line of this.lines) {
			line.view = reduce(pointsFor(line, from, to), from, to, BUCKETS);
		}
		this.top = this.ending();
		this.scale = scaleFor(this.panel.unit, this.top);
		this.unit.textContent = this.scale.name;
		const times = unionOfTimes(this.lines);
		const data: Column[] = [];
		for (const { view } of this.lines) {
			data.push(column(times, view, view.mean), column(times, view, view.low), column(times, view, view.high));
		}
		const chart = this.chart;
		if (chart) {
			chart.batch(() => {
				chart.setData([times, ...data] as uPlot.AlignedData, false);
				chart.setScale('x', { min: from, max: to });
				chart.setScale('y', { min: 0, max: this.top * HEADROOM });
			});
		}
	}

	resize(width: number): void {
		if (this.chart) {
			this.chart.setSize({ width, height: this.height });
			return;
		}
		this.chart = new uPlot(this.options(width), [[], ...this.lines.flatMap(() => [[], [], []])] as uPlot.AlignedData, this.plot);
		this.show(this.from, this.to);
	}

	repaint(): void {
		this.chart?.redraw(false, true);
	}

	private options(width: number): uPlot.Options {
		const { palette } = this.shared;
		const hue = (line: Line) => line.series.hue % palette.hues.length;
		const edge = { stroke: 'transparent', width: 0, points: { show: false } };
		return {
			width,
			height: this.height,
			padding: [4, 0, 4, 0],
			legend: { show: false },
			cursor: { show: false },
			scales: {
				x: { time: false, auto: false, range: (_, from, to) => [from, to] },
				y: { auto: false, range: (_, from, to) => [from, to] },
			},
			axes: [
				{ show: false },
				{
					size: GUTTER,
					gap: 6,
					font: '11px system-ui, sans-serif',
					stroke: () => this.shared.palette.soft,
					grid: { stroke: () => this.shared.palette.line, width: 1 },
					ticks: { show: false },
					splits: () => this.splits(),
					values: (_, splits) => splits.map((value) => number(this.panel.unit, this.scale, value)),
				},
			],
			series: [
				{},
				...this.lines.flatMap((line) => [
					{
						stroke: () => this.shared.palette.hues[hue(line)]!,
						width: 1.3,
						points: {
							size: 4,
							fill: () => this.shared.palette.hues[hue(line)]!,
							// Dots, if there are few enough readings to
							// distinguish them.
							show: () => line.view.t.length < this.chart!.width / DOT_SPACING,
						},
					},
					edge,
					edge,
				]),
			] as uPlot.Series[],
			bands: this.lines.map((line, i) => ({
				series: [3 + 3 * i, 2 + 3 * i] as [number, number],
				fill: () => this.shared.palette.fills[hue(line)]!,
			})),
			hooks: {
				drawClear: [(chart) => paintEpochs(chart, this.shared)],
				draw: [(chart) => this.paintMarks(chart)],
			},
		};
	}

	/** Round values: zero, the middle and the end. */
	private splits(): number[] {
		const { factor } = this.scale;
		const step = roundStep(this.top / factor / 2.6) * factor;
		const splits: number[] = [];
		for (let i = 0; i * step <= this.top * 1.001; i++) {
			splits.push(i * step);
		}
		return splits;
	}

	private paintMarks(chart: uPlot): void {
		const { ctx, bbox } = chart;
		const ratio = uPlot.pxRatio;
		ctx.save();
		ctx.lineWidth = ratio;
		ctx.setLineDash([4 * ratio, 3 * ratio]);
		ctx.strokeStyle = this.shared.palette.limit;
		for (const limit of this.panel.limits.filter((l) => l.value <= this.top)) {
			const y = Math.round(chart.valToPos(limit.value, 'y', true)) + ratio / 2;
			ctx.beginPath();
			ctx.moveTo(bbox.left, y);
			ctx.lineTo(bbox.left + bbox.width, y);
			ctx.stroke();
		}
		ctx.fillStyle = this.shared.palette.mark;
		for (const mark of this.marks().filter((m) => m.t >= this.from && m.t <= this.to)) {
			ctx.beginPath();
			ctx.arc(chart.valToPos(mark.t, 'x', true), chart.valToPos(mark.value, 'y', true), 3.2 * ratio, 0, 2 * Math.PI);
			ctx.fill();
		}
		ctx.restore();
		paintEvents(chart, this.shared, this.from, this.to);
	}

	private marks(): Mark[] {
		return this.panel.marks ?? [];
	}

	markAt(t: number, reach: number): Mark | null {
		const near = this.marks().filter((mark) => Math.abs(mark.t - t) <= reach);
		near.sort((a, b) => Math.abs(a.t - t) - Math.abs(b.t - t));
		return near[0] ?? null;
	}

	read(t: number, x: number, width: number): string {
		const words: string[] = [];
		const parts: HTMLElement[] = [];
		for (const line of this.lines.filter((l) => l.shown)) {
			const text = this.reading(line, t);
			words.push(`${line.series.label} ${text}`);
			parts.push(make('span', 'value', key(line.series.hue), text));
		}
		placeReadout(this.readout, parts, x, width);
		return `${this.panel.title}: ${words.join(', ')}`;
	}

	private reading(line: Line, t: number): string {
		const reading = readAt(line.view, t);
		if (!reading) {
			return '–';
		}
		if (Number.isNaN(reading.mean)) {
			return 'not known';
		}
		const show = (value: number) => steady(this.panel.unit, this.scale, value);
		const [low, mean, high] = [show(reading.low), show(reading.mean), show(reading.high)];
		return low === high ? mean : `${mean} (${low} to ${high})`;
	}

	hideReading(): void {
		this.readout.style.display = 'none';
	}

	bucket(): number {
		return this.lines.reduce((longest, line) => {
			// A point may have a range of its own: that of the ranks in an iteration.
			const merged = line.series.samples > line.series.points && line.view.low.some((low, i) => low !== line.view.high[i]);
			return merged ? Math.max(longest, line.view.width) : longest;
		}, 0);
	}
}
