// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The page of a sweep in a real browser: node sweep.mjs STRAIN MAKE_RUN MODULES CHROMIUM OUTPUT.
// Leaves pictures of what it saw in OUTPUT. Times are printed, never judged.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test, before, after } from 'node:test';

import { openBrowser, openReport, readyTime, settle } from './browser.mjs';

const [strain, makeRun, modules, chromium, output] = process.argv.slice(2);
const MOST_BYTES = 5e6;
const MARKUP = `<img src=x onerror=alert(1)></script><script>alert(2)</script>&amp;'"--><b>`;

const at = (name) => join(output, name);
const environment = { ...process.env, XDG_CACHE_HOME: at('cache') };
const text = (value) => `'${String(value).replace(/'/g, "''")}'`;
let browser;

/** Runs of so many seconds each, made once. */
const bases = new Map();
function base(seconds) {
	if (!bases.has(seconds)) {
		const path = at(`base-${seconds}.strain`);
		execFileSync(makeRun, [path, String(seconds), '100ms']);
		execFileSync(strain, ['finish', path], { stdio: 'ignore' }); // as a recorded run: with a summary
		bases.set(seconds, path);
	}
	return bases.get(seconds);
}

/**
 * Trials as `strain sweep` leaves them: { name, seconds, labels, keys, printed }. All files are
 * changed by one sqlite3, which is much faster than one for each.
 */
function makeSweep(directory, trials) {
	mkdirSync(at(directory), { recursive: true });
	const sql = trials.flatMap(({ name, seconds = 6, labels = {}, keys = {}, printed }, i) => {
		const file = at(join(directory, `${name}.strain`));
		copyFileSync(base(seconds), file);
		return [
			`ATTACH ${text(file)} AS r; PRAGMA r.synchronous = OFF; PRAGMA r.journal_mode = MEMORY; BEGIN`,
			'DELETE FROM r.label',
			'DELETE FROM r.finding',
			...Object.entries(labels).map(([label, value]) => `INSERT INTO r.label VALUES (${text(label)}, ${text(value)})`),
			...Object.entries(keys).map(([key, value]) => `INSERT OR REPLACE INTO r.run VALUES (${text(key)}, ${text(value)})`),
			`UPDATE r.run SET value = value + ${i * 20}000000000 WHERE key = 'start_utc_ns'`,
			...(printed ? [`INSERT INTO r.event (t_ns, kind, text) VALUES (1, 'output', ${text(printed)})`] : []),
			'COMMIT; DETACH r',
		];
	});
	const done = spawnSync('sqlite3', ['-bail', ':memory:'], { input: `${sql.join(';\n')};\n`, encoding: 'utf8' });
	assert.equal(done.stderr, '');
}

/** `strain report DIRECTORY -o NAME.html`; returns what it said on standard error. */
function report(directory, expected = 0) {
	const done = spawnSync(strain, ['report', at(directory), '-o', at(`${directory}.html`)], { encoding: 'utf8', env: environment });
	assert.equal(done.status, expected, done.stderr);
	return done.stderr;
}

async function inPage(name, look) {
	const { page, troubles } = await openReport(browser, at(`${name}.html`));
	await look(page);
	assert.deepEqual(troubles, []);
	await page.close();
}

/** The texts of a column of the matrix, by its heading. */
async function column(page, name) {
	const headings = await page.locator('.matrix thead th').allTextContents();
	const place = headings.indexOf(name);
	assert.ok(place >= 0, `${name} is not in ${headings}`);
	return page.locator(`.matrix tbody tr > :nth-child(${place + 1})`).allTextContents();
}

const rows = (page) => page.locator('.matrix tbody tr').count();
const sortBy = (page, name) =>
	page.locator('.matrix thead').getByRole('button', { name: new RegExp(`^${name}( [↑↓])?$`) }).click();
const chosen = (page, title) => page.getByRole('combobox', { name: title, exact: true });

/** How many dots of the charts have the colour of the second series (workers 2). */
function coloured(page) {
	return page.evaluate(() => {
		const canvases = [...document.querySelectorAll('.charts canvas')];
		const dots = canvases.map((one) => one.getContext('2d').getImageData(0, 0, one.width, one.height).data);
		const style = getComputedStyle(document.documentElement);
		const wanted = style.getPropertyValue('--hue-1').trim().match(/[0-9a-f]{2}/gi).map((two) => parseInt(two, 16));
		return dots.map((data) => {
			let found = 0;
			for (let i = 0; i < data.length; i += 4) {
				found += data[i + 3] > 200 && wanted.every((value, j) => Math.abs(data[i + j] - value) < 24) ? 1 : 0;
			}
			return found;
		});
	});
}

