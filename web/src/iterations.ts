// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Two cards: the phases of iterations, over the run and by epoch; and the lengths of iterations,
// with the slowest.

import uPlot from 'uplot';

import type { EpochPhases, Histogram, Iterations, Phase, RankPhases, Run, SlowIteration } from './contract';
import { button, card, key, make } from './dom';
import { clock, digits, duration, number, percent, roundStep, scaleFor } from './format';
import { readPalette } from './theme';

const ROWS_AT_FIRST = 12;
const NARROWEST = 390; // pixels of the bar of all phases, except on phones
const LETTER = 6.6;
const HEIGHT = 170;

type Zoom = (from: number, to: number) => void;

export interface Cards {
	element: HTMLElement;
	repaint: () => void;
}

// Phases ------------------------------------------------------------------------------------------

/** Black or white, whichever is easier to read on a colour of the palette. */
function inkOn(colour: string): string {
	const value = parseInt(colour.slice(1), 16);
	const [red, green, blue] = [value >> 16, (value >> 8) & 255, value & 255];
	return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? '#101418' : '#fff';
}

interface Part {
	phase: Pick<Phase, 'name' | 'hue'>;
	share: number;
	title: string;
}

/** A bar of parts; `named`: parts with enough room show their names. */
function bar(parts: Part[], label: string, named: boolean): HTMLElement {
	const items = parts.map(({ phase, share, title }) => {
		const name = `${phase.name} ${percent(share)}`;
		const text = named && share * NARROWEST > LETTER * name.length + 14 ? name : '';
		const item = make('i', '', text);
		item.style.width = `${share * 100}%`;
		item.style.background = `var(--hue-${phase.hue})`;
		item.dataset['hue'] = String(phase.hue);
		item.title = title;
		return item;
	});
	const element = make('div', 'shares', ...items);
	element.setAttribute('role', 'img');
	element.setAttribute('aria-label', label);
	return element;
}

/** Keeps names in bars readable when the theme changes. */
function paintNames(element: HTMLElement): void {
	const { hues } = readPalette();
	for (const item of element.querySelectorAll<HTMLElement>('[data-hue]')) {
		item.style.color = inkOn(hues[Number(item.dataset['hue'])] ?? '#000000');
	}
}

function interval(phase: Phase): string {
	if (phase.low === null || phase.high === null) {
		return '';
	}
	const wide = 100 * (phase.high - phase.low) >= 1.5;
	const show = (share: number) => (100 * share).toFixed(wide ? 0 : 1);
	return phase.high < 0.0005 ? '' : `${show(phase.low)} to ${show(phase.high)} %`;
}

function wholeBar(iterations: Iterations): HTMLElement | null {
	const parts = iterations.phases
		.filter((phase) => phase.share !== null && phase.share > 0)
		.map((phase) => ({
			phase,
			share: phase.share!,
			title: `${phase.name}: ${percent(phase.share!)} of the time of iterations`,
		}));
	return parts.length > 0 ? bar(parts, parts.map((part) => part.title).join('; '), true) : null;
}

function phaseTable(phases: Phase[]): HTMLElement {
	const shown = (value: number | null) => (value === null ? '–' : duration(value));
	const rows = phases.map((phase) => {
		const share = phase.share === null ? '–' : percent(phase.share);
		const name = make('td', 'text', key(phase.hue), phase.name);
		return make(
			'tr',
			'',
			name,
			make('td', '', share),
			make('td', '', make('small', '', interval(phase))),
			make('td', '', shown(phase.mean)),
			make('td', '', shown(phase.p95)),
			make('td', '', duration(phase.total)),
		);
	});
	const titles = ['phase', 'share', '95 % interval', 'mean', '95 %', 'whole run'];
	const heads = titles.map((title, i) => {
		const head = make('th', i === 0 ? 'text' : '', title);
		head.scope = 'col';
		return head;
	});
	const table = make('table', '', make('thead', '', make('tr', '', ...heads)), make('tbody', '', ...rows));
	table.setAttribute('aria-label', 'Phases');
	return make('div', 'scroll phase-table', table);
}

