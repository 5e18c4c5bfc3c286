// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Scaling curves: a measure over a numeric label, a line for each value of another label, and a
// small chart for each value of a third. Each point is a mean, its bar the interval of repeats.

import uPlot from 'uplot';

import { HUES, make } from './dom';
import { digits, roundStep, scaleFor } from './format';
import { amountOf } from './label_values';
import type { MeasureColumn } from './sweep_contract';
import type { Figure, Label, Model, Trial } from './sweep_model';
import { besideTable, write } from './sweep_state';
import { chooser, cut, estimateText, plural, type Card, type View } from './sweep_view';
import { readPalette, type Palette } from './theme';

const MOST_SERIES = 10;
const MOST_FACETS = 12;
const NEAR = 24;
const GUTTER = 58;
/** Letters of a line's name at its end; the key and the readout have the full name. */
const END_LETTERS = 14;
const END_LETTER_WIDTH = 6.8;
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [10, 4]];
const USUAL_X = ['batch_size', 'workers', 'cpus', 'threads', 'processes', 'memory', 'gpus'];

interface Point {
	x: number;
	figure: Figure;
	trials: Trial[];
}

interface Curve {
	name: string;
	/** Keeps its colour whatever else is shown. */
	index: number;
	points: Point[];
}

interface Axes {
	x: Label;
	y: MeasureColumn;
	series: Label | null;
	facet: Label | null;
	logX: boolean;
	logY: boolean;
}

/** The positions of a label's values on an axis. */
function positions(label: Label): Map<string, number> {
	const found = new Map<string, number>();
	for (const value of label.distinct) {
		const amount = amountOf(value);
		if (amount) {
			found.set(value, amount.value);
		}
	}
	return found;
}

/** The default axes. */
export function defaultAxes(model: Model): { x: Label | null; series: Label | null; facet: Label | null } {
	const numeric = model.varying.filter((label) => label.numeric);
	const usual = USUAL_X.map((name) => numeric.find((label) => label.name === name)).find((label) => label !== undefined);
	const x = usual ?? numeric[0] ?? null;
	const others = model.varying.filter((label) => label !== x && label.distinct.length > 1);
	const series = others.find((label) => label.distinct.length <= MOST_SERIES) ?? null;
	const facet = others.find((label) => label !== series && label.distinct.length <= 6) ?? null;
	return { x, series, facet };
}

export class CurveCard implements Card {
	readonly element: HTMLElement;
	private readonly charts = make('div', 'charts');
	private readonly keys = make('div', 'keys');
	private readonly note = make('p', 'soft', '');
	private readonly choices;
	private readonly boxes: [HTMLInputElement, HTMLInputElement];
	private drawn: Chart[] = [];
	private drawnFor: string | null = null;
	private palette = readPalette();
	private width = 0;

	constructor(private readonly view: View) {
		const { model } = view;
		const numeric = model.labels.filter((label) => label.numeric && label.varies).map((label) => label.name);
		const others = model.labels.filter((label) => label.varies && label.distinct.length > 1).map((label) => label.name);
		this.choices = {
			x: chooser('x', numeric, null, (x) => view.change({ x, logX: null })),
			y: chooser('y', model.measures.map((measure) => measure.name), null, (y) => view.change({ y, logY: null })),
			series: chooser('a line for each', others, 'nothing', (series) => view.change({ series })),
			facet: chooser('a chart for each', others, 'nothing', (facet) => view.change({ facet })),
		};
		const [logX, boxX] = check('log x', (on) => view.change({ logX: on }));
		const [logY, boxY] = check('log y', (on) => view.change({ logY: on }));
		this.boxes = [boxX, boxY];
		const possible = numeric.length > 0 && model.measures.length > 0;
		const controls = make('div', 'controls', ...Object.values(this.choices).map((choice) => choice.element), logX, logY);
		const why = numeric.length === 0
			? 'A curve needs a label whose values are numbers and vary.'
			: 'No measure has a value.';
		this.element = make(
			'section', 'card curves', make('h2', '', 'Scaling'),
			...(possible ? [controls, this.keys, this.charts, this.note] : [make('p', 'soft first', why)]),
		);
		this.element.setAttribute('aria-label', 'Scaling curves');
		if (possible) {
			new ResizeObserver(() => this.resize()).observe(this.charts);
			this.update();
		}
	}

