// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// diskstats, net/dev and stat of the machine, line by line.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A view must lie within what it was cut from.
static void check_view(struct cursor view, struct cursor whole)
{
	if (view.at < whole.at || view.end > whole.end || view.at >= view.end) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor text = cursor_of((const char *)data, size), line;
	struct system_stat stat;
	(void)system_stat_parse(text, &stat);
	while (cursor_line(&text, &line)) {
		struct disk_line disk;
		struct interface_line interface;
		if (disk_line_parse(line, &disk) == 0) {
			check_view(disk.name, line);
		}
		if (interface_line_parse(line, &interface) == 0) {
			check_view(interface.name, line);
		}
	}
	return 0;
}
