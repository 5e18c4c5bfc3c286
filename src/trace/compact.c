// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Merging blocks.

#include "trace/writer_internal.h"

int writer_compact(struct writer *w, int64_t now_ns, struct error *e)
{
	(void)now_ns;
	return writer_commit(w, e);
}
