// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Two labels as axes, a measure in each cell: as a number, and as a shade next to it.

import { button, make } from './dom';
import { digits, digitsAmong, scaleFor } from './format';
import type { MeasureColumn } from './sweep_contract';
import { outcomeOf, type Figure, type Label, type Model, type Trial } from './sweep_model';
import { besideTable, write } from './sweep_state';
import { chooser, cut, estimateText, outcomeBadge, plural, type Card, type View } from './sweep_view';

const MOST_ROWS = 40;
const MOST_ACROSS = 24;

interface Axes {
	rows: Label;
	across: Label;
	cell: MeasureColumn;
}

interface Cell {
	trials: Trial[];
	figure: Figure | null;
}

/** Common to all cells. */
interface Means {
	least: number;
	most: number;
	best: number | null;
	show(mean: number): string;
}

function defaultAxes(model: Model): { rows: Label; across: Label } | null {
	const short = model.varying.filter((label) => label.distinct.length > 1 && label.distinct.length <= MOST_ROWS);
	const [first, second] = short.sort((a, b) => b.distinct.length - a.distinct.length);
	return first && second ? { rows: first, across: second } : null;
}

export class HeatCard implements Card {
	readonly element: HTMLElement;
	private readonly place = make('div', 'scroll');
	private readonly note = make('p', 'soft', '');
	private readonly choices;
	private drawn: string | null = null;

	constructor(private readonly view: View) {
		const { model } = view;
		const names = model.labels.filter((label) => label.varies && label.distinct.length > 1).map((label) => label.name);
		this.choices = {
			rows: chooser('down', names, null, (rows) => view.change({ rows })),
			across: chooser('across', names, null, (across) => view.change({ across })),
			cell: chooser('in each cell', model.measures.map((measure) => measure.name), null, (cell) => view.change({ cell })),
		};
		const possible = names.length > 1 && model.measures.length > 0;
		const controls = make('div', 'controls', ...Object.values(this.choices).map((choice) => choice.element));
		const why = names.length > 1 ? 'No measure has a value.' : 'A heat map needs two labels that vary.';
		this.element = make(
			'section', 'card heat', make('h2', '', 'Heat map'),
			...(possible ? [controls, this.place, this.note] : [make('p', 'soft first', why)]),
		);
		this.element.setAttribute('aria-label', 'Heat map');
		if (possible) {
			this.update();
		}
	}

	update(): void {
		const axes = this.axes();
		const key = write(besideTable(this.view.state));
		if (!axes || key === this.drawn) {
			return;
		}
		this.drawn = key;
		this.choices.rows.show(axes.rows.name);
		this.choices.across.show(axes.across.name);
		this.choices.cell.show(axes.cell.name);
		this.draw(axes);
	}

	private axes(): Axes | null {
		const { model, state, by } = this.view;
		const usual = defaultAxes(model);
		const others = model.labels.filter((label) => label.varies && label.distinct.length > 1);
		const rows = model.findLabel(state.rows) ?? usual?.rows ?? others[0];
		const wanted = model.findLabel(state.across) ?? usual?.across;
		const across = wanted && wanted !== rows ? wanted : others.find((label) => label !== rows);
		const cell = model.findMeasure(state.cell) ?? by ?? model.measures[0];
		return rows && across && cell ? { rows, across, cell } : null;
	}

	private draw(axes: Axes): void {
		const { visible, model } = this.view;
		const groups = new Map<string, Trial[]>();
		const key = (row: string | null, column: string | null) => JSON.stringify([row, column]);
		for (const trial of visible) {
			const place = key(axes.rows.values[trial.index]!, axes.across.values[trial.index]!);
			groups.set(place, [...(groups.get(place) ?? []), trial]);
		}
		const used = (label: Label, most: number) => {
			const there = new Set(visible.map((trial) => label.values[trial.index]));
			return label.distinct.filter((value) => there.has(value)).slice(0, most);
		};
		const [rows, columns] = [used(axes.rows, MOST_ROWS), used(axes.across, MOST_ACROSS)];
		const cells = rows.map((row) =>
			columns.map((column): Cell => {
				const trials = groups.get(key(row, column)) ?? [];
				return { trials, figure: model.figure(trials, axes.cell) };
			}),
		);
		this.place.replaceChildren(this.table(axes, rows, columns, cells));
		this.note.textContent = this.noteOf(axes, cells.flat());
	}

