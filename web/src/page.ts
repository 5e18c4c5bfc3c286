// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The report: reads the data that strain wrote into this page and lays out each run. Unknown values
// have no panel; the notes at the end list what was missing and why.

import type { Report, Run, Tile, Verdict } from './contract';
import { card, button, make, prose } from './dom';
import { cpuTimeCard } from './cpu_time';
import { clock, date, duration } from './format';
import { iterationCards } from './iterations';
import { jobCard } from './job';
import { epochTable, ownTable, processTable, summaryTable } from './tables';
import { themeButton } from './theme';
import { Timeline } from './timeline';

/** With one run, its name is next to the brand; with several, tabs are. */
function header(run: Run, alone: boolean): HTMLElement {
	const command = make('code', 'command', run.command);
	command.title = run.command;
	const chips = run.chips.map((chip) => make('span', 'chip', chip));
	return make('header', '', alone ? null : make('h1', 'name', run.name), command, ...chips, about(run));
}

/** When and where it ran, its duration, its end and versions, as far as they are known. */
function about(run: Run): HTMLElement {
	const { host, lasted, ended, versions } = run.about;
	const facts: [string, string | null][] = [
		['started', run.started === null ? null : date(run.started)],
		['on', host],
		['for', lasted === null ? null : duration(lasted)],
		['ended', ended],
		['with', versions.length > 0 ? versions.join(', ') : null],
	];
	const items = facts.flatMap(([what, value]) =>
		value === null ? [] : [make('div', '', make('dt', '', what), make('dd', '', value))],
	);
	return make('dl', 'about', ...items);
}

function verdictCard(verdict: Verdict): HTMLElement {
	const says = make('div', '', make('h2', '', 'Verdict'), make('p', 'headline', ...prose(verdict.title)));
	const facts = evidence(verdict);
	says.append(...verdict.text.map((text) => make('p', 'why', ...prose(text))), ...(facts ? [facts] : []));
	const parts: HTMLElement[] = [says];
	if (verdict.advice.length > 0) {
		const items = verdict.advice.map((advice) =>
			make(
				'li',
				'',
				advice.gain ? make('span', 'gain', advice.gain) : null,
				make('span', '', ...prose(advice.title), advice.text ? make('small', '', ...prose(advice.text)) : null),
			),
		);
		parts.push(make('div', '', make('h2', '', 'What to try'), make('ol', 'try', ...items)));
	}
	const section = make('section', parts.length > 1 ? 'card verdict' : 'card', ...parts);
	section.setAttribute('aria-label', 'Verdict');
	return section;
}

function evidence(verdict: Verdict): HTMLElement | null {
	if (verdict.evidence.length === 0) {
		return null;
	}
	const items = verdict.evidence.flatMap(({ what, value }) => [make('dt', '', what), make('dd', '', ...prose(value))]);
	return make('dl', 'evidence', ...items);
}

function tiles(list: Tile[]): HTMLElement {
	const items = list.map((tile) =>
		make(
			'div',
			'tile',
			make('b', '', tile.value, tile.of ? make('small', '', ` ${tile.of}`) : null),
			make('small', '', tile.label),
		),
	);
	const section = make('section', 'card tiles', ...items);
	section.setAttribute('aria-label', 'Figures');
	return section;
}

function eventCard(run: Run, zoom: (t: number) => void): HTMLElement | null {
	if (run.events.length === 0) {
		return null;
	}
	const items = run.events.slice(0, 200).map((event) => {
		const at = button('link', clock(event.t, 0.1), () => zoom(event.t));
		return make('li', '', at, make('span', 'kind', event.kind.replace(/_/g, ' ')), make('span', '', event.text));
	});
	const left = run.events.length - items.length;
	const rest = left > 0 ? make('p', 'soft', `${left} more.`) : null;
	return card('What happened', 'events', make('ul', '', ...items), rest);
}

