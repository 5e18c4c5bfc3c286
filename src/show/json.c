// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// JSON values.

#include "show/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
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

char *json_to_text(const json_t *json)
{
	char *data = json ? json_dumps(json,
				    JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))
	                  : NULL;
	struct text safe = {0};
	if (data) {
		text_append_json_safe(&safe, data, strlen(data));
		text_append_string(&safe, "\n");
	}
	bool known = data != NULL;
	free(data);
	return known ? text_steal(&safe) : NULL;
}

int json_write(json_t *json, FILE *stream)
{
	_cleanup_free_ char *data = json_to_text(json);
	json_decref(json);
	if (!data) {
		return -ENOMEM;
	}
	return fputs(data, stream) == EOF || fflush(stream) == EOF ? -(errno ? errno : EIO) : 0;
}
