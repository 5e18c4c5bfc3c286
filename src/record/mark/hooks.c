// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Converts the hooks' reports to keys of the run. If several processes had hooks (ranks), the first
// that created a loader represents all; missing hooks are reported for each.

#include "record/mark/hooks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "runfile/writer.h"

// Line counts -------------------------------------------------------------------------------------
//
// Adds up the rows of each place: a hook writes the counts since its last report.

enum {
	FILES_MAX = 1024, // ranks, and loader workers of the first epochs
	FILE_BYTES = 512 << 10, // upper bound of the hook's files
	ALL_BYTES = 64 * FILE_BYTES, // of all files
	ROWS_MAX = 2048, // per process; the hook keeps half as many places
	ALL_ROWS = 64 * ROWS_MAX, // from which on no further file is read
	FIELDS = 5,
};
#define SAMPLES_MOST INT32_MAX // per row

void line_process_done(struct line_process *process)
{
	free(process->counts);
	*process = (struct line_process){0};
}

void line_counts_done(struct line_counts *counts)
{
	for (size_t i = 0; i < counts->n; i++) {
		line_process_done(&counts->processes[i]);
	}
	free(counts->processes);
	*counts = (struct line_counts){0};
}

// A line ------------------------------------------------------------------------------------------

static bool take_number(struct cursor *at, int64_t least, int64_t most, int64_t *ret)
{
	return cursor_i64(at, ret) && *ret >= least && *ret <= most;
}

// Takes the text up to the next tab or the end.
static struct cursor take_field(struct cursor *at)
{
	size_t length = (size_t)(at->end - at->at);
	const char *tab = memchr(at->at, '\t', length);
	struct cursor field = {at->at, tab ? tab : at->end};
	at->at = tab ? tab + 1 : at->end;
	return field;
}

// Takes text in printable form. Returns false if it does not fit.
static bool take_text(struct cursor field, char *ret, size_t size)
{
	_cleanup_text_ struct text utf8 = {0}, printable = {0};
	text_append_utf8(&utf8, field.at, (size_t)(field.end - field.at));
	text_append_printable(&printable, utf8.data ? utf8.data : "", utf8.length);
	if (utf8.failed || printable.failed || printable.length >= size) {
		return false;
	}
	memcpy(ret, printable.data ? printable.data : "", printable.length);
	ret[printable.length] = '\0';
	return true;
}

static bool take_count(struct cursor line, struct line_count *ret)
{
	struct cursor samples = take_field(&line), phase = take_field(&line);
	struct cursor number = take_field(&line), file = take_field(&line);
	struct cursor function = take_field(&line);
	return take_number(&samples, 1, SAMPLES_MOST, &ret->samples) && samples.at == samples.end &&
	       take_number(&number, 0, INT32_MAX, &ret->line) && number.at == number.end &&
	       take_text(phase, ret->phase, sizeof(ret->phase)) &&
	       take_text(file, ret->file, sizeof(ret->file)) && *ret->file &&
	       take_text(function, ret->function, sizeof(ret->function)) && line.at == line.end;
}

static int add_count(struct line_process *process, const struct line_count *count)
{
	for (size_t i = 0; i < process->n; i++) {
		struct line_count *row = &process->counts[i];
		if (row->line == count->line && strcmp(row->phase, count->phase) == 0 &&
			strcmp(row->file, count->file) == 0 &&
			strcmp(row->function, count->function) == 0) {
			int64_t sum = row->samples + count->samples;
			row->samples = sum < SAMPLES_MOST ? sum : SAMPLES_MOST;
			return 0;
		}
	}
	if (process->n == ROWS_MAX) {
		return 0;
	}
	int r = array_reserve((void **)&process->counts, &process->capacity, process->n + 1,
		sizeof(*process->counts));
	if (r == 0) {
		process->counts[process->n++] = *count;
	}
	return r;
}

