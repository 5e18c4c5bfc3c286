// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The time axis of all panels: its window, ruler and cursor. One transparent sheet over all plots
// receives every gesture, so that panels never show different times.

import { GUTTER, PanelChart, type PanelView, type Shared } from './chart';
import type { Run } from './contract';
import { button, make } from './dom';
import { clock, duration, timeStep } from './format';
import { LaneChart } from './lanes';
import { readPalette } from './theme';

const HINT =
	'Drag to zoom, Shift and drag to move, double-click to show everything. Pinch, or Ctrl and wheel, to zoom; ' +
	'horizontal wheel to move. Keys: arrows, + and -, 0.';

interface Pointer {
	x: number;
	start: number;
	from: number;
	to: number;
	moves: boolean;
}

export class Timeline {
	readonly element: HTMLElement;
	private readonly charts: PanelView[];
	private readonly shared: Shared;
	private readonly sheet = make('div', 'sheet');
	private readonly crosshair = make('div', 'crosshair');
	private readonly selection = make('div', 'selection');
	private readonly names = make('div', 'names');
	private readonly axis = make('div', 'axis');
	private readonly thumb = make('div', 'thumb');
	private readonly track = make('div', 'track', this.thumb);
	private readonly status = make('span', 'status');
	private readonly spoken = make('div', 'unseen');
	private readonly reset = button('quiet reset', 'Show everything', () => this.showAll());
	private readonly pointers = new Map<number, Pointer>();
	private readonly end: number;
	private from = 0;
	private to: number;
	private cursor: number | null = null;
	private width = 0;
	private frame = 0;

	constructor(private readonly run: Run) {
		this.end = Math.max(run.duration, 1e-3);
		this.to = this.end;
		this.shared = {
			palette: readPalette(),
			epochs: run.epochs,
			events: run.events.map((event) => event.t),
			end: this.end,
		};
		this.charts = run.panels.map((panel) =>
			panel.kind === 'lines' ? new PanelChart(panel, this.shared) : new LaneChart(panel, this.shared),
		);
		this.spoken.setAttribute('aria-live', 'polite');
		this.sheet.append(this.crosshair, this.selection);
		this.sheet.tabIndex = 0;
		this.sheet.setAttribute('role', 'group');
		this.sheet.setAttribute('aria-label', `Time axis of all panels. ${HINT}`);
		const heading = make('div', 'heading', make('h2', '', 'Over time'), this.status, this.reset);
		const panels = make('div', 'panels', this.names, ...this.charts.map((c) => c.element), this.axis, this.track, this.sheet);
		panels.classList.toggle('bare', run.epochs.length === 0);
		const hint = make('p', 'hint', HINT);
		this.element = make('section', 'card timeline', heading, panels, hint, this.spoken);
		this.element.setAttribute('aria-label', 'Over time');
		this.listen();
		new ResizeObserver(() => this.resize()).observe(panels);
	}

	/** Reads the colours again after a change of theme. */
	repaint(): void {
		Object.assign(this.shared.palette, readPalette());
		this.charts.forEach((chart) => chart.repaint());
	}

	/** Shows a window of time in all panels; used by the tables too. */
	show(from: number, to: number): void {
		const least = Math.min(this.end, 0.002);
		const length = Math.min(Math.max(to - from, least), this.end);
		this.from = Math.min(Math.max(0, from), this.end - length);
		this.to = this.from + length;
		if (!this.frame) {
			this.frame = requestAnimationFrame(() => {
				this.frame = 0;
				this.paint();
			});
		}
	}

	showAll(): void {
		this.show(0, this.end);
	}

	private resize(): void {
		const plot = this.charts[0]?.plot;
		const width = plot ? plot.clientWidth - GUTTER : 0;
		if (!plot || width <= 0 || width === this.width) {
			return;
		}
		this.width = width;
		const left = plot.offsetLeft + GUTTER;
		for (const part of [this.sheet, this.names, this.axis, this.track]) {
			part.style.left = `${left}px`;
			part.style.width = `${width}px`;
		}
		this.charts.forEach((chart) => chart.resize(width + GUTTER));
		this.paint();
	}

	private paint(): void {
		this.charts.forEach((chart) => chart.show(this.from, this.to));
		this.paintAxis();
		this.paintNames();
		this.paintTrack();
		this.paintCursor();
		const whole = this.from <= 0 && this.to >= this.end;
		this.reset.hidden = whole;
		this.element.dataset['window'] = `${this.from} ${this.to}`;
	}

	private x(t: number): number {
		return ((t - this.from) / (this.to - this.from)) * this.width;
	}

	private time(x: number): number {
		return this.from + (x / this.width) * (this.to - this.from);
	}

	private step(): number {
		return timeStep((this.to - this.from) / Math.max(2, Math.floor(this.width / 100)));
	}

