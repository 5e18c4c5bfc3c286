// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The reader's choices, kept in the fragment of the address, so that links and the back button
// work.

export interface State {
	/** A row per trial instead of one per configuration. */
	trials: boolean;
	/** Name of a column, preceded by '-' for descending order. */
	sort: string | null;
	/** Visible columns; null: the default ones. */
	columns: string[] | null;
	filters: Map<string, string[]>;
	outcomes: string[];
	text: string;
	page: number;
	/** The measure for the comparison of trials. */
	by: string | null;
	/** Axes of the curves. */
	x: string | null;
	y: string | null;
	series: string | null;
	facet: string | null;
	logX: boolean | null;
	logY: boolean | null;
	/** Axes of the heat map. */
	rows: string | null;
	across: string | null;
	cell: string | null;
	/** The opened run. */
	run: string | null;
}

const FILTER = 'f.';

const list = (values: string[]) => values.map(encodeURIComponent).join(',');
const unlist = (text: string | null) => (text ? text.split(',').map(decode) : []);

function decode(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text; // a truncated link: unchanged
	}
}

const flag = (value: string | null) => (value === null ? null : value === '1');
const mark = (value: boolean | null) => (value === null ? null : value ? '1' : '0');

export function read(fragment: string): State {
	const found = new URLSearchParams(fragment.replace(/^#/, ''));
	const filters = new Map<string, string[]>();
	found.forEach((value, name) => {
		if (name.startsWith(FILTER)) {
			filters.set(name.slice(FILTER.length), unlist(value));
		}
	});
	const columns = found.get('columns');
	const page = parseInt(found.get('page') ?? '1', 10);
	return {
		trials: found.get('trials') === '1',
		sort: found.get('sort'),
		columns: columns === null ? null : unlist(columns),
		filters,
		outcomes: unlist(found.get('outcome')),
		text: found.get('text') ?? '',
		page: page > 0 ? page : 1,
		by: found.get('by'),
		x: found.get('x'),
		y: found.get('y'),
		series: found.get('series'),
		facet: found.get('facet'),
		logX: flag(found.get('logx')),
		logY: flag(found.get('logy')),
		rows: found.get('rows'),
		across: found.get('across'),
		cell: found.get('cell'),
		run: found.get('run'),
	};
}

export function write(state: State): string {
	const texts: [string, string | null][] = [
		['trials', state.trials ? '1' : null],
		['sort', state.sort],
		['columns', state.columns === null ? null : list(state.columns)],
		...[...state.filters].map(([name, values]): [string, string] => [FILTER + name, list(values)]),
		['outcome', list(state.outcomes) || null],
		['text', state.text || null],
		['page', state.page > 1 ? String(state.page) : null],
		['by', state.by],
		['x', state.x],
		['y', state.y],
		['series', state.series],
		['facet', state.facet],
		['logx', mark(state.logX)],
		['logy', mark(state.logY)],
		['rows', state.rows],
		['across', state.across],
		['cell', state.cell],
		['run', state.run],
	];
	const kept = texts.filter((pair): pair is [string, string] => pair[1] !== null);
	return kept.length > 0 ? `#${new URLSearchParams(kept).toString()}` : '';
}

/** Without the parts on which curves and heat map do not depend. */
export function besideTable(state: State): State {
	return { ...state, trials: false, sort: null, columns: null, page: 1, run: null };
}

/** Without the parts on which the table does not depend. */
export function besideCharts(state: State): State {
	return { ...state, x: null, y: null, series: null, facet: null, logX: null, logY: null, rows: null, across: null, cell: null, run: null };
}
