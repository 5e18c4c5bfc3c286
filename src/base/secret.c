// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Marks the secret bytes of a text, then writes it with *** for each marked range. No rule unmarks
// bytes that another rule marked.

#include "base/secret.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

// Definitions shared by the searches for secrets.

// A text, and a flag for each byte that is secret.
struct secret_marks {
	const char *text; // ends with NUL
	size_t length;
	bool *secret; // [length]
};

static inline void secret_mark(const struct secret_marks *m, size_t from, size_t to)
{
	if (to > from) {
		memset(m->secret + from, true, to - from);
	}
}

static inline bool secret_is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

// The state while reading the words of a command line one after the other.
struct secret_words {
	const char *program; // the last known program, in the text of its word
	size_t program_length;
	bool subcommand; // the subcommand that the program's row requires was seen
	enum secret_kind {
		SECRET_NOTHING,
		SECRET_WHOLE, // the whole word
		SECRET_AFTER, // the part after the first of some delimiters: user:password
	} pending; // expected in the next word
	bool may_be_count; // the last option may have a number or a file as value: --tokens
	bool may_be_flag; // the last option may have no value: --auth
	const char *delimiters;
};

struct secret_word {
	enum secret_kind kind;
	size_t from; // where the secret begins in it
};

static bool secret_query_name(const char *name, size_t length);
static bool secret_tokens_option(const char *name, size_t length);
static bool secret_is_count(const char *value, size_t length);
static bool secret_is_reference(const char *at, size_t length);
static void secret_mark_values(const struct secret_marks *m);
static struct secret_word secret_next_word(struct secret_words *w, const char *word, size_t length);

// Secret ------------------------------------------------------------------------------------------

static const char blanks[] = " \t", word_ends[] = " \t\r\n;&|\"'`<>";

// Values behind a name ----------------------------------------------------------------------------

// A value in a text.
struct value {
	size_t from;
	size_t to;
	size_t next; // where the text continues, after a closing quote
};

// A value between two quotes of the same kind, both escaped by a backslash in JSON within a string.
static struct value find_quoted(const char *text, size_t at)
{
	bool escaped = text[at] == '\\';
	char quote = text[at + escaped], close[] = {escaped ? '\\' : quote, quote, quote, '\0'};
	bool threefold = !escaped && strncmp(text + at, close, 3) == 0; // Python's triple quotes
	close[threefold ? 3 : escaped ? 2 : 1] = '\0';
	size_t from = at + strlen(close), to = from;
	while (text[to] && strncmp(text + to, close, strlen(close)) != 0) {
		to += 1 + (!escaped && text[to] == '\\' && text[to + 1]);
	}
	return (struct value){from, to, text[to] ? to + strlen(close) : to};
}

// A list or a map, up to its closing bracket.
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

// /etc/ssl/key.pem, ./token.txt, /run/secrets/db: the location of a secret, not a secret.
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

// $NAME and os.environ[...] in a script, before any value is substituted.
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

// A value after a secret name that is not secret.
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

// TOKEN="a"'b' in a shell is one value. A quote after a value may also be one around the whole of
// it; the text after it then does not look like a piece.
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

// Names in a text ---------------------------------------------------------------------------------

// The text between a name and its value.
struct joint {
	size_t value; // 0: no value follows
	char kind; // '=' ':' ','
	bool quoted; // the name was quoted
};

// `after` is the end of the name.
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
		// NAME= VALUE in a shell does not assign VALUE to the name.
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

// The value of --tokens=, up to the end of a number or a file name.
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
		return false; // the shell's current folder
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

