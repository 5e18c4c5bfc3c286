// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// An opened run of a sweep: labels, outcome, bottleneck, measures, coarse panels, and the end of
// its output.

import { button, HUES, make } from './dom';
import { digits, duration, quantity } from './format';
import type { LineKind, RunDetail } from './sweep_contract';
import type { Trial } from './sweep_model';
import { amount, outcomeBadge, type Card, type View } from './sweep_view';

const MISSING = 255;
const TOP = 254;
const SVG = 'http://www.w3.org/2000/svg';
const [WIDTH, HEIGHT] = [600, 56];

interface Line {
	kind: LineKind;
	most: number;
	/** Shares of the maximum; NaN if nothing was read. */
	mean: number[];
	high: number[];
}

/** One byte each: the means, then the maxima; 255 if nothing was read. */
function unpack(kind: LineKind, most: number, data: string): Line {
	const bytes = [...atob(data)].map((letter) => letter.charCodeAt(0));
	const shares = bytes.map((byte) => (byte === MISSING ? NaN : byte / TOP));
	const n = shares.length / 2;
	return { kind, most, mean: shares.slice(0, n), high: shares.slice(n) };
}

/** Removes escape sequences of terminals; other unsafe characters become dots. */
function printable(text: string): string {
	return text
		.replace(/\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)/g, '')
		.replace(/\r\n?/g, '\n')
		.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, '·');
}

/** Quotes a word for a shell. */
function quoted(word: string): string {
	return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) && !word.startsWith('-') ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

function operand(path: string): string {
	return quoted(path.startsWith('-') ? `./${path}` : path);
}

export class RunPanel implements Card {
	readonly element = make('dialog', 'run');
	private shown: Trial | null = null;

	constructor(private readonly view: View) {
		this.element.setAttribute('aria-label', 'Run');
		this.element.addEventListener('close', () => {
			this.shown = null;
			view.change({ run: null });
		});
		this.element.addEventListener('click', (event) => {
			if (event.target === this.element) {
				this.element.close(); // a click outside the panel
			}
		});
		this.element.addEventListener('keydown', (event) => this.keydown(event));
	}

	update(): void {
		const trial = this.view.model.findTrial(this.view.state.run);
		if (trial === this.shown) {
			return;
		}
		this.shown = trial;
		if (!trial) {
			this.element.close();
			return;
		}
		this.fill(trial);
		if (!this.element.open) {
			this.element.showModal();
		}
		this.element.scrollTop = 0;
	}

	/** Left and right also go to the next run, unless an input field needs them. */
	private keydown(event: KeyboardEvent): void {
		const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		if (step !== undefined && !event.altKey && !event.ctrlKey && !event.metaKey) {
			this.step(step);
		}
	}

	private step(by: number): void {
		const { visible, model } = this.view;
		const among = this.shown && visible.includes(this.shown) ? visible : model.trials;
		const next = among[among.indexOf(this.shown!) + by];
		if (next) {
			this.view.change({ run: next.name });
		}
	}

	private fill(trial: Trial): void {
		const { model } = this.view;
		const detail = model.detail(trial);
		const focused = this.element.contains(document.activeElement) ? (document.activeElement?.textContent ?? null) : null;
		this.element.replaceChildren(
			this.head(trial),
			...[
				this.repeats(trial),
				this.ending(trial),
				this.labels(trial),
				...(trial.outcome === 'refused' ? [] : this.measured(trial, detail)),
				this.output(detail),
				this.commands(trial, detail),
			].filter((part): part is HTMLElement => part !== null),
		);
		const buttons = [...this.element.querySelectorAll('button')];
		const same = buttons.find((one) => one.textContent === focused && !one.disabled);
		if (focused !== null) {
			(same ?? this.element.querySelector<HTMLElement>('.run-name'))?.focus();
		}
	}

	/** Parts that a refused trial does not have. */
	private measured(trial: Trial, detail: RunDetail): (HTMLElement | null)[] {
		return [this.verdict(detail), this.lines(trial, detail), this.measures(trial), this.epochs(detail)];
	}

