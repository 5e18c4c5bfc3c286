// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The matrix as a table with pages of rows: a row per configuration, with figures of its repeats,
// or one per trial.

import { button, make } from './dom';
import { againstBaseline, againstText, againstWord, grouped, type Compared } from './sweep_compare';
import type { MeasureColumn } from './sweep_contract';
import { TEST_NAME } from './statistics';
import { order, outcomeOf, type Configuration, type Label, type Model, type Trial } from './sweep_model';
import { besideCharts, write } from './sweep_state';
import { amount, cut, estimateText, outcomeBadge, plural, type Card, type View } from './sweep_view';

const ROWS = 25;
/** Name of the column; if the measure is not a speed, its heading is "ratio". */
const BASELINE = 'speed-up';
const LABELS = 8;
const MEASURES = 6;
const PREFERRED = [
	'training_seconds', 'epoch_seconds', 'samples_per_second', 'step_seconds', 'cpus_used', 'gpu_utilization',
	'host_memory_peak', 'device_memory_peak', 'data_share', 'duration_seconds',
];

interface Row {
	trials: Trial[];
	configuration: Configuration;
}

interface Column {
	/** Unique: labels may have the names of measures. */
	name: string;
	title?: string;
	help: string;
	/** Text is aligned left. */
	text: boolean;
	cell: (row: Row) => Node | string | null;
	order: (row: Row) => number | string | null;
}

/** The initial measures: the usual ones, and the one for comparison. */
function firstMeasures(model: Model, by: MeasureColumn | null): string[] {
	const there = new Set(model.measures.map((measure) => measure.name));
	const usual = PREFERRED.filter((name) => there.has(name));
	const rest = model.measures.filter((measure) => measure.better !== 0).map((measure) => measure.name);
	const names = new Set([...(by ? [by.name] : []), ...usual, ...rest]);
	return [...names].slice(0, MEASURES);
}

export class TableCard implements Card {
	readonly element: HTMLElement;
	private readonly head = make('tr', '');
	private readonly body = make('tbody', '');
	private readonly table = make('table', 'matrix', make('thead', '', this.head), this.body);
	private readonly pager = make('nav', 'pager');
	private readonly where = make('span', 'status');
	private readonly each: HTMLButtonElement[];
	private readonly picker = make('details', 'picker');
	private readonly columnNames: string[];
	private readonly labels: Map<string, Label>;
	private columns: Column[] = [];
	private shownColumns = '';
	private filledFor: string | null = null;
	private comparisons = new Map<Configuration, Compared>();
	private comparedFor: Trial[] | null = null;

	constructor(private readonly view: View) {
		const { model } = view;
		const taken = new Set(['run', 'outcome', 'verdict', BASELINE, ...model.measures.map((measure) => measure.name)]);
		this.labels = new Map(model.labels.map((label) => [taken.has(label.name) ? `label ${label.name}` : label.name, label]));
		this.columnNames = [
			...this.labels.keys(),
			...(model.sweep.baseline.length > 0 ? [BASELINE] : []),
			...(model.sweep.runs.verdicts.some((verdict) => verdict >= 0) ? ['verdict'] : []),
			...model.measures.map((measure) => measure.name),
		];
		this.each = [
			button('tab', 'Configurations', () => view.change({ trials: false, page: 1 })),
			button('tab', 'Trials', () => view.change({ trials: true, page: 1 })),
		];
		const repeated = model.configurations.length < model.trials.length;
		const tabs = repeated ? make('div', 'tabs', ...this.each) : null;
		tabs?.setAttribute('role', 'group');
		tabs?.setAttribute('aria-label', 'A row for each');
		const heading = make('div', 'heading', make('h2', '', repeated ? 'Configurations' : 'Trials'), tabs, this.where, this.picker);
		this.table.setAttribute('aria-label', 'Configurations and trials');
		this.pager.setAttribute('aria-label', 'Pages of the table');
		this.element = make('section', 'card matrix-card', heading, make('div', 'scroll', this.table), this.pager);
		this.element.setAttribute('aria-label', 'The matrix');
		this.pickColumns();
		this.body.addEventListener('click', (event) => this.press(event));
		this.update();
	}

