// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// CPU time by class of code: a bar for each role and each phase, and the functions with most CPU
// time. The length of a bar is relative to the longest of its kind.

import type { CodeBar, CpuTime } from './contract';
import { card, key, make } from './dom';
import { digits, duration, percent } from './format';

const FUNCTIONS = 3; // of each role in the table; the tooltips have all

function classTitle(time: CpuTime, row: CodeBar, index: number): string {
	const share = (row.classes[index] ?? 0) / row.samples;
	const functions = row.functions
		.filter((f) => f.class === index)
		.map((f) => `\n${percent(f.samples / row.samples)} ${f.name}`);
	const seconds = duration((row.classes[index] ?? 0) / time.rate);
	return `${row.name}: ${time.classes[index]!.name} ${percent(share)}, ${seconds}${functions.join('')}`;
}

function barOf(time: CpuTime, row: CodeBar, longest: number): HTMLElement {
	const parts = time.classes.flatMap(({ hue }, index) => {
		const samples = row.classes[index] ?? 0;
		if (samples === 0) {
			return [];
		}
		const part = make('i', '');
		part.style.width = `${(100 * samples) / longest}%`;
		part.style.background = `var(--hue-${hue})`;
		part.title = classTitle(time, row, index);
		return [part];
	});
	const element = make('div', 'shares', ...parts);
	element.setAttribute('role', 'img');
	element.setAttribute('aria-label', parts.map((part) => part.title.split('\n')[0]).join('; '));
	return element;
}

function bars(title: string, help: string, time: CpuTime, rows: CodeBar[]): HTMLElement {
	const longest = Math.max(...rows.map((row) => row.samples), 1);
	const all = rows.reduce((sum, row) => sum + row.samples, 0);
	const items = rows.flatMap((row) => {
		const said = `${duration(row.samples / time.rate)} · ${percent(row.samples / all)}`;
		const length = make('span', 'soft', said);
		length.title = `${digits(row.samples)} samples`;
		return [make('span', '', row.name), barOf(time, row, longest), length];
	});
	const heading = make('h3', '', title);
	heading.title = help;
	return make('div', '', heading, make('div', 'bar-rows', ...items));
}

function legend(time: CpuTime): HTMLElement {
	const seen = (index: number) => [...time.phases, ...time.roles].some((row) => (row.classes[index] ?? 0) > 0);
	const items = time.classes.flatMap(({ name, hue }, index) =>
		seen(index) ? [make('span', '', key(hue), name)] : [],
	);
	return make('p', 'code-legend', ...items);
}

function functionTable(time: CpuTime): HTMLElement {
	const rows = time.roles.flatMap((role) =>
		role.functions.slice(0, FUNCTIONS).map((f, i) => {
			const code = make('code', '', f.name);
			const kind = time.classes[f.class]!;
			code.title = kind.name;
			return make(
				'tr',
				'',
				make('td', 'text', i === 0 ? role.name : ''),
				make('td', '', percent(f.samples / role.samples)),
				make('td', 'text', key(kind.hue), code),
				make('td', 'text class', kind.name),
			);
		}),
	);
	const heads = ['CPU time of', 'share', 'top function', 'class'].map((title, i) => {
		const head = make('th', ['text', '', 'text', 'text class'][i]!, title);
		head.scope = 'col';
		return head;
	});
	const table = make('table', '', make('thead', '', make('tr', '', ...heads)), make('tbody', '', ...rows));
	table.setAttribute('aria-label', 'Functions');
	return make('div', 'scroll code-table', table);
}

export function cpuTimeCard(time: CpuTime): HTMLElement {
	if (time.missing !== null) {
		return card('CPU time', 'code', make('p', 'soft', `Not sampled: ${time.missing}.`));
	}
	const phases =
		time.phases_missing === null
			? bars('By phase', 'All threads of the training processes, by the phase of their training thread', time, time.phases)
			: make('div', '', make('h3', '', 'By phase'), make('p', 'soft', `Not known: ${time.phases_missing}.`));
	const halves = make('div', 'halves', phases, bars('By role', 'All processes of the job', time, time.roles));
	return card('CPU time', 'code', legend(time), halves, functionTable(time));
}