	private table(axes: Axes, rows: string[], columns: string[], cells: Cell[][]): HTMLElement {
		const means = cells.flat().flatMap(({ figure }) => (figure ? [figure.mean] : []));
		const [least, most] = [Math.min(...means), Math.max(...means)];
		const best = axes.cell.better > 0 ? most : axes.cell.better < 0 ? least : null;
		const { factor } = scaleFor(axes.cell.unit, most);
		const shown = digitsAmong(means.map((mean) => mean / factor));
		const all: Means = { least, most, best, show: (mean) => shown(mean / factor) };
		const corner = make('th', 'text', cut(`${axes.rows.name} ↓  ${axes.across.name} →`, 60));
		const heads = columns.map((column) => {
			const head = make('th', '', cut(column, 16));
			head.scope = 'col';
			return head;
		});
		const lines = rows.map((row, i) => {
			const head = make('th', 'text', cut(row, 24));
			head.scope = 'row';
			const drawn = cells[i]!.map((cell, j) => this.cell(axes, cell, all, `${row}, ${columns[j]}`));
			return make('tr', '', head, ...drawn);
		});
		const table = make('table', 'heat-map', make('thead', '', make('tr', '', corner, ...heads)), make('tbody', '', ...lines));
		table.setAttribute('aria-label', `${axes.cell.name} by ${axes.rows.name} and ${axes.across.name}`);
		return table;
	}

	private cell(axes: Axes, { trials, figure }: Cell, { least, most, best, show }: Means, where: string): HTMLElement {
		const cell = make('td', '');
		const first = trials[0];
		if (!first) {
			cell.append(make('span', 'none', '·'));
			return cell;
		}
		const press = button('heat-cell', '', () => this.view.pick(trials, [axes.rows, axes.across]));
		if (figure) {
			const share = most > least ? (figure.mean - least) / (most - least) : 0.5;
			press.append(show(figure.mean));
			press.style.setProperty('--share', share.toFixed(3));
			press.classList.add('shade');
			press.classList.toggle('best-cell', figure.mean === best);
			const failed = trials.filter((trial) => !trial.good);
			press.title = `${where}: ${estimateText(axes.cell.unit, figure)}, ${plural(figure.n, 'run')}` +
				(failed.length > 0 ? `, ${failed.length} ${outcomeOf(failed[0]!.outcome).word}` : '') +
				(figure.mean === best ? ', the best' : '');
		} else if (trials.some((trial) => trial.good)) {
			press.append(make('span', 'none', 'missing'));
			press.title = this.view.model.reason(first, axes.cell);
		} else {
			press.append(outcomeBadge(first.outcome));
			press.classList.add('failed', outcomeOf(first.outcome).tone);
			press.title = `${where}: ${this.view.model.string(this.view.model.sweep.runs.outcome_texts[first.index]!) ?? 'no value'}`;
		}
		cell.append(press);
		return cell;
	}

	private noteOf(axes: Axes, cells: Cell[]): string {
		const means = cells.flatMap(({ figure }) => (figure ? [figure] : []));
		const mixed = Math.max(0, ...means.map((figure) => figure.configurations));
		const unit = scaleFor(axes.cell.unit, Math.max(...means.map((figure) => figure.mean)));
		const left = [[axes.rows, MOST_ROWS] as const, [axes.across, MOST_ACROSS] as const]
			.filter(([label, most]) => label.distinct.length > most)
			.map(([label, most]) => `Only the first ${most} of ${digits(label.distinct.length)} values of ${label.name} are shown.`);
		return [
			means.length > 0 ? `${axes.cell.name}${unit.name ? ` in ${unit.name}` : ''}.` : '',
			axes.cell.better !== 0 && means.length > 0 ? 'The best is framed.' : '',
			mixed > 1 ? `A cell is the mean of up to ${plural(mixed, 'configuration')}.` : '',
			...left,
		].filter((text) => text).join(' ');
	}
}
