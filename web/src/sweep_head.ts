// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The head of a sweep's page: what ran, what is best and by how much, and the outcomes of trials.

import { button, make } from './dom';
import { digits } from './format';
import { TEST_NAME } from './statistics';
import { againstBaseline, againstOne, againstPhrase, grouped, type Compared } from './sweep_compare';
import type { MeasureColumn } from './sweep_contract';
import { outcomeOf, OUTCOME_NAMES, type Configuration, type Model, type Trial } from './sweep_model';
import { amount, chooser, estimateText, outcomeBadge, plural, type Card, type View } from './sweep_view';

const RANKED = 4;

/** "21 Nov 2026, 21:10 to 22:45 UTC" */
function when(started: (number | null)[], durations: (number | null)[]): string | null {
	let first = Infinity;
	let last = -Infinity;
	started.forEach((start, i) => {
		if (start !== null) {
			first = Math.min(first, start);
			last = Math.max(last, start + (durations[i] ?? 0));
		}
	});
	if (!Number.isFinite(first)) {
		return null;
	}
	const [from, to] = [first, last].map((t) => new Date(t * 1000)) as [Date, Date];
	const day = (date: Date) =>
		date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });
	const time = (date: Date) =>
		date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', timeZone: 'UTC' });
	const end = day(from) === day(to) ? time(to) : `${day(to)}, ${time(to)}`;
	return `${day(from)}, ${time(from)}${end === time(from) ? '' : ` to ${end}`} UTC`;
}

export function header(model: Model): HTMLElement {
	const { sweep, trials, configurations } = model;
	const command = sweep.command ?? commonCommand(model);
	const code = command === null ? null : make('code', 'command', command);
	if (code && command) {
		code.title = command;
	}
	const many = configurations.length < trials.length;
	const chips = [
		plural(trials.length, 'trial'),
		many ? plural(configurations.length, 'configuration') : null,
		machines(model),
		when(sweep.runs.started, sweep.runs.durations),
	];
	return make('header', '', code, ...chips.filter((chip) => chip !== null).map((chip) => make('span', 'chip', chip!)));
}

/** The common part of all commands, with a sign where they differ. */
function commonCommand(model: Model): string | null {
	const commands = [...new Set(model.sweep.runs.commands)].map((index) => (model.string(index) ?? '').split(' '));
	const first = commands[0];
	if (!first || commands.some((words) => words.length !== first.length || words[0] !== first[0])) {
		return null;
	}
	return first.map((word, i) => (commands.every((words) => words[i] === word) ? word : '…')).join(' ');
}

function machines(model: Model): string | null {
	const names = model.sweep.machines;
	return names.length === 0 ? null : names.length > 2 ? plural(names.length, 'machine') : names.join(', ');
}

interface Ranked {
	configuration: Configuration;
	trials: Trial[];
	mean: number;
}

/** The best first; only those with a value. */
function rank(view: View, measure: MeasureColumn): Ranked[] {
	const ranked: Ranked[] = [];
	grouped(view.visible).forEach((trials, configuration) => {
		const figure = view.model.figure(trials, measure);
		if (figure) {
			ranked.push({ configuration, trials, mean: figure.mean });
		}
	});
	return ranked.sort((a, b) => (b.mean - a.mean) * measure.better);
}

function noiseText(beyond: boolean | null): string {
	return beyond === null
		? 'single runs: significance is not known'
		: beyond
			? `significant (${TEST_NAME})`
			: `within noise (${TEST_NAME})`;
}

export class HeadCard implements Card {
	readonly element: HTMLElement;
	private readonly best = make('div', 'best');
	private readonly outcomes = make('ul', 'counts');
	private readonly choice;

	constructor(private readonly view: View) {
		const judged = view.model.measures.filter((measure) => measure.better !== 0).map((measure) => measure.name);
		this.choice = chooser('by', judged, null, (by) => view.change({ by }));
		const heading = make('div', 'heading', make('h2', '', 'Best'), judged.length > 0 ? this.choice.element : null);
		const ended = make('div', 'ended', make('h2', '', 'How trials ended'), this.outcomes);
		this.element = make('section', 'card verdict', make('div', '', heading, this.best), ended);
		this.element.setAttribute('aria-label', 'Best, and how trials ended');
		this.countOutcomes();
		this.update();
	}

