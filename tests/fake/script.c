// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reading and playing the script.

#include "script.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_LINES 1024
#define MAX_FUNCTIONS 128
#define NOT_SUPPORTED 3
#define ALL_GPUS UINT32_MAX
#define SETTING (UINT32_MAX - 1)

struct line {
	char when[16]; // a file that must be there, SCRIPT.WHEN; empty: none
	uint64_t t_ms;
	unsigned gpu; // ALL_GPUS, or SETTING for general ones
	char key[64];
	char value[FAKE_TEXT];
	int error; // "error:N", the value is none; else 0
};

// One process plays one script.
static struct {
	struct line lines[MAX_LINES];
	size_t n_lines;
	bool manual;
	uint64_t advanced_ms;
	struct timespec realtime;
	struct timespec monotonic;
	struct {
		char name[64];
		unsigned calls;
	} functions[MAX_FUNCTIONS];
	size_t n_functions;
	pthread_mutex_t lock;
} script = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t milliseconds(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000 + (uint64_t)t->tv_nsec / 1000000;
}

uint64_t script_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return script.manual ? script.advanced_ms
	                     : milliseconds(&now) - milliseconds(&script.monotonic);
}

void script_advance_ms(uint64_t ms)
{
	script.advanced_ms += ms;
}

uint64_t script_realtime_us(uint64_t at_ms)
{
	return (milliseconds(&script.realtime) + at_ms) * 1000;
}

uint64_t script_monotonic_us(uint64_t at_ms)
{
	return (milliseconds(&script.monotonic) + at_ms) * 1000;
}

// Takes the next word of *at and ends it.
static char *next_word(char **at)
{
	*at += strspn(*at, " \t");
	char *word = *at;
	*at += strcspn(*at, " \t");
	if (**at) {
		*(*at)++ = '\0';
	}
	*at += strspn(*at, " \t");
	return word;
}

// 0 where the value is one; false where it says error and no number.
static bool parse_error(const char *value, int *ret)
{
	static const char prefix[] = "error:";
	*ret = 0;
	if (strncmp(value, prefix, strlen(prefix)) != 0) {
		return true;
	}
	char *rest;
	long code = strtol(value + strlen(prefix), &rest, 10);
	*ret = code > 0 && code < 1000 ? (int)code : 0;
	return *ret != 0 && rest[strspn(rest, " \t")] == '\0';
}

// "KEY VALUE", or "[at MS] gpu N|* KEY VALUE".
static bool parse_line(char *text)
{
	struct line line = {.gpu = SETTING};
	char *at = text;
	char *word = next_word(&at);
	if (*word == '\0' || *word == '#') {
		return true;
	}
	if (strcmp(word, "when") == 0) {
		snprintf(line.when, sizeof(line.when), "%s", next_word(&at));
		word = next_word(&at);
	}
	if (strcmp(word, "at") == 0) {
		line.t_ms = strtoull(next_word(&at), NULL, 10);
		word = next_word(&at);
	}
	if (strcmp(word, "gpu") == 0) {
		word = next_word(&at);
		line.gpu = *word == '*' ? ALL_GPUS : (unsigned)strtoul(word, NULL, 10);
		word = next_word(&at);
	}
	if (*word == '\0' || script.n_lines == MAX_LINES) {
		return false;
	}
	snprintf(line.key, sizeof(line.key), "%s", word);
	snprintf(line.value, sizeof(line.value), "%s", at);
	if (!parse_error(line.value, &line.error)) {
		return false;
	}
	script.lines[script.n_lines++] = line;
	return true;
}

bool script_load(void)
{
	const char *path = getenv("STRAIN_FAKE_NVML");
	FILE *file = path ? fopen(path, "re") : NULL;
	char text[512];
	bool good = file != NULL;
	script.n_lines = 0;
	script.n_functions = 0;
	while (file && good && fgets(text, sizeof(text), file)) {
		char *comment = strstr(text, " #");
		text[comment ? (size_t)(comment - text) : strcspn(text, "\n")] = '\0';
		good = parse_line(text);
	}
	if (file) {
		fclose(file);
	}
	if (!good) {
		fprintf(stderr, "fake NVML: cannot read the script %s\n", path ? path : "(unset)");
		return false;
	}
	clock_gettime(CLOCK_REALTIME, &script.realtime);
	clock_gettime(CLOCK_MONOTONIC, &script.monotonic);
	script.advanced_ms = 0;
	script.manual = strcmp(script_setting_text("clock", "real"), "manual") == 0;
	return true;
}

static const char *beside(char *path, size_t size, const char *suffix)
{
	snprintf(path, size, "%s.%s", getenv("STRAIN_FAKE_NVML"), suffix);
	return path;
}

void script_say(const char *what)
{
	char path[4200];
	FILE *file = fopen(beside(path, sizeof(path), what), "we");
	if (file) {
		fclose(file);
	}
}

