// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Panels of shares of time: the phases of the training thread, stacked, and a lane for each loader
// worker. A uPlot chart draws the axes; the areas are drawn on its canvas.

import uPlot from 'uplot';

import { GUTTER, paintEpochs, paintEvents, placeReadout, type PanelView, type Shared } from './chart';
import type { Exact, Mark, Panel, Series } from './contract';
import { decode, type Points } from './decode';
import { key, make } from './dom';
import { percent } from './format';
import { lowerBound, reduce } from './reduce';

const LANE = 18;
const THIN_LANE = 9;
const MANY_LANES = 16;
const TOP = 24; // for the panel's title
const SHOWN = 0.005; // a smaller share is not readable

interface Lane {
	series: Series;
	points: Points;
	view: Points;
}

export class LaneChart implements PanelView {
	readonly element: HTMLElement;
	readonly plot = make('div', 'plot');
	private readonly readout = make('div', 'readout');
	private readonly lanes: Lane[];
	private readonly stacked: boolean;
	private readonly lane: number;
	private readonly height: number;
	private chart: uPlot | null = null;
	private from = 0;
	private to = 1;

	constructor(
		private readonly panel: Panel,
		private readonly shared: Shared,
	) {
		this.stacked = panel.kind === 'stack';
		this.lanes = panel.series.map((series) => {
			const points = decode(series);
			return { series, points, view: points };
		});
		const n = panel.series.length;
		this.lane = n > MANY_LANES ? THIN_LANE : LANE;
		this.height = this.stacked ? Math.max(96, 40 + 18 * n) : TOP + this.lane * n + 8;
		this.plot.append(this.readout);
		this.element = make('figure', 'panel', this.label(), this.plot);
		this.element.setAttribute('aria-label', this.description());
	}

	private label(): HTMLElement {
		const label = make('figcaption', 'label', make('span', 'title', this.panel.title));
		label.title = this.panel.help;
		if (this.stacked) {
			label.append(make('small', '', '% of time'));
			label.append(
				...this.lanes.map(({ series }) => make('small', 'series', key(series.hue), make('span', '', series.label))),
			);
		} else if (this.lanes.length <= MANY_LANES) {
			label.append(...this.lanes.map(({ series }) => make('small', 'lane', series.label)));
		} else {
			label.append(make('small', '', `${this.lanes.length} at once`));
		}
		return label;
	}

	/** A description of the panel, for screen readers. */
	private description(): string {
		const lanes = this.lanes.map(({ series }) => `${series.label}: ${percent(series.mean ?? 0)} of the time`);
		return `${this.panel.title}. ${lanes.join('; ')}`;
	}

	show(from: number, to: number): void {
		this.from = from;
		this.to = to;
		const pixels = this.chart ? this.chart.width - GUTTER : 500;
		for (const lane of this.lanes) {
			lane.view = reduce(lane.points, from, to, Math.max(100, Math.floor(pixels / 2)));
		}
		this.chart?.batch(() => {
			this.chart!.setData([[from, to], [null, null]], false);
			this.chart!.setScale('x', { min: from, max: to });
			this.chart!.setScale('y', { min: 0, max: 1 });
		});
	}

	resize(width: number): void {
		if (this.chart) {
			this.chart.setSize({ width, height: this.height });
			return;
		}
		this.chart = new uPlot(this.options(width), [[], []], this.plot);
		this.show(this.from, this.to);
	}

	repaint(): void {
		this.chart?.redraw(false, true);
	}

	private options(width: number): uPlot.Options {
		return {
			width,
			height: this.height,
			padding: [this.stacked ? 6 : TOP, 0, 6, 0],
			legend: { show: false },
			cursor: { show: false },
			scales: {
				x: { time: false, auto: false, range: (_, from, to) => [from, to] },
				y: { auto: false, range: () => [0, 1] },
			},
			axes: [
				{ show: false },
				{
					size: GUTTER,
					gap: 6,
					font: '11px system-ui, sans-serif',
					stroke: () => this.shared.palette.soft,
					grid: { show: this.stacked, stroke: () => this.shared.palette.line, width: 1 },
					ticks: { show: false },
					splits: () => (this.stacked ? [0, 0.5, 1] : this.lanes.map((_, i) => 1 - (i + 0.5) / this.lanes.length)),
					values: (_, splits) =>
						splits.map((value, i) => (this.stacked ? String(Math.round(value * 100)) : this.laneName(i))),
				},
			],
			series: [{}, { stroke: 'transparent' }] as uPlot.Series[],
			hooks: {
				drawClear: [(chart) => paintEpochs(chart, this.shared)],
				draw: [(chart) => this.paint(chart)],
			},
		};
	}

	/** The numbers next to the lanes, as many as fit. */
	private laneName(i: number): string {
		const number = /^(?:rank|worker) (\d+)/.exec(this.lanes[i]!.series.label)?.[1];
		return this.lane === LANE || i % 4 === 0 ? number ?? String(i) : '';
	}

	private exactHere(): Exact | undefined {
		return this.panel.exact?.find(({ from, to }) => from <= this.from && this.to <= to);
	}