const BATCHES = [8, 16, 32, 128];
const WORKERS = [0, 2, 10];

const PLAN = `command: [train, "\${batch_size}", "\${workers}"]
parameters: {batch_size: {values: [8, 16, 32, 128]}, workers: {values: [0, 2, 10]}}
resources: {memory: {values: [4GiB, 512MiB]}}
repeats: 2
baseline: {batch_size: 8}
`;

function plainTrials() {
	const trials = [];
	BATCHES.forEach((batch, i) => WORKERS.forEach((workers, j) => [1, 2].forEach((repeat) => {
		const trial = i * WORKERS.length + j + 1;
		trials.push({
			name: `${String(trial).padStart(4, '0')}-${repeat}`,
			seconds: 30 - 6 * i - 2 * j + repeat,
			labels: { batch_size: batch, workers, memory: workers === 2 ? '512MiB' : '4GiB', sweep: 'plain', trial, repeat },
			keys: { limit_cpus: '2 (cpuset 0-1)' },
			printed: `epoch 3\nloss \u001b[31m0.3\u001b[0m of ${trial}`,
		});
	})));
	Object.assign(trials[22], { keys: { outcome: 'out_of_memory', outcome_text: 'cgroup: the kernel killed process 7 (python3)' } });
	Object.assign(trials[23], { keys: { outcome: 'out_of_memory', outcome_text: 'cgroup: the kernel killed process 8 (python3)' } });
	Object.assign(trials[1], { keys: { outcome: 'crash', outcome_text: 'exit 3' } });
	Object.assign(trials[13], { keys: { outcome: 'unknown', outcome_text: 'the recorder was killed' } });
	return trials;
}

before(async () => {
	rmSync(output, { recursive: true, force: true });
	mkdirSync(output, { recursive: true });
	makeSweep('plain', plainTrials());
	writeFileSync(at('plain/0001-1.html'), '<!doctype html>');
	writeFileSync(at('plain/plan.yaml'), PLAN);
	report('plain');
	browser = await openBrowser(modules, chromium);
});

after(() => browser?.close());

/** A module of the page by itself. */
async function part(name) {
	const { buildSync } = createRequire(resolve(modules, 'package.json'))('esbuild');
	const source = join(dirname(fileURLToPath(import.meta.url)), '../../web/src', `${name}.ts`);
	const { outputFiles } = buildSync({ entryPoints: [source], bundle: true, write: false, format: 'esm' });
	return import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}

test('intervals, differences and their correction', async () => {
	const { estimate, difference, holm } = await part('statistics');
	const near = (found, wanted) => assert.ok(Math.abs(found - wanted) < 1e-4 * wanted, `${found}, not ${wanted}`);
	near(estimate([1, 2]).half, 12.7062 / 2);
	near(estimate([1, 2, 3]).half, 4.30265 / Math.sqrt(3));
	near(estimate([1, 1, 1, 1, 1, 7]).half, 2.57058);
	assert.equal(estimate([3]).half, null);
	assert.equal(estimate([]), null);
	near(difference([1, 1.2, 0.9], [1.5, 1.7, 1.6, 2.2]).probability, 0.0124451);
	near(difference([1, 1.2, 0.9], [1.5, 1.7, 1.6, 2.2]).ratio, 1.75 / (3.1 / 3));
	assert.equal(difference([2, 2], [3, 3]).probability, 0);
	assert.equal(difference([2, 2], [2, 2]).probability, 1);
	assert.equal(difference([2], [3, 3]).probability, null);
	assert.equal(difference([], [3]), null);
	assert.deepEqual(holm([0.04, null, 0.01, 0.03]), [0.06, null, 0.03, 0.06]);
});

test('numbers beside each other have as many digits', async () => {
	const { digitsAmong } = await part('format');
	const among = (values) => values.map(digitsAmong(values));
	assert.deepEqual(among([30, 29.9, 23.96, 5, 0.05, 0]), ['30.0', '29.9', '24.0', '5.00', '0.050', '0']);
	assert.deepEqual(among([3, 30, 1200]), ['3', '30', '1,200']);
});

