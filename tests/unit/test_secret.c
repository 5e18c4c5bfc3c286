// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/secret.h"

enum { LINE_BYTES = 4096, ARGUMENTS_MAX = 64 };

static const char bar[] = "¦";

static void append(void *context, const char *masked, size_t length)
{
	struct text *out = context;
	text_append_string(out, out->length > 0 ? bar : "");
	for (size_t i = 0; i < length; i++) {
		text_append(out, masked[i] == '\n' ? "\\N" : &masked[i], masked[i] == '\n' ? 2 : 1);
	}
}

// "\N" is a newline.
static void unescape(char *argument)
{
	char *to = argument;
	for (const char *at = argument; *at; at++) {
		bool newline = at[0] == '\\' && at[1] == 'N';
		*to++ = newline ? '\n' : *at;
		at += newline;
	}
	*to = '\0';
}

static void mask(const char *line, struct text *out)
{
	_cleanup_free_ char *copy = strdup(line);
	char *arguments[ARGUMENTS_MAX + 1] = {NULL}, *at = copy;
	bool failed;
	for (size_t n = 0; at && n < ARGUMENTS_MAX; n++) {
		char *end = strstr(at, bar);
		arguments[n] = at;
		if (end) {
			*end = '\0';
		}
		at = end ? end + strlen(bar) : NULL;
		unescape(arguments[n]);
	}
	secret_each_argument(arguments, append, out, &failed);
	assert_false(failed);
}

struct counts {
	unsigned leak, keep, vain, wrong;
};

static void check(const char *kind, const char *line, const char *wanted, struct counts *c)
{
	_cleanup_text_ struct text out = {0}, again = {0};
	mask(line, &out);
	const char *found = out.data ? out.data : "";
	mask(found, &again);
	bool vain = strncmp(kind, "vain", 4) == 0;
	if (vain ? strcmp(found, line) == 0 : strcmp(found, wanted) != 0) {
		print_error("%.4s %s\n  => %s\nexpected %s\n", kind, line, found,
			vain ? "a mask (is it a 'keep' now?)" : wanted);
		c->wrong++;
	}
	if (strcmp(again.data ? again.data : "", found) != 0) {
		print_error("%s\n  masked again is %s\n", found, again.data);
		c->wrong++;
	}
	c->leak += *kind == 'l';
	c->keep += *kind == 'k';
	c->vain += vain;
}

static void read_line(FILE *file, char *line)
{
	if (!fgets(line, LINE_BYTES, file)) {
		*line = '\0';
	}
	line[strcspn(line, "\n")] = '\0';
}

static void test_corpus(void **state)
{
	(void)state;
	_cleanup_text_ struct text path = {0};
	const char *root = getenv("SOURCE_ROOT");
	text_format(&path, "%s/tests/unit/secrets.txt", root ? root : ".");
	_cleanup_fclose_ FILE *file = fopen(path.data, "re");
	assert_non_null(file);
	char line[LINE_BYTES], wanted[LINE_BYTES];
	struct counts c = {0};
	while (!feof(file)) {
		read_line(file, line);
		if (strncmp(line, "leak ", 5) == 0) {
			read_line(file, wanted);
			assert_memory_equal(wanted, "  => ", 5);
			assert_non_null(strstr(wanted, "***"));
			check(line, line + 5, wanted + 5, &c);
		} else if (strncmp(line, "keep ", 5) == 0 || strncmp(line, "vain ", 5) == 0) {
			check(line, line + 5, line + 5, &c);
		}
	}
	print_message("%u secrets masked, %u harmless lines kept, %u masked in vain\n", c.leak,
		c.keep, c.vain);
	assert_int_equal(c.wrong, 0);
	assert_true(c.leak >= 200 && c.keep >= 100);
	assert_true(c.vain * 20 <= c.keep + c.vain); // 5 %
}

