// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Marks the bytes of a text that are secret, then writes it with *** for each stretch of them. What
// one rule has marked, no other takes back.

#include "base/secret.h"

#include <stdlib.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/secret_internal.h"

static const char blanks[] = " \t", word_ends[] = " \t\r\n;&|\"'`<>";

// Values behind a name ---------------------------------------------------------------------------

// A value as it stands in a text.
struct value {
	size_t from;
	size_t to;
	size_t next; // where the text goes on, behind a closing quote
};

// From one quote to the next of its kind; in JSON within a string both have a backslash before.
static struct value find_quoted(const char *text, size_t at)
{
	bool escaped = text[at] == '\\';
	char quote = text[at + escaped], close[] = {escaped ? '\\' : quote, quote, quote, '\0'};
	bool threefold = !escaped && strncmp(text + at, close, 3) == 0; // Python's
	close[threefold ? 3 : escaped ? 2 : 1] = '\0';
	size_t from = at + strlen(close), to = from;
	while (text[to] && strncmp(text + to, close, strlen(close)) != 0) {
		to += 1 + (!escaped && text[to] == '\\' && text[to + 1]);
	}
	return (struct value){from, to, text[to] ? to + strlen(close) : to};
}

// A list or a map, to the bracket that closes it.
static struct value find_bracketed(const char *text, size_t at)
{
	size_t depth = 1, to = at + 1;
	for (; text[to]; to++) {
		depth += text[to] == '(' || text[to] == '[' || text[to] == '{';
		depth -= text[to] == ')' || text[to] == ']' || text[to] == '}';
		if (depth == 0) {
			break;
		}
	}
	return (struct value){at + 1, to, to};
}

static bool is_quote(const char *at)
{
	return *at == '"' || *at == '\'' || (*at == '\\' && (at[1] == '"' || at[1] == '\''));
}

// b"...", rf'...'; $'...' of a shell
static size_t literal_prefix(const char *at)
{
	size_t length = *at == '$' ? 1 : strspn(at, "bBfFrRuU");
	return length <= 2 && is_quote(at + length) ? length : 0;
}

// {name}
static bool is_placeholder(const char *at)
{
	size_t names = 1;
	while (*at == '{' && secret_is_name_byte(at[names])) {
		names++;
	}
	return names > 1 && at[names] == '}';
}

static struct value find_value(const char *text, size_t at)
{
	at += literal_prefix(text + at);
	if (is_quote(text + at)) {
		return find_quoted(text, at);
	}
	if (text[at] && strchr("([{", text[at]) && !is_placeholder(text + at)) {
		return find_bracketed(text, at);
	}
	size_t to = at;
	while (text[to] && (!strchr(word_ends, text[to]) || (text[to] == '<' && to > at))) {
		to += text[to] == '\\' && text[to + 1] && text[to + 1] != '\n' &&
		      !is_quote(text + to);
		to++;
	}
	struct value value = {at, to, to};
	while (value.to > at + 1 && !is_placeholder(text + at) &&
		strchr(",)]}\\", text[value.to - 1])) {
		value.to--;
	}
	return value;
}

static bool is_any_of(const char *const *words, size_t n, const char *at, size_t length)
{
	for (size_t i = 0; i < n; i++) {
		if (strlen(words[i]) == length && strncasecmp(words[i], at, length) == 0) {
			return true;
		}
	}
	return false;
}

// /etc/ssl/key.pem, ./token.txt, /run/secrets/db: where a secret is.
static bool is_file_name(const char *at, size_t length)
{
	static const char *const endings[] = {".cfg", ".conf", ".crt", ".env", ".ini", ".json",
		".key", ".p12", ".pem", ".pfx", ".toml", ".txt", ".yaml", ".yml"};
	bool path = strncmp(at, "/", 1) == 0 || strncmp(at, "./", 2) == 0 ||
	            strncmp(at, "../", 3) == 0 || strncmp(at, "~/", 2) == 0;
	for (size_t i = 0; path && i < ARRAY_LENGTH(endings); i++) {
		size_t ending = strlen(endings[i]);
		if (length > ending && strncmp(at + length - ending, endings[i], ending) == 0) {
			return true;
		}
	}
	return strncmp(at, "/run/secrets/", 13) == 0;
}

