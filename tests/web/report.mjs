// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The report in a real browser: node report.mjs STRAIN MAKE_RUN MODULES CHROMIUM OUTPUT. Leaves
// pictures of what it saw in OUTPUT. Times are printed, never judged.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test, before, after } from 'node:test';

import {
	drag,
	openBrowser,
	openReport,
	readPanels,
	readWindow,
	readyTime,
	settle,
	sheetPoint,
} from './browser.mjs';

const [strain, makeRun, modules, chromium, output] = process.argv.slice(2);
const MOST_BYTES = 5e6;
const SECONDS = 120;

const at = (name) => join(output, name);
let browser;

function report(name, ...runs) {
	execFileSync(strain, ['report', ...runs.map(at), '-o', at(name)], { stdio: ['ignore', 'inherit', 'pipe'] });
	return at(name);
}

/** Puts markup wherever a job could have put it. */
function makeHostile(run) {
	const markup = `<img src=x onerror=alert(1)></script><script>alert(2)</script>&amp;\u2028'"--><b>`;
	const text = markup.replace(/'/g, "''");
	const sql = [
		`UPDATE label SET value = '${text}' WHERE name = 'workers'`,
		`INSERT INTO label VALUES ('${text}', '1')`,
		`UPDATE run SET value = '["${markup.replace(/["\u2028]/g, '').replace(/'/g, "''")}"]' WHERE key = 'command'`,
		`UPDATE run SET value = '${text}' WHERE key IN ('hostname', 'kernel', 'version')`,
		`INSERT INTO run VALUES ('hooks', '${text.replace(/[:;]/g, '')}: data')`,
		`UPDATE event SET text = '${text}', kind = '${text}'`,
		`UPDATE entity SET name = '${text}' WHERE kind IN ('process', 'gpu', 'disk')`,
		`UPDATE metric SET help = '${text}'`,
		`UPDATE missing SET reason = '${text}'`,
		`UPDATE span SET name = '${text}' WHERE name IN ('forward', 'iteration')`,
	];
	execFileSync('sqlite3', [at(run), sql.join(';')]);
}

before(async () => {
	rmSync(output, { recursive: true, force: true });
	mkdirSync(output, { recursive: true });
	execFileSync(makeRun, [at('run.strain'), String(SECONDS)]);
	execFileSync(makeRun, [at('marked.strain'), '60', '10ms', '0', '900', '2']);
	report('marked.html', 'marked.strain');
	report('report.html', 'run.strain');
	browser = await openBrowser(modules, chromium);
});

after(() => browser?.close());

async function inReport(file, look) {
	const { page, troubles } = await openReport(browser, file);
	await look(page);
	assert.deepEqual(troubles, []);
	await page.close();
}

/** The header's facts: what is before each, and what is said. */
async function readAbout(page) {
	return Object.fromEntries(
		await page
			.locator('header .about div')
			.evaluateAll((rows) => rows.map((row) => [row.querySelector('dt').textContent, row.querySelector('dd').textContent])),
	);
}

test('the header says when and where it ran, for how long, how it ended and with which versions', async () => {
	execFileSync('cp', [at('run.strain'), at('about.strain')]);
	const sql = `INSERT INTO run VALUES ('hooks', 'pytorch 1.13.0: data, backward; jax 0.4.30: step');
		UPDATE entity SET name = 'python3.11' WHERE kind = 'process' AND id = (SELECT min(id) FROM entity WHERE kind = 'process')`;
	execFileSync('sqlite3', [at('about.strain'), sql]);
	await inReport(report('about.html', 'about.strain'), async (page) => {
		const about = await readAbout(page);
		assert.deepEqual(Object.keys(about), ['started', 'on', 'for', 'ended', 'with']);
		assert.equal(new Date(about.started.replace(' ', 'T').replace(' ', '')).getTime(), 1795171331000);
		assert.match(about.started, /^2026-11-2\d \d\d:\d\d:\d\d [+-]\d\d:\d\d$/);
		assert.equal(about.on, 'node1');
		assert.equal(about.for, '2 min 0 s');
		assert.equal(about.ended, 'exit 0');
		assert.match(about.with, /^pytorch 1\.13\.0, jax 0\.4\.30, Python 3\.11, 6\.1\.0, strain \d+\.\d+\.\d+$/);
	});
	// What is not known is not said.
	execFileSync('sqlite3', [at('about.strain'), "DELETE FROM run WHERE key IN ('hostname', 'kernel', 'version', 'hooks', 'start_utc_ns')"]);
	await inReport(report('unknown.html', 'about.strain'), async (page) => {
		assert.deepEqual(Object.keys(await readAbout(page)), ['for', 'ended', 'with']);
		assert.equal((await readAbout(page)).with, 'Python 3.11');
	});
});

test('every panel is drawn', () =>
	inReport(at('report.html'), async (page) => {
		const panels = await readPanels(page);
		const titles = panels.map((panel) => panel.title);
		for (const title of ['Memory', 'CPU', 'GPU', 'PCIe', "Job's files", 'Page cache', 'Disk', 'Network', 'Pressure']) {
			assert.ok(titles.some((t) => t === title), `${title} is not in ${titles}`);
		}
		for (const panel of panels) {
			assert.ok(panel.drawn > 200, `${panel.title} has ${panel.drawn} dots of its series`);
		}
		assert.equal(await page.locator('.names .epoch').count(), 3);
		assert.equal(await page.locator('.processes tbody tr').count(), 3);
		await page.screenshot({ path: at('light.png'), fullPage: true });
	}));

test('a zoom moves all panels, and back', () =>
	inReport(at('report.html'), async (page) => {
		const whole = await readPanels(page);
		assert.deepEqual(await readWindow(page), [0, SECONDS]);
		await drag(page, 0.25, 0.5);
		const [from, to] = await readWindow(page);
		assert.ok(Math.abs(from - 0.25 * SECONDS) < 0.5 && Math.abs(to - 0.5 * SECONDS) < 0.5, `${from} to ${to}`);
		const zoomed = await readPanels(page);
		zoomed.forEach((panel, i) => assert.notEqual(panel.print, whole[i].print, panel.title));
		await page.screenshot({ path: at('zoomed.png') });

		await page.keyboard.down('Shift');
		await drag(page, 0.75, 0.25);
		await page.keyboard.up('Shift');
		const [moved, end] = await readWindow(page);
		assert.ok(Math.abs(moved - from - (to - from) / 2) < 0.5, `moved to ${moved}`);
		assert.ok(Math.abs(end - moved - (to - from)) < 1e-6);

		await page.mouse.dblclick(...(await sheetPoint(page, 0.5, 0.05)));
		await settle(page);
		await page.mouse.move(0, 0);
		await settle(page);
		const back = await readPanels(page);
		back.forEach((panel, i) => assert.equal(panel.print, whole[i].print, panel.title));
	}));

test('wheel and keys zoom and move', () =>
	inReport(at('report.html'), async (page) => {
		await page.mouse.move(...(await sheetPoint(page, 0.5, 0.05)));
		await page.keyboard.down('Control');
		await page.mouse.wheel(0, -200);
		await page.keyboard.up('Control');
		await settle(page);
		const [from, to] = await readWindow(page);
		assert.ok(to - from < 0.7 * SECONDS && Math.abs(from + to - SECONDS) < 1, `${from} to ${to}`);

		await page.locator('.sheet').focus();
		await page.keyboard.press('0');
		await settle(page);
		assert.deepEqual(await readWindow(page), [0, SECONDS]);
		await page.keyboard.press('+');
		await settle(page);
		const [first] = await readWindow(page);
		await page.keyboard.press('PageDown');
		await page.keyboard.press('ArrowRight');
		await settle(page);
		assert.ok((await readWindow(page))[0] > first);
		assert.match(await page.locator('[aria-live]').textContent(), /CPU: job [\d.]+/);
	}));

test('the cursor reads every panel', () =>
	inReport(at('report.html'), async (page) => {
		// Near its top: how far down the page the sheet ends depends on how much the verdict says.
		await page.mouse.move(...(await sheetPoint(page, 0.6, 0.05)));
		await page.waitForFunction(() => [...document.querySelectorAll('.readout')].every(({ textContent }) => /\d/.test(textContent)));
		const readings = await page.locator('.readout').allTextContents();
		const panels = await page.locator('.panel').count();
		assert.equal(readings.length, panels);
		readings.forEach((reading) => assert.match(reading, /\d/, String(readings)));
		assert.ok(readings.some((reading) => / to /.test(reading)), 'no range of a bucket is read');
		assert.match(await page.locator('.status').textContent(), /^72/);
	}));

test('dark by the system and by the button', () =>
	inReport(at('report.html'), async (page) => {
		const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
		const light = await background();
		const lightPanels = await readPanels(page);
		await page.emulateMedia({ colorScheme: 'dark' });
		await settle(page);
		const dark = await background();
		assert.notEqual(dark, light);
		const darkPanels = await readPanels(page);
		darkPanels.forEach((panel, i) => assert.notEqual(panel.print, lightPanels[i].print, panel.title));
		await page.screenshot({ path: at('dark.png'), fullPage: true });
		await page.getByRole('button', { name: 'Light' }).click();
		assert.equal(await background(), light);
	}));

test('a narrow page stays within its width', () =>
	inReport(at('report.html'), async (page) => {
		await page.setViewportSize({ width: 700, height: 900 });
		await settle(page);
		const [wanted, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
		assert.ok(wanted <= width, `${wanted} px in ${width}`);
		await page.screenshot({ path: at('narrow.png'), fullPage: true });
	}));

test('what comes from a job stays text', async () => {
	execFileSync(makeRun, [at('hostile.strain'), '20', '10ms', '0', '100', '2']);
	makeHostile('hostile.strain');
	const file = report('hostile.html', 'hostile.strain');
	await inReport(file, async (page) => {
		await page.locator('.summary summary').click();
		await settle(page);
		assert.equal(await page.locator('img, b > b, iframe').count(), 0);
		assert.equal(await page.locator('script').count(), 2);
		const command = await page.locator('header .command').textContent();
		assert.match(command, /<img src=x onerror=alert\(1\)><\/script>/);
		assert.match(await page.locator('.events').textContent(), /<script>alert\(2\)<\/script>/);
		await page.screenshot({ path: at('hostile.png'), fullPage: true });
	});
});

test('what CPU time went into', async () => {
	const kept = new URL('../traces/schema-1003-onednn.strain', import.meta.url).pathname;
	execFileSync(strain, ['report', kept, '-o', at('sampled.html')], { stdio: ['ignore', 'inherit', 'pipe'] });
	await inReport(at('sampled.html'), async (page) => {
		await page.setViewportSize({ width: 400, height: 900 });
		await settle(page);
		const found = await page.evaluate(() => {
			const card = document.querySelector('section.card.code');
			const widths = [...card.querySelectorAll('.shares')].map((bar) =>
				[...bar.children].reduce((sum, part) => sum + parseFloat(part.style.width), 0),
			);
			return {
				names: [...card.querySelectorAll('.bar-rows > span:nth-child(3n + 1)')].map((e) => e.textContent),
				widths,
				legend: [...card.querySelectorAll('.code-legend span:not(.key)')].map((e) => e.textContent),
				tooltip: card.querySelector('.shares i').title,
				wide: document.documentElement.scrollWidth,
			};
		});
		assert.deepEqual(found.names, ['forward', 'backward', 'optimizer', 'training thread', 'workers']);
		assert.ok(Math.abs(found.widths[1] - 100) < 0.1 && found.widths.every((width) => width < 100.1), String(found.widths));
		assert.ok(found.legend.includes('matrix kernels') && !found.legend.includes('spinning'));
		assert.match(found.tooltip, /^forward: matrix kernels 100 %, .*\n.* \[jit\]/);
		assert.ok(found.wide <= 400);
	});
	await inReport(at('marked.html'), async (page) => {
		const said = await page.textContent('section.card.code');
		assert.match(said, /^CPU timeNot sampled: /);
	});
});

test('several runs have a tab each', async () => {
	execFileSync(makeRun, [at('second.strain'), '40']);
	const file = report('several.html', 'run.strain', 'second.strain');
	await inReport(file, async (page) => {
		const tabs = page.getByRole('tab');
		assert.deepEqual(await tabs.allTextContents(), ['run', 'second']);
		await tabs.nth(1).click();
		await settle(page);
		assert.deepEqual(await readWindow(page), [0, 40]);
		(await readPanels(page)).forEach((panel) => assert.ok(panel.drawn > 200, panel.title));
		await tabs.nth(0).click();
		await settle(page);
		assert.deepEqual(await readWindow(page), [0, SECONDS]);
	});
});

test('iterations: their panels, phases, and the slowest in all panels', () =>
	inReport(at('marked.html'), async (page) => {
		const panels = await readPanels(page);
		assert.deepEqual(panels.slice(0, 3).map((panel) => panel.title), ['Iterations', 'Training thread', 'Loader workers']);
		assert.ok(panels[1].drawn > 20000, `${panels[1].drawn} dots of phases`);
		assert.equal(await page.locator('.phase-table tbody tr').count(), 8);
		assert.match(await page.locator('.phase-table').textContent(), /data45 %38 to 52 %/);
		assert.equal(await page.locator('.bar-rows .shares').count(), 3);
		const filled = await page.locator('.phases > .shares i').evaluateAll((items) =>
			items.reduce((sum, item) => sum + parseFloat(item.style.width), 0));
		assert.ok(Math.abs(filled - 100) < 0.1, `${filled} %`);
		const slow = page.locator('.slowest .link');
		assert.equal(await slow.count(), 5);
		assert.match(await page.locator('.slowest').textContent(), /epoch 2, iteration 0, at 22\.0 s.*data 202 ms instead of/);
		await slow.first().click();
		await settle(page);
		const [from, to] = await readWindow(page);
		assert.ok(from > 21 && from < 22 && to > 22.2 && to < 23, `${from} to ${to}`);
		await page.mouse.move(...(await sheetPoint(page, 0.5, 0.1)));
		await settle(page);
		assert.match((await page.locator('.readout').allTextContents())[1], /^data \d+ %/);
		await page.screenshot({ path: at('slow.png') });
	}));

test('ranks: a lane and a bar for each, and who is the slowest', () => {
	execFileSync(makeRun, [at('ranks.strain'), '30', '10ms', '0', '300', '0', '3']);
	execFileSync(strain, ['report', at('ranks.strain'), '-o', at('ranks.html')]);
	return inReport(at('ranks.html'), async (page) => {
		const panels = await readPanels(page);
		assert.deepEqual(panels.slice(0, 3).map((panel) => panel.title), ['Iterations', 'Training thread', 'Ranks']);
		assert.match(await page.locator('.panel').nth(2).textContent(), /rank 0rank 1rank 2/);
		const bars = await page.locator('.bar-rows').nth(1).textContent();
		assert.match(bars, /rank 0.*waits 60 %rank 1.*waits 60 %rank 2.*the slowest/);
		assert.equal(await page.locator('.bar-rows').nth(1).locator('.shares').first().locator('i').count(), 2);
		assert.match(await page.locator('.iterations').textContent(), /steady iterations of rank 2/);
		await page.locator('.panel').nth(2).scrollIntoViewIfNeeded();
		await page.mouse.move(...(await sheetPoint(page, 0.3, 0.1)));
		await settle(page);
		assert.match((await page.locator('.readout').allTextContents())[2], /^[\d.]+ of 3 work$/);
		await page.screenshot({ path: at('ranks.png') });
	});
});

test('spans of the job: the longest, nested, the rest when asked for, and never markup', () => {
	execFileSync(makeRun, [at('own.strain'), '30', '10ms', '0', '90', '0', '0', '15']);
	execFileSync(strain, ['report', at('own.strain'), '-o', at('own.html')]);
	return inReport(at('own.html'), async (page) => {
		const rows = page.locator('.own-spans tbody tr');
		assert.equal(await rows.count(), 12);
		assert.match(await rows.nth(1).textContent(), /^<b>part<\/b> 090.*50 %iterations$/);
		const left = (i) => rows.nth(i).locator('.own').evaluate((name) => parseFloat(name.style.paddingLeft));
		assert.ok((await left(1)) > (await left(0)));
		await page.locator('.own-spans .more:not([hidden])').click();
		assert.equal(await rows.count(), 16);
		await page.locator('.own-spans').screenshot({ path: at('own.png') });
	});
});

test('a press on a slow iteration in the panel shows it', () =>
	inReport(at('marked.html'), async (page) => {
		await page.locator('.panel').first().scrollIntoViewIfNeeded();
		const [x, y] = await sheetPoint(page, 22.24 / 60, 0.02);
		await page.mouse.click(x, y);
		await settle(page);
		const [from, to] = await readWindow(page);
		assert.ok(to - from < 1 && from > 21 && to < 23, `${from} to ${to}`);
	}));

test('phases and lanes in dark, and in a narrow page', () =>
	inReport(at('marked.html'), async (page) => {
		const ink = () => page.locator('.phases > .shares i').first().evaluate((item) => item.style.color);
		const light = await ink();
		await page.getByRole('button', { name: 'Dark' }).click();
		assert.notEqual(await ink(), light);
		await page.screenshot({ path: at('marked-dark.png'), fullPage: true });
		await page.setViewportSize({ width: 420, height: 900 });
		await settle(page);
		const [wanted, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
		assert.ok(wanted <= width, `${wanted} px in ${width}`);
		await page.screenshot({ path: at('marked-narrow.png'), fullPage: true });
		await page.getByRole('button', { name: 'Light' }).click();
	}));

for (const [name, iterations, workers] of [
	['one', 1, 1],
	['three', 3, 40],
	['many', 100000, 16],
]) {
	test(`${iterations} iterations, ${workers} workers`, async () => {
		execFileSync(makeRun, [at(`${name}.strain`), '30', '10ms', '0', String(iterations), String(workers)]);
		const file = report(`${name}.html`, `${name}.strain`);
		rmSync(at(`${name}.strain`));
		assert.ok(statSync(file).size < MOST_BYTES, `${statSync(file).size} bytes`);
		await inReport(file, async (page) => {
			assert.equal(await page.locator('.iterations').count(), 1);
			assert.equal(await page.locator('.phases').count(), 1);
			console.log(`${iterations} iterations: ${(statSync(file).size / 1e6).toFixed(2)} MB, opens in ${(await readyTime(page)).toFixed(0)} ms`);
			await page.screenshot({ path: at(`${name}.png`), fullPage: true });
		});
	});
}

test('a run without marks has no such panels', () =>
	inReport(at('report.html'), async (page) => {
		assert.equal(await page.locator('.halves').count(), 0);
		const titles = (await readPanels(page)).map((panel) => panel.title);
		assert.ok(!titles.includes('Training thread') && !titles.includes('Loader workers'), String(titles));
	}));

// A whole day takes minutes to make: in `make bench`. What a page has of a run does not grow with it.
const HOURS = process.env.STRAIN_SLOW_TESTS ? 24 : 3;

test('many hours at 10 ms stay under 5 MB', async () => {
	execFileSync(makeRun, [at('day.strain'), String(HOURS * 3600), '10ms', '256MiB', String(HOURS * 8000), '4']);
	const began = performance.now();
	const file = report('day.html', 'day.strain');
	const made = (performance.now() - began) / 1000;
	const { size } = statSync(file);
	rmSync(at('day.strain'));
	assert.ok(size < MOST_BYTES, `${size} bytes`);
	await inReport(file, async (page) => {
		console.log(`${HOURS} hours: made in ${made.toFixed(1)} s, ${(size / 1e6).toFixed(2)} MB, opens in ${(await readyTime(page)).toFixed(0)} ms`);
		await page.screenshot({ path: at('day.png'), fullPage: true });
		// Lanes of workers are pale where they wait now and then.
		const lines = (await readPanels(page)).filter((panel) => panel.title !== 'Loader workers');
		lines.forEach((panel) => assert.ok(panel.drawn > 200, panel.title));
		await drag(page, 0.3, 0.32);
		await page.screenshot({ path: at('day-zoomed.png') });
		// Around the slowest iterations everything is there at full rate, also of a day.
		await page.locator('.slowest .link').first().click();
		await settle(page);
		await page.mouse.move(...(await sheetPoint(page, 0.5, 0.1)));
		await settle(page);
		assert.match((await page.locator('.readout').allTextContents())[1], /^data 100 %$/);
		await page.mouse.move(0, 0);
		await settle(page);
		assert.doesNotMatch(await page.locator('.status').textContent(), /\d s:/); // no bucket of seconds
		await page.screenshot({ path: at('day-slow.png') });
	});
});
