// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the strain authors
//
// Names of ranges. Stored names are never freed or moved, because another thread may be reading
// them.

#include "nvtx/names.h"

#include <stdlib.h>
#include <string.h>

enum { DOMAINS_MAX = 256, STRINGS_MAX = 4096, NUMBER_DIGITS = 18 };

// The domain used when the table is full.
#define DOMAIN_OTHER ((uintptr_t)DOMAINS_MAX + 1)

// The handle of a registered string: the low bits are its name's index in the table, the high bits
// its number plus one.
enum { HANDLE_NUMBER_SHIFT = 16 };
#define HANDLE_NUMBER_MAX (INT64_C(1) << 46)

struct text_table {
	size_t max;
	size_t used; // may exceed max
	char **texts;
};

static char *domain_texts[DOMAINS_MAX], *string_texts[STRINGS_MAX];
static struct text_table domains = {.max = DOMAINS_MAX, .texts = domain_texts};
static struct text_table strings = {.max = STRINGS_MAX, .texts = string_texts};

// Tables ------------------------------------------------------------------------------------------

static const char *table_text(const struct text_table *table, uintptr_t handle)
{
	return handle > 0 && handle <= table->max
	               ? __atomic_load_n(&table->texts[handle - 1], __ATOMIC_ACQUIRE)
	               : NULL;
}

static uintptr_t table_find(const struct text_table *table, const char *text)
{
	size_t used = __atomic_load_n(&table->used, __ATOMIC_ACQUIRE);
	for (size_t i = 0; i < used && i < table->max; i++) {
		const char *known = __atomic_load_n(&table->texts[i], __ATOMIC_ACQUIRE);
		if (known && strcmp(known, text) == 0) {
			return i + 1;
		}
	}
	return 0;
}

// Returns 0 if the table is full. Two threads that add the same text at once get separate handles.
static uintptr_t table_add(struct text_table *table, const char *text)
{
	uintptr_t known = table_find(table, text);
	if (known || __atomic_load_n(&table->used, __ATOMIC_RELAXED) >= table->max) {
		return known;
	}
	char *copy = strdup(text);
	size_t i = copy ? __atomic_fetch_add(&table->used, 1, __ATOMIC_ACQ_REL) : table->max;
	if (i >= table->max) {
		free(copy);
		return 0;
	}
	__atomic_store_n(&table->texts[i], copy, __ATOMIC_RELEASE);
	return i + 1;
}

// Messages ----------------------------------------------------------------------------------------