	private paint(chart: uPlot): void {
		const { ctx, bbox } = chart;
		ctx.save();
		ctx.beginPath();
		ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
		ctx.clip();
		const exact = this.exactHere();
		if (exact) {
			this.paintExact(chart, exact);
		} else if (this.stacked) {
			this.paintStack(chart);
		} else {
			this.lanes.forEach((lane, i) => this.paintLane(chart, lane, i));
		}
		ctx.restore();
		paintEvents(chart, this.shared, this.from, this.to);
	}

	/** Left and right edge of a bucket in pixels: neighbours touch, none is empty. */
	private edges(chart: uPlot, view: Points, i: number): [number, number] {
		const left = Math.round(chart.valToPos(view.t[i]! - view.width / 2, 'x', true));
		const right = Math.round(chart.valToPos(view.t[i]! + view.width / 2, 'x', true));
		return [left, Math.max(right, left + 1)];
	}

	private paintStack(chart: uPlot): void {
		const { ctx, bbox } = chart;
		const view = this.lanes[0]?.view;
		// All series have the same buckets, those of the grid.
		for (let i = 0; view && i < view.t.length; i++) {
			const [left, right] = this.edges(chart, view, i);
			let below = 0;
			for (const lane of this.lanes) {
				const share = lane.view.mean[i] || 0;
				if (share > 0) {
					const bottom = bbox.top + bbox.height * (1 - below);
					below = Math.min(1, below + share);
					const top = bbox.top + bbox.height * (1 - below);
					ctx.fillStyle = this.colour(lane);
					ctx.fillRect(left, top, right - left, bottom - top);
				}
			}
		}
	}

	private paintLane(chart: uPlot, lane: Lane, row: number): void {
		const { ctx, bbox } = chart;
		const height = bbox.height / this.lanes.length;
		const top = bbox.top + row * height + height * 0.14;
		ctx.fillStyle = this.colour(lane);
		for (let i = 0; i < lane.view.t.length; i++) {
			const share = lane.view.mean[i] || 0;
			if (share > 0) {
				const [left, right] = this.edges(chart, lane.view, i);
				ctx.globalAlpha = 0.12 + 0.88 * share;
				ctx.fillRect(left, top, right - left, height * 0.72);
			}
		}
		ctx.globalAlpha = 1;
	}

	/** Exact stretches have no shares: a thread is in one phase at a time. */
	private paintExact(chart: uPlot, exact: Exact): void {
		const { ctx, bbox } = chart;
		const rows = this.stacked ? 1 : this.lanes.length;
		const height = bbox.height / rows;
		const inset = this.stacked ? 0 : 0.14;
		for (let i = 0; i + 2 < exact.pieces.length; i += 3) {
			const [place, start, end] = exact.pieces.slice(i, i + 3) as [number, number, number];
			const lane = this.lanes[place];
			const left = chart.valToPos(exact.from + start * 1e-6, 'x', true);
			const right = chart.valToPos(exact.from + end * 1e-6, 'x', true);
			if (lane && right > bbox.left && left < bbox.left + bbox.width) {
				const row = this.stacked ? 0 : place;
				ctx.fillStyle = this.colour(lane);
				ctx.fillRect(left, bbox.top + (row + inset) * height, Math.max(right - left, 1), height * (1 - 2 * inset));
			}
		}
	}

	private colour(lane: Lane): string {
		return this.shared.palette.hues[lane.series.hue % this.shared.palette.hues.length]!;
	}

	private shareAt(lane: Lane, t: number): number {
		const exact = this.exactHere();
		if (exact) {
			const place = this.lanes.indexOf(lane);
			const at = (t - exact.from) * 1e6;
			return exact.pieces.some((p, i) => i % 3 === 0 && p === place && exact.pieces[i + 1]! <= at && at < exact.pieces[i + 2]!) ? 1 : 0;
		}
		const { view } = lane;
		const i = Math.min(lowerBound(view.t, t - view.width / 2), view.t.length - 1);
		return i >= 0 && Math.abs(view.t[i]! - t) <= view.width ? view.mean[i] || 0 : 0;
	}

	read(t: number, x: number, width: number): string {
		const words = this.stacked ? this.readStack(t) : this.readLanes(t);
		placeReadout(this.readout, words.map(([text, hue]) => make('span', 'value', hue === null ? null : key(hue), text)), x, width);
		return `${this.panel.title}: ${words.map(([text]) => text).join(', ')}`;
	}

	private readStack(t: number): [string, number | null][] {
		const shares = this.lanes
			.map((lane) => ({ lane, share: this.shareAt(lane, t) }))
			.filter(({ share }) => share >= SHOWN)
			.sort((a, b) => b.share - a.share)
			.slice(0, 4);
		return shares.length > 0
			? shares.map(({ lane, share }) => [`${lane.series.label} ${percent(share)}`, lane.series.hue])
			: [['in no iteration', null]];
	}

	private readLanes(t: number): [string, number | null][] {
		const busy = this.lanes.reduce((sum, lane) => sum + this.shareAt(lane, t), 0);
		const shown = busy > 0 && busy < 9.95 ? busy.toFixed(1).replace('.0', '') : String(Math.round(busy));
		return [[`${shown} of ${this.lanes.length} ${this.panel.verb ?? ''}`, null]];
	}

	hideReading(): void {
		this.readout.style.display = 'none';
	}

	bucket(): number {
		return 0;
	}

	markAt(): Mark | null {
		return null;
	}
}
