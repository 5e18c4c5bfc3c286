// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Names of secrets. A name is cut into its parts: AWS_SECRET_ACCESS_KEY and awsSecretAccessKey are
// "aws secret access key". Language models have tokens and keys that are no secrets: pad_token,
// max_tokens, key_dim.

#include <strings.h>

#include "base/cleanup.h"
#include "base/secret.h"
#include "base/secret_internal.h"

enum { NAME_BYTES = 128, PARTS_MAX = 32 };

struct parts {
	char text[2 * NAME_BYTES];
	const char *part[PARTS_MAX];
	size_t n;
};

enum match {
	WHOLE, // the part is the word
	END, // it ends with it: "hftoken"
	WITHIN, // it has it: "pgpassword"
};

struct secret_name_word {
	const char *word;
	enum match match;
	const char *before; // parts, or beginnings of this part, that make it another word
	const char *after; // parts that may follow; NULL: all but those that are about a secret
};

// A file with a secret, its length, its age are no secrets.
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

// Two parts that follow each other; the second may be a plural.
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

bool secret_listed(const char *list, const char *word, size_t length)
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

// A part begins where a capital letter follows a small one, or begins a word after capitals:
// APIKey.
static bool begins_part(const char *name, size_t length, size_t i)
{
	bool upper = isupper((unsigned char)name[i]);
	bool after_lower = i > 0 && (islower((unsigned char)name[i - 1]) ||
					    isdigit((unsigned char)name[i - 1]));
	bool ends_capitals = i > 0 && isupper((unsigned char)name[i - 1]) && i + 1 < length &&
	                     islower((unsigned char)name[i + 1]);
	return upper && (after_lower || ends_capitals);
}

// Longer names are judged by their end. Numbers at the end of a part are dropped: password2.
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

// What comes after part i allows that it is a secret.
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

bool secret_query_name(const char *name, size_t length)
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

bool secret_tokens_option(const char *name, size_t length)
{
	return length == 8 && memcmp(name, "--tokens", 8) == 0;
}

bool secret_is_count(const char *value, size_t length)
{
	size_t number = strspn(value, "+-.,_0123456789");
	number += number > 0 ? strspn(value + number, "eEkKmMbBgGtT+-0123456789") : 0;
	return number >= length || memchr(value, '/', length) || memchr(value, '.', length);
}