	update(): void {
		this.each.forEach((tab, i) => tab.setAttribute('aria-pressed', String(this.asTrials() === (i === 1))));
		this.setColumns();
		const key = write(besideCharts(this.view.state));
		if (key !== this.filledFor) {
			this.filledFor = key; // otherwise rows stay, and keep the focus
			this.fill();
		}
	}

	private asTrials(): boolean {
		const { model, state } = this.view;
		return state.trials || model.configurations.length === model.trials.length;
	}

	/** The names of the columns between the first and the outcome. */
	private chosen(): string[] {
		const { state, model, by } = this.view;
		const beginning = [
			...[...this.labels].filter(([, label]) => model.varying.includes(label)).slice(0, LABELS).map(([name]) => name),
			...firstMeasures(model, by),
			...(model.trials.some((trial) => model.verdict(trial) !== null) ? ['verdict'] : []),
			BASELINE,
		];
		const wanted = new Set(state.columns ?? beginning);
		return this.columnNames.filter((name) => wanted.has(name));
	}

	private setColumns(): void {
		const names = this.chosen();
		const shown = JSON.stringify([names, this.asTrials(), this.view.by?.name]);
		if (shown !== this.shownColumns) {
			this.shownColumns = shown;
			this.columns = this.allColumns(names);
			this.head.replaceChildren(...this.columns.map((column) => this.heading(column)));
			for (const box of this.picker.querySelectorAll('input')) {
				box.checked = names.includes(box.value);
			}
		}
		const { sort } = this.view.state;
		this.columns.forEach((column, i) => {
			const way = sort === column.name ? 'ascending' : sort === `-${column.name}` ? 'descending' : null;
			const cell = this.head.children[i]!;
			way ? cell.setAttribute('aria-sort', way) : cell.removeAttribute('aria-sort');
		});
	}

	private allColumns(names: string[]): Column[] {
		const { model } = this.view;
		const measures = new Map(model.measures.map((measure) => [measure.name, measure]));
		const middle = names.flatMap((name): Column[] => {
			const label = this.labels.get(name);
			const measure = measures.get(name);
			return label
				? [{ ...this.labelColumn(label), name }]
				: measure
					? [this.measureColumn(measure)]
					: [name === 'verdict' ? this.verdictColumn() : this.baselineColumn()];
		});
		return [this.nameColumn(), this.outcomeColumn(), ...middle];
	}

	private nameColumn(): Column {
		const trials = this.asTrials();
		return {
			name: 'run',
			help: trials ? 'Open the run' : 'Open the runs of this configuration',
			text: true,
			cell: (row) => {
				const first = row.trials[0]!;
				const name = trials || row.trials.length === 1 ? first.name : `${stem(first.name)} (${row.trials.length})`;
				const open = button('link open', '', () => undefined);
				open.append(cut(name, 28));
				open.dataset['run'] = String(first.index);
				return open;
			},
			order: (row) => row.trials[0]!.name,
		};
	}

	private outcomeColumn(): Column {
		return {
			name: 'outcome',
			help: 'How trials ended',
			text: true,
			cell: (row) => {
				const counts = countOutcomes(row.trials);
				const badges = counts.map(([name, count]) => outcomeBadge(name, counts.length > 1 ? String(count) : undefined));
				return make('span', 'outcomes', ...badges);
			},
			order: (row) => countOutcomes(row.trials).map(([name]) => outcomeOf(name).word).join(),
		};
	}

	private labelColumn(label: Label): Column {
		const value = (row: Row) => label.values[row.trials[0]!.index] ?? null;
		const several = (row: Row) => new Set(row.trials.map((trial) => label.values[trial.index])).size > 1;
		return {
			name: label.name,
			title: label.name,
			help: `Label ${label.name}`,
			text: !label.numeric,
			cell: (row) => (several(row) ? 'several' : value(row) === null ? null : cut(value(row)!, 36)),
			order: value,
		};
	}

