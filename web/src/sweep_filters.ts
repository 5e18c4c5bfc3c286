// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Filters of trials: values of labels, outcomes, text. All cards below use them.

import { button, make } from './dom';
import { type Label, type Model, type Trial } from './sweep_model';
import type { State } from './sweep_state';
import { cut, plural, type Card, type View } from './sweep_view';

/** Labels that are shown initially, and values of each; the rest can be opened. */
const LABELS = 8;
const VALUES = 14;

/** The trials that pass the filters. */
export function visibleTrials(model: Model, state: State): Trial[] {
	const words = state.text.toLowerCase().split(/\s+/).filter((word) => word !== '');
	const filters = [...state.filters]
		.map(([name, values]) => ({ label: model.findLabel(name), values: new Set(values) }))
		.filter((filter): filter is { label: Label; values: Set<string> } => filter.label !== null);
	return model.trials.filter(
		(trial) =>
			(state.outcomes.length === 0 || state.outcomes.includes(trial.outcome)) &&
			filters.every(({ label, values }) => values.has(label.values[trial.index] ?? '')) &&
			words.every((word) => trial.searched.includes(word)),
	);
}

export class FilterCard implements Card {
	readonly element: HTMLElement;
	private readonly search = make('input', '');
	private readonly status = make('span', 'status');
	private readonly clear = button('quiet', 'Show all', () =>
		this.view.change({ filters: new Map(), outcomes: [], text: '', page: 1 }),
	);
	private readonly presses: { label: string; value: string; press: HTMLButtonElement }[] = [];

	constructor(private readonly view: View) {
		this.search.type = 'search';
		this.search.placeholder = 'Search labels, outcomes, names';
		this.search.setAttribute('aria-label', 'Show only trials that contain this text');
		this.search.addEventListener('input', () => view.change({ text: this.search.value, page: 1 }, true));
		this.status.setAttribute('aria-live', 'polite');
		const heading = make('div', 'heading', make('h2', '', 'Shown'), this.status, this.clear, this.search);
		const { varying } = view.model;
		const rows = varying.slice(0, LABELS).map((label) => this.row(label));
		this.element = make('section', 'card filters', heading, make('div', 'filter-rows', ...rows.flat()), this.rest(varying.slice(LABELS)));
		this.element.setAttribute('aria-label', 'Filters');
		this.update();
	}

	update(): void {
		const { state, visible, model } = this.view;
		if (this.search.value !== state.text) {
			this.search.value = state.text;
		}
		const all = model.trials.length;
		this.status.textContent = visible.length === all ? `all ${plural(all, 'trial')}` : `${visible.length} of ${plural(all, 'trial')}`;
		const unfiltered = state.filters.size === 0 && state.outcomes.length === 0 && state.text === '';
		this.clear.hidden = unfiltered;
		this.element.classList.toggle('nothing', unfiltered);
		for (const { label, value, press } of this.presses) {
			press.setAttribute('aria-pressed', String(state.filters.get(label)?.includes(value) ?? false));
		}
	}

	private row(label: Label): HTMLElement[] {
		const few = label.distinct.slice(0, VALUES).map((value) => this.value(label, value));
		const values = make('div', 'values', ...few);
		values.setAttribute('role', 'group');
		values.setAttribute('aria-label', label.name);
		const left = label.distinct.slice(VALUES, 300);
		if (left.length > 0) {
			const more = button('quiet', `${label.distinct.length - VALUES} more`, () => {
				more.replaceWith(...left.map((value) => this.value(label, value)));
				this.update();
			});
			values.append(more);
		}
		return [make('span', 'label-name', cut(label.name, 24)), values];
	}

	/** With very many labels, the rest is built on demand. */
	private rest(labels: Label[]): HTMLElement | null {
		if (labels.length === 0) {
			return null;
		}
		const details = make('details', '', make('summary', '', plural(labels.length, 'more label')));
		const fill = () => {
			details.append(make('div', 'filter-rows', ...labels.flatMap((label) => this.row(label))));
			this.update();
		};
		details.addEventListener('toggle', fill, { once: true });
		return details;
	}

	private value(label: Label, value: string): HTMLElement {
		const press = button('value', '', () => this.toggle(label.name, value));
		press.append(cut(value === '' ? '(empty)' : value, 24));
		this.presses.push({ label: label.name, value, press });
		return press;
	}

	private toggle(name: string, value: string): void {
		const filters = new Map(this.view.state.filters);
		const chosen = filters.get(name) ?? [];
		const next = chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value];
		filters.set(name, next);
		if (next.length === 0) {
			filters.delete(name);
		}
		this.view.change({ filters, page: 1 });
	}
}