// The origin of a text decides where a value ends.
enum origin {
	ARGUMENT, // of a program: the whole text after the name is one value
	VALUE, // a single value that contains no names
	SCRIPT, // words that a shell or another interpreter has yet to parse
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
	if (from > 0 && strchr("?&", text[from - 1]) && !is_quote(text + at)) { // in a URL's query
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
		// \"token\" in JSON within JSON: the n of \n is not part of a name.
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

// Words -------------------------------------------------------------------------------------------

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

// The text ----------------------------------------------------------------------------------------

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

// Masks once. Returns false if out of memory.
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

// Masking may bring a name and a value together, so it repeats until nothing changes. A text that
// never settles was made to do so and is masked as a whole.
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

// Copies bytes to a string. All searches for secrets end at NUL.
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

// The same for lines that a job printed: an open quote does not extend to the next line.
static void secret_append_lines(struct text *out, const char *data, size_t length)
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

// Appends the text after the first line, and after the rest of a private key, whose beginnings are
// missing.
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
		text_append_string(out, "***"); // one line, too long to be kept whole
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

// Arguments ---------------------------------------------------------------------------------------

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

// Name --------------------------------------------------------------------------------------------
//
// Names of secrets. A name is split into parts: AWS_SECRET_ACCESS_KEY and awsSecretAccessKey are
// "aws secret access key". Language models have tokens and keys that are not secrets: pad_token,
// max_tokens, key_dim.

enum { NAME_BYTES = 128, PARTS_MAX = 32 };

struct parts {
	char text[2 * NAME_BYTES];
	const char *part[PARTS_MAX];
	size_t n;
};

enum match {
	WHOLE, // the part equals the word
	END, // the part ends with it: "hftoken"
	WITHIN, // the part contains it: "pgpassword"
};

struct secret_name_word {
	const char *word;
	enum match match;
	const char *before; // parts before it (or their beginnings) that give it another meaning
	const char *after; // parts that may follow; NULL: all except those about a secret
};

// A file with a secret, its length or its age is not a secret.
static const char about[] =
	" algorithm arn authentication backend callback class cmd command column count dir "
	"directory"
	" disabled enabled endpoint env expiration expire expires expiry fd field fields file "
	"filename"
	" files fn folder format from helper host len length lifetime location manager max method"
	" methods min mode mount name names path paths pattern policy port process prompt provider"
	" providers ref reference regex required retries scope scopes size stdin store timeout ttl "
	"type"
	" types uri url validator var variable variables version volume ";

static const char values[] = " b64 base basic content contents data key pem str string value ";

static const char token_words[] =
	" action add added audio avg begin blank bos box budget by byte cache char class cls cross "
	"de"
	" decoder draft dummy each encoder end eos eot every extra fill first forced frame graph id"
	" ignore image img input inter label last latent loss mask max mean mem memory min multi n "
	"new"
	" next node non null num object output pad patch per point pre prefix prev prompt query "
	"region"
	" register role sentence sep single soft sos source special speech src start state stop sub"
	" subword suffix target text tgt think thinking time tool total un unk video vision visual "
	"word ";

static const char pass_words[] =
	" all backward band by com compile dry each encom eval extra first forward full graph half "
	"high"
	" ir last lowering low max min multi n next num one opt optimization over partial per post "
	"pre"
	" second single sur test third train transform tres two under warmup ";

static const struct secret_name_word words[] = {
	{"accesskey", END, " ", values},
	{"accountkey", END, " ", values},
	{"apikey", WITHIN, " ", NULL},
	{"apitoken", WITHIN, " ", NULL},
	{"appkey", END, " ", values},
	{"auth", END, " allow disable enable has is need no o require skip use with ",
		" b64 basic code config cookie data header headers info str string value "},
	{"authkey", END, " ", values},
	{"authorization", WITHIN, " ", NULL},
	{"authorisation", WITHIN, " ", NULL},
	{"bearer", WHOLE, " ", values},
	{"connectionstring", END, " ", values},
	{"connstr", END, " ", values},
	{"cookie", WHOLE, " ", values},
	{"cookies", WHOLE, " ", values},
	{"cred", WHOLE, " ", values},
	{"credential", WITHIN, " ", NULL},
	{"creds", END, " ", values},
	{"deploykey", END, " ", values},
	{"dsn", END, " ", values},
	{"encryptionkey", END, " ", values},
	{"jwt", END, " ", values},
	{"licensekey", END, " ", values},
	{"masterkey", END, " ", values},
	{"mnemonic", WHOLE, " ", values},
	{"otp", WHOLE, " ", values},
	{"pass", END, pass_words, " phrase value word "},
	{"passcode", WITHIN, " ", NULL},
	{"passin", WHOLE, " ", values},
	{"passout", WHOLE, " ", values},
	{"passphrase", WITHIN, " ", NULL},
	{"passwd", WITHIN, " ", NULL},
	{"password", WITHIN, " ", NULL},
	{"pincode", WHOLE, " ", values},
	{"privatekey", END, " ", values},
	{"privkey", END, " ", values},
	{"psk", WHOLE, " ", values},
	{"pw", WHOLE, " ", values},
	{"pwd", END, " old ", values},
	{"secret", END, " ", NULL},
	{"secretid", END, " ", values},
	{"secretkey", WITHIN, " ", NULL},
	{"secrets", END, " ", NULL},
	{"sharedkey", END, " ", values},
	{"signingkey", END, " ", values},
	{"token", END, token_words, " b64 data key str string value "},
};

// Two consecutive parts; the second may be a plural.
struct pair {
	const char *first; // a list
	const char *second;
};

static const struct pair pairs[] = {
	{" access account admin aes anthropic api app application auth aws azure bearer clearml "
	 "client"
	 " cloudflare cohere comet consumer crypt crypto dagshub datadog dd decryption deepseek "
	 "deploy"
	 " developer discord docker encrypt encryption fernet gcp gemini github gitlab google gpg "
	 "groq"
	 " heroku hf hmac huggingface ingest ingestion instrumentation jwt kaggle licence license "
	 "login"
	 " mailgun master mistral neptune newrelic ngc npm nvapi nvidia openai openrouter "
	 "pagerduty pgp"
	 " pinecone preshared priv private psk pypi quay replicate roboflow root rsa runpod secret"
	 " sendgrid sentry service session shared sign signing slack stripe subscription telegram "
	 "token"
	 " together twilio wandb webhook wg wireguard ",
		"key"},
	{" access api auth bearer bot github gitlab hf refresh secret session user ", "token"},
	{" access amz goog ", "signature"},
	{" amz goog ", "credential"},
	{" conn connection ", "str"},
	{" conn connection ", "string"},
	{" pass ", "word"},
	{" pass ", "phrase"},
	{" recovery backup ", "code"},
	{" recovery seed ", "phrase"},
};

// Whether a list " a b c " contains a word of `length` bytes.
static bool secret_listed(const char *list, const char *word, size_t length)
{
	for (const char *at = list; length > 0 && *at;) {
		at += *at == ' ';
		size_t n = strcspn(at, " ");
		if (n == length && strncmp(at, word, length) == 0) {
			return true;
		}
		at += n;
	}
	return false;
}

static bool is_listed(const char *list, const char *word)
{
	return secret_listed(list, word, strlen(word));
}

// A part begins at a capital letter after a small one, and at the last of several capitals before a
// small letter: APIKey.
static bool begins_part(const char *name, size_t length, size_t i)
{
	bool upper = isupper((unsigned char)name[i]);
	bool after_lower = i > 0 && (islower((unsigned char)name[i - 1]) ||
					    isdigit((unsigned char)name[i - 1]));
	bool ends_capitals = i > 0 && isupper((unsigned char)name[i - 1]) && i + 1 < length &&
	                     islower((unsigned char)name[i + 1]);
	return upper && (after_lower || ends_capitals);
}

// Only the end of a longer name is used. Digits at the end of a part are dropped: password2.
static void cut(const char *name, size_t length, struct parts *ret)
{
	size_t from = length > NAME_BYTES - 1 ? length - (NAME_BYTES - 1) : 0, used = 0;
	ret->n = 0;
	for (size_t i = from; i < length && ret->n < PARTS_MAX;) {
		if (!isalnum((unsigned char)name[i])) {
			i++;
			continue;
		}
		size_t start = used, end = used;
		do {
			ret->text[used++] = (char)tolower((unsigned char)name[i]);
			end = isdigit((unsigned char)name[i]) ? end : used;
			i++;
		} while (i < length && isalnum((unsigned char)name[i]) &&
			 !begins_part(name, length, i));
		used = end;
		if (end > start) {
			ret->text[used++] = '\0';
			ret->part[ret->n++] = ret->text + start;
		}
	}
}

// Whether the parts after part i permit it to be a secret.
static bool fits_after(const struct parts *p, size_t i, const char *after)
{
	for (size_t k = i + 1; k < p->n; k++) {
		if (after ? !is_listed(after, p->part[k]) : is_listed(about, p->part[k])) {
			return false;
		}
	}
	return true;
}

static bool is_word(const struct parts *p, size_t i, const struct secret_name_word *w)
{
	const char *part = p->part[i], *at = strstr(part, w->word);
	size_t length = strlen(part), word = strlen(w->word);
	if (w->match == WITHIN) {
		return at && fits_after(p, i, w->after);
	}
	if (length < word || strcmp(part + length - word, w->word) != 0) {
		return false;
	}
	if (length > word) {
		return w->match == END && !secret_listed(w->before, part, length - word) &&
		       fits_after(p, i, w->after);
	}
	return !(i > 0 && is_listed(w->before, p->part[i - 1])) && fits_after(p, i, w->after);
}

static bool is_pair(const struct parts *p, size_t i)
{
	for (size_t k = 0; k < ARRAY_LENGTH(pairs); k++) {
		size_t length = strlen(pairs[k].second);
		const char *second = p->part[i + 1];
		bool same = strncmp(second, pairs[k].second, length) == 0 &&
		            (!second[length] || strcmp(second + length, "s") == 0);
		if (same && is_listed(pairs[k].first, p->part[i]) && fits_after(p, i + 1, values)) {
			return true;
		}
	}
	return false;
}

bool secret_name(const char *name, size_t length)
{
	struct parts p;
	cut(name, length, &p);
	for (size_t i = 0; i < p.n; i++) {
		for (size_t k = 0; k < ARRAY_LENGTH(words); k++) {
			if (is_word(&p, i, &words[k])) {
				return true;
			}
		}
		if (i + 1 < p.n && is_pair(&p, i)) {
			return true;
		}
	}
	return false;
}

// Names that are secret only in the query of a URL: sig, key.
static bool secret_query_name(const char *name, size_t length)
{
	static const char *const names[] = {"AWSAccessKeyId", "GoogleAccessId", "code", "hmac",
		"key", "sas", "sig", "signature", "ticket"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (strlen(names[i]) == length && strncasecmp(names[i], name, length) == 0) {
			return true;
		}
	}
	return false;
}

// --tokens, whose value is either secrets or a number of tokens.
static bool secret_tokens_option(const char *name, size_t length)
{
	return length == 8 && memcmp(name, "--tokens", 8) == 0;
}

// A number or a file as the value of such an option: 300, 1e9, 10B, a/b.bin.
static bool secret_is_count(const char *value, size_t length)
{
	size_t number = strspn(value, "+-.,_0123456789");
	number += number > 0 ? strspn(value + number, "eEkKmMbBgGtT+-0123456789") : 0;
	return number >= length || memchr(value, '/', length) || memchr(value, '.', length);
}

// Program -----------------------------------------------------------------------------------------
//
// Options followed by a secret. -p is a port for one program and a password for another.

struct secret_program {
	const char *names; // a list
	const char *subcommand; // required before the option; NULL: none
	const char *option; // "" for a word that is not an option, "=" for one after a secret name
	enum secret_kind kind;
	const char *delimiters; // for SECRET_AFTER
};

// Any program without a row of its own: -u user:password.
static const char any[] = "";

static const struct secret_program programs[] = {
	{any, NULL, "--login", SECRET_AFTER, ":"},
	{any, NULL, "--user", SECRET_AFTER, ":"},
	{any, NULL, "-u", SECRET_AFTER, ":"},
	{" 7z 7za 7zr 7zz ", NULL, "-p", SECRET_WHOLE, NULL},
	{" aws ", "configure", "=", SECRET_WHOLE, NULL},
	{" az ", NULL, "-p", SECRET_WHOLE, NULL},
	{" bcp isql osql sqlcmd tsql ", NULL, "-P", SECRET_WHOLE, NULL},
	{" beeline cqlsh cypher-shell ", NULL, "-p", SECRET_WHOLE, NULL},
	{" curl ", NULL, "-E", SECRET_AFTER, ":"},
	{" curl ", NULL, "--cert", SECRET_AFTER, ":"},
	{" curl ", NULL, "-U", SECRET_AFTER, ":"},
	{" curl ", NULL, "--proxy-user", SECRET_AFTER, ":"},
	{" curl ", NULL, "-b", SECRET_WHOLE, NULL},
	{" curl etcdctl ", NULL, "--user", SECRET_AFTER, ":"},
	{" curl ", NULL, "-u", SECRET_AFTER, ":"},
	{" docker helm nerdctl oc oras podman buildah skopeo ", "login", "-p", SECRET_WHOLE, NULL},
	{" git ", "config", "=", SECRET_WHOLE, NULL},
	{" http https xh xhs ", NULL, "-a", SECRET_AFTER, ":"},
	{" ipmitool ", NULL, "-P", SECRET_WHOLE, NULL},
	{" ldapadd ldapdelete ldapmodify ldappasswd ldapsearch ldapwhoami ", NULL, "-w",
		SECRET_WHOLE, NULL},
	{" lftp ", NULL, "-u", SECRET_AFTER, ","},
	{" mariadb mariadb-admin mariadb-dump mariadb-import mysql mysqladmin mysqlcheck mysqldump"
	 " mysqlimport mysqlpump mysqlshow mysqlsh mycli ",
		NULL, "-p", SECRET_WHOLE, NULL},
	{" mongo mongodump mongoexport mongofiles mongoimport mongorestore mongosh mongostat "
	 "mongotop ",
		NULL, "-p", SECRET_WHOLE, NULL},
	{" mosquitto_pub mosquitto_sub mosquitto_rr ", NULL, "-P", SECRET_WHOLE, NULL},
	{" ngrok ", NULL, "=", SECRET_WHOLE, NULL},
	{" nmcli ", NULL, "=", SECRET_WHOLE, NULL},
	{" npm pip conda poetry kaggle wandb ", "config", "=", SECRET_WHOLE, NULL},
	{" openssl ", NULL, "-k", SECRET_WHOLE, NULL},
	{" openssl ", NULL, "-K", SECRET_WHOLE, NULL},
	{" rar unrar ", NULL, "-hp", SECRET_WHOLE, NULL},
	{" rar unrar ", NULL, "-p", SECRET_WHOLE, NULL},
	{" rdesktop ", NULL, "-p", SECRET_WHOLE, NULL},
	{" redis-cli redis-benchmark valkey-cli ", NULL, "-a", SECRET_WHOLE, NULL},
	{" smbclient rpcclient smbget ", NULL, "-U", SECRET_AFTER, "%"},
	{" snmpget snmpset snmpwalk ", NULL, "-A", SECRET_WHOLE, NULL},
	{" snmpget snmpset snmpwalk ", NULL, "-X", SECRET_WHOLE, NULL},
	{" snmpget snmpset snmpwalk ", NULL, "-c", SECRET_WHOLE, NULL},
	{" sqlplus rman expdp impdp sqlldr ", NULL, "", SECRET_AFTER, "/"},
	{" ssh-keygen ", NULL, "-N", SECRET_WHOLE, NULL},
	{" ssh-keygen ", NULL, "-P", SECRET_WHOLE, NULL},
	{" sshpass ", NULL, "-p", SECRET_WHOLE, NULL},
	{" twine ", NULL, "-p", SECRET_WHOLE, NULL},
	{" vault wandb ", "login", "", SECRET_WHOLE, NULL},
	{" xfreerdp xfreerdp3 ", NULL, "/p:", SECRET_WHOLE, NULL},
	{" zip unzip zipcloak ", NULL, "-P", SECRET_WHOLE, NULL},
};

static bool is_of(const struct secret_program *row, const struct secret_words *w)
{
	return row->names == any ? !w->program
	                         : secret_listed(row->names, w->program, w->program_length);
}

// Whether a word names a known program. The following words then belong to it.
static bool begin_program(struct secret_words *w, const char *word, size_t length)
{
	const char *slash = memrchr(word, '/', length);
	size_t from = slash ? (size_t)(slash - word) + 1 : 0;
	for (size_t i = 0; i < ARRAY_LENGTH(programs); i++) {
		if (secret_listed(programs[i].names, word + from, length - from)) {
			*w = (struct secret_words){
				.program = word + from, .program_length = length - from};
			return true;
		}
	}
	return false;
}

static bool is(const char *word, size_t length, const char *other)
{
	return strlen(other) == length && memcmp(word, other, length) == 0;
}

// Returns the position after the first delimiter in a word; the word's end if there is none.
static size_t after_delimiter(const char *word, size_t from, size_t length, const char *delimiters)
{
	while (from < length && !strchr(delimiters, word[from])) {
		from++;
	}
	bool url = length - from >= 3 && memcmp(word + from, "://", 3) == 0;
	return from < length && !url ? from + 1 : length;
}

static struct secret_word found(
	enum secret_kind kind, const char *word, size_t from, size_t length, const char *delimiters)
{
	return (struct secret_word){kind,
		kind == SECRET_AFTER ? after_delimiter(word, from, length, delimiters) : from};
}

// The length of the flags before another option in the same word: curl -sSu.
static size_t flags_before(const struct secret_words *w, const char *word, size_t length)
{
	size_t flags = 0;
	if (w->program && is(w->program, w->program_length, "curl") && length > 2 &&
		word[0] == '-') {
		flags = strspn(word + 1, "0123469aBfgGiIjJklLMnNOpqRsSvVZ#:");
	}
	return flags + 1 < length ? flags : 0;
}

// An option of the program, with its value in this word or the next one.
static struct secret_word take_program_option(
	struct secret_words *w, const char *word, size_t length)
{
	size_t flags = flags_before(w, word, length);
	for (size_t i = 0; i < ARRAY_LENGTH(programs); i++) {
		const struct secret_program *row = &programs[i];
		size_t option = strlen(row->option);
		if (option < 2 || !is_of(row, w) || (row->subcommand && !w->subcommand) ||
			length < flags + option || word[0] != row->option[0] ||
			memcmp(word + 1 + flags, row->option + 1, option - 1) != 0) {
			continue;
		}
		option += flags;
		bool is_long = row->option[1] == '-';
		if (length > option && (!is_long || word[option] == '=')) {
			return found(row->kind, word, option + is_long, length, row->delimiters);
		}
		if (length == option && row->option[0] == '-') {
			w->pending = row->kind;
			w->delimiters = row->delimiters;
			w->may_be_flag = true;
			break;
		}
	}
	return (struct secret_word){SECRET_NOTHING, 0};
}

static struct secret_word take_option(struct secret_words *w, const char *word, size_t length)
{
	if (word[0] == '-' && !memchr(word, '=', length) && secret_name(word, length)) {
		size_t dashes = strspn(word, "-");
		w->pending = SECRET_WHOLE;
		w->may_be_flag = length - dashes >= 4 && strncmp(word + length - 4, "auth", 4) == 0;
		return (struct secret_word){SECRET_NOTHING, 0};
	}
	if (secret_tokens_option(word, length)) {
		w->pending = SECRET_WHOLE;
		w->may_be_flag = true;
		w->may_be_count = true;
		return (struct secret_word){SECRET_NOTHING, 0};
	}
	return take_program_option(w, word, length);
}

// A word that is not an option: the program, a subcommand, or an operand.
static struct secret_word take_operand(struct secret_words *w, const char *word, size_t length)
{
	if (begin_program(w, word, length)) {
		return (struct secret_word){SECRET_NOTHING, 0};
	}
	for (size_t i = 0; i < ARRAY_LENGTH(programs); i++) {
		const struct secret_program *row = &programs[i];
		if (!is_of(row, w)) {
			continue;
		}
		if (row->subcommand && !w->subcommand) {
			w->subcommand = is(word, length, row->subcommand);
		} else if (*row->option == '=' && secret_name(word, length)) {
			w->pending = SECRET_WHOLE;
		} else if (!*row->option) {
			return found(row->kind, word, 0, length, row->delimiters);
		}
	}
	return (struct secret_word){SECRET_NOTHING, 0};
}

// Whether a word is an option rather than a value. Passwords may begin with a dash: --password -x.
static bool is_other_option(const struct secret_words *w, const char *word, size_t length)
{
	return length > 1 && word[0] == '-' &&
	       (w->may_be_flag ||
		       (word[1] == '-' && length > 2 && isalpha((unsigned char)word[2])));
}

// Classifies the next word. The words of a script are passed without their quotes.
static struct secret_word secret_next_word(struct secret_words *w, const char *word, size_t length)
{
	enum secret_kind kind = w->pending;
	bool count = w->may_be_count && secret_is_count(word, length);
	w->pending = SECRET_NOTHING;
	w->may_be_count = false;
	if (!count && kind != SECRET_NOTHING && length > 0 && !is_other_option(w, word, length)) {
		return found(kind, word, 0, length, w->delimiters);
	}
	if (length == 0) {
		return (struct secret_word){SECRET_NOTHING, 0};
	}
	return word[0] == '-' || (word[0] == '/' && length > 3 && word[2] == ':')
	               ? take_option(w, word, length)
	               : take_operand(w, word, length);
}

// Value -------------------------------------------------------------------------------------------
//
// Secrets recognised by their shape. All searches are linear in the text's length.

// Tokens with a prefix ----------------------------------------------------------------------------

enum charset {
	LETTERS, // letters and digits
	WORDS, // and _
	DASHES, // and -
	DOTS, // and . =
	CAPITALS, // A-Z and digits
	HEX,
};

struct token {
	const char *prefix;
	enum charset charset; // of the characters after the prefix
	unsigned least; // minimum number of bytes after the prefix
	bool mixed; // they must contain a digit or a capital, or be at least 20
};

static const struct token tokens[] = {
	{"A3T", CAPITALS, 17, false}, // Amazon Web Services
	{"ABIA", CAPITALS, 12, false}, {"ACCA", CAPITALS, 12, false},
	{"AGE-SECRET-KEY-", DASHES, 10, false}, {"AIza", DASHES, 20, false}, // Google
	{"AKIA", CAPITALS, 12, false}, {"AKID", LETTERS, 24, true}, // Tencent
	{"ASIA", CAPITALS, 12, false}, {"ATATT", DOTS, 20, true}, // Atlassian
	{"ATBB", LETTERS, 20, true}, {"ATCTT", DOTS, 20, true}, {"CFPAT-", DASHES, 16, true},
	{"EAACEdEose0cBA", LETTERS, 4, false}, {"GOCSPX-", DASHES, 10, false},
	{"LTAI", LETTERS, 12, true}, // Alibaba
	{"NRAK-", CAPITALS, 16, false}, // New Relic
	{"PMAK-", DASHES, 20, true}, // Postman
	{"SG.", DOTS, 20, true}, // SendGrid
	{"atlasv1.", DOTS, 20, true}, // Terraform
	{"dapi", HEX, 24, false}, // Databricks
	{"dckr_pat_", DASHES, 8, false}, {"dop_v1_", HEX, 8, false}, // DigitalOcean
	{"doo_v1_", HEX, 8, false}, {"dor_v1_", HEX, 8, false},
	{"dp.pt.", LETTERS, 12, true}, // Doppler
	{"figd_", DASHES, 16, true}, {"ghp_", LETTERS, 6, false}, // GitHub
	{"gho_", LETTERS, 6, false}, {"ghu_", LETTERS, 6, false}, {"ghs_", LETTERS, 6, false},
	{"ghr_", LETTERS, 6, false}, {"github_pat_", WORDS, 6, false},
	{"glagent-", DASHES, 10, true}, // GitLab
	{"glcbt-", DASHES, 8, true}, {"gldt-", DASHES, 8, true}, {"glft-", DASHES, 8, true},
	{"glpat-", DASHES, 6, false}, {"glptt-", DASHES, 8, true}, {"glrt-", DASHES, 8, true},
	{"glsoat-", DASHES, 8, true}, {"glc_", DOTS, 20, true}, // Grafana
	{"glsa_", WORDS, 16, true}, {"gsk_", LETTERS, 16, true}, // Groq
	{"hf_", LETTERS, 12, true}, // Hugging Face
	{"hvb.", DOTS, 16, true}, // Vault
	{"hvs.", DOTS, 10, true}, {"jina_", LETTERS, 20, true}, {"lin_api_", LETTERS, 12, true},
	{"lsv2_pt_", WORDS, 12, true}, // LangSmith
	{"lsv2_sk_", WORDS, 12, true}, {"npm_", LETTERS, 12, true}, {"nvapi-", DASHES, 12, true},
	{"ops_", DOTS, 40, true}, // 1Password
	{"pplx-", LETTERS, 16, true}, {"pul-", HEX, 32, false}, // Pulumi
	{"pypi-", DASHES, 16, true}, {"r8_", LETTERS, 16, true}, // Replicate
	{"rk_live_", LETTERS, 8, false}, // Stripe
	{"rk_test_", LETTERS, 8, false}, {"rubygems_", HEX, 16, false},
	{"rzp_live_", LETTERS, 8, false}, {"sbp_", HEX, 16, false}, // Supabase
	{"secret-token:", DOTS, 4, false}, // RFC 8959
	{"shpat_", HEX, 16, false}, // Shopify
	{"shpss_", HEX, 16, false}, {"sk-", DASHES, 10, true}, // OpenAI, Anthropic
	{"sk_live_", LETTERS, 8, false}, {"sk_test_", LETTERS, 8, false},
	{"sntrys_", DOTS, 16, true}, // Sentry
	{"sntryu_", HEX, 16, false}, {"sq0atp-", DASHES, 12, true}, // Square
	{"sq0csp-", DASHES, 12, true}, {"tfp_", LETTERS, 20, true},
	{"tskey-", DASHES, 10, true}, // Tailscale
	{"wandb_v1_", WORDS, 16, true}, {"whsec_", LETTERS, 16, true}, {"xai-", LETTERS, 16, true},
	{"xapp-", DASHES, 8, false}, // Slack
	{"xkeysib-", DASHES, 16, true}, {"xoxa-", DASHES, 6, false}, {"xoxb-", DASHES, 6, false},
	{"xoxe-", DASHES, 6, false}, {"xoxp-", DASHES, 6, false}, {"xoxr-", DASHES, 6, false},
	{"xoxs-", DASHES, 6, false}, {"ya29.", DOTS, 8, false}, // Google
};

static bool fits(enum charset charset, char c)
{
	switch (charset) {
	case LETTERS:
		return isalnum((unsigned char)c);
	case WORDS:
		return isalnum((unsigned char)c) || c == '_';
	case DASHES:
		return isalnum((unsigned char)c) || c == '_' || c == '-';
	case DOTS:
		return isalnum((unsigned char)c) || (c && strchr("_-.=+/", c));
	case CAPITALS:
		return isupper((unsigned char)c) || isdigit((unsigned char)c);
	default:
		return isxdigit((unsigned char)c);
	}
}

// Whether a word may begin at i: not after a letter, digit or _, except after the \n of JSON and
// %3D.
static bool is_boundary(const char *text, size_t i)
{
	if (i == 0 || !(isalnum((unsigned char)text[i - 1]) || text[i - 1] == '_')) {
		return true;
	}
	return i > 1 &&
	       ((text[i - 2] == '\\' && strchr("nrt", text[i - 1])) ||
		       (i > 2 && text[i - 3] == '%' && isxdigit((unsigned char)text[i - 2]) &&
			       isxdigit((unsigned char)text[i - 1])));
}

// Returns the length of the token at `at`; 0 if there is none.
static size_t token_length(const struct token *token, const char *at)
{
	size_t prefix = strlen(token->prefix), end = prefix;
	bool mixed = false;
	if (strncmp(at, token->prefix, prefix) != 0) {
		return 0;
	}
	while (fits(token->charset, at[end])) {
		mixed = mixed || isdigit((unsigned char)at[end]) || isupper((unsigned char)at[end]);
		end++;
	}
	if (end - prefix < token->least || (token->mixed && !mixed && end - prefix < 20)) {
		return 0;
	}
	while (fits(DASHES, at[end])) { // mask the rest of it, too
		end++;
	}
	return end;
}

static void mark_tokens(const struct secret_marks *m)
{
	for (size_t i = 0; i < m->length; i++) {
		if (!isalpha((unsigned char)m->text[i]) || !is_boundary(m->text, i)) {
			continue;
		}
		size_t length = 0;
		for (size_t k = 0; k < ARRAY_LENGTH(tokens) && length == 0; k++) {
			length = *tokens[k].prefix == m->text[i]
			                 ? token_length(&tokens[k], m->text + i)
			                 : 0;
		}
		secret_mark(m, i, i + length);
		i += length > 0 ? length - 1 : 0;
	}
}

// eyJhbGciOi.eyJzdWIi.signature: the first part is base64 of {"...
static void mark_web_tokens(const struct secret_marks *m)
{
	for (const char *at = m->text; (at = strstr(at, "eyJ"));) {
		size_t length = 0, dots = 0;
		while (fits(DASHES, at[length]) ||
			(at[length] == '.' && fits(DASHES, at[length + 1]))) {
			dots += at[length] == '.';
			length++;
		}
		size_t from = (size_t)(at - m->text);
		if (is_boundary(m->text, from) && dots > 0 && length >= 16) {
			secret_mark(m, from, from + length + (at[length] == '.'));
		}
		at += length;
	}
}

// Private keys ------------------------------------------------------------------------------------

static void mark_private_keys(const struct secret_marks *m)
{
	static const char begin[] = "-----BEGIN ", end[] = "-----END ";
	for (const char *at = m->text; (at = strstr(at, begin));) {
		const char *name = at + strlen(begin);
		size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ");
		bool secret = length >= 11 && memmem(name, length, "PRIVATE KEY", 11);
		const char *body = name + length + strspn(name + length, "-");
		at = body;
		if (secret) {
			const char *close = strstr(body, end);
			size_t to = close ? (size_t)(close - m->text) : m->length;
			secret_mark(m, (size_t)(body - m->text), to);
			at = m->text + to;
		}
	}
}

// Authorization and addresses that are secret -----------------------------------------------------

static bool is_random(const char *at, size_t length)
{
	bool digit = false, upper = false;
	for (size_t i = 0; i < length; i++) {
		digit = digit || isdigit((unsigned char)at[i]);
		upper = upper || (i > 0 && isupper((unsigned char)at[i])) || at[i] == '=';
	}
	return length >= 20 || digit || upper;
}

static void mark_schemes(const struct secret_marks *m)
{
	static const char *const schemes[] = {"bearer", "basic"};
	for (size_t i = 0; i < m->length; i++) {
		for (size_t k = 0; k < ARRAY_LENGTH(schemes); k++) {
			size_t length = strlen(schemes[k]), from = i + length, to;
			if (strncasecmp(m->text + i, schemes[k], length) != 0 ||
				!is_boundary(m->text, i) ||
				(m->text[from] != ' ' && m->text[from] != '+')) {
				continue;
			}
			from += strspn(m->text + from, " +");
			to = from;
			while (fits(DOTS, m->text[to]) || m->text[to] == '~') {
				to++;
			}
			if (to - from >= 8 && is_random(m->text + from, to - from)) {
				secret_mark(m, from, to);
			}
			i = to - 1;
			break;
		}
	}
}

static void mark_addresses(const struct secret_marks *m)
{
	static const char *const places[] = {"hooks.slack.com/services/", "/api/webhooks/",
		"api.telegram.org/bot", "webhook.office.com/webhookb2/"};
	for (size_t k = 0; k < ARRAY_LENGTH(places); k++) {
		for (const char *at = m->text; (at = strstr(at, places[k]));) {
			at += strlen(places[k]);
			size_t from = (size_t)(at - m->text);
			size_t length = strcspn(at, " \t\r\n\"'`<>");
			secret_mark(m, from, from + length);
			at += length;
		}
	}
}

// The user information of URLs --------------------------------------------------------------------

// The end of a word without blanks and quotes, and its last '@'; computed once for each such word.
struct run {
	size_t to;
	size_t last_at; // 0: none
};

static void find_run(const struct secret_marks *m, size_t from, struct run *run)
{
	if (from < run->to) {
		return;
	}
	*run = (struct run){.to = from};
	for (; m->text[run->to] && !strchr(" \t\r\n\"'`<>", m->text[run->to]); run->to++) {
		run->last_at = m->text[run->to] == '@' ? run->to : run->last_at;
	}
}

// Whether a value is a placeholder: ${NAME}, {name}.
static bool secret_is_reference(const char *at, size_t length)
{
	size_t from = length > 0 && *at == '$', names = 0;
	bool upper = false, lower = false, digit = false;
	if (length < from + 3 || at[from] != '{' || at[length - 1] != '}') {
		return false;
	}
	while (secret_is_name_byte(at[from + 1 + names])) {
		upper = upper || isupper((unsigned char)at[from + 1 + names]);
		lower = lower || islower((unsigned char)at[from + 1 + names]);
		digit = digit || isdigit((unsigned char)at[from + 1 + names]);
		names++;
	}
	// {S3cr3t} is not a variable name.
	return from + 2 + names == length && (from > 0 || !(upper && lower && digit));
}

static void mark_unless_reference(const struct secret_marks *m, size_t from, size_t to)
{
	if (to > from && !secret_is_reference(m->text + from, to - from)) {
		secret_mark(m, from, to);
	}
}

static bool is_web(const char *text, size_t colon)
{
	size_t from = colon;
	while (from > 0 && isalnum((unsigned char)text[from - 1])) {
		from--;
	}
	size_t length = colon - from;
	return (length == 4 && strncasecmp(text + from, "http", 4) == 0) ||
	       (length == 5 && strncasecmp(text + from, "https", 5) == 0);
}

// Returns the '@' that ends the user information of a URL with its authority at `from`; 0: none.
static size_t find_at(const struct secret_marks *m, size_t from, bool web, const struct run *run)
{
	const char *text = m->text;
	size_t length = strcspn(text + from, "/?# \t\r\n\"'`<>");
	const char *in_authority = memrchr(text + from, '@', length);
	if (in_authority && web) {
		return (size_t)(in_authority - text);
	}
	if (run->last_at < from || run->last_at == 0) {
		return 0;
	}
	// A password may contain '/', '?' and '#'; host:8080/a@b has no password.
	const char *colon = memchr(text + from, ':', length);
	size_t port = colon ? (size_t)(colon - text) + 1 : 0;
	bool digits = colon && port + strspn(text + port, "0123456789") == from + length;
	if (!in_authority && (!colon || digits)) {
		return 0;
	}
	return in_authority && !colon ? (size_t)(in_authority - text) : run->last_at;
}

static void mark_user_information(const struct secret_marks *m, size_t from, bool web, size_t at)
{
	const char *text = m->text, *colon = memchr(text + from, ':', at - from);
	size_t user = (colon ? (size_t)(colon - text) : at) - from;
	size_t password = colon ? from + user + 1 : at;
	mark_unless_reference(m, password, at);
	// https://TOKEN@host, https://TOKEN:x-oauth-basic@host
	bool filler = !colon || at == password || at - password == 1 ||
	              strncmp(text + password, "x-oauth-basic", 13) == 0;
	bool token = user >= 20 || (filler && !(user == 3 && strncmp(text + from, "git", 3) == 0));
	if (web && token) {
		mark_unless_reference(m, from, from + user);
	}
}

static void mark_urls(const struct secret_marks *m)
{
	struct run run = {0};
	for (const char *at = m->text; (at = strstr(at, "://"));) {
		size_t colon = (size_t)(at - m->text), from = colon + 3;
		bool web = is_web(m->text, colon);
		find_run(m, from, &run);
		size_t end = find_at(m, from, web, &run);
		if (end > from) {
			mark_user_information(m, from, web, end);
		}
		at += 3;
	}
}

// user:password@host without a scheme. pkg:extra@1.2, image:tag@sha256:... and mailto: are not.
static bool is_host(const char *at)
{
	size_t length = strspn(at, "0123456789.");
	size_t dots = 0;
	for (size_t i = 0; i < length; i++) {
		dots += at[i] == '.';
	}
	bool version = (*at == 'v' && isdigit((unsigned char)at[1])) ||
	               (length > 0 && dots != 3 && !secret_is_name_byte(at[length]));
	return !version && strncmp(at, "sha256:", 7) != 0 && strncmp(at, "sha512:", 7) != 0 &&
	       (isalnum((unsigned char)*at) || *at == '[');
}

static void mark_logins(const struct secret_marks *m)
{
	static const char no_users[] = " author email mailto ";
	struct run run = {0};
	for (size_t i = 0; i < m->length; i++) {
		size_t user = 0;
		bool path = i > 0 && m->text[i - 1] == '/' &&
		            !(i > 1 && m->text[i - 2] == '/' && (i == 2 || m->text[i - 3] != ':'));
		if (!isalpha((unsigned char)m->text[i]) || path || !is_boundary(m->text, i)) {
			continue;
		}
		while (secret_is_name_byte(m->text[i + user]) || m->text[i + user] == '%') {
			user++;
		}
		size_t password = i + user + 1;
		find_run(m, i, &run);
		if (m->text[i + user] == ':' && m->text[password] && run.last_at > password &&
			!strchr("/~.\\:", m->text[password]) &&
			is_host(m->text + run.last_at + 1) &&
			!secret_listed(no_users, m->text + i, user)) {
			mark_unless_reference(m, password, run.last_at);
			i = run.last_at;
		} else {
			i += user > 0 ? user - 1 : 0;
		}
	}
}

// Marks tokens by their prefixes, JSON web tokens, private keys, "Bearer X", and the
// user information of URLs.
static void secret_mark_values(const struct secret_marks *m)
{
	mark_tokens(m);
	mark_web_tokens(m);
	mark_private_keys(m);
	mark_schemes(m);
	mark_addresses(m);
	mark_urls(m);
	mark_logins(m);
}
