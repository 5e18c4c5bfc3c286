// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The page of a sweep: reads the data that strain wrote into it, lays out its cards, and keeps the
// reader's choices in the address, so that links and the back button work.

import { card, make } from './dom';
import { CurveCard } from './sweep_curves';
import type { MeasureColumn, Sweep } from './sweep_contract';
import { FilterCard, visibleTrials } from './sweep_filters';
import { HeadCard, header } from './sweep_head';
import { HeatCard } from './sweep_heat';
import { Model, type Label, type Trial } from './sweep_model';
import { RunPanel } from './sweep_run';
import { read, write, type State } from './sweep_state';
import { TableCard } from './sweep_table';
import { plural, type Card, type View } from './sweep_view';
import { themeButton } from './theme';

/** Default measures for the comparison of trials, in this order. */
const USUAL = ['epoch_seconds', 'training_seconds', 'step_seconds', 'duration_seconds'];

class Page implements View {
	readonly model: Model;
	state: State;
	visible: Trial[];
	by: MeasureColumn | null = null;
	private cards: Card[] = [];

	constructor(private readonly sweep: Sweep) {
		this.model = new Model(sweep);
		this.state = read(location.hash);
		this.visible = [];
		this.follow();
	}

	build(main: Element): void {
		const { model, sweep } = this;
		const top = make('div', 'top', make('b', 'brand', 'strain'), make('h1', 'name', sweep.name));
		top.append(themeButton(() => this.cards.forEach((one) => one.repaint?.())));
		main.append(top, header(model), ...this.notices(), ...this.advice());
		const panel = new RunPanel(this);
		this.cards = model.trials.length > 0
			? [...(sweep.advice === null ? [new HeadCard(this)] : []), new FilterCard(this), new TableCard(this), new CurveCard(this), new HeatCard(this), panel]
			: [];
		main.append(...this.cards.map((one) => one.element), ...this.foot(), make('p', 'made', `Made by ${sweep.generator}.`));
		panel.update();
		addEventListener('popstate', () => this.readAddress());
	}

	change(next: Partial<State>, quietly = false): void {
		const before = write(this.state);
		this.state = { ...this.state, ...next };
		const after = write(this.state);
		if (after === before) {
			return;
		}
		const address = after || location.pathname + location.search;
		quietly ? history.replaceState(null, '', address) : history.pushState(null, '', address);
		this.update();
	}

	open(trial: Trial): void {
		this.change({ run: trial.name });
	}

	pick(trials: Trial[], told: Label[]): void {
		const first = trials.find((trial) => trial.good) ?? trials[0]!;
		if (trials.every((trial) => trial.configuration === first.configuration)) {
			this.open(first);
			return;
		}
		const filters = new Map(this.state.filters);
		for (const label of told) {
			const values = new Set(trials.map((trial) => label.values[trial.index] ?? ''));
			filters.set(label.name, [...values]);
		}
		this.change({ filters, page: 1 });
		document.querySelector('.matrix-card')?.scrollIntoView({ block: 'nearest' });
	}

	private readAddress(): void {
		this.state = read(location.hash);
		this.update();
	}

	private update(): void {
		this.follow();
		this.cards.forEach((one) => one.update());
	}

	/** Applies the state. */
	private follow(): void {
		this.visible = visibleTrials(this.model, this.state);
		const judged = this.model.measures.filter((measure) => measure.better !== 0);
		const named = (name: string | null) => judged.find((measure) => measure.name === name);
		const usual = USUAL.map(named).find((measure) => measure !== undefined);
		this.by = named(this.state.by) ?? named(this.sweep.measure) ?? usual ?? judged[0] ?? null;
	}

	private notices(): HTMLElement[] {
		const { unreadable, labels_left_out: left } = this.sweep;
		const labels = left > 0 ? [make('p', 'notice', `${plural(left, 'value')} of labels found no room on this page.`)] : [];
		const live = this.model.trials.filter((trial) => trial.outcome === 'live').length;
		const recorded = live > 0 ? [make('p', 'notice', `${plural(live, 'run')} still being recorded when the page was made.`)] : [];
		const [ran, planned] = [this.model.trials.length, this.sweep.planned];
		const short = ran < planned ? [make('p', 'notice', `Not complete: ${ran} of ${plural(planned, 'planned trial')} ran.`)] : [];
		return [...this.unreadable(unreadable), ...short, ...labels, ...recorded];
	}

	private unreadable(unreadable: [string, string][]): HTMLElement[] {
		const empty = this.model.trials.length === 0 ? [make('p', 'notice', 'There is no run here yet.')] : [];
		if (unreadable.length === 0) {
			return empty;
		}
		const items = unreadable.slice(0, 100).map(([name, reason]) => make('li', '', make('code', '', name), `: ${reason}`));
		const words = unreadable.length === 1 ? 'One file could not be read:' : `${unreadable.length} files could not be read:`;
		return [...empty, make('div', 'notice', words, make('ul', '', ...items))];
	}

	/** The answer of `strain advise`, as it was printed: its columns need their blanks. */
	private advice(): HTMLElement[] {
		if (this.sweep.advice === null) {
			return [];
		}
		const text = make('pre', 'output columns', this.sweep.advice);
		text.tabIndex = 0;
		text.setAttribute('aria-label', 'What strain advise printed');
		return [card('Advice', 'advice', text)];
	}

	private foot(): HTMLElement[] {
		const cards: HTMLElement[] = [];
		if (this.model.measures.length > 0) {
			const items = this.model.measures.flatMap((measure) => [make('dt', '', measure.name), make('dd', '', measure.help)]);
			cards.push(card('Measures', 'meanings', make('details', '', make('summary', '', 'What each measure is'), make('dl', 'evidence', ...items))));
		}
		if (this.sweep.plan) {
			const text = make('pre', 'output', this.sweep.plan);
			text.tabIndex = 0;
			cards.push(card('Plan', 'plan', make('details', '', make('summary', '', 'The plan as it was started'), text)));
		}
		return cards;
	}
}

function start(): void {
	const data = document.getElementById('data')?.textContent ?? '';
	const sweep = JSON.parse(data) as Sweep;
	document.title = `${sweep.name} – strain`;
	new Page(sweep).build(document.querySelector('main')!);
	requestAnimationFrame(() => requestAnimationFrame(() => performance.mark('strain-ready')));
}

start();
