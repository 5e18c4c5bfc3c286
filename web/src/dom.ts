// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Creates elements: every string becomes a text node or an attribute that cannot execute. This
// program never uses innerHTML, so text from a job stays text.

type Child = Node | string | null;

/** Creates an element with a class (may be empty) and children. */
export function make<K extends keyof HTMLElementTagNameMap>(
	tag: K,
	className: string,
	...children: Child[]
): HTMLElementTagNameMap[K] {
	const element = document.createElement(tag);
	if (className) {
		element.className = className;
	}
	element.append(...children.filter((child): child is Node | string => child !== null));
	return element;
}

/** Prose in which no option, such as --memory, is broken after a hyphen. */
export function prose(text: string): Child[] {
	return text
		.split(/(--[a-z][a-z-]*)/)
		.map((part) => (part.startsWith('--') ? make('span', 'option', part) : part));
}

/** A card with its heading, which names the region. */
export function card(title: string, className: string, ...children: Child[]): HTMLElement {
	const heading = make('h2', '', title);
	const section = make('section', `card ${className}`.trim(), heading, ...children);
	section.setAttribute('aria-label', title);
	return section;
}

export function button(className: string, label: string, press: () => void): HTMLButtonElement {
	const element = make('button', className, label);
	element.type = 'button';
	element.addEventListener('click', press);
	return element;
}

/** The coloured square of a series; the palette has colours for light and dark. */
export function key(hue: number): HTMLElement {
	const square = make('span', 'key');
	square.style.background = `var(--hue-${hue % HUES})`;
	square.setAttribute('aria-hidden', 'true');
	return square;
}

/** Number of colours in the palette of report.css. */
export const HUES = 10;