// "process NAMESPACE CREATED_NS"
static void take_process(struct cursor line, struct identity_claim *ret)
{
	uint64_t name_space, at_ns;
	line.at += strlen("process ");
	if (cursor_u64(&line, &name_space) && line.at < line.end && *line.at == ' ') {
		line.at++;
		if (cursor_u64(&line, &at_ns) && line.at == line.end) {
			ret->pid_namespace = name_space;
			ret->at_ns = at_ns;
		}
	}
}

int line_counts_parse(const char *data, size_t length, struct line_process *ret)
{
	const char *end = data + length;
	int r = 0;
	for (const char *next; r == 0 && data < end; data = next + 1) {
		next = memchr(data, '\n', (size_t)(end - data));
		if (!next) {
			break; // incomplete: it was being written
		}
		struct cursor line = {data, next};
		struct line_count count;
		if (next - data > 8 && memcmp(data, "process ", 8) == 0) {
			take_process(line, &ret->who);
		} else if (take_count(line, &count)) {
			r = add_count(ret, &count);
		}
	}
	return r;
}

// The directory -----------------------------------------------------------------------------------

static ssize_t read_regular(int directory, const char *name, char *buffer)
{
	struct stat status;
	_cleanup_close_ int fd = beneath_open(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		return -1;
	}
	return pread(fd, buffer, FILE_BYTES, 0);
}

// *left: bytes that may still be read.
static int take_counts_file(
	struct line_counts *counts, int directory, const char *name, char *buffer, ssize_t *left)
{
	int64_t pid;
	if (parse_integer(name + strlen("lines-"), 1, INT32_MAX, &pid, NULL) < 0) {
		return 0;
	}
	ssize_t length = read_regular(directory, name, buffer);
	if (length <= 0 || length > *left) {
		return 0;
	}
	*left -= length;
	int r = array_reserve((void **)&counts->processes, &counts->capacity, counts->n + 1,
		sizeof(*counts->processes));
	if (r < 0) {
		return r;
	}
	struct line_process *process = &counts->processes[counts->n++];
	*process = (struct line_process){.who = {.inner_pid = (uint32_t)pid}};
	return line_counts_parse(buffer, (size_t)length, process);
}

int line_counts_read(int directory, struct line_counts *ret)
{
	*ret = (struct line_counts){0};
	int fd = directory < 0 ? -1 : openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		return 0;
	}
	_cleanup_free_ char *buffer = malloc(FILE_BYTES);
	DIR *listing = fdopendir(fd);
	if (!listing || !buffer) {
		if (listing) {
			closedir(listing);
		} else {
			close(fd);
		}
		return -ENOMEM;
	}
	int r = 0;
	unsigned files = 0;
	size_t rows = 0;
	ssize_t left = ALL_BYTES;
	for (struct dirent *entry;
		r == 0 && (entry = readdir(listing)) && files < FILES_MAX && rows < ALL_ROWS;) {
		if (strncmp(entry->d_name, "lines-", strlen("lines-")) == 0) {
			files++;
			size_t before = ret->n;
			r = take_counts_file(ret, dirfd(listing), entry->d_name, buffer, &left);
			rows += ret->n > before ? ret->processes[before].n : 0;
		}
	}
	closedir(listing);
	return r;
}

void line_counts_put(const struct line_process *process, int64_t entity, struct writer *w)
{
	for (size_t i = 0; i < process->n; i++) {
		const struct line_count *count = &process->counts[i];
		writer_put_line_sample(w, &(struct writer_line){
						  .entity = entity,
						  .phase = *count->phase ? count->phase : NULL,
						  .file = count->file,
						  .line = count->line,
						  .function = count->function,
						  .samples = count->samples,
					  });
	}
}

// Hooks -------------------------------------------------------------------------------------------

enum {
	HOOKS_FILES_MAX = 64,
	HOOKS_FILE_BYTES = 16384,
	FACTS_MAX = 64,
	KEY_BYTES = 40,
	VALUE_BYTES = 512,
	MISSING_BYTES = 1024,
};

struct fact {
	char key[KEY_BYTES];
	char value[VALUE_BYTES];
};