test('two digits of an interval count, and its mean ends where it does', async () => {
	const { withInterval } = await part('format');
	const shown = (mean, half) => withInterval(mean, half).join(' ± ');
	assert.equal(shown(1.43, 4.2), '1.4 ± 4.2');
	assert.equal(shown(41.2345, 0.4), '41.23 ± 0.40');
	assert.equal(shown(41.2345, 0.0996), '41.23 ± 0.10');
	assert.equal(shown(818, 365.4), '820 ± 370');
	assert.equal(shown(1.43, 365), '1 ± 365');
	assert.equal(shown(41.2345, 0), '41.2 ± 0');
});

test('values of labels are numbers, sizes, rates or text', async () => {
	const { amountOf, compareValues } = await part('label_values');
	const amounts = { '32': 32, '4GiB': 4 * 2 ** 30, '100MB/s': 1e8, '1e-3': 1e-3, '5 %': 0.05, '200ms': 0.2, '-1': -1 };
	for (const [label, value] of Object.entries(amounts)) {
		assert.equal(amountOf(label)?.value, value, label);
	}
	['', 'resnet50', '0-1', 'GiB', '4 apples', '1.2.3', 'NaN'].forEach((label) => assert.equal(amountOf(label), null, label));
	const values = ['b10', 'unlimited', '1GB', '900MB', 'b9', '64', '8'];
	assert.deepEqual(values.sort(compareValues), ['8', '64', '900MB', '1GB', 'unlimited', 'b9', 'b10']);
});

test('strain compare says the same', async () => {
	const { Model } = await part('sweep_model');
	const { againstBaseline, againstWord } = await part('sweep_compare');
	const compare = (measure) => {
		const options = ['--rows', 'batch_size', '--columns', 'workers', '--value', measure, '--json'];
		return JSON.parse(execFileSync(strain, ['compare', at('plain'), ...options], { encoding: 'utf8', env: environment }));
	};
	const data = /id="data">(.*?)<\/script>/s.exec(readFileSync(at('plain.html'), 'utf8'))[1];
	const model = new Model(JSON.parse(data));
	const near = (found, wanted, what) =>
		assert.ok(found === wanted || Math.abs(found - wanted) < 1e-5 * Math.abs(wanted) + 1e-9, `${what}: ${found}, not ${wanted}`);
	for (const name of ['epoch_seconds', 'duration_seconds', 'host_memory_peak', 'cpu_seconds', 'cpus_used', 'read_bytes']) {
		const compared = compare(name); // held against the plan's baseline
		const measure = model.findMeasure(name);
		const against = againstBaseline(model, model.trials, measure);
		let [tested, held] = [0, 0];
		assert.equal(compared.baseline, 'batch_size=8');
		for (const configuration of model.configurations) {
			const { index } = configuration.trials[0];
			const labels = Object.fromEntries(['batch_size', 'workers'].map((label) => [label, model.findLabel(label).values[index]]));
			const cell = compared.cells.find((one) => Object.entries(labels).every(([label, value]) => one.labels[label] === value));
			const what = `${name} of ${JSON.stringify(labels)}`;
			const figure = model.figure(configuration.trials, measure);
			near(figure?.mean ?? null, cell.mean, `mean of ${what}`);
			assert.equal(figure?.n ?? 0, cell.n, `repeats of ${what} that count`);
			const found = against.get(configuration);
			near(found?.against ?? null, measure.speed ? cell.speed_up : cell.ratio, `${againstWord(measure)} of ${what}`);
			assert.equal(measure.speed ? cell.ratio : cell.speed_up, null);
			held += found ? 1 : 0;
			assert.equal(model.baselineOf(configuration) === configuration, cell.is_baseline, `baseline of ${what}`);
			if (compared.test !== null && figure) {
				near(figure.half, cell.high === null ? null : cell.high - cell.mean, `interval of ${what}`);
				near(found?.probability ?? null, cell.probability, `probability of ${what}`);
				assert.equal(found?.beyondNoise ?? null, cell.beyond_noise, `noise of ${what}`);
				tested += typeof found?.probability === 'number' ? 1 : 0;
			}
		}
		assert.ok(held > 0 && (compared.test === null || tested === compared.tests), `${tested} of ${compared.tests} tests, ${held} held`);
	}
});