// $NAME and os.environ[...] in a script, where nothing has put a value in their place yet.
static bool is_expression(const char *at, size_t length)
{
	static const char *const calls[] = {"os.environ", "os.getenv(", "getenv(", "getpass",
		"process.env.", "$(", "args.", "config."};
	for (size_t i = 0; i < ARRAY_LENGTH(calls); i++) {
		if (strncmp(at, calls[i], strlen(calls[i])) == 0) {
			return true;
		}
	}
	return length > 1 && *at == '$' &&
	       1 + strspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") >= length;
}

static size_t scheme_length(const char *value)
{
	static const char *const schemes[] = {"Bearer ", "Basic ", "Token "};
	for (size_t i = 0; i < ARRAY_LENGTH(schemes); i++) {
		if (strncasecmp(value, schemes[i], strlen(schemes[i])) == 0) {
			return strlen(schemes[i]);
		}
	}
	return 0;
}

// What stands behind a secret name and is no secret.
static bool is_harmless(const char *value, size_t length, bool script)
{
	static const char *const literals[] = {
		"false", "no", "none", "null", "off", "on", "str", "true", "yes"};
	size_t scheme = scheme_length(value);
	value += scheme < length ? scheme : 0;
	length -= scheme < length ? scheme : 0;
	return length == 0 || is_any_of(literals, ARRAY_LENGTH(literals), value, length) ||
	       secret_is_reference(value, length) || is_file_name(value, length) ||
	       (script && is_expression(value, length));
}

static void mark_value(const struct secret_marks *m, struct value value, bool script)
{
	if (value.to > value.from &&
		!is_harmless(m->text + value.from, value.to - value.from, script)) {
		secret_mark(m, value.from, value.to);
	}
}

// TOKEN="a"'b' of a shell is one value. A quote behind a value may also be one around all of it:
// then what follows it does not look like a piece.
static size_t mark_pieces(const struct secret_marks *m, struct value value)
{
	while (value.next > value.to &&
		(m->text[value.next] == '"' || m->text[value.next] == '\'')) {
		struct value piece = find_quoted(m->text, value.next);
		size_t length = strcspn(m->text + piece.from, " \t\r\n;&|,:()[]{}<>\"'");
		if (piece.next == piece.to || length == 0 || piece.from + length < piece.to) {
			break;
		}
		mark_value(m, piece, true);
		value = piece;
	}
	return value.next;
}

// Names in a text --------------------------------------------------------------------------------

// What stands between a name and its value.
struct joint {
	size_t value; // 0: no value follows
	char kind; // '=' ':' ','
	bool quoted; // the name was
};

// `after` is where the name has ended.
static struct joint find_joint(const char *text, size_t after)
{
	size_t at = after, quotes = 0;
	while (quotes < 4 && text[at] && strchr("\\\"']", text[at])) {
		at++;
		quotes++;
	}
	struct joint joint = {.quoted = quotes > 0};
	size_t spaces = strspn(text + at, blanks);
	const char *sign = text + at + spaces;
	if (*sign == '=' || (*sign == ':' && sign[1] == '=')) {
		joint.kind = '=';
		sign += *sign == ':' || sign[1] == '=' || sign[1] == '>' ? 2 : 1;
		// NAME= VALUE of a shell gives no value to the name.
		spaces = joint.quoted || spaces > 0 ? strspn(sign, blanks) : 0;
	} else if (*sign == ':' && sign[1] != ':') {
		joint.kind = ':';
		sign++;
		spaces = strspn(sign, blanks);
	} else if (*sign == ',' && joint.quoted) {
		joint.kind = ',';
		sign++;
		spaces = strspn(sign, blanks);
		if (!is_quote(sign + spaces)) {
			return joint;
		}
	} else {
		return joint;
	}
	sign += spaces;
	joint.value = *sign && *sign != '\n' ? (size_t)(sign - text) : 0;
	return joint;
}

static bool is_capital_name(const char *name, size_t length)
{
	size_t capitals = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	return capitals >= length && memchr(name, '_', length);
}

static bool is_number(const char *at)
{
	size_t length = strspn(at, "+-.0123456789eE");
	return length > 0 && length < 12 && !secret_is_name_byte(at[length]);
}

// The value of --tokens=; as much of it as a number or the name of a file has.
static bool begins_with_count(const char *value)
{
	enum { LOOK_BYTES = 256 };
	size_t length = 0;
	value += is_quote(value);
	while (length < LOOK_BYTES && value[length] && !strchr(word_ends, value[length])) {
		length++;
	}
	return secret_is_count(value, length);
}

