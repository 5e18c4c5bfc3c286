// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Options that are followed by a secret. -p is a port for one program and a password for another.

#include "base/cleanup.h"
#include "base/secret.h"
#include "base/secret_internal.h"

struct secret_program {
	const char *names; // a list
	const char *subcommand; // what must have come before; NULL: nothing
	const char *option; // "" for a word that is no option, "=" for one after a secret name
	enum secret_kind kind;
	const char *delimiters; // of SECRET_AFTER
};

// Of any program that is not named in another row: -u user:password.
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

// Whether a word names a program that we know: that is the one whose words follow.
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

// Where what follows the first delimiter in a word begins; the word's end where there is none.
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

// The options without a value that may stand before another one in a word: curl -sSu.
static size_t flags_before(const struct secret_words *w, const char *word, size_t length)
{
	size_t flags = 0;
	if (w->program && is(w->program, w->program_length, "curl") && length > 2 &&
		word[0] == '-') {
		flags = strspn(word + 1, "0123469aBfgGiIjJklLMnNOpqRsSvVZ#:");
	}
	return flags + 1 < length ? flags : 0;
}

// An option of the program: its value is in this word, or the next one.
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

// A word that is no option: the program, a subcommand, or what they take.
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

// An option where a value might be. Passwords may begin with a dash: --password -x.
static bool is_other_option(const struct secret_words *w, const char *word, size_t length)
{
	return length > 1 && word[0] == '-' &&
	       (w->may_be_flag ||
		       (word[1] == '-' && length > 2 && isalpha((unsigned char)word[2])));
}

struct secret_word secret_next_word(struct secret_words *w, const char *word, size_t length)
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