	update(): void {
		const axes = this.axes();
		const key = write(besideTable(this.view.state));
		if (!axes || key === this.drawnFor) {
			return;
		}
		this.drawnFor = key;
		this.choices.x.show(axes.x.name);
		this.choices.y.show(axes.y.name);
		this.choices.series.show(axes.series?.name ?? null);
		this.choices.facet.show(axes.facet?.name ?? null);
		this.boxes[0].checked = axes.logX;
		this.boxes[1].checked = axes.logY;
		this.draw(axes);
	}

	repaint(): void {
		this.palette = readPalette();
		this.drawnFor = null;
		this.update();
	}

	private axes(): Axes | null {
		const { model, state, by } = this.view;
		const usual = defaultAxes(model);
		const named = (name: string | null, otherwise: Label | null) =>
			name === '' ? null : (model.findLabel(name) ?? otherwise);
		const chosen = model.findLabel(state.x);
		const x = chosen?.numeric ? chosen : usual.x;
		const y = model.findMeasure(state.y) ?? by ?? model.measures[0];
		if (!x || !y) {
			return null;
		}
		const series = named(state.series, usual.series);
		const facet = named(state.facet, usual.facet);
		const at = [...positions(x).values()].filter((value) => value > 0);
		const spread = Math.max(...at) / Math.min(...at);
		const positive = at.length === positions(x).size;
		return {
			x, y,
			series: series === x ? null : series,
			facet: facet === x || facet === series ? null : facet,
			logX: positive && (state.logX ?? spread >= 8),
			logY: state.logY ?? false,
		};
	}

	private draw(axes: Axes): void {
		const facets = axes.facet ? axes.facet.distinct.slice(0, MOST_FACETS) : [null];
		const parts = facets.map((value) => ({ value, curves: this.curves(axes, value) }));
		const shown = parts.filter((part) => part.curves.some((curve) => curve.points.length > 0));
		const all = shown.flatMap((part) => part.curves).flatMap((curve) => curve.points);
		const range = all.length > 0 ? rangeOf(all, axes.logY) : null;
		const xs = [...new Set(all.map((point) => point.x))].sort((a, b) => a - b);
		this.drawn.forEach((chart) => chart.done());
		this.drawn = shown.map(({ value, curves }) => {
			const title = axes.facet ? `${axes.facet.name} ${value}` : '';
			return new Chart(this.view, axes, title, curves, range!, xs, this.palette);
		});
		this.charts.replaceChildren(...this.drawn.map((chart) => chart.element));
		this.charts.classList.toggle('many', this.drawn.length > 1);
		this.paintKeys(axes, shown.flatMap((part) => part.curves));
		this.note.textContent = this.noteOf(axes, all);
		this.width = 0;
		this.resize();
	}

	private curves(axes: Axes, facet: string | null): Curve[] {
		const at = positions(axes.x);
		const trials = this.view.visible.filter((trial) => facet === null || axes.facet!.values[trial.index] === facet);
		const names = axes.series ? axes.series.distinct.slice(0, MOST_SERIES) : [null];
		return names.map((name, index) => {
			const own = trials.filter((trial) => name === null || axes.series!.values[trial.index] === name);
			const groups = new Map<number, Trial[]>();
			for (const trial of own) {
				const x = at.get(axes.x.values[trial.index] ?? '');
				if (x !== undefined && !(axes.logX && x <= 0)) {
					groups.set(x, [...(groups.get(x) ?? []), trial]);
				}
			}
			const points = [...groups].flatMap(([x, group]): Point[] => {
				const figure = this.view.model.figure(group, axes.y);
				return figure && !(axes.logY && figure.mean <= 0) ? [{ x, figure, trials: group }] : [];
			});
			return { name: name ?? '', index, points: points.sort((a, b) => a.x - b.x) };
		});
	}