	private head(trial: Trial): HTMLElement {
		const name = make('h2', 'run-name', trial.name);
		name.tabIndex = -1;
		name.autofocus = true; // instead of the first button
		const close = button('quiet close', 'Close', () => this.element.close());
		const among = this.view.visible.includes(trial) ? this.view.visible : this.view.model.trials;
		const at = among.indexOf(trial);
		const back = button('quiet', '←', () => this.step(-1));
		const next = button('quiet', '→', () => this.step(1));
		back.setAttribute('aria-label', 'Previous run');
		next.setAttribute('aria-label', 'Next run');
		back.disabled = at === 0;
		next.disabled = at === among.length - 1;
		const { started, durations, hosts } = this.view.model.sweep.runs;
		const start = started[trial.index];
		const length = trial.outcome === 'refused' ? null : durations[trial.index];
		const facts = [
			trial.outcome === 'refused' ? 'never ran' : length === null || length === undefined ? null : duration(length),
			start === null || start === undefined ? null : `${new Date(start * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC`,
			this.view.model.string(hosts[trial.index]!),
		].filter((fact) => fact !== null);
		return make(
			'div', 'run-head',
			make('div', 'run-title', name, outcomeBadge(trial.outcome), make('span', 'run-buttons', back, next, close)),
			make('p', 'soft first', facts.join(' · ')),
		);
	}

	/** The other runs of the same configuration. */
	private repeats(trial: Trial): HTMLElement | null {
		const { trials } = trial.configuration;
		if (trials.length < 2) {
			return null;
		}
		const items = trials.slice(0, 60).map((other) => {
			const press = button('tab', other.name, () => this.view.change({ run: other.name }));
			press.setAttribute('aria-pressed', String(other === trial));
			return press;
		});
		const group = make('div', 'tabs', ...items);
		group.setAttribute('role', 'group');
		group.setAttribute('aria-label', 'Runs of the same configuration');
		return group;
	}

	private ending(trial: Trial): HTMLElement | null {
		const { model } = this.view;
		const { outcome_texts, notices } = model.sweep.runs;
		const texts = [outcome_texts[trial.index]!, notices[trial.index]!].map((index) => model.string(index));
		const said = texts.filter((text): text is string => text !== null && text !== '');
		return said.length > 0 ? make('div', '', ...said.map((text) => make('p', 'notice', text))) : null;
	}

	private labels(trial: Trial): HTMLElement | null {
		const { model } = this.view;
		const detail = model.detail(trial);
		const given = model.labels
			.filter((label) => label.values[trial.index] !== null)
			.map((label): [string, string] => [label.name, label.values[trial.index]!]);
		const limits = pairs(detail.limits).map(([what, how]): [string, string] => [`${model.string(what)} limit`, model.string(how) ?? '']);
		const all = [...given, ...limits];
		return all.length > 0 ? section('Labels and limits', definitions(all)) : null;
	}

	private verdict(detail: RunDetail): HTMLElement | null {
		const { model } = this.view;
		const headline = model.string(detail.headline);
		if (!headline) {
			return null;
		}
		const shares = model.string(detail.shares);
		const next = model.string(detail.next);
		const evidence = pairs(detail.evidence).map(([what, value]): [string, string] => [model.string(what) ?? '', model.string(value) ?? '']);
		return section(
			'Verdict',
			make('p', 'headline', headline),
			shares ? make('p', 'why', shares) : null,
			evidence.length > 0 ? definitions(evidence) : null,
			next ? make('p', 'why next', next) : null,
		);
	}

	private measures(trial: Trial): HTMLElement | null {
		const { model } = this.view;
		const rows = model.sweep.measures.map((measure) => {
			const value = measure.values[trial.index]!;
			const name = make('th', 'text', measure.name);
			name.scope = 'row';
			name.title = measure.help;
			const reason = model.reason(trial, measure);
			const cell = value === null ? make('td', 'text none', `missing: ${reason}`) : make('td', 'text', amount(measure.unit, value));
			return make('tr', '', name, cell);
		});
		return rows.length > 0 ? section('Measures', make('table', 'measures', make('tbody', '', ...rows))) : null;
	}

	private epochs(detail: RunDetail): HTMLElement | null {
		const epochs = pairs(detail.epochs);
		if (epochs.length === 0) {
			return null;
		}
		const longest = Math.max(...epochs.map(([, seconds]) => seconds ?? 0), 1e-9);
		const rows = epochs.map(([number, seconds], i) => {
			const missing = i === 0 && detail.first_epoch_with_start ? 'start not known' : 'open';
			const bar = make('i', 'bar');
			bar.style.width = `${(100 * (seconds ?? 0)) / longest}%`;
			return make('li', '', make('span', '', `epoch ${number}`), make('span', 'track', bar), make('b', '', seconds === null ? missing : duration(seconds)));
		});
		const left = detail.epochs_left_out > 0 ? make('p', 'soft', `${digits(detail.epochs_left_out)} more.`) : null;
		return section('Epochs', make('ol', 'epoch-bars', ...rows), left);
	}

