// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads the tables that are part of the program.

#include "cmd/published.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

// Cuts a field at its end, without its quotes. Returns where the next begins; *ended: it was the
// line's last.
static char *cut_field(char *at, char **field, int *ended)
{
	if (*at == '"') {
		*field = ++at;
		at += strcspn(at, "\"");
		if (*at) {
			*at++ = '\0';
		}
	} else {
		*field = at;
	}
	at += strcspn(at, ",\n");
	*ended = *at != ',';
	if (*at) {
		*at++ = '\0';
	}
	return at;
}

static int add_field(struct published *p, size_t *capacity, size_t n, char *field)
{
	void *items = p->fields;
	int r = array_reserve(&items, capacity, n + 1, sizeof(char *));
	p->fields = items;
	if (r == 0) {
		p->fields[n] = field;
	}
	return r;
}

static int cut_table(struct published *p)
{
	size_t n = 0, capacity = 0, in_line = 0, lines = 0;
	for (char *at = p->text; *at;) {
		char *field;
		int ended;
		at = cut_field(at, &field, &ended);
		int r = add_field(p, &capacity, n++, field);
		if (r < 0) {
			return r;
		}
		in_line++;
		if (ended) {
			p->n_columns = lines == 0 ? in_line : p->n_columns;
			if (in_line != p->n_columns) {
				return -EBADMSG;
			}
			lines++;
			in_line = 0;
		}
	}
	p->n_rows = lines > 0 ? lines - 1 : 0;
	return 0;
}

int published_read(const char *name, struct published *ret, struct error *e)
{
	for (size_t i = 0; i < n_published_files; i++) {
		if (strcmp(published_files[i].name, name) != 0) {
			continue;
		}
		*ret = (struct published){.text = strdup(published_files[i].text)};
		int r = ret->text ? cut_table(ret) : -ENOMEM;
		if (r < 0) {
			published_done(ret);
			return error_errno(e, -r, "cannot read what was published as %s", name);
		}
		return 0;
	}
	return error_set(e, ENOENT, "nothing was published as %s", name);
}

void published_done(struct published *p)
{
	free(p->fields);
	free(p->text);
	*p = (struct published){0};
}

const char *published_field(const struct published *p, size_t row, const char *column)
{
	for (size_t i = 0; i < p->n_columns; i++) {
		if (strcmp(p->fields[i], column) == 0) {
			return p->fields[(row + 1) * p->n_columns + i];
		}
	}
	return NULL;
}

double published_number(const struct published *p, size_t row, const char *column)
{
	const char *field = published_field(p, row, column);
	char *end;
	double value = field && *field ? strtod(field, &end) : NAN;
	return field && *field && *end == '\0' ? value : NAN;
}