	private noteOf(axes: Axes, points: Point[]): string {
		const mixed = Math.max(0, ...points.map((point) => point.figure.configurations));
		const taken = [axes.x, axes.series, axes.facet];
		const others = this.view.model.varying.filter((label) => !taken.includes(label)).map((label) => label.name);
		const left = (label: Label | null, most: number) =>
			label && label.distinct.length > most
				? [`Only the first ${most} of ${label.distinct.length} values of ${label.name} are drawn.`]
				: [];
		const notes = [
			points.length === 0 ? 'None of the shown trials has this measure.' : `${axes.y.name} over ${axes.x.name}.`,
			...(mixed > 1
				? [`A point is the mean of up to ${plural(mixed, 'configuration')} that differ in ${others.slice(0, 4).join(', ')}` +
					`${others.length > 4 ? ' and others' : ''}: choose values above to see one at a time.`]
				: points.some((point) => point.figure.half !== null)
					? ['Bars are 95 % intervals over repeats.']
					: []),
			...left(axes.series, MOST_SERIES),
			...left(axes.facet, MOST_FACETS),
		];
		return notes.join(' ');
	}

	private paintKeys(axes: Axes, curves: Curve[]): void {
		const used = new Map(curves.filter((curve) => curve.points.length > 0).map((curve) => [curve.index, curve]));
		const items = [...used.values()].sort((a, b) => a.index - b.index).map((curve) => {
			const text = cut(`${axes.series?.name} ${curve.name}`, 30);
			return make('span', 'curve-key', sample(curve.index), text);
		});
		this.keys.replaceChildren(...(axes.series ? items : []));
	}

	private resize(): void {
		const width = this.charts.clientWidth;
		if (width === 0 || width === this.width) {
			return;
		}
		this.width = width;
		const most = this.drawn.length === 4 ? 2 : 3;
		const columns = Math.max(1, Math.min(most, Math.floor(width / 330), this.drawn.length));
		this.charts.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
		const each = Math.floor((width - 20 * (columns - 1)) / columns);
		this.drawn.forEach((chart) => chart.resize(each, columns === 1 ? 320 : 230));
	}
}

function check(title: string, change: (on: boolean) => void): [HTMLElement, HTMLInputElement] {
	const box = make('input', '');
	box.type = 'checkbox';
	box.addEventListener('change', () => change(box.checked));
	return [make('label', 'choice check', box, make('span', '', title)), box];
}

/** A piece of the line with its mark, as in the charts. */
function sample(index: number): HTMLElement {
	const canvas = make('canvas', 'sample');
	const ratio = devicePixelRatio || 1;
	canvas.width = 30 * ratio;
	canvas.height = 12 * ratio;
	const context = canvas.getContext('2d')!;
	context.scale(ratio, ratio);
	const colour = readPalette().hues[index % HUES]!;
	context.strokeStyle = context.fillStyle = colour;
	context.lineWidth = 1.5;
	context.setLineDash(DASHES[index % DASHES.length]!);
	context.beginPath();
	context.moveTo(0, 6);
	context.lineTo(30, 6);
	context.stroke();
	paintMark(context, index, 15, 6, 3.5);
	canvas.setAttribute('aria-hidden', 'true');
	return canvas;
}

/** Circle, square, triangle, diamond, cross: distinguishable without colours. */
function paintMark(context: CanvasRenderingContext2D, index: number, x: number, y: number, size: number): void {
	context.setLineDash([]);
	context.beginPath();
	switch (index % 5) {
		case 0:
			context.arc(x, y, size, 0, 2 * Math.PI);
			break;
		case 1:
			context.rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8);
			break;
		case 2:
			polygon(context, [[x, y - size * 1.2], [x + size * 1.1, y + size], [x - size * 1.1, y + size]]);
			break;
		case 3:
			polygon(context, [[x, y - size * 1.3], [x + size * 1.3, y], [x, y + size * 1.3], [x - size * 1.3, y]]);
			break;
		default:
			polygon(context, [[x, y + size * 1.2], [x + size * 1.1, y - size], [x - size * 1.1, y - size]]);
	}
	context.fill();
}