	private lines(trial: Trial, detail: RunDetail): HTMLElement | null {
		const kinds = this.view.model.sweep.line_kinds;
		const panels = new Map<string, Line[]>();
		for (let i = 0; i + 2 < detail.lines.length; i += 3) {
			const kind = kinds[detail.lines[i] as number];
			if (kind) {
				const line = unpack(kind, detail.lines[i + 1] as number, detail.lines[i + 2] as string);
				panels.set(kind.panel, [...(panels.get(kind.panel) ?? []), line]);
			}
		}
		if (panels.size === 0) {
			return null;
		}
		const length = this.view.model.sweep.runs.durations[trial.index];
		const axis = make('div', 'spark-axis', make('span', '', '0 s'), make('span', '', length ? duration(length) : ''));
		return section('Over time', ...[...panels].map(([title, lines]) => spark(title, lines)), axis);
	}

	private output(detail: RunDetail): HTMLElement | null {
		if (!detail.output) {
			return null;
		}
		const left = detail.output_left_out > 0 ? make('p', 'soft first', `Only the end is shown; the run file has ${digits(detail.output_left_out)} more bytes.`) : null;
		const text = make('pre', 'output', printable(detail.output));
		text.tabIndex = 0;
		return section('Last output', left, text);
	}

	private commands(trial: Trial, detail: RunDetail): HTMLElement {
		const { paths, commands } = this.view.model.sweep.runs;
		const path = operand(paths[trial.index]!);
		const link = make('a', 'link', 'The report of this run');
		link.href = detail.report ?? '';
		const command = this.view.model.string(commands[trial.index]!);
		return section(
			'Commands for details',
			detail.report ? make('p', 'first', link) : null,
			copied(`strain show ${path}`),
			copied(`strain report ${path} -o ${quoted(`${trial.name.replace(/\//g, '_')}.html`)}`),
			command ? make('p', 'soft', 'It ran') : null,
			command ? copied(command) : null,
		);
	}
}

function section(title: string, ...children: (Node | null)[]): HTMLElement {
	const element = make('section', 'part', make('h3', '', title), ...children);
	element.setAttribute('aria-label', title);
	return element;
}

/** The pairs of a flat list. */
function pairs<T>(flat: T[]): [T, T][] {
	const found: [T, T][] = [];
	for (let i = 0; i + 1 < flat.length; i += 2) {
		found.push([flat[i]!, flat[i + 1]!]);
	}
	return found;
}

function definitions(items: [string, string][]): HTMLElement {
	return make('dl', 'evidence', ...items.flatMap(([what, value]) => [make('dt', '', what), make('dd', '', value)]));
}

/** A command with a button to copy it. */
function copied(command: string): HTMLElement {
	const copy = button('quiet', 'Copy', () => {
		const done = () => {
			copy.textContent = 'Copied';
			setTimeout(() => (copy.textContent = 'Copy'), 1500);
		};
		// pages from files may not be allowed to copy
		const select = () => getSelection()?.selectAllChildren(code);
		navigator.clipboard ? navigator.clipboard.writeText(command).then(done, select) : select();
	});
	const code = make('code', '', command);
	return make('div', 'copied', code, copy);
}

function shape(name: string, attributes: Record<string, string>): SVGElement {
	const element = document.createElementNS(SVG, name);
	Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
	return element;
}

/** The path of a line, with gaps where nothing was read. */
function path(values: number[]): string {
	const step = WIDTH / values.length;
	let drawing = false;
	return values
		.map((share, i) => {
			if (Number.isNaN(share)) {
				drawing = false;
				return '';
			}
			const y = ((1 - share) * (HEIGHT - 4) + 2).toFixed(1);
			const [x, end] = [(i * step).toFixed(1), ((i + 1) * step).toFixed(1)];
			const move = drawing ? `L${x} ${y}` : `M${x} ${y}`;
			drawing = true;
			return `${move}H${end}`;
		})
		.join('');
}

function spark(title: string, lines: Line[]): HTMLElement {
	const most = Math.max(...lines.map((line) => line.most));
	const drawing = shape('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
	for (const { kind, high, mean, most: own } of lines) {
		const scale = most > 0 ? own / most : 1;
		const colour = `var(--hue-${kind.hue % HUES})`;
		const peaks = shape('path', { d: path(high.map((share) => share * scale)), class: 'peak' });
		const means = shape('path', { d: path(mean.map((share) => share * scale)), class: 'mean' });
		(peaks as SVGPathElement).style.stroke = colour;
		(means as SVGPathElement).style.stroke = colour;
		drawing.append(peaks, means);
	}
	const names = lines.map(({ kind, most: own }) => {
		const dot = make('span', 'key');
		dot.style.background = `var(--hue-${kind.hue % HUES})`;
		return make('small', '', dot, `${kind.label}, up to ${quantity(kind.unit, own)}`);
	});
	return make('div', 'spark', make('div', 'spark-label', make('span', '', title), ...names), drawing as unknown as HTMLElement);
}