// The report of one process.
struct words {
	int64_t pid;
	char framework[96]; // the framework named last, until it has a feature
	struct text hooked; // "pytorch 1.13.0: data, backward"
	struct fact facts[FACTS_MAX]; // loader_..., optimizer_..., blas, samples_unit, ...
	size_t n_facts;
	bool trains; // it described a loader or an optimizer
};

// What only one process may know, whichever represents all: a parent names the unit of samples.
static const char *const shared_keys[] = {"samples_unit", "tokens_per_sample"};
enum { N_SHARED = ARRAY_LENGTH(shared_keys) };

struct shared {
	int64_t pid; // 0: nobody said it
	char value[VALUE_BYTES];
};

struct hooks {
	bool entered; // the hooks were loaded in a Python process
	struct words speaker;
	struct shared shared[N_SHARED];
	struct text missing;
};

static void words_done(struct words *words)
{
	text_done(&words->hooked);
}

// What the training process alone says: its keys begin so.
static const char *const described[] = {"loader_", "optimizer_", "device_", "compile_", "debug_"};
// What any process with a framework may say of itself.
static const char of_process[] = "process_";

static bool begins_with(const char *key, const char *prefix)
{
	return strncmp(key, prefix, strlen(prefix)) == 0;
}

static bool is_name(const char *key)
{
	return strspn(key, "abcdefghijklmnopqrstuvwxyz_") == strlen(key);
}

static bool is_described(const char *key)
{
	bool starts = false;
	for (size_t i = 0; i < ARRAY_LENGTH(described); i++) {
		starts |= begins_with(key, described[i]);
	}
	return starts && is_name(key);
}

static size_t shared_of(const char *key)
{
	size_t i = 0;
	while (i < N_SHARED && strcmp(key, shared_keys[i]) != 0) {
		i++;
	}
	return i;
}

static bool is_fact(const char *key)
{
	return strcmp(key, "blas") == 0 || shared_of(key) < N_SHARED || is_described(key) ||
	       (begins_with(key, of_process) && is_name(key));
}

static void take_fact(struct words *words, const char *key, const char *value)
{
	size_t i = 0;
	while (i < words->n_facts && strcmp(words->facts[i].key, key) != 0) {
		i++;
	}
	if (i < FACTS_MAX) {
		struct fact *fact = &words->facts[i];
		snprintf(fact->key, sizeof(fact->key), "%s", key);
		snprintf(fact->value, sizeof(fact->value), "%s", value);
		words->n_facts += i == words->n_facts;
		words->trains |= is_described(key);
	}
}

// The lowest process that said it counts, and what it said last.
static void take_shared(struct hooks *h, int64_t pid, const char *key, const char *value)
{
	size_t i = shared_of(key);
	if (i < N_SHARED && (h->shared[i].pid == 0 || pid <= h->shared[i].pid)) {
		h->shared[i].pid = pid;
		snprintf(h->shared[i].value, sizeof(h->shared[i].value), "%s", value);
	}
}

static void take_missing(struct text *missing, const char *value)
{
	if (missing->length + strlen(value) + 2 > MISSING_BYTES ||
		(missing->data && strstr(missing->data, value))) {
		return;
	}
	text_format(missing, "%s%s", missing->length > 0 ? "; " : "", value);
}

static void take_hooked(struct words *words, const char *value)
{
	bool first = words->hooked.length == 0;
	if (*words->framework) {
		text_format(&words->hooked, "%s%s: %s", first ? "" : "; ", words->framework, value);
		*words->framework = '\0';
	} else if (!first) {
		text_format(&words->hooked, ", %s", value);
	}
}

