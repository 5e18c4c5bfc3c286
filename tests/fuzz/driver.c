// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Feeds files to a fuzz target without libFuzzer, so that every corpus runs in the ordinary suite,
// under any compiler, sanitizer or valgrind: driver FILE|FOLDER... Folders are walked one level.

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Reads a whole file into memory of exactly its size, so that a read past its end is noticed.
static int read_file(const char *path, uint8_t **ret_data, size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	if (!file) {
		return -errno;
	}
	struct stat status;
	int r = fstat(fileno(file), &status) < 0 ? -errno : 0;
	size_t size = r == 0 ? (size_t)status.st_size : 0;
	uint8_t *data = r == 0 ? malloc(size ? size : 1) : NULL;
	if (r == 0 && !data) {
		r = -ENOMEM;
	}
	if (r == 0 && fread(data, 1, size, file) != size) {
		r = -EIO;
	}
	fclose(file);
	if (r < 0) {
		free(data);
		return r;
	}
	*ret_data = data;
	*ret_size = size;
	return 0;
}

static int feed_file(const char *path)
{
	uint8_t *data = NULL;
	size_t size = 0;
	int r = read_file(path, &data, &size);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
		return -1;
	}
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 1;
}

static int feed_folder(DIR *folder, const char *path)
{
	int count = 0;
	struct dirent *entry;
	while ((entry = readdir(folder))) {
		char name[4096];
		int length = snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (entry->d_name[0] == '.' || length < 0 || (size_t)length >= sizeof(name)) {
			continue;
		}
		int fed = feed_file(name);
		if (fed < 0) {
			return -1;
		}
		count += fed;
	}
	return count;
}

static int feed(const char *path)
{
	DIR *folder = opendir(path);
	if (!folder) {
		return feed_file(path);
	}
	int count = feed_folder(folder, path);
	closedir(folder);
	return count;
}

int main(int argc, char **argv)
{
	int inputs = 0;
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++) {
		int fed = feed(argv[i]);
		if (fed < 0) {
			return EXIT_FAILURE;
		}
		inputs += fed;
	}
	printf("%d inputs\n", inputs);
	return inputs > 0 ? EXIT_SUCCESS : EXIT_FAILURE; // an empty corpus tests nothing
}
