// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A row for each line and phase.

#include "cmd/show_lines.h"

#include "analyze/analysis.h"
#include "analyze/line_shares.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "render/table.h"

#define SHORT 10

enum { PLACE, FUNCTION, PHASE, SHARE, SAMPLES, FILE_NAME, LINE, N_COLUMNS };
static const struct column columns[N_COLUMNS] = {
	[PLACE] = {"place", "LINE", COLUMN_TEXT, 0},
	[FUNCTION] = {"function", "FUNCTION", COLUMN_TEXT, 1},
	[PHASE] = {"phase", "PHASE", COLUMN_LABEL, 0},
	[SHARE] = {"share_ratio", "SHARE", COLUMN_RATIO, 0},
	[SAMPLES] = {"samples", "LOOKS", COLUMN_WHOLE, 2},
	[FILE_NAME] = {"file", NULL, COLUMN_TEXT, 0},
	[LINE] = {"line", NULL, COLUMN_WHOLE, 0},
};

static int add_row(struct table *t, const struct line_shares *shares, const struct line_share *row)
{
	_cleanup_text_ struct text place = {0};
	text_append_string(&place, line_shares_short(shares, row->file));
	text_format(&place, ":%lld", (long long)row->line);
	int r = table_row(t);
	table_text(t, PLACE, place.data);
	table_text(t, FUNCTION, row->function);
	table_text(t, PHASE, row->phase);
	table_number(t, SHARE, (double)row->samples / (double)shares->samples);
	table_number(t, SAMPLES, (double)row->samples);
	table_text(t, FILE_NAME, row->file);
	table_number(t, LINE, (double)row->line);
	return r;
}

static int build(const struct analysis *a, size_t most, struct table **ret)
{
	struct line_shares shares;
	int r = line_shares_load(a, &shares);
	r = r < 0 ? r : table_new(columns, N_COLUMNS, ret);
	for (size_t i = 0; i < shares.n && i < most && r == 0; i++) {
		r = add_row(*ret, &shares, &shares.items[i]);
	}
	line_shares_done(&shares);
	return r;
}

int line_table_build(const struct analysis *a, struct table **ret)
{
	return build(a, LINE_SHARES_MOST, ret);
}

int line_table_build_short(const struct analysis *a, struct table **ret)
{
	return build(a, SHORT, ret);
}