// "KEY VALUE"
static void take_line(struct hooks *h, struct words *words, char *line)
{
	char *space = strchr(line, ' ');
	if (!space || space == line || space - line >= KEY_BYTES || !space[1]) {
		return;
	}
	*space = '\0';
	const char *key = line, *value = space + 1;
	if (strcmp(key, "framework") == 0) {
		snprintf(words->framework, sizeof(words->framework), "%s", value);
	} else if (strcmp(key, "hooked") == 0) {
		take_hooked(words, value);
	} else if (strcmp(key, "missing") == 0 || strcmp(key, "off") == 0) {
		take_missing(&h->missing, value);
	} else if (is_fact(key)) {
		take_fact(words, key, value);
		take_shared(h, words->pid, key, value);
	}
}

static void take_lines(struct hooks *h, struct words *words, const char *data, size_t length)
{
	while (length > 0) {
		const char *end = memchr(data, '\n', length);
		if (!end) {
			return; // incomplete: it was being written
		}
		_cleanup_text_ struct text utf8 = {0}, line = {0};
		text_append_utf8(&utf8, data, (size_t)(end - data));
		text_append_printable(&line, utf8.data ? utf8.data : "", utf8.length);
		if (!line.failed && line.length > 0 && line.length < VALUE_BYTES) {
			take_line(h, words, line.data);
		}
		length -= (size_t)(end + 1 - data);
		data = end + 1;
	}
}

// Reads a regular file; -1 if it is none.
static ssize_t read_file(int directory, const char *name, char *buffer, size_t size)
{
	struct stat status;
	_cleanup_close_ int fd = beneath_open(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		return -1;
	}
	return pread(fd, buffer, size, 0);
}

// Whether one report is more important: it created a loader, had hooks, or came first.
static bool tells_more(const struct words *one, const struct words *other)
{
	if (one->trains != other->trains) {
		return one->trains;
	}
	if ((one->hooked.length > 0) != (other->hooked.length > 0)) {
		return one->hooked.length > 0;
	}
	return other->pid == 0 || one->pid < other->pid;
}

static void take_file(struct hooks *h, int directory, const char *name, char *buffer)
{
	struct words words = {0};
	ssize_t length = -1;
	if (parse_integer(name + strlen("hook-"), 1, INT32_MAX, &words.pid, NULL) == 0) {
		length = read_file(directory, name, buffer, HOOKS_FILE_BYTES);
	}
	if (length > 0) {
		take_lines(h, &words, buffer, (size_t)length);
	}
	if (length > 0 && tells_more(&words, &h->speaker)) {
		struct words before = h->speaker;
		h->speaker = words;
		words = before;
	}
	words_done(&words);
}

// Opens its own descriptor, because the caller's has only one directory offset for all its users.
static DIR *list_folder(int directory)
{
	int fd = directory < 0 ? -1 : openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !listing) {
		close(fd);
	}
	return listing;
}

struct hooks *hooks_read(int directory)
{
	struct hooks *h = calloc(1, sizeof(*h));
	_cleanup_free_ char *buffer = malloc(HOOKS_FILE_BYTES);
	DIR *listing = list_folder(directory);
	if (!h || !buffer || !listing) {
		if (listing) {
			closedir(listing);
		}
		free(h);
		return NULL;
	}
	unsigned files = 0;
	for (struct dirent *entry; (entry = readdir(listing)) && files < HOOKS_FILES_MAX;) {
		if (strcmp(entry->d_name, "entered") == 0) {
			h->entered = true;
		} else if (strncmp(entry->d_name, "hook-", 5) == 0) {
			files++;
			take_file(h, dirfd(listing), entry->d_name, buffer);
		}
	}
	closedir(listing);
	return h;
}

// Why no hook entered -----------------------------------------------------------------------------

struct python_search {
	char found[96]; // how a Python was started; "" if none ran
	bool flagged; // with an option that disables the hooks
};

// Returns the next string of a JSON array, without escaped characters. Returns false at the end.
static bool next_argument(const char **at, char *buffer, size_t size)
{
	const char *open = strchr(*at, '"');
	size_t n = 0;
	if (!open) {
		return false;
	}
	const char *c = open + 1;
	for (; *c && *c != '"'; c++) {
		c += *c == '\\' && c[1];
		if (n + 1 < size) {
			buffer[n++] = *c;
		}
	}
	buffer[n] = '\0';
	*at = *c ? c + 1 : c;
	return true;
}

