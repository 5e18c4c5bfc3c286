// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// node build.mjs SOURCE MODULES (OUTPUT.html OUTPUT.h)...: bundles SOURCE/src into the pages below, each with
// a hole for the data, and as two C arrays: what stands before the hole and what stands after it. MODULES is the folder that holds node_modules.

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const [source, modules, ...outputs] = process.argv.slice(2).map((path) => resolve(path));

// In the order of the outputs: of one or several runs, and of a sweep.
const PAGES = [
	{ name: 'page', script: 'src/page.ts', style: 'src/report.css' },
	{ name: 'sweep', script: 'src/sweep.ts', style: 'src/sweep.css' },
];
const { buildSync } = createRequire(join(modules, 'package.json'))('esbuild');

// uPlot's licence asks to stand in every copy.
const licence = readFileSync(join(modules, 'node_modules/uplot/LICENSE'), 'utf8').trim();

function bundle(file, banner) {
	const result = buildSync({
		entryPoints: [join(source, file)],
		bundle: true,
		minify: true,
		write: false,
		format: 'iife',
		target: 'es2020',
		charset: 'utf8',
		legalComments: 'inline',
		banner,
		logLevel: 'warning',
		nodePaths: [join(modules, 'node_modules')],
	});
	// Nothing in here may end its own element.
	return result.outputFiles[0].text.trim().replace(/<\/(script|style)/gi, '<\\/$1');
}

const hash = (text) => `sha256-${createHash('sha256').update(text).digest('base64')}`;

function build({ script, style }) {
	const [program, look] = [bundle(script, { js: `/*! Contains uPlot. ${licence} */` }), bundle(style, {})];
	const values = { SCRIPT: program, STYLE: look, SCRIPT_HASH: hash(program), STYLE_HASH: hash(look) };
	// One pass with a function: what is put in is never looked at again, nor are its dollar signs.
	return readFileSync(join(source, 'src/report.html'), 'utf8').replace(
		/@(SCRIPT|STYLE|SCRIPT_HASH|STYLE_HASH)@/g,
		(_, name) => values[name],
	);
}

const array = (name, content) => {
	const bytes = [...Buffer.from(content)].join(',').replace(/(.{90}\d*,)/g, '$1\n');
	return `static const unsigned char ${name}[] = {${bytes}};\n`;
};

PAGES.forEach((page, i) => {
	const text = build(page);
	const [before, after] = text.split('@DATA@');
	const arrays = array(`${page.name}_before`, before) + array(`${page.name}_after`, after);
	writeFileSync(outputs[2 * i], text);
	writeFileSync(outputs[2 * i + 1], `// Made by web/build.mjs.\n${arrays}`);
});