	private paintAxis(): void {
		const step = this.step();
		const labels: HTMLElement[] = [];
		for (let i = Math.ceil(this.from / step - 1e-9); i * step <= this.to + 1e-9; i++) {
			const label = make('span', '', clock(i * step, step));
			const x = this.x(i * step);
			label.style.left = `${x}px`;
			label.className = x < 20 ? 'first' : x > this.width - 24 ? 'last' : '';
			labels.push(label);
		}
		this.axis.replaceChildren(...labels);
	}

	/** The names of epochs, as many as fit. */
	private paintNames(): void {
		const labels: HTMLElement[] = [];
		let free = 0;
		for (const epoch of this.run.epochs) {
			const start = Math.max(0, this.x(epoch.start));
			const end = Math.min(this.width, this.x(epoch.end ?? this.end));
			if (end <= 0 || start >= this.width || start < free || this.width - start < 60) {
				continue;
			}
			const label = button('epoch', epoch.name, () => this.show(epoch.start, epoch.end ?? this.end));
			label.title = `${epoch.name}: ${duration((epoch.end ?? this.end) - epoch.start)} (click to show only this epoch)`;
			label.style.left = `${start}px`;
			label.style.maxWidth = `${Math.max(end - start, 56)}px`;
			labels.push(label);
			free = start + Math.max(8 + 7 * epoch.name.length, 56);
		}
		this.names.replaceChildren(...labels);
	}

	private paintTrack(): void {
		const left = (this.from / this.end) * 100;
		const length = ((this.to - this.from) / this.end) * 100;
		this.thumb.style.left = `${left}%`;
		this.thumb.style.width = `${Math.max(length, 0.4)}%`;
		this.track.classList.toggle('whole', length > 99.99);
	}

	private paintCursor(): void {
		if (this.cursor === null || this.cursor < this.from || this.cursor > this.to) {
			this.crosshair.style.display = 'none';
			this.charts.forEach((chart) => chart.hideReading());
			this.status.textContent = this.resolution();
			return;
		}
		const x = this.x(this.cursor);
		this.crosshair.style.display = 'block';
		this.crosshair.style.transform = `translateX(${x}px)`;
		const texts = this.charts.map((chart) => chart.read(this.cursor!, x, this.width));
		this.status.textContent = this.when(this.cursor);
		this.spoken.textContent = this.sheet.matches(':focus-visible') ? `${this.when(this.cursor)}. ${texts.join('. ')}` : '';
	}

	/** The time that one point covers. */
	private resolution(): string {
		const bucket = this.charts.reduce((longest, chart) => Math.max(longest, chart.bucket()), 0);
		return bucket > 0 ? `each point covers up to ${duration(bucket)}: its mean, shaded from minimum to maximum` : '';
	}

	private when(t: number): string {
		const exact = clock(t, Math.min(1, (this.to - this.from) / 1000));
		if (this.run.started === null) {
			return exact;
		}
		const wall = new Date((this.run.started + t) * 1000).toLocaleTimeString('en-GB');
		return `${exact} · ${wall}`;
	}

	private setCursor(t: number | null): void {
		this.cursor = t === null ? null : Math.min(Math.max(this.from, t), this.to);
		this.paintCursor();
	}

	private listen(): void {
		const { sheet } = this;
		sheet.addEventListener('pointerdown', (event) => this.press(event));
		sheet.addEventListener('pointermove', (event) => this.move(event));
		sheet.addEventListener('pointerup', (event) => this.release(event));
		sheet.addEventListener('pointercancel', (event) => this.release(event));
		sheet.addEventListener('pointerleave', () => this.pointers.size || this.setCursor(null));
		sheet.addEventListener('dblclick', () => this.showAll());
		sheet.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
		sheet.addEventListener('keydown', (event) => this.keydown(event));
		sheet.addEventListener('blur', () => this.setCursor(null));
		this.track.addEventListener('pointerdown', (event) => this.seek(event));
		this.track.addEventListener('pointermove', (event) => event.buttons && this.seek(event));
	}

	private press(event: PointerEvent): void {
		if (event.button !== 0) {
			return;
		}
		this.sheet.setPointerCapture(event.pointerId);
		const x = event.offsetX;
		this.pointers.set(event.pointerId, {
			x,
			start: x,
			from: this.from,
			to: this.to,
			moves: event.shiftKey || event.pointerType === 'touch',
		});
	}

	private move(event: PointerEvent): void {
		const x = event.clientX - this.sheet.getBoundingClientRect().left;
		const pointer = this.pointers.get(event.pointerId);
		if (pointer) {
			pointer.x = x;
		}
		if (this.pointers.size === 2) {
			this.pinch();
		} else if (pointer?.moves) {
			const shift = ((pointer.start - x) / this.width) * (pointer.to - pointer.from);
			this.show(pointer.from + shift, pointer.to + shift);
		} else if (pointer) {
			this.paintSelection(pointer);
		}
		this.setCursor(this.time(x));
	}

