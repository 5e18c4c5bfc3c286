// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Shared by the cards of a sweep's page: the model, the state, the filtered trials, small elements.

import { make } from './dom';
import { digits, quantity, scaleFor, withInterval } from './format';
import type { MeasureColumn } from './sweep_contract';
import type { Estimate } from './statistics';
import { outcomeOf, type Label, type Model, type Trial } from './sweep_model';
import type { State } from './sweep_state';

export interface View {
	readonly model: Model;
	readonly state: State;
	/** The trials that pass the filters. */
	readonly visible: Trial[];
	/** The measure for the comparison of trials. */
	readonly by: MeasureColumn | null;
	/** Changes the state; `quietly` adds no entry to the history. */
	change(next: Partial<State>, quietly?: boolean): void;
	/** Opens a run. */
	open(trial: Trial): void;
	/** For trials of one configuration, opens the first successful one; for several, filters by these. */
	pick(trials: Trial[], told: Label[]): void;
}

export interface Card {
	readonly element: HTMLElement;
	/** After a change of the state. */
	update(): void;
	/** After a change of theme. */
	repaint?(): void;
}

/** The value of a measure. Counts need not be integers here: they may be means, or per second. */
export function amount(unit: string, value: number): string {
	return unit.startsWith('{') && unit !== '{cpu}' ? digits(value) : quantity(unit, value);
}

/** "41.2 s", or "41.20 ± 0.60 s" with an interval. */
export function estimateText(unit: string, figure: Estimate): string {
	if (figure.half === null) {
		return amount(unit, figure.mean);
	}
	const scale = scaleFor(unit, figure.mean);
	const [mean, half] = withInterval(figure.mean / scale.factor, figure.half / scale.factor);
	return `${mean} ± ${half}${scale.name ? ` ${scale.name}` : ''}`;
}

export function outcomeBadge(name: string, count?: string): HTMLElement {
	const { word, sign, tone } = outcomeOf(name);
	const shape = make('span', 'sign', sign);
	shape.setAttribute('aria-hidden', 'true');
	return make('span', `outcome ${tone}`, shape, count ? `${count} ${word}` : word);
}

/** A selection of names; "" is none. */
export function chooser(
	title: string,
	names: string[],
	none: string | null,
	choose: (name: string) => void,
): { element: HTMLElement; show: (name: string | null) => void } {
	const select = make('select', '');
	const options = names.map((name) => option(name, name));
	select.append(...(none === null ? [] : [option('', none)]), ...options);
	select.addEventListener('change', () => choose(select.value));
	return {
		element: make('label', 'choice', make('span', '', title), select),
		show: (name) => {
			select.value = name ?? '';
		},
	};
}

function option(value: string, text: string): HTMLOptionElement {
	const element = make('option', '', text.length > 60 ? `${text.slice(0, 59)}…` : text);
	element.value = value;
	return element;
}

export function plural(count: number, one: string, many = `${one}s`): string {
	return `${digits(count)} ${count === 1 ? one : many}`;
}

/** The value of a label, possibly cut, with the full text in the tooltip. */
export function cut(text: string, most = 40): HTMLElement {
	const element = make('span', 'cut', text.length > 400 ? `${text.slice(0, 400)}…` : text);
	if (text.length > most) {
		element.title = text.length > 4000 ? `${text.slice(0, 4000)}…` : text;
	}
	return element;
}