test('numbers against a baseline are written as strain compare writes them', async () => {
	const { againstText } = await part('sweep_compare');
	const texts = [[0.0434, '0.043×'], [0.391, '0.39×'], [1.004, '1.004×'], [0.93, '0.930×'], [1.333, '1.33×'], [12.46, '12.5×'], [130.2, '130×']];
	texts.forEach(([number, wanted]) => assert.equal(againstText(number), wanted));
});

test('the head says what is best and how trials ended', () =>
	inPage('plain', async (page) => {
		assert.match(await page.locator('header').textContent(), /^train \$\{batch_size\} \$\{workers\}24 trials12 configurations/);
		assert.equal(await page.locator('.best .headline').textContent(), 'batch_size 128, workers 2, memory 512MiB');
		assert.match(
			await page.locator('.best .why').textContent(),
			/^epoch_seconds .*± .*2 runs, 95 % interval\)\. 2\.5\d× as fast as the baseline \(batch_size 8\), (not )?significant \(Welch/,
		);
		assert.match(await page.locator('.notice').textContent(), /24 of 48 planned trials/);
		assert.match(await page.locator('.plan').textContent(), /baseline: \{batch_size: 8\}/);
		const counts = await page.locator('.count').allTextContents();
		assert.deepEqual(counts, ['✓success20', '▲out of memory2', '✕crash1', '?unknown1']);
		await page.screenshot({ path: at('light.png'), fullPage: true });
		await page.emulateMedia({ colorScheme: 'dark' });
		await settle(page);
		await page.screenshot({ path: at('dark.png'), fullPage: true });
	}));

test('the interval is Student\'s', () =>
	inPage('plain', async (page) => {
		await page.getByRole('button', { name: 'Trials', exact: true }).click();
		const run = await page.evaluate(() => JSON.parse(document.getElementById('data').textContent));
		const [a, b] = run.measures.find((measure) => measure.name === 'duration_seconds').values.slice(2, 4);
		await page.getByRole('button', { name: 'Configurations', exact: true }).click();
		await page.locator('.picker summary').click();
		await page.getByRole('checkbox', { name: 'duration_seconds' }).check();
		const half = 12.706 * (Math.abs(a - b) / 2); // of two values
		const shown = (await column(page, 'duration_seconds'))[1];
		const [, mean, around] = /^([\d.]+) ± ([\d.]+) s$/.exec(shown);
		assert.ok(Math.abs(mean - (a + b) / 2) < 0.1 && Math.abs(around - half) < 0.06 * half, `${shown}: ${a}, ${b}`);
	}));

test('each configuration against its baseline', () =>
	inPage('plain', async (page) => {
		assert.deepEqual((await column(page, 'speed-up')).slice(0, 3), ['baseline', 'baseline', 'baseline']);
		const values = (await column(page, 'epoch_seconds')).map(parseFloat);
		const speedUp = parseFloat((await column(page, 'speed-up'))[4]);
		assert.ok(Math.abs(speedUp - values[1] / values[4]) < 0.01, `${speedUp}: ${values[1]} of ${values[4]}`);
		await page.locator('.count', { hasText: 'success' }).click();
		await sortBy(page, 'speed-up');
		await sortBy(page, 'speed-up');
		assert.match((await column(page, 'speed-up'))[0], /^2\.5\d×\*?$/);
		await chosen(page, 'by').selectOption('host_memory_peak'); // which is no speed
		assert.match((await column(page, 'ratio')).find((text) => /\d/.test(text)), /^[\d.]+×\*?$/);
		assert.match(await page.locator('.best .why').textContent(), /\d× the baseline \(batch_size 8\)|It is the baseline/);
	}));

test('columns sort numbers as numbers and sizes as sizes', () =>
	inPage('plain', async (page) => {
		await sortBy(page, 'batch_size');
		const up = (await column(page, 'batch_size')).map(Number);
		assert.deepEqual(up, [...up].sort((a, b) => a - b));
		await sortBy(page, 'batch_size');
		assert.equal((await column(page, 'batch_size'))[0], '128');
		await sortBy(page, 'memory');
		const memory = await column(page, 'memory');
		assert.equal(memory.lastIndexOf('512MiB') + 1, memory.indexOf('4GiB'));
		await sortBy(page, 'epoch_seconds');
		const values = (await column(page, 'epoch_seconds')).map(parseFloat);
		const known = values.filter((value) => !Number.isNaN(value));
		assert.deepEqual(known, [...known].sort((a, b) => a - b));
		assert.ok(Number.isNaN(values[values.length - 1]), 'what is missing comes last');
		assert.match(page.url(), /sort=epoch_seconds/);
	}));