// Finds the first of -I, -E and -S among the interpreter's options; "" if there is none.
static void find_flag(const char *command, char *buffer, size_t size)
{
	char argument[64];
	const char *at = command;
	*buffer = '\0';
	next_argument(&at, argument, sizeof(argument)); // its name
	while (next_argument(&at, argument, sizeof(argument)) && argument[0] == '-' &&
		argument[1] != '-' && argument[1]) {
		size_t length = strcspn(argument, "IES");
		bool takes_value = strpbrk(argument + 1, "cmWX") != NULL;
		if (argument[length] && strcspn(argument, "cmWX") > length) {
			snprintf(buffer, size, "-%c", argument[length]);
			return;
		}
		if (takes_value) {
			return;
		}
	}
}

static bool take_command(void *context, const char *name, const char *command)
{
	struct python_search *search = context;
	char flag[8] = "";
	if (command) {
		find_flag(command, flag, sizeof(flag));
	}
	if (*flag || !*search->found) {
		snprintf(search->found, sizeof(search->found), "%.60s%s%s", name, *flag ? " " : "",
			flag);
		search->flagged = *flag != '\0';
	}
	return !search->flagged;
}

// Writes nothing if no Python ran.
static void why_none(const struct hooks *h, struct writer *w, char *buffer, size_t size)
{
	struct python_search search = {0};
	if (h->entered) {
		snprintf(
			buffer, size, "no framework with hooks (PyTorch, Keras, JAX) was imported");
		return;
	}
	writer_each_command(w, "python*", take_command, &search);
	if (search.flagged) {
		snprintf(buffer, size, "no hook was loaded: %s ran, which ignores PYTHONPATH%s",
			search.found, strstr(search.found, "-S") ? " or sitecustomize" : "");
	} else if (*search.found) {
		snprintf(buffer, size,
			"no hook was loaded: %s ran with another PYTHONPATH than strain set, or "
			"cannot read it",
			search.found);
	}
}

static void hooks_free(struct hooks *h)
{
	words_done(&h->speaker);
	text_done(&h->missing);
	free(h);
}

static bool has_fact(const struct words *words, const char *key)
{
	for (size_t i = 0; i < words->n_facts; i++) {
		if (strcmp(words->facts[i].key, key) == 0) {
			return true;
		}
	}
	return false;
}

static void put_words(const struct hooks *h, struct writer *w)
{
	const struct words *words = &h->speaker;
	if (words->hooked.length > 0) {
		writer_put_run(w, "hooks", words->hooked.data);
	}
	if (words->trains) {
		// An earlier report may have come from another process and had more keys.
		for (size_t i = 0; i < ARRAY_LENGTH(described); i++) {
			char pattern[32];
			snprintf(pattern, sizeof(pattern), "%s*", described[i]);
			writer_clear_run(w, pattern);
		}
	}
	for (size_t i = 0; i < words->n_facts; i++) {
		writer_put_run(w, words->facts[i].key, words->facts[i].value);
	}
	for (size_t i = 0; i < N_SHARED; i++) {
		if (h->shared[i].pid != 0 && !has_fact(words, shared_keys[i])) {
			writer_put_run(w, shared_keys[i], h->shared[i].value);
		}
	}
}

void hooks_put_so_far(int directory, struct writer *w)
{
	struct hooks *h = hooks_read(directory);
	if (h) {
		put_words(h, w);
		hooks_free(h);
	}
}

void hooks_put(struct hooks *h, struct writer *w)
{
	char why[256] = "";
	if (!h) {
		return;
	}
	put_words(h, w);
	if (h->speaker.hooked.length == 0 && h->missing.length == 0) {
		why_none(h, w, why, sizeof(why));
	}
	if (h->missing.length > 0 || *why) {
		writer_put_run(w, "hooks_missing", *why ? why : h->missing.data);
	}
	hooks_free(h);
}
