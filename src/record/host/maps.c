// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include "record/host/maps.h"

bool maps_take_hex(struct cursor *c, uint64_t *ret)
{
	struct cursor at = *c;
	uint64_t value = 0;
	unsigned digits = 0;
	cursor_skip_blanks(&at);
	cursor_literal(&at, "0x");
	for (; at.at < at.end; at.at++, digits++) {
		char d = *at.at;
		int digit = d >= '0' && d <= '9'   ? d - '0'
		            : d >= 'a' && d <= 'f' ? d - 'a' + 10
		                                   : -1;
		if (digit < 0) {
			break;
		}
		value = value << 4 | (unsigned)digit;
	}
	if (digits == 0 || digits > 16) {
		return false;
	}
	*c = at;
	*ret = value;
	return true;
}

// "55d0-55d4 r-xp 00000000 08:01 42   /usr/bin/python3.11"
bool maps_take_line(struct cursor line, struct mapping *ret)
{
	struct mapping m = {.from = 0};
	struct cursor modes;
	if (!maps_take_hex(&line, &m.from) || !cursor_literal(&line, "-") ||
		!maps_take_hex(&line, &m.to) || !cursor_word(&line, &modes) ||
		!maps_take_hex(&line, &m.offset) || !cursor_skip_fields(&line, 2)) {
		return false;
	}
	cursor_skip_blanks(&line);
	m.runs = modes.end - modes.at >= 3 && modes.at[2] == 'x';
	m.path = line;
	*ret = m;
	return m.to > m.from;
}
