// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The files belong to others. They are read, never mapped, since truncating a mapped file kills its
// reader; and libelf or this module checks every number in them. A symbol names an address only
// within the symbol's size. The nearest symbol before it would often be that of another function,
// because most libraries are stripped of all but their exported symbols.

#include "run/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_LIBELF
#include <gelf.h>
#include <libelf.h>
#endif

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "runfile/writer.h"

enum {
	ADDRESSES_MOST = 50000, // per run
	SYMBOLS_MOST = 4 << 20, // per file
	NAME_MOST = 200, // bytes
	HEADERS_MOST = 128, // program headers; linkers create a dozen
	STEPS_A_LOOK = 65536, // between two checks of the clock
};
// Of one section, which libelf reads into memory. The largest sections of framework libraries are
// half of that.
#define SECTION_MOST_BYTES (UINT64_C(256) << 20)
#define FILE_MOST_BYTES (INT64_C(4) << 30)
#define ALL_NS (2 * NS_PER_S)
// A file can be forged so that all symbols cover all addresses, and no name ends.
#define FILE_NS NS_PER_S

#ifdef HAVE_LIBELF

// A requested address, and the best symbol found so far.
struct wanted {
	uint64_t address; // virtual, as in the file
	size_t index; // in the caller's array
	uint64_t at; // start of the best symbol
	size_t name; // offset in the string table; 0: none
};

static int wanted_compare(const void *left, const void *right)
{
	const struct wanted *a = left, *b = right;
	return (a->address > b->address) - (a->address < b->address);
}

// Converts an offset in the file to its virtual address. False: no segment contains it.
static bool address_of(Elf *elf, size_t n_headers, uint64_t offset, uint64_t *ret)
{
	for (size_t i = 0; i < n_headers; i++) {
		GElf_Phdr header;
		if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD &&
			offset >= header.p_offset && offset - header.p_offset < header.p_filesz) {
			*ret = offset - header.p_offset + header.p_vaddr;
			return true;
		}
	}
	return false;
}

static size_t first_from(const struct wanted *wanted, size_t n, uint64_t address)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (wanted[middle].address < address) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

// The remaining time for a file.
struct patience {
	uint64_t until_ns;
	uint64_t steps;
};

static bool is_over(struct patience *p, uint64_t steps)
{
	p->steps += steps;
	if (p->steps < STEPS_A_LOOK) {
		return false;
	}
	p->steps = 0;
	return clock_monotonic_ns() > p->until_ns;
}

static void take_symbols(
	Elf_Data *data, size_t entry, struct wanted *wanted, size_t n, struct patience *patience)
{
	size_t symbols = entry > 0 ? data->d_size / entry : 0;
	uint64_t steps = 1;
	for (size_t i = 0; i < symbols && i < SYMBOLS_MOST && !is_over(patience, steps); i++) {
		GElf_Sym symbol;
		steps = 1;
		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF ||
			symbol.st_size == 0 || symbol.st_name == 0 ||
			(GELF_ST_TYPE(symbol.st_info) != STT_FUNC &&
				GELF_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC)) {
			continue;
		}
		for (size_t k = first_from(wanted, n, symbol.st_value);
			k < n && wanted[k].address - symbol.st_value < symbol.st_size;
			k++, steps++) {
			if (wanted[k].name == 0 || symbol.st_value > wanted[k].at) {
				wanted[k].at = symbol.st_value;
				wanted[k].name = symbol.st_name;
			}
		}
	}
}

// The full symbol table if there is one, else that of exported symbols.
static Elf_Scn *table_of(Elf *elf, GElf_Shdr *ret)
{
	Elf_Scn *found = NULL;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		if (gelf_getshdr(section, &header) &&
			(header.sh_type == SHT_SYMTAB ||
				(header.sh_type == SHT_DYNSYM && !found))) {
			found = section;
			*ret = header;
		}
		if (found && ret->sh_type == SHT_SYMTAB) {
			break;
		}
	}
	return found;
}

// Whether a section can be read: not too large, and not compressed, since that could expand to any
// size.
static bool is_fine(Elf_Scn *section, GElf_Shdr *ret)
{
	return section && gelf_getshdr(section, ret) && ret->sh_size <= SECTION_MOST_BYTES &&
	       !(ret->sh_flags & SHF_COMPRESSED);
}

static void name_all(Elf *elf, size_t strings, const struct wanted *wanted, size_t n,
	struct patience *patience, char **ret_names)
{
	GElf_Shdr header;
	if (!is_fine(elf_getscn(elf, strings), &header)) {
		return;
	}
	// If the table of names has no terminator, each search scans all of it.
	for (size_t i = 0; i < n && !is_over(patience, 1 + header.sh_size / 64); i++) {
		const char *name = wanted[i].name ? elf_strptr(elf, strings, wanted[i].name) : NULL;
		ret_names[wanted[i].index] = name ? strndup(name, NAME_MOST) : NULL;
	}
}