	private paintSelection(pointer: Pointer): void {
		const [left, right] = [pointer.start, pointer.x].sort((a, b) => a - b) as [number, number];
		this.selection.style.display = right - left > 3 ? 'block' : 'none';
		this.selection.style.left = `${Math.max(0, left)}px`;
		this.selection.style.width = `${Math.min(this.width, right) - Math.max(0, left)}px`;
	}

	/** Two fingers keep the times at which they are. */
	private pinch(): void {
		const [a, b] = [...this.pointers.values()].sort((p, q) => p.start - q.start) as [Pointer, Pointer];
		const length = a.to - a.from;
		const [first, second] = [a.start, b.start].map((x) => a.from + (x / this.width) * length) as [number, number];
		const scale = (second - first) / Math.max(8, b.x - a.x);
		const from = first - a.x * scale;
		this.show(from, from + scale * this.width);
	}

	private release(event: PointerEvent): void {
		const pointer = this.pointers.get(event.pointerId);
		this.pointers.clear();
		this.selection.style.display = 'none';
		if (pointer && !pointer.moves && event.type === 'pointerup' && Math.abs(pointer.x - pointer.start) > 3) {
			const [from, to] = [this.time(pointer.start), this.time(pointer.x)].sort((a, b) => a - b) as [number, number];
			this.show(from, to);
		} else if (pointer && event.type === 'pointerup') {
			this.showMark(this.time(pointer.x));
		}
	}

	/** Shows a slow iteration near a click, with an equal time before and after it. */
	private showMark(t: number): void {
		const reach = (6 / this.width) * (this.to - this.from);
		const mark = this.charts.map((chart) => chart.markAt(t, reach)).find((m) => m !== null);
		if (mark) {
			this.showAround(mark.start, mark.t);
		}
	}

	/** Shows a stretch of time, with an equal time before and after it. */
	showAround(start: number, end: number): void {
		const length = Math.max(end - start, 0.01);
		this.show(start - length, end + length);
	}

	/** A trackpad's pinch arrives as a wheel event with Ctrl. A plain wheel scrolls the page, as usual. */
	private wheel(event: WheelEvent): void {
		const length = this.to - this.from;
		if (event.ctrlKey || event.metaKey) {
			event.preventDefault();
			const notch = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 400 : 12;
			this.zoom(Math.exp(event.deltaY / notch), this.time(event.offsetX));
		} else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			event.preventDefault();
			const shift = ((event.deltaX || event.deltaY) / this.width) * length;
			this.show(this.from + shift, this.to + shift);
		}
	}

	private zoom(factor: number, around: number): void {
		const from = around - (around - this.from) * factor;
		this.show(from, from + (this.to - this.from) * factor);
	}

	private keydown(event: KeyboardEvent): void {
		if (event.ctrlKey || event.metaKey || event.altKey) {
			return;
		}
		const length = this.to - this.from;
		const at = this.cursor ?? this.from + length / 2;
		const stride = length * (event.shiftKey ? 0.1 : 0.01);
		const actions: Record<string, () => void> = {
			ArrowLeft: () => this.moveCursor(at - stride),
			ArrowRight: () => this.moveCursor(at + stride),
			PageUp: () => this.show(this.from - length, this.to - length),
			PageDown: () => this.show(this.from + length, this.to + length),
			Home: () => this.show(0, length),
			End: () => this.show(this.end - length, this.end),
			'+': () => this.zoom(0.5, at),
			'=': () => this.zoom(0.5, at),
			'-': () => this.zoom(2, at),
			'0': () => this.showAll(),
			Escape: () => this.showAll(),
		};
		const action = actions[event.key];
		if (action) {
			event.preventDefault();
			action();
		}
	}

	/** Moves the cursor; the window follows if the cursor would leave it. */
	private moveCursor(t: number): void {
		const wanted = Math.min(Math.max(0, t), this.end);
		if (wanted < this.from || wanted > this.to) {
			const shift = wanted < this.from ? wanted - this.from : wanted - this.to;
			this.show(this.from + shift, this.to + shift);
		}
		this.cursor = wanted;
		this.paintCursor();
	}

	/** The track below the panels is the whole run; a click there moves the window. */
	private seek(event: PointerEvent): void {
		const box = this.track.getBoundingClientRect();
		const middle = ((event.clientX - box.left) / box.width) * this.end;
		const length = this.to - this.from;
		this.track.setPointerCapture(event.pointerId);
		this.show(middle - length / 2, middle + length / 2);
	}
}
