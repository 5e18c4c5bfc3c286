// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The page around the data, and the data as text that no HTML parser mistakes for markup.

#include "show/page.h"

#include <errno.h>
#include <jansson.h>

#include "run/analysis.h"
#include "show/lanes.h"
#include "show/page_run.h"
#include "show/panels.h"

#ifdef STRAIN_PAGES
#include "page_template.h"
#else
static const unsigned char page_before[1], page_after[1];
#endif

// A page stays below 5 MB: these bytes for the series of all runs, and these for phases and
// workers; the rest is for tables, windows at full rate and the program.
#define SERIES_BYTES ((size_t)3400000)
#define LANE_BYTES ((size_t)800000)
// Least bytes of series for each of many runs.
#define LEAST_SERIES_BYTES ((size_t)150000)
#define LEAST_LANE_BYTES ((size_t)60000)

const char *page_missing(void)
{
	return sizeof(page_before) > 1 ? NULL : STRAIN_PAGES_MISSING;
}

int page_begin(FILE *out)
{
	fwrite(page_before, 1, sizeof(page_before), out);
	fprintf(out, "{\"version\":1,\"generator\":\"strain %s\",\"runs\":[", STRAIN_VERSION);
	return ferror(out) ? -EIO : 0;
}

// In JSON these three characters occur only in strings, where an escape has the same meaning. So no
// name from a job can end the element with the data.
static int put_escaped(const char *data, size_t length, void *context)
{
	FILE *out = context;
	size_t plain = 0;
	for (size_t i = 0; i < length; i++) {
		if (data[i] == '<' || data[i] == '>' || data[i] == '&') {
			fwrite(data + plain, 1, i - plain, out);
			fprintf(out, "\\u%04x", data[i]);
			plain = i + 1;
		}
	}
	fwrite(data + plain, 1, length - plain, out);
	return ferror(out) ? -1 : 0;
}

void page_write_json(FILE *out, const json_t *json)
{
	// ENSURE_ASCII also escapes U+2028 and U+2029, which end lines in scripts.
	json_dump_callback(
		json, put_escaped, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(13));
}

static size_t share_of(size_t bytes, size_t n_runs, size_t least)
{
	return bytes / n_runs > least ? bytes / n_runs : least;
}

int page_add_run(FILE *out, const struct analysis *a, const struct page_priced *priced,
	size_t index, size_t n_runs, struct error *e)
{
	struct panel_list panels;
	struct lane_list lanes;
	int r = panels_collect(a, &panels, e);
	if (r < 0) {
		return r;
	}
	struct error damage = {0}; // damage was reported when the file was read
	r = lanes_collect(a, &lanes, &damage);
	if (r != -ENOMEM) {
		r = panels_pack(&panels, share_of(SERIES_BYTES, n_runs, LEAST_SERIES_BYTES));
	}
	if (r == 0) {
		r = lanes_pack(&lanes, share_of(LANE_BYTES, n_runs, LEAST_LANE_BYTES));
	}
	json_t *run = r == 0 ? page_run(a, priced, &panels, &lanes) : NULL;
	panels_done(&panels);
	lanes_done(&lanes);
	if (!run) {
		return error_errno(e, ENOMEM, "cannot lay out the page");
	}
	if (index > 0) {
		fputc(',', out);
	}
	page_write_json(out, run);
	json_decref(run);
	return 0;
}

int page_end(FILE *out, struct error *e)
{
	fputs("]}", out);
	fwrite(page_after, 1, sizeof(page_after), out);
	if (fflush(out) != 0 || ferror(out)) {
		return error_errno(e, errno ? errno : EIO, "cannot write the page");
	}
	return 0;
}