static int read_names(Elf *elf, const int64_t *offsets, size_t n, char **ret_names)
{
	_cleanup_free_ struct wanted *wanted = calloc(n + 1, sizeof(*wanted));
	struct patience patience = {.until_ns = clock_monotonic_ns() + FILE_NS};
	size_t n_headers = 0, found = 0;
	GElf_Shdr header = {0};
	if (!wanted) {
		return -ENOMEM;
	}
	Elf_Scn *section = elf_kind(elf) == ELF_K_ELF ? table_of(elf, &header) : NULL;
	Elf_Data *data = is_fine(section, &header) ? elf_getdata(section, NULL) : NULL;
	if (!data || elf_getphdrnum(elf, &n_headers) != 0) {
		return -EBADMSG;
	}
	n_headers = n_headers < HEADERS_MOST ? n_headers : HEADERS_MOST;
	for (size_t i = 0; i < n; i++) {
		if (offsets[i] >= 0 &&
			address_of(elf, n_headers, (uint64_t)offsets[i], &wanted[found].address)) {
			wanted[found++].index = i;
		}
	}
	qsort(wanted, found, sizeof(*wanted), wanted_compare);
	take_symbols(data, header.sh_entsize, wanted, found, &patience);
	name_all(elf, header.sh_link, wanted, found, &patience, ret_names);
	return 0;
}

// libelf allocates as many sections as the file claims to have. No linker creates more than the
// header's field can count.
static bool counts_sections(int fd)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr small;
		Elf64_Ehdr large;
	} header = {0};
	if (pread(fd, &header, sizeof(header), 0) < (ssize_t)sizeof(header.small)) {
		return false;
	}
	// 0 in either byte order.
	return header.ident[EI_CLASS] == ELFCLASS32 ? header.small.e_shnum != 0
	                                            : header.large.e_shnum != 0;
}

int symbols_of_file(const char *path, const int64_t *offsets, size_t n, char **ret_names)
{
	struct stat status;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	memset(ret_names, 0, n * sizeof(*ret_names));
	if (fd < 0) {
		return -errno;
	}
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
		status.st_size > FILE_MOST_BYTES || !counts_sections(fd) ||
		elf_version(EV_CURRENT) == EV_NONE) {
		return -EBADMSG;
	}
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	int r = elf ? read_names(elf, offsets, n, ret_names) : -EBADMSG;
	elf_end(elf);
	return r;
}

#else

int symbols_of_file(const char *path, const int64_t *offsets, size_t n, char **ret_names)
{
	(void)path;
	(void)offsets;
	memset(ret_names, 0, n * sizeof(*ret_names));
	return -ENOSYS;
}

#endif

// A run -------------------------------------------------------------------------------------------

struct addresses { // of one object
	int64_t object;
	char *path;
	int64_t *offsets;
	size_t n;
	size_t capacity;
};

static int put_names(struct writer *w, const struct addresses *a)
{
	_cleanup_free_ char **names = calloc(a->n + 1, sizeof(*names));
	if (!names) {
		return -ENOMEM;
	}
	int r = 0;
	if (symbols_of_file(a->path, a->offsets, a->n, names) < 0) {
		return 0; // missing, or not an ELF file
	}
	for (size_t i = 0; i < a->n; i++) {
		if (names[i] && r == 0) {
			r = writer_put_profile_symbol(w, a->object, a->offsets[i], names[i]);
		}
		free(names[i]);
	}
	return r;
}

static int add_offset(struct addresses *a, int64_t offset)
{
	void *offsets = a->offsets;
	if (array_reserve(&offsets, &a->capacity, a->n + 1, sizeof(*a->offsets)) < 0) {
		return -ENOMEM;
	}
	a->offsets = offsets;
	a->offsets[a->n++] = offset;
	return 0;
}

// Rows are sorted by object.
static int take_rows(struct writer *w, sqlite3_stmt *rows)
{
	struct addresses a = {0};
	uint64_t until_ns = clock_monotonic_ns() + ALL_NS;
	int r = 0;
	for (size_t n = 0; r == 0 && n < ADDRESSES_MOST && sqlite3_step(rows) == SQLITE_ROW; n++) {
		int64_t object = sqlite3_column_int64(rows, 0);
		if (object != a.object && a.n > 0) {
			r = put_names(w, &a);
			a.n = 0;
		}
		if (clock_monotonic_ns() > until_ns) {
			break;
		}
		if (object != a.object) {
			const char *path = (const char *)sqlite3_column_text(rows, 1);
			free(a.path);
			a.path = strdup(path ? path : "");
			a.object = object;
		}
		r = r < 0 ? r : a.path ? add_offset(&a, sqlite3_column_int64(rows, 2)) : -ENOMEM;
	}
	if (r == 0 && a.n > 0 && clock_monotonic_ns() <= until_ns) {
		r = put_names(w, &a);
	}
	free(a.path);
	free(a.offsets);
	return r;
}