long script_beside(const char *what)
{
	char path[4200], text[32] = "";
	FILE *file = fopen(beside(path, sizeof(path), what), "re");
	if (file) {
		if (!fgets(text, sizeof(text), file)) {
			text[0] = '\0';
		}
		fclose(file);
	}
	return strtol(text, NULL, 10);
}

static bool has_happened(const struct line *line)
{
	char path[4200];
	return !line->when[0] || access(beside(path, sizeof(path), line->when), F_OK) == 0;
}

// The last line that has begun.
static const struct line *find(unsigned gpu, const char *key, uint64_t at_ms)
{
	const struct line *found = NULL;
	for (size_t i = 0; i < script.n_lines; i++) {
		const struct line *line = &script.lines[i];
		// Instances of divided GPUs (from 100) are none of "*".
		bool here = line->gpu == gpu || (line->gpu == ALL_GPUS && gpu < FAKE_MAX_GPUS);
		if (here && line->t_ms <= at_ms && strcmp(line->key, key) == 0 &&
			has_happened(line)) {
			found = line;
		}
	}
	return found;
}

double script_setting(const char *key, double fallback)
{
	const struct line *line = find(SETTING, key, UINT64_MAX);
	return line ? strtod(line->value, NULL) : fallback;
}

const char *script_setting_text(const char *key, const char *fallback)
{
	const struct line *line = find(SETTING, key, UINT64_MAX);
	return line ? line->value : fallback;
}

static int line_error(const struct line *line)
{
	return line ? line->error : NOT_SUPPORTED;
}

int script_number(unsigned gpu, const char *key, uint64_t at_ms, double *ret)
{
	const struct line *line = find(gpu, key, at_ms);
	int error = line_error(line);
	if (error != 0) {
		return error;
	}
	char *rest;
	if (strncmp(line->value, "ramp:", 5) == 0) {
		double base = strtod(line->value + 5, &rest);
		double rate = *rest == ':' ? strtod(rest + 1, NULL) : 0;
		*ret = base + rate * (double)(at_ms - line->t_ms) / 1000;
	} else {
		*ret = strtod(line->value, NULL);
	}
	return 0;
}

int script_text(unsigned gpu, const char *key, uint64_t at_ms, const char **ret)
{
	const struct line *line = find(gpu, key, at_ms);
	int error = line_error(line);
	if (error == 0) {
		*ret = line->value;
	}
	return error;
}

static void count_call(const char *function)
{
	pthread_mutex_lock(&script.lock);
	size_t i = 0;
	while (i < script.n_functions && strcmp(script.functions[i].name, function) != 0) {
		i++;
	}
	if (i == script.n_functions && i < MAX_FUNCTIONS) {
		snprintf(
			script.functions[i].name, sizeof(script.functions[i].name), "%s", function);
		script.functions[i].calls = 0;
		script.n_functions++;
	}
	if (i < script.n_functions) {
		script.functions[i].calls++;
	}
	pthread_mutex_unlock(&script.lock);
}

unsigned script_calls(const char *function)
{
	for (size_t i = 0; i < script.n_functions; i++) {
		if (strcmp(script.functions[i].name, function) == 0) {
			return script.functions[i].calls;
		}
	}
	return 0;
}

// CPU time, as a driver that talks to its device spends.
static void burn(uint64_t ns)
{
	struct timespec t = {0};
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	uint64_t end_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec + ns;
	while ((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec < end_ns) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	}
}

int script_enter(unsigned gpu, const char *function)
{
	char key[128];
	double value;
	uint64_t now = script_now_ms();
	count_call(function);
	// Called so often, it is not for attributes: the first readings of all groups are whole.
	if (script_calls(function) > 3 * script_setting("gpus", 1) + 2) {
		script_say("read");
	}
	snprintf(key, sizeof(key), "delay.%s", function);
	if (script_number(gpu, key, now, &value) == 0 && value > 0) {
		usleep((useconds_t)(value * 1000));
	}
	snprintf(key, sizeof(key), "burn.%s", function);
	if (script_number(gpu, key, now, &value) == 0) {
		burn((uint64_t)(value * 1e6));
	}
	snprintf(key, sizeof(key), "hang.%s", function);
	while (script_number(gpu, key, now, &value) == 0) {
		pause();
	}
	snprintf(key, sizeof(key), "crash.%s", function);
	if (script_number(gpu, key, now, &value) == 0) {
		raise(SIGSEGV);
	}
	snprintf(key, sizeof(key), "result.%s", function);
	if (script_number(gpu, key, now, &value) == 0) {
		return (int)value;
	}
	// A GPU that fell off the bus answers nothing at all.
	return script_number(gpu, "lost", now, &value) == 0 ? (int)value : 0;
}
