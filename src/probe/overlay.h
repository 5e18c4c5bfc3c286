// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Probes over an overlay of the job's working directory (machine/overlay.h): each sees the
// directory as it was at first, and what it writes there is removed after it. Without the right to
// mount, or on file systems that refuse, probes run in place.

#pragma once

#include "base/error.h"

struct probe_overlay {
	char *directory; // the job's working directory
	char *scratch; // private folder for the files of one probe; NULL: probes run in place
	char *in_place; // why probes run in place; NULL: they do not
	char *mounts; // file systems mounted below the directory, which probes write; NULL: none
	int lock; // on the scratch folder, so that no other process removes it; -1: none
};

#define PROBE_OVERLAY_NONE ((struct probe_overlay){.lock = -1})

// Mounts an overlay in a process that ends at once, and writes to it. directory: of the job; NULL:
// the current one. folder: of the run files, the preferred place of the scratch folder; TMPDIR and
// /var/tmp are next. Also removes scratch folders there that a killed process of this user left
// behind. in_place: why an overlay is not wanted; NULL: it is. Returns 0, also if probes must run
// in place, or -errno. Release ret in any case.
int probe_overlay_find(const char *directory, const char *folder, const char *in_place,
	struct probe_overlay *ret, struct error *e);
// A sentence, owned by the caller, on what probes may overwrite; NULL: out of memory.
char *probe_overlay_sentence(const struct probe_overlay *o);
// Makes the scratch folder ready for a probe. Returns 0 or -errno.
int probe_overlay_begin(const struct probe_overlay *o, struct error *e);
// Removes what the probe wrote. Its processes must have ended.
void probe_overlay_end(const struct probe_overlay *o);
void probe_overlay_done(struct probe_overlay *o);