function polygon(context: CanvasRenderingContext2D, corners: [number, number][]): void {
	corners.forEach(([x, y], i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
	context.closePath();
}

/** The same for all charts of a card, so that they can be compared; starts at 0 unless logarithmic. */
function rangeOf(points: Point[], log: boolean): [number, number] {
	const lows = points.map(({ figure }) => figure.mean - (figure.half ?? 0));
	const highs = points.map(({ figure }) => figure.mean + (figure.half ?? 0));
	if (log) {
		const means = points.map(({ figure }) => figure.mean);
		const least = Math.min(...lows.map((low, i) => (low > means[i]! / 10 ? low : means[i]! / 10)));
		return [least / 1.25, Math.max(...highs) * 1.25];
	}
	const [least, most] = [Math.min(0, ...lows), Math.max(...highs, 0)];
	return most > least ? [least, most * 1.08] : [0, 1];
}

class Chart {
	readonly element: HTMLElement;
	private readonly place = make('div', 'place');
	private readonly readout = make('div', 'tip');
	private plot: uPlot | null = null;
	private nearest: { point: Point; curve: Curve } | null = null;

	constructor(
		private readonly view: View,
		private readonly axes: Axes,
		private readonly title: string,
		private readonly curves: Curve[],
		private readonly range: [number, number],
		/** Of all charts, so that they have the same axis. */
		private readonly xs: number[],
		private readonly palette: Palette,
	) {
		this.element = make('figure', 'chart', title ? make('figcaption', '', cut(title, 50)) : null, this.place, this.readout);
		this.place.tabIndex = 0;
		this.place.setAttribute('role', 'group');
		this.place.setAttribute('aria-label', this.words());
		this.readout.setAttribute('aria-live', 'polite');
		this.place.addEventListener('keydown', (event) => this.keydown(event));
		this.place.addEventListener('blur', () => this.leave());
		this.place.addEventListener('pointermove', (event) => this.hover(event));
		this.place.addEventListener('pointerleave', () => this.leave());
		this.place.addEventListener('click', () => this.open());
	}

	resize(width: number, height: number): void {
		if (!this.plot) {
			const columns = this.curves.map((curve) => {
				const at = new Map(curve.points.map((point) => [point.x, point.figure.mean]));
				return this.xs.map((x) => at.get(x) ?? null);
			});
			this.plot = new uPlot(this.options(width, height), [this.xs, ...columns] as uPlot.AlignedData, this.place);
		} else {
			this.plot.setSize({ width, height });
		}
	}

	done(): void {
		this.plot?.destroy();
	}

	/** The points as text, for screen readers. */
	private words(): string {
		const lines = this.curves.filter((curve) => curve.points.length > 0).map((curve) => {
			const points = curve.points.map((point) => `${this.xText(point.x)}: ${estimateText(this.axes.y.unit, point.figure)}`);
			return `${curve.name ? `${this.axes.series!.name} ${curve.name}, ` : ''}${points.join(', ')}`;
		});
		return `${this.title} ${this.axes.y.name} over ${this.axes.x.name}. ${lines.join('. ')}`.trim();
	}

	private xText(x: number): string {
		const named = this.axes.x.distinct.find((value) => amountOf(value)?.value === x);
		return named ?? digits(x);
	}

	private options(width: number, height: number): uPlot.Options {
		const { palette, axes } = this;
		const font = '12px system-ui, sans-serif';
		const all = (_: uPlot, at: number[]) => at;
		const axis = { stroke: palette.soft, font, filter: all, grid: { stroke: palette.line, width: 1 }, ticks: { show: false } };
		return {
			width,
			height,
			legend: { show: false },
			cursor: { show: false },
			padding: [14, this.endRoom(), 0, 0],
			scales: {
				x: { time: false, range: () => this.xRange(), ...(axes.logX ? { distr: 3 as const, log: 2 as const } : {}) },
				y: { range: () => this.range, ...(axes.logY ? { distr: 3 as const } : {}) },
			},
			axes: [
				{ ...axis, grid: { show: false }, size: 28, gap: 6, label: axes.x.name.slice(0, 60), labelFont: font, labelSize: 18,
					splits: (plot) => this.xSplits(plot), values: (_, at) => at.map((x) => this.xText(x)) },
				{ ...axis, size: GUTTER, splits: () => this.ySplits(), values: (_, at) => at.map((y) => this.yText(y)) },
			],
			series: [
				{},
				...this.curves.map((curve) => ({
					stroke: palette.hues[curve.index % HUES]!,
					width: 1.5,
					dash: DASHES[curve.index % DASHES.length]!,
					spanGaps: true,
					points: { show: false },
				})),
			],
			hooks: { draw: [(plot) => this.paint(plot)] },
		};
	}

	/** Room to the right for the names of the lines. */
	private endRoom(): number {
		const named = this.curves.filter((curve) => curve.points.length > 0);
		const letters = Math.max(0, ...named.map((curve) => Math.min(curve.name.length, END_LETTERS)));
		return Math.max(20, Math.ceil(10 + letters * END_LETTER_WIDTH));
	}

	private xRange(): [number, number] {
		const [first, last] = [this.xs[0] ?? 0, this.xs[this.xs.length - 1] ?? 1];
		if (this.axes.logX) {
			const room = first === last ? 2 : (last / first) ** 0.06;
			return [first / room, last * room];
		}
		const room = first === last ? Math.abs(first) / 2 || 1 : (last - first) * 0.06;
		return [first - room, last + room];
	}

	/** The values that were tried, as many as fit. */
	private xSplits(plot: uPlot): number[] {
		const kept: number[] = [];
		let free = -Infinity;
		for (const x of this.xs) {
			const at = plot.valToPos(x, 'x');
			const half = 3.6 * this.xText(x).length;
			if (at - half >= free) {
				kept.push(x);
				free = at + half + 8;
			}
		}
		return kept;
	}

	private ySplits(): number[] {
		const [from, to] = this.range;
		if (this.axes.logY) {
			return logSplits(from, to);
		}
		const factor = scaleFor(this.axes.y.unit, to).factor;
		const step = roundStep((to - from) / factor / 6) * factor;
		const splits: number[] = [];
		for (let i = Math.ceil(from / step - 1e-9); i * step <= to; i++) {
			splits.push(i * step);
		}
		return splits;
	}

	private yText(y: number): string {
		const scale = scaleFor(this.axes.y.unit, this.axes.logY ? y : this.range[1]);
		return y === 0 ? '0' : `${digits(y / scale.factor)}${scale.name ? ` ${scale.name}` : ''}`;
	}

	/** Draws marks, bars of intervals, and the name of each line at its end. */
	private paint(plot: uPlot): void {
		const { ctx } = plot;
		const ratio = uPlot.pxRatio;
		ctx.save();
		ctx.font = `${12 * ratio}px system-ui, sans-serif`;
		ctx.textBaseline = 'middle';
		ctx.textAlign = 'left';
		const ends: { y: number; x: number; name: string; colour: string }[] = [];
		for (const curve of this.curves) {
			const colour = this.palette.hues[curve.index % HUES]!;
			ctx.strokeStyle = ctx.fillStyle = colour;
			for (const point of curve.points) {
				this.paintPoint(plot, curve, point, ratio);
			}
			const last = curve.points[curve.points.length - 1];
			if (last && curve.name) {
				ends.push({ x: plot.valToPos(last.x, 'x', true), y: plot.valToPos(last.figure.mean, 'y', true), name: curve.name, colour });
			}
		}
		this.paintEnds(ctx, ends, ratio);
		ctx.restore();
	}

	private paintPoint(plot: uPlot, curve: Curve, { x, figure }: Point, ratio: number): void {
		const { ctx } = plot;
		const at = plot.valToPos(x, 'x', true);
		const middle = plot.valToPos(figure.mean, 'y', true);
		paintMark(ctx, curve.index, at, middle, 3.5 * ratio);
		if (figure.half === null) {
			return;
		}
		const least = this.axes.logY ? Math.max(figure.mean - figure.half, this.range[0]) : figure.mean - figure.half;
		const [top, bottom] = [figure.mean + figure.half, least].map((y) => plot.valToPos(y, 'y', true)) as [number, number];
		const cap = 3 * ratio;
		ctx.lineWidth = ratio;
		ctx.beginPath();
		for (const y of [top, bottom]) {
			ctx.moveTo(at - cap, y);
			ctx.lineTo(at + cap, y);
		}
		ctx.moveTo(at, top);
		ctx.lineTo(at, bottom);
		ctx.stroke();
	}

	/** Draws names without overlaps: the lower ones move down. */
	private paintEnds(ctx: CanvasRenderingContext2D, ends: { y: number; x: number; name: string; colour: string }[], ratio: number): void {
		const placed: { x: number; y: number }[] = [];
		for (const end of ends.sort((a, b) => a.y - b.y)) {
			const near = placed.filter((other) => Math.abs(other.x - end.x) < 40 * ratio);
			const y = Math.max(end.y, ...near.map((other) => other.y + 13 * ratio));
			placed.push({ x: end.x, y });
			ctx.fillStyle = end.colour;
			const whole = end.name.length <= END_LETTERS;
			ctx.fillText(whole ? end.name : `${end.name.slice(0, END_LETTERS - 1)}…`, end.x + 8 * ratio, y);
		}
	}

	private open(): void {
		if (this.nearest) {
			const { x, series, facet } = this.axes;
			const told = [x, series, facet].filter((label): label is Label => label !== null);
			this.view.pick(this.nearest.point.trials, told);
		}
	}

	/** Left and right move along a line and to the next one; Enter opens the run of the point. */
	private keydown(event: KeyboardEvent): void {
		const points = this.curves.flatMap((curve) => curve.points.map((point) => ({ point, curve })));
		const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		if (event.key === 'Enter') {
			this.open();
		} else if (step !== undefined && points.length > 0) {
			event.preventDefault();
			const at = points.findIndex(({ point }) => point === this.nearest?.point);
			const next = at < 0 ? (step > 0 ? 0 : points.length - 1) : (at + step + points.length) % points.length;
			this.nearest = points[next]!;
			this.tell();
		}
	}

	private hover(event: PointerEvent): void {
		const over = this.place.querySelector('.u-over');
		if (!this.plot || !over) {
			return;
		}
		const box = over.getBoundingClientRect();
		const [x, y] = [event.clientX - box.left, event.clientY - box.top];
		let distance = NEAR;
		this.nearest = null;
		for (const curve of this.curves) {
			for (const point of curve.points) {
				const away = Math.hypot(this.plot.valToPos(point.x, 'x') - x, this.plot.valToPos(point.figure.mean, 'y') - y);
				if (away < distance) {
					distance = away;
					this.nearest = { point, curve };
				}
			}
		}
		this.tell();
	}

	private tell(): void {
		const found = this.nearest;
		this.place.style.cursor = found ? 'pointer' : '';
		this.readout.style.display = found ? 'block' : 'none';
		const box = this.place.querySelector('.u-over')?.getBoundingClientRect();
		if (!found || !this.plot || !box) {
			return;
		}
		const { point, curve } = found;
		const { axes } = this;
		const where = [`${axes.x.name} ${this.xText(point.x)}`, curve.name ? `${axes.series!.name} ${curve.name}` : ''];
		const of = point.figure.configurations > 1 ? `, ${point.figure.configurations} configurations` : '';
		this.readout.replaceChildren(
			make('b', '', estimateText(axes.y.unit, point.figure)),
			make('small', '', `${where.filter((word) => word).join(', ')} (${plural(point.figure.n, 'run')}${of})`),
		);
		const own = this.element.getBoundingClientRect();
		const left = box.left - own.left + this.plot.valToPos(point.x, 'x');
		const top = box.top - own.top + this.plot.valToPos(point.figure.mean, 'y');
		const right = left > own.width / 2;
		this.readout.style.left = right ? '' : `${left + 10}px`;
		this.readout.style.right = right ? `${own.width - left + 10}px` : '';
		this.readout.style.top = `${top + 8}px`;
	}

	private leave(): void {
		this.nearest = null;
		this.readout.style.display = 'none';
	}
}

/** 1, 2, 5 times each power of ten between two numbers; only the powers if there are many. */
function logSplits(from: number, to: number): number[] {
	const powers = Math.log10(to / from);
	const heads = powers > 4 ? [1] : powers > 0.6 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
	const splits: number[] = [];
	for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power++) {
		splits.push(...heads.map((head) => head * 10 ** power).filter((value) => value >= from && value <= to));
	}
	return splits;
}