int symbols_add(const char *path, struct error *e)
{
	static const char select[] =
		"SELECT DISTINCT s.object, o.path, s.address FROM profile_sample AS s"
		" JOIN profile_object AS o ON o.id = s.object WHERE s.address >= 0"
		" AND substr(o.path, 1, 1) = '/'"
		" AND NOT EXISTS (SELECT 1 FROM profile_symbol) ORDER BY 1, 3";
	struct writer *w = NULL;
	sqlite3_stmt *rows = NULL;
	int r = writer_open(path, &w, e);
	if (r < 0) {
		return r;
	}
	if (sqlite3_prepare_v2(writer_database(w), select, -1, &rows, NULL) == SQLITE_OK) {
		r = take_rows(w, rows);
	} // an older schema has no samples
	sqlite3_finalize(rows);
	r = r < 0 ? error_errno(e, -r, "%s: cannot add symbols", path) : writer_commit(w, e);
	writer_free(w);
	return r;
}

// Names -------------------------------------------------------------------------------------------

struct word {
	const char *at;
	size_t length;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

// Skips what has digits that are no length: substitutions ("S1_", "St"), template parameters
// ("T0_"), literals ("Lb1E"), constructors and destructors ("C2", "D0"). Returns how many bytes.
static size_t skip_code(const char *at)
{
	size_t n = 1;
	if (*at == 'S' || *at == 'T') {
		while (is_digit(at[n]) || (at[n] >= 'A' && at[n] <= 'Z')) {
			n++;
		}
		return at[n] == '_' ? n + 1 : *at == 'S' && at[1] ? 2 : 1;
	}
	if (*at == 'L' && at[1] >= 'a' && at[1] <= 'z') {
		for (n = 2; is_digit(at[n]); n++) {
		}
		return n > 2 && at[n] == 'E' ? n + 1 : 1;
	}
	return (*at == 'C' || *at == 'D') && is_digit(at[1]) ? 2 : 1;
}

// The next identifier from *at on, or until a byte of `ends`; *at is then behind it, or at that
// byte. length 0: none.
static struct word next_word(const char **at, const char *ends)
{
	while (**at && !strchr(ends, **at)) {
		if (!is_digit(**at)) {
			*at += skip_code(*at);
			continue;
		}
		size_t length = 0;
		const char *word = *at;
		for (; is_digit(*word) && length < NAME_MOST; word++) {
			length = 10 * length + (size_t)(*word - '0');
		}
		bool whole = length > 0 && strnlen(word, length) == length;
		*at = whole ? word + length : word;
		if (whole && strncmp(word, "_GLOBAL__N", strlen("_GLOBAL__N")) != 0) {
			return (struct word){word, length};
		}
	}
	return (struct word){*at, 0};
}

static bool word_begins(struct word w, const char *text)
{
	size_t n = strlen(text);
	return w.length >= n && memcmp(w.at, text, n) == 0;
}

// "mul_kernel", "where_kernel_impl"; not what PyTorch's loops over elements are made with.
static bool is_kernel(struct word w)
{
	static const char ending[] = "_kernel";
	static const char *const any[] = {
		"cpu_kernel", "cpu_serial_kernel", "binary_kernel_reduce", "wrap_kernel"};
	for (size_t i = 0; i < ARRAY_LENGTH(any); i++) {
		if (word_begins(w, any[i])) {
			return false;
		}
	}
	for (size_t i = 0; i + sizeof(ending) - 1 <= w.length; i++) {
		size_t end = i + sizeof(ending) - 1;
		if (memcmp(w.at + i, ending, sizeof(ending) - 1) == 0 &&
			(end == w.length || w.at[end] == '_')) {
			return true;
		}
	}
	return false;
}

// The words of a name up to its arguments, those of its template ('I'), or its end. A local name
// ("ZZN") is that of the function around it.
static size_t take_name(const char **at, struct word *words, size_t most)
{
	size_t n = 0;
	*at += strspn(*at, "ZNKL");
	while (n < most && (words[n] = next_word(at, "IE")).length > 0) {
		n++;
		if (**at && !is_digit(**at) && !strchr("_LS", **at)) {
			break;
		}
	}
	return n;
}

void symbols_shorten(const char *name, char *ret, size_t size)
{
	enum { WORDS_MOST = 16 };
	struct word words[WORDS_MOST], w;
	const char *at;
	snprintf(ret, size, "%s", name);
	if (strncmp(name, "_Z", 2) != 0) {
		return;
	}
	at = name + 2;
	while ((w = next_word(&at, "")).length > 0) {
		if (is_kernel(w)) {
			snprintf(ret, size, "%.*s", (int)w.length, w.at);
			return;
		}
	}
	// The first name that is not of a function which runs another one with several threads.
	size_t n, length = 0, first = 0;
	at = name + 2;
	do {
		at += *at == 'I';
		n = take_name(&at, words, WORDS_MOST);
	} while (n > 0 && *at == 'I' &&
		 (word_begins(words[n - 1], "invoke_parallel") ||
			 word_begins(words[n - 1], "parallel_for")));
	for (size_t i = 0; i < n; i++) {
		length += words[i].length + 2;
	}
	for (; first + 1 < n && length - 2 >= size; first++) {
		length -= words[first].length + 2;
	}
	for (size_t i = first, used = 0; i < n && used < size; i++) {
		used += (size_t)snprintf(ret + used, size - used, "%s%.*s", i > first ? "::" : "",
			(int)words[i].length, words[i].at);
	}
}
