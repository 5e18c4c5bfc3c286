// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// JSON values.

#include "show/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define WHOLE_MAX 9007199254740992.0 // 2^53: beyond it, readers with doubles lose digits

json_t *json_from_text(const char *text)
{
	if (!text) {
		return json_null();
	}
	struct text valid = {0};
	text_append_utf8(&valid, text, strlen(text));
	json_t *json = valid.failed ? NULL
	                            : json_stringn(valid.data ? valid.data : "", valid.length);
	text_done(&valid);
	return json;
}

json_t *json_from_number(double value)
{
	if (!isfinite(value)) {
		return json_null();
	}
	bool whole = fabs(value) < WHOLE_MAX && value == floor(value);
	return whole ? json_integer((json_int_t)value) : json_real(value);
}

int json_write(json_t *json, FILE *stream)
{
	if (!json) {
		return -ENOMEM;
	}
	char *data = json_dumps(json, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	json_decref(json);
	if (!data) {
		return -ENOMEM;
	}
	_cleanup_text_ struct text safe = {0};
	text_append_json_safe(&safe, data, strlen(data));
	free(data);
	bool failed = safe.failed || fputs(safe.data ? safe.data : "", stream) == EOF;
	return failed || fputc('\n', stream) == EOF || fflush(stream) == EOF
	               ? -(errno ? errno : EIO)
	               : 0;
}
