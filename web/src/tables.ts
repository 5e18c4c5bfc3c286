// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The tables of the report: processes with their lives, epochs, the summary. A row here is a column
// there.

import type { EpochRow, OwnSpan, Process, Run, SummaryRow } from './contract';
import { button, card, make } from './dom';
import { digits, duration, percent, quantity } from './format';

export interface ColumnOf<Row> {
	title: string;
	/** Text is left-aligned, figures right. */
	text?: boolean;
	cell: (row: Row) => Node | string | null;
	/** The sort key; without it the column cannot be sorted. */
	order?: (row: Row) => number | string | null;
}

const UNKNOWN = '–';

function shown(unit: string, value: number | null): string {
	return value === null ? UNKNOWN : quantity(unit, value);
}

function cellOf<Row>(column: ColumnOf<Row>, row: Row): HTMLElement {
	const content = column.cell(row);
	const cell = make('td', column.text ? 'text' : '', content ?? UNKNOWN);
	return cell;
}

function compare(a: number | string | null, b: number | string | null): number {
	if (a === null || b === null) {
		return Number(a === null) - Number(b === null);
	}
	return typeof a === 'string' ? a.localeCompare(String(b), 'en') : Number(b) - a;
}

/** A table that can be sorted by clicking on a heading; initially at most `most` rows. */
export function table<Row>(label: string, columns: ColumnOf<Row>[], rows: Row[], most: number): HTMLElement {
	const body = make('tbody', '');
	let limit = most;
	let sorted = rows;
	const more = button('quiet more', '', () => {
		limit = Infinity;
		fill();
	});
	const fill = () => {
		body.replaceChildren(
			...sorted.slice(0, limit).map((row) => make('tr', '', ...columns.map((c) => cellOf(c, row)))),
		);
		more.hidden = sorted.length <= limit;
		more.textContent = `Show all ${digits(sorted.length)}`;
	};
	const headings = columns.map((column) => {
		const heading = make('th', column.text ? 'text' : '');
		heading.scope = 'col';
		const { order } = column;
		if (!order) {
			heading.append(column.title);
			return heading;
		}
		heading.append(
			button('', column.title, () => {
				const back = heading.getAttribute('aria-sort') === 'descending';
				headings.forEach((other) => other.removeAttribute('aria-sort'));
				heading.setAttribute('aria-sort', back ? 'ascending' : 'descending');
				sorted = [...rows].sort((a, b) => compare(order(a), order(b)) * (back ? -1 : 1));
				fill();
			}),
		);
		return heading;
	});
	fill();
	const element = make('table', '', make('thead', '', make('tr', '', ...headings)), body);
	element.setAttribute('aria-label', label);
	return make('div', 'scroll', element, more);
}

function lifeBar(process: Process, run: Run): HTMLElement {
	const bar = make('i', 'bar');
	const end = process.end ?? run.duration;
	const percent = (t: number) => (100 * t) / Math.max(run.duration, 1e-9);
	bar.style.left = `${Math.min(percent(process.start), 99)}%`;
	bar.style.width = `${Math.max(percent(end - process.start), 1)}%`;
	const life = make('span', 'life', bar);
	const ending = process.ending ? `, ${process.ending}` : '';
	life.title = `from ${duration(process.start)} to ${duration(end)}${ending}`;
	life.setAttribute('role', 'img');
	life.setAttribute('aria-label', life.title);
	return life;
}

function commandOf(process: Process): HTMLElement {
	const code = make('code', '', process.name);
	code.title = process.pid === null ? process.command : `${process.pid}: ${process.command}`;
	return code;
}

export function processTable(run: Run): HTMLElement | null {
	if (run.processes.length === 0) {
		return null;
	}
	const columns: ColumnOf<Process>[] = [
		{ title: 'role', text: true, cell: (p) => p.role, order: (p) => p.role },
		{ title: 'command', text: true, cell: commandOf, order: (p) => p.name },
		{ title: 'CPU time', cell: (p) => (p.cpu_seconds === null ? null : duration(p.cpu_seconds)), order: (p) => p.cpu_seconds },
		{ title: 'CPU', cell: (p) => shown('1', p.cpu), order: (p) => p.cpu },
		{ title: 'memory, peak', cell: (p) => shown('By', p.memory_peak), order: (p) => p.memory_peak },
		{ title: 'requested', cell: (p) => shown('By', p.asked), order: (p) => p.asked },
		{ title: 'storage', cell: (p) => shown('By', p.storage), order: (p) => p.storage },
		{ title: 'life', cell: (p) => lifeBar(p, run), order: (p) => -p.start },
	];
	const left = run.processes_left_out;
	const rest = left > 0 ? make('p', 'soft', `${digits(left)} more, each with less CPU time.`) : null;
	return card('Processes', 'processes', table('Processes', columns, run.processes, 20), rest);
}