/** A bar with its length relative to the longest epoch. */
function epochRow(epoch: EpochPhases, phases: Phase[], longest: number, show: Zoom): Node[] {
	const parts = phases
		.map((phase, i) => ({ phase, seconds: epoch.phases[i] ?? 0 }))
		.filter(({ seconds }) => seconds > 0)
		.map(({ phase, seconds }) => ({
			phase,
			share: seconds / longest,
			title: `${epoch.name}: ${phase.name} ${duration(seconds)}, ${percent(seconds / epoch.seconds)}`,
		}));
	const rest = epoch.outside > 0 ? `; outside ${duration(epoch.outside)}` : '';
	const name = button('link', epoch.name, () => show(epoch.start, epoch.start + epoch.seconds));
	name.title = 'Show this epoch in all panels';
	const rate = epoch.rate === null ? '' : ` · ${digits(epoch.rate)}/s`;
	const length = make('span', 'soft', `${duration(epoch.seconds)}${rate}`);
	return [name, bar(parts, parts.map((part) => part.title).join('; ') + rest, false), length];
}

/** Rows of bars under a heading; only the first few are shown initially. */
function barRows<Row>(title: string, items: Row[], row: (item: Row) => Node[]): HTMLElement | null {
	if (items.length === 0) {
		return null;
	}
	const rows = make('div', 'bar-rows');
	const fill = (n: number) => {
		rows.replaceChildren(...items.slice(0, n).flatMap(row));
	};
	fill(ROWS_AT_FIRST);
	const more = button('quiet more', `Show all ${digits(items.length)}`, () => {
		fill(items.length);
		more.hidden = true;
	});
	more.hidden = items.length <= ROWS_AT_FIRST;
	return make('div', '', make('h3', '', title), rows, more);
}

function epochBars(iterations: Iterations, show: Zoom): HTMLElement | null {
	const { epochs, phases } = iterations;
	const longest = Math.max(...epochs.map((epoch) => epoch.seconds), 1e-9);
	return barRows('By epoch', epochs, (epoch) => epochRow(epoch, phases, longest, show));
}

/** The mean iteration of each rank: one waits while another works. */
export function rankBars(ranks: RankPhases[]): HTMLElement | null {
	const length = (rank: RankPhases) => rank.phases.reduce((sum, { seconds }) => sum + seconds, 0);
	const longest = Math.max(...ranks.map(length), 1e-9);
	return barRows('By rank', ranks, (rank) => {
		const parts = rank.phases.map((phase) => ({
			phase,
			share: phase.seconds / longest,
			title: `${rank.name}: ${phase.name} ${duration(phase.seconds)} of an iteration, ${percent(phase.seconds / length(rank))}`,
		}));
		const said = [
			rank.p50 === null ? '' : duration(rank.p50),
			rank.rate === null ? '' : `${digits(rank.rate)}/s`,
			rank.slowest ? 'the slowest' : rank.waits === null ? '' : `waits ${percent(rank.waits)}`,
		];
		const name = make('span', '', rank.name);
		name.title = `${digits(rank.iterations)} iterations${rank.leads ? '; the figures above are of this rank' : ''}`;
		const label = parts.map((part) => part.title).join('; ');
		return [name, bar(parts, label, false), make('span', 'soft', said.filter((text) => text !== '').join(' · '))];
	});
}

function phaseCard(iterations: Iterations, show: Zoom): HTMLElement {
	if (iterations.phases_missing !== null) {
		return card('Phases', 'phases', make('p', 'soft', `Not known: ${iterations.phases_missing}.`));
	}
	return card('Phases', 'phases', wholeBar(iterations), phaseTable(iterations.phases), epochBars(iterations, show), rankBars(iterations.ranks));
}

// Iterations --------------------------------------------------------------------------------------

function figure(value: string, label: string): HTMLElement {
	return make('div', '', make('b', '', value), make('small', '', label));
}