	update(): void {
		const { by } = this.view;
		this.choice.show(by?.name ?? null);
		this.best.replaceChildren(...(by ? this.bestBy(by) : [make('p', 'headline', this.noBest())]));
		const chosen = this.view.state.outcomes;
		for (const item of this.outcomes.querySelectorAll('button')) {
			item.setAttribute('aria-pressed', String(chosen.includes(item.dataset['outcome']!)));
		}
	}

	private noBest(): string {
		const { visible, model } = this.view;
		const all = visible.length === model.trials.length;
		if (visible.length === 0) {
			return 'No trial is shown';
		}
		return visible.some((trial) => trial.good) ? 'No measure to rank by' : all ? 'No trial succeeded' : 'None of the shown trials succeeded';
	}

	private bestBy(measure: MeasureColumn): HTMLElement[] {
		const ranked = rank(this.view, measure);
		const first = ranked[0];
		if (!first) {
			const words = this.view.visible.some((trial) => trial.good) ? 'None of the shown trials has this measure' : this.noBest();
			return [make('p', 'headline', words)];
		}
		const { model } = this.view;
		const figure = model.figure(first.trials, measure)!;
		const headline = make('p', 'headline', model.describe(first.trials[0]!));
		const value = make('b', '', estimateText(measure.unit, figure));
		const interval = figure.half === null ? '' : ', 95 % interval';
		const of = figure.n < first.trials.length ? ` of ${first.trials.length}` : '';
		const runs = `${figure.n}${of} ${first.trials.length === 1 ? 'run' : 'runs'}${interval}`;
		const says = make('p', 'why', `${measure.name} `, value, ` (${runs}). `, this.againstBaseline(first, measure));
		return [headline, says, ...this.others(ranked, measure)];
	}

	private againstBaseline(best: Ranked, measure: MeasureColumn): string {
		const { model } = this.view;
		if (model.sweep.baseline.length === 0) {
			return '';
		}
		const words = model.sweep.baseline.map(([name, value]) => `${name} ${value}`).join(', ');
		const base = model.baselineOf(best.configuration);
		if (base === best.configuration) {
			return `It is the baseline (${words}).`;
		}
		const found = againstBaseline(model, this.view.visible, measure).get(best.configuration);
		if (!found) {
			return `The baseline (${words}) has no value to compare.`;
		}
		return `${againstPhrase(measure, found.against)} the baseline (${words}), ${noiseText(found.beyondNoise)}.`;
	}

	private others(ranked: Ranked[], measure: MeasureColumn): HTMLElement[] {
		const first = ranked[0]!;
		const next = ranked.slice(1, RANKED);
		const compared = againstOne(this.view.model, first.trials, next.map((other) => other.trials), measure);
		const items = next.map((other) => this.other(other, compared.get(other.configuration), measure));
		if (items.length === 0) {
			return [];
		}
		const left = ranked.length - 1 - items.length;
		const rest = left > 0 ? [make('p', 'soft', `${plural(left, 'more configuration')} in the table below.`)] : [];
		return [make('ol', 'try ranks', ...items), ...rest];
	}

	private other(other: Ranked, found: Compared | undefined, measure: MeasureColumn): HTMLElement {
		const { model } = this.view;
		const noise = found?.beyondNoise === false ? 'within noise of the best' : null;
		const ratio = found ? `${againstPhrase(measure, found.against)} the best` : null;
		const text = [ratio, noise].filter((word) => word !== null).join(', ');
		const open = button('link', model.describe(other.trials[0]!), () => this.view.open(other.trials[0]!));
		return make('li', '', make('span', 'gain', amount(measure.unit, other.mean)), make('span', '', open, make('small', '', text)));
	}

	private countOutcomes(): void {
		const { trials } = this.view.model;
		const names = [...new Set([...OUTCOME_NAMES, ...trials.map((trial) => trial.outcome)])];
		for (const name of names) {
			const count = trials.filter((trial) => trial.outcome === name).length;
			if (count === 0) {
				continue;
			}
			const press = button('count', '', () => this.toggle(name));
			const bar = make('i', `bar ${outcomeOf(name).tone}`);
			bar.style.width = `${(100 * count) / trials.length}%`;
			press.append(outcomeBadge(name), make('span', 'track', bar), make('b', '', digits(count)));
			press.dataset['outcome'] = name;
			press.title = `Show only these (${outcomeOf(name).word})`;
			this.outcomes.append(make('li', '', press));
		}
	}

	private toggle(name: string): void {
		const { outcomes } = this.view.state;
		const next = outcomes.includes(name) ? outcomes.filter((one) => one !== name) : [...outcomes, name];
		this.view.change({ outcomes: next, page: 1 });
	}
}
