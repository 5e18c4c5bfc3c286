// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A picture of a report, for documents: node picture.mjs MODULES CHROMIUM REPORT.html OUT.png
// [light|dark [WIDTH [CURSOR]]]. CURSOR is a share of the time axis.

import { openBrowser, openReport, settle, sheetPoint } from './browser.mjs';

const [modules, chromium, report, output, scheme = 'light', width = '1240', cursor = '0.62'] =
	process.argv.slice(2);

const browser = await openBrowser(modules, chromium);
const { page, troubles } = await openReport(browser, report);
await page.setViewportSize({ width: Number(width), height: 900 });
await page.emulateMedia({ colorScheme: scheme });
// A window as high as the page, so that the cursor is still there when the picture is taken.
const height = await page.evaluate(() => document.documentElement.scrollHeight);
await page.setViewportSize({ width: Number(width), height });
await settle(page);
await page.mouse.move(...(await sheetPoint(page, Number(cursor), 0.1)));
await settle(page);
await page.screenshot({ path: output });
await browser.close();
if (troubles.length > 0) {
	console.error(troubles.join('\n'));
	process.exitCode = 1;
}