function figures(it: Iterations): HTMLElement {
	const parts: HTMLElement[] = [];
	const put = (value: number | null, label: string) => {
		if (value !== null) {
			parts.push(figure(duration(value), label));
		}
	};
	put(it.p50, 'median');
	put(it.p95, '95 % are shorter');
	put(it.max, 'slowest');
	if (it.rate !== null) {
		const range = it.rate_low !== null && it.rate_high !== null ? ` (${digits(it.rate_low)} to ${digits(it.rate_high)})` : '';
		parts.push(figure(digits(it.rate), `${it.unit}/s${range}`));
	}
	return make('div', 'figures', ...parts);
}

function leftOut(it: Iterations): string {
	const parts = [`${digits(it.steady)} steady iterations`];
	const leader = it.ranks.find((rank) => rank.leads);
	if (leader) {
		parts[0] += ` of ${leader.name}`;
	}
	if (it.warm_up > 0) {
		parts.push(`the first ${it.warm_up === 1 ? 'is' : digits(it.warm_up) + ' are'} warm-up and excluded`);
	}
	if (it.compiled > 0) {
		parts.push(`${digits(it.compiled)} in which the framework compiled code (${duration(it.compiled_s)}) excluded`);
	}
	if (it.incomplete !== null) {
		parts.push(it.incomplete);
	}
	return `${parts.join('; ')}.`;
}

class HistogramChart {
	readonly element = make('div', 'histogram');
	private chart: uPlot | null = null;
	private readonly end: number;

	constructor(
		private readonly data: Histogram,
		private readonly it: Iterations,
	) {
		this.end = data.start + data.width * data.bars.length;
		this.element.setAttribute('role', 'img');
		this.element.setAttribute('aria-label', `Duration of iterations: from ${duration(data.start)} to ${duration(this.end)}`);
		new ResizeObserver(() => this.resize()).observe(this.element);
	}

	private resize(): void {
		const width = this.element.clientWidth;
		if (width <= 0) {
			return;
		}
		if (this.chart) {
			this.chart.setSize({ width, height: HEIGHT });
			return;
		}
		const middles = this.data.bars.map((_, i) => this.data.start + (i + 0.5) * this.data.width);
		this.chart = new uPlot(this.options(width), [middles, this.data.bars], this.element);
	}

	repaint(): void {
		this.chart?.redraw(true, true);
	}

	private options(width: number): uPlot.Options {
		const scale = scaleFor('s', this.end);
		const most = Math.max(...this.data.bars, 1);
		const colour = (name: 'soft' | 'line') => readPalette()[name];
		return {
			width,
			height: HEIGHT,
			padding: [18, 8, 0, 0],
			legend: { show: false },
			cursor: { show: false },
			scales: {
				x: { time: false, range: () => [this.data.start, this.end] },
				y: { range: () => [0, most * 1.05] },
			},
			axes: [
				{
					font: '11px system-ui, sans-serif',
					stroke: () => colour('soft'),
					grid: { show: false },
					ticks: { show: false },
					size: 26,
					splits: () => this.splits(),
					values: (_, splits) =>
						splits.map((value, i) => number('s', scale, value) + (i === splits.length - 1 ? ` ${scale.name}` : '')),
				},
				{
					font: '11px system-ui, sans-serif',
					stroke: () => colour('soft'),
					grid: { stroke: () => colour('line'), width: 1 },
					ticks: { show: false },
					size: 46,
					gap: 6,
					splits: () => [0, roundStep(most / 2)].filter((value) => value <= most),
					values: (_, splits) => splits.map((value) => digits(value)),
				},
			],
			series: [
				{},
				{
					paths: uPlot.paths.bars!({ size: [0.92, Infinity] }),
					fill: () => readPalette().hues[0]!,
					stroke: 'transparent',
					width: 0,
					points: { show: false },
				},
			],
			hooks: { draw: [(chart) => this.paintMarks(chart)] },
		};
	}