test('filters by label, outcome and text', () =>
	inPage('plain', async (page) => {
		assert.equal(await rows(page), 12);
		const values = page.getByRole('group', { name: 'batch_size' });
		await values.getByRole('button', { name: '8', exact: true }).click();
		assert.equal(await rows(page), 3);
		await values.getByRole('button', { name: '128', exact: true }).click();
		assert.equal(await rows(page), 6);
		await page.getByRole('searchbox').fill('workers=10');
		assert.equal(await rows(page), 2);
		await page.getByRole('button', { name: 'Show all' }).click();
		await page.locator('.count', { hasText: 'out of memory' }).click();
		assert.deepEqual(await column(page, 'run'), ['0012 (2)']);
		assert.deepEqual(await column(page, 'epoch_seconds'), ['out of memory']);
		assert.match(await page.locator('.filters .status').textContent(), /^2 of 24 trials$/);
		await page.getByRole('searchbox').fill('no such thing');
		assert.match(await page.locator('.matrix tbody').textContent(), /No trial passes the filters/);
		await page.screenshot({ path: at('nothing.png'), fullPage: true });
	}));

test('curves follow their axes', () =>
	inPage('plain', async (page) => {
		const drawn = await coloured(page);
		// Runs with two workers, and they alone, have 512MiB.
		assert.deepEqual(drawn.map((dots) => dots > 100), [true, false], `dots: ${drawn}`);
		assert.equal(await chosen(page, 'x').inputValue(), 'batch_size');
		const label = () => page.locator('.charts .place').first().getAttribute('aria-label');
		assert.match(await label(), /epoch_seconds over batch_size\. .*16: [\d.]+ ± [\d.]+ s/);
		const place = page.locator('.charts .place').first();
		await place.focus();
		await page.keyboard.press('ArrowRight');
		await page.keyboard.press('ArrowRight');
		assert.match(await page.locator('.tip').first().textContent(), /^6\.3 ± 1\.7 sbatch_size 16, workers 2 \(2 runs\)$/);
		await page.keyboard.press('Enter');
		assert.equal(await page.locator('dialog[open] .run-name').textContent(), '0005-1');
		await page.keyboard.press('Escape');
		await page.locator('.charts canvas').first().hover({ position: { x: 5, y: 5 } });
		await chosen(page, 'x').selectOption('workers');
		await chosen(page, 'y').selectOption('duration_seconds');
		await chosen(page, 'a line for each').selectOption('batch_size');
		await chosen(page, 'a chart for each').selectOption('memory');
		await settle(page);
		assert.equal(await page.locator('.chart').count(), 2);
		assert.match(await label(), /memory 512MiB duration_seconds over workers/);
		assert.deepEqual(await page.locator('.curve-key').allTextContents(), BATCHES.map((batch) => `batch_size ${batch}`));
		await page.getByRole('checkbox', { name: 'log y' }).check();
		await settle(page);
		assert.match(page.url(), /logy=1/);
		await page.screenshot({ path: at('facets.png'), fullPage: true });
		await page.goBack();
		await settle(page);
		assert.equal(await page.getByRole('checkbox', { name: 'log y' }).isChecked(), false);
	}));

test('the heat map has numbers, words for failures, and opens runs', () =>
	inPage('plain', async (page) => {
		await chosen(page, 'down').selectOption('batch_size');
		await chosen(page, 'across').selectOption('workers');
		const cells = page.locator('.heat-map tbody td');
		assert.equal(await cells.count(), 12);
		const numbers = (await cells.allTextContents()).slice(0, 11);
		assert.deepEqual(numbers.filter((shown) => !/^\d\.\d\d$/.test(shown)), []);
		assert.match(await cells.nth(11).textContent(), /out of memory/);
		assert.equal(await page.locator('.best-cell').count(), 1);
		await cells.nth(11).getByRole('button').click();
		await settle(page);
		assert.equal(await page.locator('dialog[open] .run-name').textContent(), '0012-1');
		assert.match(await page.locator('dialog[open] .notice').textContent(), /the kernel killed process 7/);
	}));

