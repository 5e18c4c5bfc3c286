// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The recorder as the launcher sees it: a process that may vanish at any moment, and a socket to
// it. Nothing here fails the job.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/beneath.h"
#include "base/error.h"
#include "record/protocol.h"
#include "record/recorder.h"

struct recording {
	const char *path; // of the run file
	uint64_t start_ns; // of the run
	pid_t pid; // of the recorder; 0 once it was reaped
	int socket; // -1 once it is gone
	struct beneath_file created; // by the recorder, as it says; inode 0: none
	bool ready; // it has said that the file is there
	bool closing; // it has said that it measures no more
	bool done; // it has said that the file is closed
	bool dead; // it ended before that
	int status; // as waitpid gives it, once reaped
	uint64_t dead_ns; // CLOCK_MONOTONIC
	struct message backlog; // orphans that did not fit into the socket; kind 0: none
};

#define RECORDING_NONE ((struct recording){.socket = -1})

// Forks the recorder. config->socket is filled in. The child never returns.
int recording_start(struct recording *r, struct recorder_config *config, struct error *e);

// Sends without waiting; an orphan that does not fit is added to the next (its pid is 0 then).
void recording_send(struct recording *r, const struct message *message);
// Waits up to timeout_ms for room.
void recording_send_patiently(struct recording *r, const struct message *message, int timeout_ms);
void recording_say(struct recording *r, const char *kind, const char *text); // MESSAGE_EVENT

// Takes one message if there is one. False where there is none; sees the recorder's end.
bool recording_take(struct recording *r, struct message *ret);
// Takes all there is: its end, and that it is done, are noted.
void recording_hear(struct recording *r);
// Waits for a message of this kind. False after timeout_ms or where the recorder is gone.
bool recording_wait(struct recording *r, enum message_kind kind, int timeout_ms);
// The launcher reaped it.
void recording_reaped(struct recording *r, int status);

// Kills it and removes the file that it has made: the job never ran. What stood there before stays,
// where it was not replaced yet. A recorder that cannot die (its disk hangs) is not waited for.
void recording_discard(struct recording *r);
// The recorder died: writes the run's end and the job's status in its place.
int recording_close_file(struct recording *r, uint64_t end_ns, int status, struct error *e);
// "recorder was killed (signal 9)", "recorder ended with status 1".
void recording_describe_death(const struct recording *r, char *buffer, size_t size);

// Oom score ---------------------------------------------------------------------------------------
//
// Whom the kernel kills where memory ends: the recorder, or a process of the job.

// What is added to the recorder's oom_score_adj under a limit; memory_bytes 0: not known.
unsigned recording_raise_oom_score(uint64_t memory_bytes);