static bool is_secret(const struct secret_marks *m, size_t from, size_t to, struct joint joint)
{
	const char *name = m->text + from;
	size_t length = to - from;
	bool query = from > 0 && strchr("?&;", m->text[from - 1]);
	bool own = (length == 3 && strncmp(name, "PWD", 3) == 0) ||
	           (length == 6 && strncmp(name, "OLDPWD", 6) == 0);
	if (own && m->text[joint.value] == '/') {
		return false; // the shell's folder
	}
	if (joint.kind == ':' && is_number(m->text + joint.value) && length >= 5 &&
		strncasecmp(name + length - 5, "token", 5) == 0) {
		return false; // "time per token: 12 ms"
	}
	if (joint.kind == ',' && *name != '-' && !is_capital_name(name, length)) {
		return false; // ["token", "label"]
	}
	bool long_query = joint.kind == '=' && secret_query_name(name, length) &&
	                  (query || (strncasecmp(name, "sig", 3) == 0 &&
					    strcspn(m->text + joint.value, word_ends) >= 20));
	bool login = length == 3 && strncmp(name, "key", 3) == 0 && from >= 6 &&
	             strncmp(name - 6, "login(", 6) == 0;
	bool tokens = joint.kind == '=' && secret_tokens_option(name, length) &&
	              !begins_with_count(m->text + joint.value);
	return long_query || login || tokens || secret_name(name, length);
}

static bool is_header(const char *name, size_t length)
{
	static const char *const headers[] = {
		"authorization", "cookie", "proxy-authorization", "set-cookie"};
	return is_any_of(headers, ARRAY_LENGTH(headers), name, length);
}

// How the text came about decides where a value ends.
enum origin {
	ARGUMENT, // of a program: all of it is one value, after its name
	VALUE, // nothing but one value: no names are in it
	SCRIPT, // words that a shell or another interpreter has still to read
};

static struct value value_of_name(const struct secret_marks *m, size_t from, size_t to,
	struct joint joint, enum origin origin)
{
	const char *text = m->text;
	size_t at = joint.value;
	bool first = from == 0 && origin == ARGUMENT && !joint.quoted;
	if (first && joint.kind == '=') {
		return (struct value){at, m->length, m->length};
	}
	bool header = joint.kind == ':' && is_header(text + from, to - from);
	if ((first || header) && !is_quote(text + at) && !strchr("([{", text[at])) {
		const char around[] = {
			from > 0 && is_quote(text + from - 1) ? text[from - 1] : '\n', '\n', '\0'};
		size_t end = at + strcspn(text + at, around);
		end -= end > at && text[end - 1] == '\\' && text[end];
		return (struct value){at, end, end};
	}
	size_t scheme = scheme_length(text + at);
	struct value value = find_value(text, at + scheme);
	value.from = scheme > 0 ? at : value.from;
	if (from > 0 && strchr("?&", text[from - 1]) && !is_quote(text + at)) { // a query's
		value.to = at + strcspn(text + at, "&# \t\r\n\"'`<>");
		value.next = value.to;
	}
	return value;
}

static void mark_names(const struct secret_marks *m, enum origin origin)
{
	for (size_t from = 0; from < m->length;) {
		size_t to = from;
		while (secret_is_name_byte(m->text[to])) {
			to++;
		}
		if (to == from) {
			from++;
			continue;
		}
		struct joint joint = find_joint(m->text, to);
		// \"token\" in JSON within JSON: the n of \n is no part of a name
		size_t escape = from > 0 && m->text[from - 1] == '\\' && to - from > 1;
		if (joint.value == 0 || !is_secret(m, from + escape, to, joint)) {
			from = to;
			continue;
		}
		struct value value = value_of_name(m, from, to, joint, origin);
		mark_value(m, value, origin == SCRIPT || from > 0);
		value.next = joint.kind == '=' ? mark_pieces(m, value) : value.next;
		from = value.next > to ? value.next : to;
	}
}

// Words ------------------------------------------------------------------------------------------

