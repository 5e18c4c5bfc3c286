// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the kernel writes about a process: stat and the files beside it.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor text = cursor_of((const char *)data, size);
	struct proc_stat stat = {.state = 7};
	int r = proc_stat_parse(text, &stat);
	if ((r != 0 && r != -EBADMSG) || (r < 0 && stat.state != 7)) {
		abort(); // a failure leaves the result alone
	}
	if (r == 0 && (stat.parent < 0 || !memchr(stat.name, '\0', sizeof(stat.name)))) {
		abort();
	}
	struct proc_statm statm;
	struct proc_io io;
	struct proc_schedstat schedstat;
	struct proc_status status;
	struct proc_smaps_rollup smaps;
	struct proc_loadavg load;
	(void)proc_statm_parse(text, &statm);
	(void)proc_io_parse(text, &io);
	(void)proc_schedstat_parse(text, &schedstat);
	(void)proc_status_parse(text, &status);
	(void)proc_smaps_rollup_parse(text, &smaps);
	if (proc_loadavg_parse(text, &load) == 0 && load.last_pid < 0) {
		abort();
	}
	return 0;
}