// Writes a character as UTF-8, at most 4 bytes; '?' if it is invalid.
static size_t put_character(char *at, uint32_t c)
{
	if (c < 0x80) {
		at[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		at[0] = (char)(0xc0 | c >> 6);
		at[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
		at[0] = '?';
		return 1;
	}
	size_t n = c < 0x10000 ? 3 : 4;
	at[0] = (char)(n == 3 ? 0xe0 | c >> 12 : 0xf0 | c >> 18);
	for (size_t i = 1; i < n; i++) {
		at[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
	}
	return n;
}

// Copies a message, which may already be in the buffer. Wide characters are kept whole.
static void put_message(struct range_name *name, const char *bytes, const wchar_t *wide)
{
	size_t room = sizeof(name->buffer) - 1, length = 0;
	if (bytes) {
		length = strnlen(bytes, room);
		memmove(name->buffer, bytes, length);
	}
	for (; wide && *wide && length + 4 <= room; wide++) {
		length += put_character(name->buffer + length, (uint32_t)*wide);
	}
	name->buffer[length] = '\0';
	name->text = name->buffer;
}

static int is_separator(char c)
{
	return c == ' ' || c == '=' || c == ':' || c == '#';
}

// Takes the number of "step 17", "epoch=3", "batch #5", if other text precedes it.
static void take_number(struct range_name *name)
{
	size_t length = strnlen(name->text, STRAIN_RING_NAME_BYTES), digits = 0;
	while (digits < length && name->text[length - 1 - digits] >= '0' &&
		name->text[length - 1 - digits] <= '9') {
		digits++;
	}
	size_t rest = length - digits;
	if (digits == 0 || digits > NUMBER_DIGITS || length == STRAIN_RING_NAME_BYTES ||
		rest == 0 || !is_separator(name->text[rest - 1])) {
		return;
	}
	int64_t number = 0;
	for (size_t i = rest; i < length; i++) {
		number = number * 10 + (name->text[i] - '0');
	}
	while (rest > 0 && is_separator(name->text[rest - 1])) {
		rest--;
	}
	if (rest > 0) {
		memmove(name->buffer, name->text, rest);
		name->buffer[rest] = '\0';
		name->text = name->buffer;
		name->number = number;
	}
}

static int64_t number_of_payload(const struct nvtx_event *event)
{
	switch (event->payload_type) {
	case NVTX_PAYLOAD_UINT64:
	case NVTX_PAYLOAD_INT64:
		return event->payload.int64;
	case NVTX_PAYLOAD_UINT32:
		return event->payload.uint32;
	case NVTX_PAYLOAD_INT32:
		return event->payload.int32;
	default:
		return -1;
	}
}

void name_of_message(struct range_name *name, const char *bytes, const wchar_t *wide)
{
	name->text = bytes;
	name->number = -1;
	if (wide) {
		put_message(name, NULL, wide);
	}
	if (name->text) {
		take_number(name);
	}
}

static void name_of_registered(struct range_name *name, uintptr_t handle)
{
	name->text = table_text(&strings, handle & ((1u << HANDLE_NUMBER_SHIFT) - 1));
	name->number = (int64_t)(handle >> HANDLE_NUMBER_SHIFT) - 1;
}

// NULL: the default domain.
static const char *name_of_domain(uintptr_t handle)
{
	return handle == DOMAIN_OTHER ? "(other)" : table_text(&domains, handle);
}

// Puts the domain's name before the range's name.
static void put_domain(struct range_name *name, const char *domain)
{
	char text[STRAIN_RING_NAME_BYTES];
	size_t length = strnlen(domain, sizeof(text) / 2);
	size_t rest = strnlen(name->text, sizeof(text) - 2 - length);
	memcpy(text, domain, length);
	text[length] = '/';
	memcpy(text + length + 1, name->text, rest);
	text[length + 1 + rest] = '\0';
	memcpy(name->buffer, text, length + rest + 2);
	name->text = name->buffer;
}

void name_of_event(struct range_name *name, uintptr_t domain, const struct nvtx_event *event)
{
	const char *domain_text = name_of_domain(domain);
	name->text = NULL;
	name->number = -1;
	if (!event_is_whole(event)) {
		return;
	}
	if (event->message_type == NVTX_MESSAGE_REGISTERED) {
		name_of_registered(name, event->message.registered);
		domain_text = NULL;
	} else if (event->message_type == NVTX_MESSAGE_BYTES) {
		name_of_message(name, event->message.bytes, NULL);
	} else if (event->message_type == NVTX_MESSAGE_WIDE) {
		name_of_message(name, NULL, event->message.wide);
	}
	if (name->text && domain_text) {
		put_domain(name, domain_text);
	}
	if (name->number < 0) {
		name->number = number_of_payload(event);
	}
}

uintptr_t name_create_domain(const char *bytes, const wchar_t *wide)
{
	struct range_name name;
	if (!bytes && !wide) {
		return 0;
	}
	put_message(&name, bytes, wide);
	uintptr_t handle = table_add(&domains, name.text);
	return handle ? handle : DOMAIN_OTHER;
}

uintptr_t name_register(uintptr_t domain, const char *bytes, const wchar_t *wide)
{
	struct range_name name;
	const char *domain_text = name_of_domain(domain);
	name_of_message(&name, bytes, wide);
	if (!name.text) {
		return 0;
	}
	put_message(&name, name.text, NULL);
	if (domain_text) {
		put_domain(&name, domain_text);
	}
	uintptr_t place = table_add(&strings, name.text);
	int64_t number = name.number < HANDLE_NUMBER_MAX ? name.number : -1;
	return place ? place | (uintptr_t)(number + 1) << HANDLE_NUMBER_SHIFT : 0;
}