// The words of a script, with and without quotes around several of them: sh -c 'mysql -pX'.
static void mark_words(const struct secret_marks *m)
{
	static const char opening[] = "\"'[({,\\+", closing[] = "\"')]},\\";
	struct secret_words words = {0};
	const char *text = m->text;
	for (size_t at = 0; at < m->length;) {
		at += strspn(text + at, " \t\r\n");
		if (text[at] && strchr(";&|`", text[at])) {
			words = (struct secret_words){0};
			at++;
			continue;
		}
		size_t to = at + strcspn(text + at, " \t\r\n;&|`"), from = at, end = to;
		while (from < end && strchr(opening, text[from])) {
			from++;
		}
		while (end > from && strchr(closing, text[end - 1])) {
			end--;
		}
		bool nothing = end == from || (end - from == 1 && text[from] == '-'); // YAML's
		struct secret_word word = nothing ? (struct secret_word){SECRET_NOTHING, 0}
		                                  : secret_next_word(
							    &words, text + from, end - from);
		if (word.kind == SECRET_WHOLE && word.from == 0) {
			struct value value = find_value(text, at);
			if (strchr("([{", text[at])) {
				value = (struct value){from, end, to};
			}
			mark_value(m, value, true);
			to = value.next > to ? value.next : to;
		} else if (word.kind != SECRET_NOTHING) {
			bool quoted = is_quote(text + at) && from > at;
			struct value value = find_value(text, quoted ? at : from + word.from);
			value.from = from + word.from > value.from ? from + word.from : value.from;
			mark_value(m, value, true);
			to = value.next > to ? value.next : to;
		}
		at = to > at ? to : at + 1;
	}
}

// The text ---------------------------------------------------------------------------------------

static bool marks_init(struct secret_marks *m, const char *text, size_t length)
{
	*m = (struct secret_marks){text, length, calloc(length + 1, sizeof(bool))};
	return m->secret;
}

static void append_unmarked(struct text *out, const struct secret_marks *m)
{
	for (size_t at = 0; at < m->length;) {
		size_t from = at;
		while (at < m->length && m->secret[at] == m->secret[from]) {
			at++;
		}
		text_append(out, m->secret[from] ? "***" : m->text + from,
			m->secret[from] ? 3 : at - from);
	}
}

// Masks once. False: out of memory.
static bool mask_once(
	struct text *out, const char *text, enum origin origin, struct secret_word word)
{
	struct secret_marks m;
	if (!marks_init(&m, text, strlen(text))) {
		return false;
	}
	secret_mark_values(&m);
	if (origin != VALUE) {
		mark_names(&m, origin);
	}
	if (origin != VALUE && strpbrk(text, " \t\n")) {
		mark_words(&m);
	}
	if (word.kind != SECRET_NOTHING && word.from < m.length) {
		mark_value(&m, (struct value){word.from, m.length, m.length}, false);
	}
	append_unmarked(out, &m);
	free(m.secret);
	return !out->failed;
}

// A mask may bring a name and a value together: until nothing changes. What never comes to rest
// was made for that, and is masked whole.
static void append_masked(
	struct text *out, const char *text, enum origin origin, struct secret_word word)
{
	enum { ROUNDS_MAX = 16 };
	struct text before = {0}, after = {0};
	text_append_string(&before, text);
	bool done = false, good = !before.failed;
	for (unsigned round = 0; good && !done && round < ROUNDS_MAX; round++) {
		good = mask_once(&after, before.data, origin, word);
		done = good && after.length == before.length &&
		       memcmp(after.data ? after.data : "", before.data, after.length) == 0;
		struct text spare = before;
		before = after;
		after = spare;
		text_clear(&after);
		text_append(&before, "", 0);
		good = good && !before.failed;
		word.kind = SECRET_NOTHING;
	}
	text_append_string(out, done ? before.data : "***");
	out->failed = out->failed || !good;
	text_done(&before);
	text_done(&after);
}

// Bytes as a string: NUL ends it for all that looks for secrets.
static char *string_of(const char *data, size_t length)
{
	char *copy = malloc(length + 1);
	for (size_t i = 0; copy && i < length; i++) {
		copy[i] = data[i] ? data[i] : ' ';
	}
	if (copy) {
		copy[length] = '\0';
	}
	return copy;
}

static void append_data(struct text *out, const char *data, size_t length, enum origin origin)
{
	_cleanup_free_ char *text = string_of(data, length);
	if (!text) {
		out->failed = true;
		return;
	}
	append_masked(out, text, origin, (struct secret_word){SECRET_NOTHING, 0});
}

void secret_append_text(struct text *out, const char *data, size_t length)
{
	append_data(out, data, length, SCRIPT);
}