static void test_names(void **state)
{
	(void)state;
	static const char *const secret[] = {"token", "HF_TOKEN", "--auth-token", "access_token",
		"GITHUB_TOKEN", "password", "db-password", "PGPASSWORD", "passwd", "api_key",
		"API-KEY", "WANDB_API_KEY", "apikey", "openai.api.key", "AWS_SECRET_ACCESS_KEY",
		"client-secret", "credentials", "auth", "--basic-auth", "Authorization",
		"passphrase", "authtoken", "APIKey", "myApiKey", "HFToken", "pass", "PWD"};
	static const char *const plain[] = {"tokenizer", "--tokenizer-path", "max_tokens", "tokens",
		"tokenization", "author", "authors", "key", "--batch-size", "keyboard", "a", "",
		"monkey", "-", "--", "0", "cwd", "passes"};
	for (size_t i = 0; i < ARRAY_LENGTH(secret); i++) {
		if (!secret_name(secret[i], strlen(secret[i]))) {
			fail_msg("%s is secret", secret[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(plain); i++) {
		if (secret_name(plain[i], strlen(plain[i]))) {
			fail_msg("%s is not secret", plain[i]);
		}
	}
}

static void test_command_lines(void **state)
{
	(void)state;
	_cleanup_text_ struct text out = {0};
	static const char line[] = "python3\0train.py\0--token\0abc\0--name=\"x\"";
	secret_append_command(&out, line, sizeof(line) - 1);
	assert_string_equal(
		out.data, "[\"python3\",\"train.py\",\"--token\",\"***\",\"--name=\\\"x\\\"\"]");
	text_clear(&out);
	secret_append_command(&out, "", 0);
	assert_string_equal(out.data, "[]");
	text_clear(&out);
	secret_append_command(&out, "a\0\0b\0", 5);
	assert_string_equal(out.data, "[\"a\",\"\",\"b\"]");
}

static void test_text(void **state)
{
	(void)state;
	_cleanup_text_ struct text out = {0};
	static const char log[] = "RuntimeError: cannot open https://u:pw@host/x (token=abc)\n";
	secret_append_text(&out, log, strlen(log));
	assert_string_equal(
		out.data, "RuntimeError: cannot open https://u:***@host/x (token=***)\n");
	text_clear(&out);
	secret_append_value(&out, "token=abc hf_AbCdEfGh1234", 25); // names do not count
	assert_string_equal(out.data, "token=abc ***");
}

static void check_end(const char *data, bool torn, const char *wanted)
{
	_cleanup_text_ struct text out = {0};
	secret_append_end(&out, data, strlen(data), torn);
	assert_string_equal(out.data ? out.data : "", wanted);
}

static void test_ends(void **state)
{
	(void)state;
	static const char key[] =
		"IIB\nS3cr3t\nS3cr3t\n-----END RSA PRIVATE KEY-----\nlr=1 token=S3cr3t\n";
	check_end("all of\nit\n", false, "all of\nit\n");
	check_end("word\": \"S3cr3t\", \"lr\": 1}\nError: it\n", true, "Error: it\n");
	check_end("epoch 1\repoch 2\repoch 3", true, "epoch 2\repoch 3");
	check_end(key, true, "***-----END RSA PRIVATE KEY-----\nlr=1 token=***\n");
	check_end("one line with S3cr3t words", true, "***");
	check_end("one line with S3cr3t words\n", true, "***");
	check_end("x\n-----BEGIN PRIVATE KEY-----\nS3cr3t\n-----END PRIVATE KEY-----\n", true,
		"-----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY-----\n");
	check_end("x\na\n-----END A-----\n-----BEGIN PRIVATE KEY-----\nS3cr3t", true,
		"***-----END A-----\n-----BEGIN PRIVATE KEY-----***");
	check_end("", true, "");
	check_end("\x80\xa4 torn\na\xff", true, "a\ufffd");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corpus),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_command_lines),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