export function epochTable(run: Run, zoom: (row: EpochRow) => void): HTMLElement | null {
	if (run.epoch_rows.length === 0) {
		return null;
	}
	const length = (row: EpochRow) => (row.end ?? run.duration) - row.start;
	const columns: ColumnOf<EpochRow>[] = [
		{
			title: 'epoch',
			text: true,
			cell: (row) => {
				const link = button('link', row.name, () => zoom(row));
				link.title = 'Show this epoch in all panels';
				return link;
			},
		},
		{ title: 'length', cell: (row) => duration(length(row)) + (row.end === null ? ', open' : ''), order: length },
		...run.epoch_columns.map((title, i) => ({ title, cell: (row: EpochRow) => row.values[i] ?? null })),
	];
	return card('Epochs', 'epochs', table('Epochs', columns, run.epoch_rows, 12));
}

function shareBar(share: number): HTMLElement {
	const bar = make('i', 'bar');
	bar.style.left = '0';
	bar.style.width = `${Math.min(100 * share, 100)}%`;
	const track = make('span', 'life', bar);
	track.setAttribute('aria-hidden', 'true'); // the figure is next to it
	return track;
}

function ownName(span: OwnSpan): HTMLElement {
	const name = make('span', 'own', span.name);
	name.style.paddingLeft = `${span.depth * 16}px`;
	name.title = span.threads > 1 ? `${span.name}, of ${digits(span.threads)} threads` : span.name;
	return name;
}

/** Spans named by the job's author: the longest, and their parents. */
export function ownTable(run: Run): HTMLElement | null {
	const spans = run.own_spans;
	if (spans.length === 0) {
		return null;
	}
	const several = spans.some((span) => span.threads > 1);
	const columns: ColumnOf<OwnSpan>[] = [
		{ title: 'span', text: true, cell: ownName },
		{ title: 'times', cell: (span) => digits(span.count) },
		...(several ? [{ title: 'threads', cell: (span: OwnSpan) => digits(span.threads) }] : []),
		{ title: 'median', cell: (span) => shown('s', span.p50) },
		{ title: 'longest', cell: (span) => shown('s', span.max) },
		{ title: 'total', cell: (span) => duration(span.total) },
		{ title: 'share', cell: (span) => (span.share === null ? null : percent(span.share)) },
		{ title: 'of', text: true, cell: (span) => (span.inside ? 'iterations' : 'the run') },
		{ title: '', cell: (span) => (span.share === null ? '' : shareBar(span.share)) },
	];
	const build = (rows: OwnSpan[]) => table('Spans of the job', columns, rows, Infinity);
	const first = spans.filter((span) => span.first);
	let element = build(first);
	const more = button('quiet more', `Show all ${digits(spans.length)}`, () => {
		const all = build(spans);
		element.replaceWith(all);
		element = all;
		more.hidden = true;
	});
	more.hidden = first.length === spans.length;
	return card('Spans of the job', 'own-spans', element, more);
}

/** The total of a counter is in its unit; its other figures are rates per second. */
function figure(row: SummaryRow, value: number | null, rate: boolean): string | null {
	if (value === null) {
		return null;
	}
	const perSecond = rate && row.total !== null;
	if (row.unit === 's') {
		return perSecond ? `${digits(value)} s/s` : duration(value);
	}
	return quantity(row.unit, value) + (perSecond ? '/s' : '');
}

export function summaryTable(run: Run): HTMLElement | null {
	if (run.summary.length === 0) {
		return null;
	}
	const columns: ColumnOf<SummaryRow>[] = [
		{ title: 'of', text: true, cell: (row) => row.entity },
		{ title: 'metric', text: true, cell: (row) => make('code', '', row.metric), order: (row) => row.metric },
		{ title: 'total', cell: (row) => figure(row, row.total, false) },
		{ title: 'mean', cell: (row) => figure(row, row.mean, true) },
		{ title: 'p50', cell: (row) => figure(row, row.p50, true) },
		{ title: 'p95', cell: (row) => figure(row, row.p95, true) },
		{ title: 'max', cell: (row) => figure(row, row.max, true) },
	];
	const details = make('details', '');
	const open = make('summary', '', `Every metric over the whole run (${digits(run.summary.length)})`);
	details.append(open);
	// Built on demand: hundreds of rows that most readers never open.
	details.addEventListener(
		'toggle',
		() => details.append(table('Summary', columns, run.summary, 400)),
		{ once: true },
	);
	return card('Summary', 'summary', details);
}