	private splits(): number[] {
		const factor = scaleFor('s', this.end).factor;
		const step = roundStep((this.end - this.data.start) / factor / 5) * factor;
		const splits: number[] = [];
		for (let i = Math.ceil(this.data.start / step - 1e-6); i * step <= this.end * 1.0001; i++) {
			splits.push(i * step + 0); // never -0
		}
		return splits;
	}

	/** Lines at the median and at the 95th percentile. */
	private paintMarks(chart: uPlot): void {
		const { ctx, bbox } = chart;
		const ratio = uPlot.pxRatio;
		const palette = readPalette();
		ctx.save();
		ctx.font = `${11 * ratio}px system-ui, sans-serif`;
		ctx.textAlign = 'left';
		ctx.fillStyle = ctx.strokeStyle = palette.soft;
		ctx.lineWidth = ratio;
		let free = -Infinity;
		for (const [value, name] of [[this.it.p50, 'median'], [this.it.p95, '95 %']] as [number | null, string][]) {
			const x = value === null ? NaN : Math.round(chart.valToPos(value, 'x', true)) + ratio / 2;
			if (!(x >= bbox.left && x <= bbox.left + bbox.width)) {
				continue;
			}
			ctx.beginPath();
			ctx.setLineDash([3 * ratio, 3 * ratio]);
			ctx.moveTo(x, bbox.top - 3 * ratio);
			ctx.lineTo(x, bbox.top + bbox.height);
			ctx.stroke();
			const wide = ctx.measureText(name).width;
			const left = Math.min(Math.max(bbox.left, x - wide / 2), bbox.left + bbox.width - wide);
			if (left > free) {
				ctx.fillText(name, left, bbox.top - 7 * ratio);
				free = left + wide + 6 * ratio;
			}
		}
		ctx.restore();
	}
}

function slowItem(slow: SlowIteration, zoom: Zoom): HTMLElement {
	const link = button('link', duration(slow.length), () => zoom(slow.start, slow.end));
	link.title = 'Show this iteration in all panels';
	const epoch = slow.epoch === null ? '' : `epoch ${slow.epoch}, `;
	const number = slow.number === null ? 'an iteration' : `iteration ${slow.number}`;
	const why = slow.why === '' ? 'no recorded metric was different' : slow.why;
	return make('li', '', link, make('span', '', `${epoch}${number}, at ${clock(slow.start, 0.1)}`, make('small', '', why)));
}

function iterationCard(it: Iterations, zoom: Zoom): Cards {
	if (it.missing !== null) {
		return { element: card('Iterations', 'iterations', make('p', 'soft', `Not known: ${it.missing}.`)), repaint: () => {} };
	}
	const chart = it.histogram && it.steady > 1 ? new HistogramChart(it.histogram, it) : null;
	const beyond = it.histogram?.beyond ?? 0;
	const rest = beyond > 0 ? ` ${digits(beyond)} ${beyond === 1 ? 'is' : 'are'} outside the chart.` : '';
	const list = it.slowest.length > 0 ? make('ol', 'slowest', ...it.slowest.slice(0, 5).map((s) => slowItem(s, zoom))) : null;
	const element = card(
		'Iterations',
		'iterations',
		figures(it),
		chart?.element ?? null,
		make('p', 'soft', leftOut(it) + rest),
		list ? make('h3', '', 'Slowest') : null,
		list,
	);
	return { element, repaint: () => chart?.repaint() };
}

/** `zoom` shows a stretch with its surroundings, `show` exactly the stretch. */
export function iterationCards(run: Run, zoom: Zoom, show: Zoom): Cards {
	const it = run.iterations;
	if (it === null) {
		return { element: make('div', ''), repaint: () => {} };
	}
	const lengths = iterationCard(it, zoom);
	const phases = phaseCard(it, show);
	const repaint = () => {
		paintNames(phases);
		lengths.repaint();
	};
	repaint();
	return { element: make('div', 'halves', phases, lengths.element), repaint };
}