test('a cell of several configurations shows these', () =>
	inPage('plain', async (page) => {
		await chosen(page, 'down').selectOption('memory');
		await chosen(page, 'across').selectOption('batch_size');
		const cell = page.locator('.heat-map tbody tr').nth(1).locator('td').nth(1);
		await cell.getByRole('button').click();
		assert.equal(await page.locator('dialog[open]').count(), 0);
		assert.deepEqual(await column(page, 'run'), ['0004 (2)', '0006 (2)']);
		assert.match(page.url(), /f\.memory=4GiB.*|f\.batch_size=16/);
		await page.goBack();
		assert.equal(await rows(page), 12);
	}));

test('a run opens, closes, and the address keeps it', () =>
	inPage('plain', async (page) => {
		await page.getByRole('button', { name: '0001 (2)' }).press('Enter');
		const panel = page.locator('dialog[open]');
		await panel.waitFor();
		assert.match(page.url(), /run=0001-1/);
		const said = await panel.textContent();
		for (const part of [/batch_size8/, /cpus limit2 \(cpuset 0-1\)/, /loss 0\.3 of 1/, /strain show .*0001-1\.strain/, /strain report .* -o 0001-1\.html/]) {
			assert.match(said, part);
		}
		assert.doesNotMatch(said, /\u001b|\[31m/);
		assert.ok((await panel.locator('.spark path').count()) >= 4, 'no lines over time');
		assert.equal(await panel.locator('.epoch-bars li').count(), 3);
		assert.match(await panel.locator('.measures').textContent(), /step_secondsmissing: /);
		assert.equal(await panel.getByRole('link').getAttribute('href'), './plain/0001-1.html');
		await page.screenshot({ path: at('run.png') });
		await panel.getByRole('button', { name: '0001-2' }).click();
		assert.equal(await panel.locator('.run-name').textContent(), '0001-2');
		assert.equal(await panel.getByRole('link').count(), 0);
		await page.keyboard.press('ArrowRight');
		assert.equal(await panel.locator('.run-name').textContent(), '0002-1');
		await page.goBack();
		await page.goBack();
		assert.equal(await panel.locator('.run-name').textContent(), '0001-1');
		await page.keyboard.press('Escape');
		assert.equal(await page.locator('dialog[open]').count(), 0);
		await page.waitForFunction(() => !location.hash.includes('run=')); // history moves after the key
		assert.equal(await page.evaluate(() => document.activeElement?.textContent.slice(0, 20)), '0001 (2)');
		await page.goBack();
		await panel.waitFor();
	}));

test('a link brings all of it back', async () => {
	const { page, troubles } = await openReport(browser, at('plain.html'));
	await sortBy(page, 'epoch_seconds');
	await page.getByRole('group', { name: 'workers' }).getByRole('button', { name: '10' }).click();
	await chosen(page, 'by').selectOption('duration_seconds');
	const link = page.url();
	const seen = await page.locator('.matrix').textContent();
	const other = await browser.context.newPage();
	await other.goto(link);
	await settle(other);
	assert.equal(await other.locator('.matrix').textContent(), seen);
	assert.equal(await chosen(other, 'by').inputValue(), 'duration_seconds');
	await other.close();
	assert.deepEqual(troubles, []);
	await page.close();
});

test('narrow and printed pages stay within their width', () =>
	inPage('plain', async (page) => {
		for (const width of [1280, 700, 400]) {
			await page.setViewportSize({ width, height: 900 });
			await settle(page);
			const [wanted, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
			assert.ok(wanted <= there, `${wanted} px in ${there}`);
			await page.screenshot({ path: at(`wide-${width}.png`), fullPage: true });
		}
		await page.emulateMedia({ media: 'print' });
		const shown = page.locator('.filters');
		assert.equal(await shown.isVisible(), false);
		assert.equal(await page.locator('.matrix').isVisible(), true);
		await page.emulateMedia({ media: 'screen' });
		await page.getByRole('group', { name: 'workers' }).getByRole('button', { name: '10' }).click();
		await page.emulateMedia({ media: 'print' });
		assert.deepEqual(await shown.getByRole('button').allTextContents(), ['10'], 'what is filtered by is printed');
	}));

test('what comes from runs stays text', async () => {
	const long = 'long '.repeat(3000);
	makeSweep('hostile', [1, 2, 3].map((i) => ({
		name: `000${i}-1`,
		labels: { batch_size: i * 8, [MARKUP]: `${MARKUP}${i}`, workers: i, [long]: `${i}${long}`, constructor: `__proto__${i}`, '': '', outcome: `own ${i}`, epoch_seconds: i },
		keys: { command: JSON.stringify([MARKUP]), hostname: MARKUP, outcome_text: MARKUP, outcome: i === 1 ? 'crash' : 'success' },
		printed: `${MARKUP}\u202e\u0007`,
	})));
	writeFileSync(at('hostile/plan.yaml'), MARKUP);
	report('hostile');
	await inPage('hostile', async (page) => {
		for (const summary of await page.locator('details:not(.picker) summary').all()) {
			await summary.click();
		}
		await page.locator('.picker summary').click();
		await page.keyboard.press('Escape');
		await page.locator('.matrix tbody tr').first().click();
		await settle(page);
		assert.equal(await page.locator('img, b > b, iframe').count(), 0);
		assert.equal(await page.locator('script').count(), 2);
		assert.match(await page.locator('dialog[open]').textContent(), /<img src=x onerror=alert\(1\)><\/script>/);
		const [wanted, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
		assert.ok(wanted <= there, `${wanted} px in ${there}`);
		await page.screenshot({ path: at('hostile.png'), fullPage: true });
		await page.keyboard.press('Escape');
		await page.screenshot({ path: at('hostile-closed.png'), fullPage: true });
		const headings = await page.locator('.matrix thead th').allTextContents();
		assert.equal(headings.filter((heading) => heading === 'epoch_seconds').length, 2, 'a label may be called as a measure');
		assert.equal(headings.filter((heading) => heading === 'outcome').length, 2);
	});
});

test('a folder of strain advise begins with its answer, as text', async () => {
	makeSweep('tiny.advice', [{ name: '01-now', labels: { model: 'tiny' } }, { name: '02-line' }]);
	writeFileSync(at('tiny.advice/advice.json'), JSON.stringify({
		largest_batch: { value: 96, verified: 96 },
		runs: [{ run: '01-now.strain', step: 'now', batch_size: 32 }, { run: '02-line.strain', step: 'line', batch_size: 64 }],
		page: ['            NOW  ADVISED', 'batch_size  32   64', `run         ${MARKUP}`],
	}));
	report('tiny.advice');
	await inPage('tiny.advice', async (page) => {
		const shown = await page.locator('.advice pre').textContent();
		assert.deepEqual(shown.trimEnd().split('\n'), ['            NOW  ADVISED', 'batch_size  32   64', `run         ${MARKUP}`]);
		assert.equal(await page.locator('.advice pre').evaluate((pre) => getComputedStyle(pre).whiteSpace), 'pre');
		assert.equal(await page.locator('.best').count(), 0); // epochs of probes are shortened
		assert.deepEqual(await column(page, 'step'), ['now', 'line']);
	});
});

test('a directory of one run without labels', async () => {
	makeSweep('one', [{ name: 'train' }]);
	report('one');
	await inPage('one', async (page) => {
		assert.equal(await rows(page), 1);
		assert.equal(await page.locator('.best .headline').textContent(), 'train');
		assert.match(await page.locator('.curves').textContent(), /needs a label whose values are numbers/);
		assert.match(await page.locator('.heat').textContent(), /needs two labels/);
		await page.screenshot({ path: at('one.png'), fullPage: true });
	});
});

test('all failed, some damaged, one still recorded', async () => {
	const keys = { outcome: 'crash', outcome_text: 'exit 1' };
	makeSweep('failed', [8, 16, 32].map((batch, i) => ({ name: `000${i + 1}-1`, labels: { batch_size: batch, framework: ['jax', 'onednn'][i % 2] }, keys })));
	writeFileSync(at('failed/0004-1.strain'), 'nothing of the kind');
	truncateSync(at('failed/0003-1.strain'), statSync(at('failed/0003-1.strain')).size - 5000);
	const said = report('failed', 1);
	assert.match(said, /0004-1\.strain: /);
	assert.match(said, /, 3 of 4 runs/);
	await inPage('failed', async (page) => {
		assert.match(await page.locator('.notice').first().textContent(), /0004-1\.strain/);
		assert.equal(await page.locator('.matrix tr.failed').count(), 3);
		assert.match(await page.locator('.best').textContent(), /No trial/);
		await page.screenshot({ path: at('failed.png'), fullPage: true });
	});
});

test('300 labels', async () => {
	const labels = (i) => Object.fromEntries(Array.from({ length: 300 }, (_, j) => [`label_${j}`, j < 200 ? `${i * j}` : 'same']));
	makeSweep('labels', Array.from({ length: 6 }, (_, i) => ({ name: `000${i + 1}-1`, labels: labels(i) })));
	report('labels');
	await inPage('labels', async (page) => {
		assert.equal(await page.locator('.filter-rows .values').count(), 8);
		await page.locator('.filters summary').click();
		await page.locator('.filter-rows .values').nth(198).waitFor(); // they come with the event
		assert.equal(await page.locator('.filter-rows .values').count(), 199);
		const headings = await page.locator('.matrix thead th').count();
		assert.ok(headings < 20, `${headings} columns`);
		await page.locator('.picker summary').click();
		await page.getByRole('checkbox', { name: 'label_250' }).check();
		assert.deepEqual(await column(page, 'label_250'), Array(6).fill('same'));
		await page.screenshot({ path: at('labels.png') });
	});
});

test('2,000 trials', async () => {
	const trials = Array.from({ length: 2000 }, (_, i) => {
		const trial = Math.floor(i / 2);
		return {
			name: `${String(trial + 1).padStart(4, '0')}-${1 + (i % 2)}`,
			seconds: 2 + (trial % 5),
			labels: { batch_size: 8 << trial % 8, workers: Math.floor(trial / 8) % 5, cpus: 1 + (Math.floor(trial / 40) % 4), seed: Math.floor(trial / 160), sweep: 'big', trial: trial + 1, repeat: 1 + (i % 2) },
			keys: i % 17 === 0 ? { outcome: 'out_of_memory', outcome_text: 'cgroup: killed' } : {},
			printed: 'a line of output that is printed again and again\n'.repeat(80),
		};
	});
	makeSweep('big', trials);
	const began = performance.now();
	report('big');
	const made = (performance.now() - began) / 1000;
	rmSync(at('big'), { recursive: true });
	const { size } = statSync(at('big.html'));
	assert.ok(size < MOST_BYTES, `${size} bytes`);
	const empty = '<!doctype html><title>empty</title><script>performance.mark("strain-ready")</script><script type="application/json">';
	writeFileSync(at('empty.html'), `${empty}"${'a'.repeat(size)}"</script>`);
	const plain = await openReport(browser, at('empty.html'));
	const floor = await readyTime(plain.page);
	await plain.page.close();
	await inPage('big', async (page) => {
		const ready = await readyTime(page);
		console.log(`2,000 trials: made in ${made.toFixed(1)} s, ${(size / 1e6).toFixed(2)} MB, opens in ${ready.toFixed(0)} ms; an empty page of that size in ${floor.toFixed(0)} ms`);
		assert.equal(await rows(page), 25);
		await page.getByRole('button', { name: 'Trials', exact: true }).click();
		await sortBy(page, 'epoch_seconds');
		await page.getByRole('button', { name: 'Next' }).click();
		assert.match(await page.locator('.pager').textContent(), /page 2 of 80/);
		await page.getByRole('searchbox').fill('batch_size=1024 workers=4');
		assert.match(await page.locator('.filters .status').textContent(), /^50 of 2,000 trials$/);
		await page.locator('.matrix tbody tr').first().click();
		await settle(page);
		assert.match(await page.locator('dialog[open]').textContent(), /printed again and again/);
		await page.screenshot({ path: at('big.png') });
	});
});

test('what is written is one file with no address in it', () => {
	const page = readFileSync(at('plain.html'), 'utf8');
	assert.match(page, /default-src 'none'/);
	const addresses = [...page.matchAll(/\b(?:src|href)\s*=\s*["']?(?:https?:)?\/\//g)];
	assert.deepEqual(addresses.map((found) => found[0]), []);
});