function footer(run: Run): HTMLElement | null {
	const notes = run.notes.map(({ title, text }) => make('p', '', make('b', '', title), ` ${text}`));
	if (run.missing.length > 0) {
		const items = run.missing.map(({ what, reason }) => make('li', '', make('span', '', what), `: ${reason}`));
		notes.push(make('div', '', make('b', '', 'Not measured'), make('ul', '', ...items)));
	}
	if (notes.length === 0) {
		return null;
	}
	const section = make('section', 'card foot', ...notes);
	section.setAttribute('aria-label', 'Recording and what was missing');
	return section;
}

interface View {
	element: HTMLElement;
	repaint: () => void;
}

function view(run: Run, alone: boolean): View {
	const timeline = run.panels.length > 0 ? new Timeline(run) : null;
	const show = (from: number, to: number) => {
		timeline?.show(from, to);
		timeline?.element.scrollIntoView({ block: 'nearest' });
	};
	const around = Math.max(run.duration / 100, 1);
	const zoom = (from: number, to: number) => {
		timeline?.showAround(from, to);
		timeline?.element.scrollIntoView({ block: 'start' });
	};
	const cards = iterationCards(run, zoom, show);
	const parts: (HTMLElement | null)[] = [
		header(run, alone),
		run.notice ? make('p', 'notice', run.notice) : null,
		run.verdict ? verdictCard(run.verdict) : null,
		run.tiles.length > 0 ? tiles(run.tiles) : null,
		timeline ? timeline.element : null,
		run.job ? jobCard(run.job) : null,
		run.iterations ? cards.element : null,
		run.cpu_time ? cpuTimeCard(run.cpu_time) : null,
		ownTable(run),
		epochTable(run, (row) => show(row.start, row.end ?? run.duration)),
		eventCard(run, (t) => show(t - around, t + around)),
		processTable(run),
		summaryTable(run),
		footer(run),
	];
	const element = make('article', '', ...parts);
	element.setAttribute('aria-label', run.name);
	return {
		element,
		repaint: () => {
			timeline?.repaint();
			cards.repaint();
		},
	};
}

/** Several runs: one at a time; each is laid out when it is first selected. */
function tabs(runs: Run[], choose: (index: number) => void): HTMLElement {
	const list = make('div', 'tabs');
	list.setAttribute('role', 'tablist');
	list.setAttribute('aria-label', 'Runs');
	const items = runs.map((run, index) => {
		const tab = button('tab', run.name, () => select(index));
		tab.setAttribute('role', 'tab');
		return tab;
	});
	const select = (index: number) => {
		items.forEach((tab, i) => {
			tab.setAttribute('aria-selected', String(i === index));
			tab.tabIndex = i === index ? 0 : -1;
		});
		choose(index);
	};
	list.addEventListener('keydown', (event) => {
		const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		const now = items.findIndex((tab) => tab.getAttribute('aria-selected') === 'true');
		const next = step === undefined ? undefined : items[(now + step + items.length) % items.length];
		next?.click();
		next?.focus();
	});
	list.append(...items);
	select(0);
	return list;
}

function start(): void {
	const data = document.getElementById('data')?.textContent ?? '';
	const report = JSON.parse(data) as Report;
	const main = document.querySelector('main')!;
	const views = new Map<number, View>();
	const stage = make('div', 'stage');
	const top = make('div', 'top', make('b', 'brand', 'strain'));
	const alone = report.runs.length === 1;
	const choose = (index: number) => {
		const run = report.runs[index]!;
		const chosen = views.get(index) ?? view(run, alone);
		views.set(index, chosen);
		stage.replaceChildren(chosen.element);
		document.title = `${run.name} – strain`;
		chosen.repaint();
	};
	if (alone) {
		top.append(make('h1', 'name', report.runs[0]!.name));
		choose(0);
	} else {
		top.append(tabs(report.runs, choose));
	}
	top.append(themeButton(() => views.forEach((v) => v.repaint())));
	main.append(top, stage, make('p', 'made', `Generated by ${report.generator}.`));
	requestAnimationFrame(() => requestAnimationFrame(() => performance.mark('strain-ready')));
}

start();
