// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A Chromium that talks to nobody, and what the tests of the page ask of it.

import { createRequire } from 'node:module';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const FLAGS = [
	'--disable-gpu',
	'--disable-quic',
	'--no-first-run',
	'--disable-background-networking',
	'--disable-component-update',
	'--disable-sync',
];

/** A browser with a profile of its own; close() removes it. */
export async function openBrowser(modules, executable) {
	const { chromium } = createRequire(resolve(modules, 'package.json'))('playwright-core');
	const profile = mkdtempSync(join(tmpdir(), 'strain-browser-'));
	const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
	const context = await chromium.launchPersistentContext(profile, {
		executablePath: executable,
		headless: true,
		args: [...FLAGS, ...root],
		viewport: { width: 1240, height: 900 },
	});
	return {
		context,
		close: async () => {
			await context.close();
			rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
		},
	};
}

/**
 * Opens a report in a page of its own. `troubles` gathers what must not happen: errors, dialogs,
 * requests other than for the file itself.
 */
export async function openReport(browser, file) {
	const page = await browser.context.newPage();
	const url = pathToFileURL(file).href;
	const troubles = [];
	page.on('console', (message) => {
		// What readPanels below does is slow, and Chromium says so.
		if (!message.text().includes('willReadFrequently')) {
			troubles.push(`console: ${message.text()}`);
		}
	});
	page.on('pageerror', (error) => troubles.push(`error: ${error.message}`));
	page.on('dialog', (dialog) => {
		troubles.push(`dialog: ${dialog.message()}`);
		void dialog.dismiss();
	});
	page.on('request', (request) => {
		if (request.url() !== url) {
			troubles.push(`request: ${request.url()}`);
		}
	});
	await page.goto(url);
	await page.waitForFunction(() => performance.getEntriesByName('strain-ready').length > 0);
	return { page, troubles };
}

/** Milliseconds from the start of loading until the page had drawn itself. */
export function readyTime(page) {
	return page.evaluate(() => performance.getEntriesByName('strain-ready')[0].startTime);
}

/**
 * For each panel its title, a fingerprint of what is drawn, and how many dots have the colour of a
 * series of it.
 */
export function readPanels(page) {
	return page.evaluate(() =>
		[...document.querySelectorAll('.panel')].map((panel) => {
			const canvas = panel.querySelector('canvas');
			const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
			const colours = [...panel.querySelectorAll('.label .key')].map((key) =>
				getComputedStyle(key).backgroundColor.match(/\d+/g).map(Number),
			);
			// Lines are drawn with soft edges: nearly the colour is the colour.
			const near = (...dot) => colours.some((c) => dot.every((v, i) => Math.abs(v - c[i]) < 40));
			let drawn = 0;
			let print = 0;
			for (let i = 0; i < data.length; i += 4) {
				const [red, green, blue, alpha] = data.subarray(i, i + 4);
				drawn += alpha > 160 && near(red, green, blue) ? 1 : 0;
				print = (print * 31 + red + 3 * green + 7 * blue + alpha) | 0;
			}
			return { title: panel.querySelector('.title').textContent, drawn, print };
		}),
	);
}

/** The window of time that is shown, in seconds. */
export async function readWindow(page) {
	const text = await page.locator('.timeline').getAttribute('data-window');
	return text.split(' ').map(Number);
}

/** The next frame has been drawn. */
export function settle(page) {
	return page.evaluate(
		() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))),
	);
}

/** A place on the sheet over all panels, as shares of its width and height. */
export async function sheetPoint(page, x, y) {
	const box = await page.locator('.sheet').boundingBox();
	return [box.x + box.width * x, box.y + box.height * y];
}

/** Presses at one share of the width and releases at another. */
export async function drag(page, from, to) {
	const [x, y] = await sheetPoint(page, from, 0.05);
	const [end] = await sheetPoint(page, to, 0.05);
	await page.mouse.move(x, y);
	await page.mouse.down();
	await page.mouse.move((x + end) / 2, y, { steps: 3 });
	await page.mouse.move(end, y, { steps: 3 });
	await page.mouse.up();
	await settle(page);
}
