// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The ranks of a job whose ranks each have a run: a table, and the mean iteration of each.

import type { Job, JobRank } from './contract';
import { card, key, make } from './dom';
import { digits, duration, percent, quantity } from './format';
import { rankBars } from './iterations';
import { table, type ColumnOf } from './tables';

const ROWS_AT_FIRST = 32;

function withUnit(value: number | null, show: (value: number) => string): string | null {
	return value === null ? null : show(value);
}

function verdictOf(rank: JobRank): HTMLElement {
	const word = make('span', '', rank.verdict ?? '–');
	word.title = rank.headline ?? '';
	return rank.note === null ? word : make('span', '', word, ' ', make('b', 'note', rank.note));
}

function columns(job: Job): ColumnOf<JobRank>[] {
	const hosts = new Set(job.ranks.map((rank) => rank.host));
	const figure = (title: string, of: (rank: JobRank) => number | null, show: (value: number) => string): ColumnOf<JobRank> => ({
		title, cell: (rank) => withUnit(of(rank), show), order: of,
	});
	const all: ColumnOf<JobRank>[] = [
		{ title: 'rank', cell: (rank) => String(rank.number), order: (rank) => rank.number },
		{ title: 'host', text: true, cell: (rank) => rank.host, order: (rank) => rank.host },
		{ title: 'run', text: true, cell: (rank) => rank.run, order: (rank) => rank.run },
		figure('iterations', (rank) => rank.iterations, digits),
		figure(`${job.unit}/s`, (rank) => rank.rate, digits),
		figure('median', (rank) => rank.p50, duration),
		figure('own work', (rank) => rank.own, duration),
		figure('waits', (rank) => rank.waits, percent),
		figure('latest', (rank) => rank.latest, percent),
		figure('CPUs', (rank) => rank.cpus, (value) => quantity('{cpu}', value)),
		figure('waits for CPU', (rank) => rank.cpu_wait, percent),
		figure('memory', (rank) => rank.memory, (value) => quantity('By', value)),
		{ title: 'verdict', text: true, cell: verdictOf, order: (rank) => rank.verdict },
	];
	return hosts.size > 1 ? all : all.filter((column) => column.title !== 'host');
}

/** The colours of the phases in the bars. */
function legend(job: Job): HTMLElement | null {
	const hues = new Map(job.ranks.flatMap((rank) => rank.phases.map((phase) => [phase.name, phase.hue] as const)));
	const items = [...hues].map(([name, hue]) => make('span', 'legend', key(hue), name));
	return items.length > 0 ? make('p', 'soft', ...items) : null;
}

export function jobCard(job: Job): HTMLElement {
	const left = job.ranks_left_out;
	const note = left > 0 ? make('p', 'soft', `${digits(left)} more ranks are not in the table.`) : null;
	// Those with a note first: they are what one looks for among many.
	const rows = [...job.ranks].sort((a, b) => Number(b.note !== null) - Number(a.note !== null));
	return card('Ranks', 'job-ranks', table('Ranks', columns(job), rows, ROWS_AT_FIRST), note, rankBars(rows), legend(job));
}
