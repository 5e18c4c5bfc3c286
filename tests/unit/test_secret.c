// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "record/job/secret.h"

static void expect(const char *previous, const char *argument, const char *wanted)
{
	_cleanup_text_ struct text out = {0};
	secret_append(&out, previous, argument);
	assert_false(out.failed);
	assert_string_equal(out.data ? out.data : "", wanted);
}

static void test_names(void **state)
{
	(void)state;
	static const char *const secret[] = {"token", "HF_TOKEN", "--auth-token", "access_token",
		"GITHUB_TOKEN", "password", "db-password", "PGPASSWORD", "passwd", "api_key",
		"API-KEY", "WANDB_API_KEY", "apikey", "openai.api.key", "AWS_SECRET_ACCESS_KEY",
		"client-secret", "credentials", "auth", "--basic-auth", "Authorization",
		"passphrase", "authtoken"};
	static const char *const plain[] = {"tokenizer", "--tokenizer-path", "max_tokens", "tokens",
		"tokenization", "author", "authors", "key", "--batch-size", "keyboard", "pass", "a",
		"", "monkey"};
	for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++) {
		if (!secret_name(secret[i], strlen(secret[i]))) {
			fail_msg("%s is secret", secret[i]);
		}
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		if (secret_name(plain[i], strlen(plain[i]))) {
			fail_msg("%s is not secret", plain[i]);
		}
	}
}

static void test_values_behind_names(void **state)
{
	(void)state;
	expect(NULL, "--token=abc", "--token=***");
	expect(NULL, "--token=a b c", "--token=***");
	expect(NULL, "HF_TOKEN=abc", "HF_TOKEN=***");
	expect(NULL, "--token=", "--token=");
	expect(NULL, "--lr=0.1", "--lr=0.1");
	expect("--token", "abc", "***");
	expect("--api-key", "abc", "***");
	expect("-password", "abc", "***");
	expect("--token", "--verbose", "--verbose");
	expect("--token=x", "abc", "abc");
	expect("token", "abc", "abc");
	expect("--tokenizer", "gpt2", "gpt2");
	expect("--max-tokens", "512", "512");
}

static void test_values_inside_arguments(void **state)
{
	(void)state;
	expect(NULL, "export HF_TOKEN=abc; python3 train.py",
		"export HF_TOKEN=***; python3 train.py");
	expect(NULL, "x --password 'a b' --lr 1", "x --password *** --lr 1");
	expect(NULL, "x --password abc --lr 1", "x --password *** --lr 1");
	expect(NULL, "Authorization: Bearer abc.def", "Authorization: ***");
	expect(NULL, "X-Api-Key: abc", "X-Api-Key: ***");
	expect(NULL, "https://h/x?token=abc&y=1", "https://h/x?token=***&y=1");
	expect(NULL, "config.auth.token=abc", "config.auth.token=***");
}

static void test_urls(void **state)
{
	(void)state;
	expect(NULL, "postgres://user:secret@host/db", "postgres://user:***@host/db");
	expect(NULL, "--url=https://u:p@w@host/", "--url=https://u:***@host/");
	expect(NULL, "https://user@host/a:b@c", "https://user@host/a:b@c");
	expect(NULL, "https://host:8080/a@b", "https://host:8080/a@b");
	expect(NULL, "tcp://:@", "tcp://:***@");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_values_behind_names),
		cmocka_unit_test(test_values_inside_arguments),
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_command_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
