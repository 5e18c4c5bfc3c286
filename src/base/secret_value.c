// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Secrets that are known by their shape. All of it is linear in the text's length.

#include <strings.h>

#include "base/cleanup.h"
#include "base/secret_internal.h"

// Tokens with a prefix ---------------------------------------------------------------------------

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
	enum charset charset; // of what follows
	unsigned least; // bytes that follow
	bool mixed; // a digit or a capital is among them, or they are 20 at least
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

// Whether a word may begin at i: after no letter, digit or _, but for the \n of JSON and %3D.
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

// The length of the token at `at`; 0 where it is none.
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
	while (fits(DASHES, at[end])) { // no rest of it stays
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

// Private keys -----------------------------------------------------------------------------------

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

// Authorization and addresses that are secret ----------------------------------------------------

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

// The user information of URLs -------------------------------------------------------------------

// Where a word without blanks and quotes ends, and its last '@'; found once for each such word.
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

bool secret_is_reference(const char *at, size_t length)
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
	// {S3cr3t} is the name of nothing.
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

// The '@' that ends the user information of the URL whose authority begins at `from`; 0: it has
// none.
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
	// A password may hold '/', '?' and '#'; host:8080/a@b has none.
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

// user:password@host without a scheme. pkg:extra@1.2, image:tag@sha256:... and mailto: are none.
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

void secret_mark_values(const struct secret_marks *m)
{
	mark_tokens(m);
	mark_web_tokens(m);
	mark_private_keys(m);
	mark_schemes(m);
	mark_addresses(m);
	mark_urls(m);
	mark_logins(m);
}