	private verdictColumn(): Column {
		const text = (row: Row) => {
			const words = new Set(row.trials.map((trial) => this.view.model.verdict(trial)).filter((word) => word !== null));
			return words.size > 0 ? [...words].join(', ') : null;
		};
		return { name: 'verdict', help: 'Bottleneck', text: true, cell: text, order: text };
	}

	private measureColumn(measure: MeasureColumn): Column {
		const { model } = this.view;
		return {
			name: measure.name,
			help: measure.help,
			text: false,
			cell: (row) => this.measureCell(row, measure),
			order: (row) => model.figure(row.trials, measure)?.mean ?? null,
		};
	}

	private measureCell(row: Row, measure: MeasureColumn): Node | string | null {
		const { model } = this.view;
		const figure = model.figure(row.trials, measure);
		if (!figure) {
			const reason = model.reason(row.trials[0]!, measure);
			const none = make('span', 'none', row.trials.some((trial) => trial.good) ? 'missing' : outcomeOf(row.trials[0]!.outcome).word);
			none.title = reason;
			return none;
		}
		const text = make('span', '', estimateText(measure.unit, figure));
		const of = figure.n < row.trials.length ? make('small', '', ` ${figure.n} of ${row.trials.length}`) : null;
		text.title = figure.n > 1
			? `mean of ${figure.n} runs, 95 % interval: ${model.values(row.trials, measure).map((value) => amount(measure.unit, value)).join(', ')}`
			: measure.help;
		return of ? make('span', '', text, of) : text;
	}

	private baselineColumn(): Column {
		const { model, by } = this.view;
		const words = model.sweep.baseline.map(([name, value]) => `${name}=${value}`).join(', ');
		const baseline = (row: Row) => model.baselineOf(row.configuration) === row.configuration;
		const found = (row: Row) => this.compared().get(row.configuration) ?? null;
		return {
			name: BASELINE,
			title: againstWord(by),
			help: `${by?.name ?? 'A measure'}: times as ${by?.speed ? 'fast' : 'much'} as the baseline (${words}); * is significant (${TEST_NAME})`,
			text: false,
			cell: (row) => {
				const one = found(row);
				if (!one) {
					return baseline(row) ? make('span', 'soft-cell', 'baseline') : null;
				}
				const beyond = one.beyondNoise === true;
				const cell = make('span', beyond ? '' : 'soft-cell', `${againstText(one.against)}${beyond ? '*' : ''}`);
				cell.title = one.beyondNoise === null ? 'too few repeats for a test' : beyond ? 'significant' : 'not significant';
				return cell;
			},
			order: (row) => found(row)?.against ?? null,
		};
	}

	/** All visible rows are compared at once: significance depends on their number. */
	private compared(): Map<Configuration, Compared> {
		const { model, visible, by } = this.view;
		if (this.comparedFor !== visible && by) {
			this.comparisons = againstBaseline(model, visible, by);
			this.comparedFor = visible;
		}
		return this.comparisons;
	}

	private heading(column: Column): HTMLElement {
		const heading = make('th', column.text ? 'text' : '');
		heading.scope = 'col';
		const press = button('', '', () => {
			const { sort } = this.view.state;
			this.view.change({ sort: sort === column.name ? `-${column.name}` : column.name, page: 1 });
		});
		press.append(cut(column.title ?? column.name, 24));
		press.title = column.help;
		heading.append(press);
		return heading;
	}

	private rows(): Row[] {
		const { visible, state } = this.view;
		const rows: Row[] = this.asTrials()
			? visible.map((trial) => ({ trials: [trial], configuration: trial.configuration }))
			: [...grouped(visible)].map(([configuration, trials]) => ({ trials, configuration }));
		const name = state.sort?.replace(/^-/, '');
		const column = this.columns.find((one) => one.name === name);
		if (!column) {
			return rows;
		}
		const down = state.sort!.startsWith('-');
		const keyed = rows.map((row) => ({ row, key: column.order(row) }));
		return keyed.sort((a, b) => order(a.key, b.key, down)).map(({ row }) => row);
	}