void secret_append_lines(struct text *out, const char *data, size_t length)
{
	_cleanup_text_ struct text whole = {0};
	secret_append_value(&whole, data, length); // private keys take several lines
	for (size_t at = 0; whole.data && at < whole.length;) {
		const char *newline = memchr(whole.data + at, '\n', whole.length - at);
		size_t end = newline ? (size_t)(newline - whole.data) : whole.length;
		secret_append_text(out, whole.data + at, end - at);
		text_append(out, "\n", newline != NULL);
		at = end + 1;
	}
	out->failed = out->failed || whole.failed;
}

void secret_append_value(struct text *out, const char *data, size_t length)
{
	append_data(out, data, length, VALUE);
}

// What follows the first line, and the rest of a private key, whose beginnings are lost.
static void append_whole_lines(struct text *out, const char *text)
{
	static const char begin[] = "-----BEGIN ", end[] = "-----END ";
	size_t lost = strcspn(text, "\r\n");
	const char *at = text + lost + strspn(text + lost, "\r\n");
	const char *first = strstr(at, begin), *close = strstr(at, end);
	if (close && (!first || close < first)) {
		text_append_string(out, "***");
		at = close;
	} else if (!*at && *text) {
		text_append_string(out, "***"); // one line, too long to be kept
	}
	secret_append_lines(out, at, strlen(at));
}

void secret_append_end(struct text *out, const char *data, size_t length, bool torn)
{
	_cleanup_free_ char *text = string_of(data, length);
	_cleanup_text_ struct text valid = {0};
	if (!text) {
		out->failed = true;
		return;
	}
	text_append_utf8(&valid, text, length);
	if (torn) {
		append_whole_lines(out, valid.data ? valid.data : "");
	} else {
		secret_append_lines(out, valid.data ? valid.data : "", valid.length);
	}
	out->failed = out->failed || valid.failed;
}

// Arguments --------------------------------------------------------------------------------------

// -c and -lc of a shell, -c and -e of Python and Perl: a script follows.
static bool takes_script(const char *option)
{
	size_t length = option ? strlen(option) : 0;
	return length > 1 && length < 5 && option[0] == '-' && option[1] != '-' &&
	       (option[length - 1] == 'c' || option[length - 1] == 'e');
}

static void append_argument(
	struct text *out, struct secret_words *words, const char *previous, const char *argument)
{
	struct secret_word word = secret_next_word(words, argument, strlen(argument));
	append_masked(out, argument, takes_script(previous) ? SCRIPT : ARGUMENT, word);
}

void secret_each_argument(char *const *arguments,
	void (*append)(void *context, const char *masked, size_t length), void *context,
	bool *ret_failed)
{
	struct secret_words words = {0};
	*ret_failed = false;
	for (size_t i = 0; arguments[i]; i++) {
		_cleanup_text_ struct text masked = {0};
		append_argument(&masked, &words, i > 0 ? arguments[i - 1] : NULL, arguments[i]);
		*ret_failed = *ret_failed || masked.failed;
		append(context, masked.data ? masked.data : "", masked.length);
	}
}

struct json_arguments {
	struct text *out;
	bool first;
};

static void append_json(void *context, const char *masked, size_t length)
{
	struct json_arguments *json = context;
	text_append_string(json->out, json->first ? "" : ",");
	text_append_json(json->out, masked, length);
	json->first = false;
}

void secret_append_arguments(struct text *out, char *const *arguments)
{
	struct json_arguments json = {out, true};
	bool failed;
	text_append_string(out, "[");
	secret_each_argument(arguments, append_json, &json, &failed);
	text_append_string(out, "]");
	out->failed = out->failed || failed;
}

void secret_append_command(struct text *out, const char *data, size_t length)
{
	_cleanup_free_ char *copy = malloc(length + 1);
	if (!copy) {
		out->failed = true;
		return;
	}
	memcpy(copy, data, length);
	copy[length] = '\0';
	struct json_arguments json = {out, true};
	struct secret_words words = {0};
	const char *previous = NULL;
	text_append_string(out, "[");
	for (const char *at = copy; at < copy + length; at += strlen(at) + 1) {
		_cleanup_text_ struct text masked = {0};
		append_argument(&masked, &words, previous, at);
		out->failed = out->failed || masked.failed;
		append_json(&json, masked.data ? masked.data : "", masked.length);
		previous = at;
	}
	text_append_string(out, "]");
}
