// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Light or dark: the system's setting, or the reader's choice with the button.

import { button, HUES } from './dom';

export interface Palette {
	hues: string[];
	fills: string[];
	line: string;
	band: string;
	soft: string;
	limit: string;
	mark: string;
}

/** Canvas cannot use custom properties, so the colours are read whenever the theme changes. */
export function readPalette(): Palette {
	const style = getComputedStyle(document.documentElement);
	const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
	const hues = Array.from({ length: HUES }, (_, i) => colour(`hue-${i}`));
	return {
		hues,
		fills: hues.map((hue) => `${hue}${colour('fill-alpha')}`),
		line: colour('line'),
		band: colour('band'),
		soft: colour('soft'),
		limit: colour('limit'),
		mark: colour('accent'),
	};
}

const dark = matchMedia('(prefers-color-scheme: dark)');
const KEY = 'strain-theme';

function remembered(): string | null {
	try {
		return localStorage.getItem(KEY);
	} catch {
		return null; // pages opened from a file may not be allowed to store anything
	}
}

function remember(theme: string): void {
	try {
		localStorage.setItem(KEY, theme);
	} catch {
		// as above
	}
}

function current(): string {
	return document.documentElement.dataset['theme'] ?? (dark.matches ? 'dark' : 'light');
}

/** The button. `changed` is called after every change, also of the system's setting. */
export function themeButton(changed: () => void): HTMLButtonElement {
	const chosen = remembered();
	if (chosen === 'light' || chosen === 'dark') {
		document.documentElement.dataset['theme'] = chosen;
	}
	const label = () => (current() === 'dark' ? 'Light' : 'Dark');
	const toggle = button('quiet', label(), () => {
		const next = current() === 'dark' ? 'light' : 'dark';
		document.documentElement.dataset['theme'] = next;
		remember(next);
		toggle.textContent = label();
		changed();
	});
	toggle.title = 'Change between light and dark';
	dark.addEventListener('change', () => {
		toggle.textContent = label();
		changed();
	});
	return toggle;
}