	private fill(): void {
		const rows = this.rows();
		const pages = Math.max(1, Math.ceil(rows.length / ROWS));
		const page = Math.min(this.view.state.page, pages);
		const shown = rows.slice((page - 1) * ROWS, page * ROWS);
		this.body.replaceChildren(...shown.map((row) => this.row(row)));
		if (rows.length === 0) {
			const empty = make('td', 'text soft', 'No trial passes the filters.');
			empty.colSpan = this.columns.length;
			this.body.append(make('tr', '', empty));
		}
		const noun = this.asTrials() ? 'trial' : 'configuration';
		const first = (page - 1) * ROWS + 1;
		this.where.textContent = pages > 1 ? `${first} to ${first + shown.length - 1} of ${plural(rows.length, noun)}` : plural(rows.length, noun);
		this.fillPager(page, pages);
	}

	private row(row: Row): HTMLElement {
		const tone = row.trials.every((trial) => !trial.good) ? outcomeOf(row.trials[0]!.outcome).tone : '';
		const cells = this.columns.map((column, i) => {
			const cell = make(i === 0 ? 'th' : 'td', column.text ? 'text' : '', column.cell(row) ?? '–');
			if (i === 0) {
				cell.setAttribute('scope', 'row');
			}
			return cell;
		});
		const element = make('tr', tone ? `failed ${tone}` : '', ...cells);
		element.dataset['run'] = String(row.trials[0]!.index);
		return element;
	}

	/** A click anywhere in a row opens its run; for the keyboard, there is a button in it. */
	private press(event: MouseEvent): void {
		const target = event.target as Element;
		const row = target.closest('tr');
		const index = row?.dataset['run'];
		if (index !== undefined && String(getSelection()) === '') {
			this.view.open(this.view.model.trials[Number(index)]!);
		}
	}

	private fillPager(page: number, pages: number): void {
		const go = (label: string, to: number) => {
			const press = button('quiet', label, () => this.view.change({ page: to }));
			press.disabled = to < 1 || to > pages;
			return press;
		};
		this.pager.hidden = pages === 1;
		const had = this.pager.contains(document.activeElement) ? (document.activeElement as HTMLElement).textContent : null;
		this.pager.replaceChildren(go('Back', page - 1), make('span', 'status', `page ${page} of ${pages}`), go('Next', page + 1));
		[...this.pager.querySelectorAll('button')].find((press) => press.textContent === had)?.focus();
	}

	private pickColumns(): void {
		const summary = make('summary', 'quiet', 'Columns');
		const boxes = make('div', 'boxes');
		this.picker.append(summary, boxes);
		this.picker.addEventListener('toggle', () => {
			if (boxes.childElementCount === 0) {
				boxes.append(...this.columnNames.map((name) => this.box(name)));
			}
		});
		document.addEventListener('pointerdown', (event) => {
			if (!this.picker.contains(event.target as Node)) {
				this.picker.open = false;
			}
		});
		this.picker.addEventListener('keydown', (event) => {
			if (event.key === 'Escape') {
				this.picker.open = false;
				summary.focus();
			}
		});
	}

	private box(name: string): HTMLElement {
		const box = make('input', '');
		box.type = 'checkbox';
		box.value = name;
		box.checked = this.chosen().includes(name);
		box.addEventListener('change', () => {
			const now = this.chosen().filter((one) => one !== name);
			this.view.change({ columns: box.checked ? [...now, name] : now });
		});
		return make('label', '', box, cut(name, 30));
	}
}

/** "0007" for "0007-2": the configuration in the name of a trial. */
function stem(name: string): string {
	return /^\d{4,}-\d+$/.test(name) ? name.replace(/-\d+$/, '') : name;
}

/** Failures come first. Trials stopped by a rule are not reported if others succeeded. */
function countOutcomes(trials: Trial[]): [string, number][] {
	const counts = new Map<string, number>();
	const succeeded = trials.some((trial) => trial.outcome === 'success');
	for (const trial of trials) {
		const name = trial.good && succeeded ? 'success' : trial.outcome;
		counts.set(name, (counts.get(name) ?? 0) + 1);
	}
	const good = ([name]: [string, number]) => Number(outcomeOf(name).tone === 'good');
	return [...counts].sort((a, b) => good(a) - good(b));
}
