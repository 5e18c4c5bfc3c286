// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The launcher's view of the recorder: a process that may vanish at any moment, and a socket to it.
// Nothing here can make the job fail.

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
	pid_t pid; // of the recorder; 0 after it was reaped
	int socket; // -1 after the recorder is gone
	struct beneath_file created; // the run file as the recorder reported it; inode 0: none
	bool ready; // it reported that the file exists
	bool closing; // it reported that it stopped measuring
	bool done; // it reported that the file is closed
	bool dead; // it ended without that report
	int status; // as waitpid gives it, once reaped
	uint64_t dead_ns; // CLOCK_MONOTONIC
	struct message backlog; // orphans that did not fit into the socket; kind 0: none
};

#define RECORDING_NONE ((struct recording){.socket = -1})

// Forks the recorder and sets config->socket. Does not return in the child.
int recording_start(struct recording *r, struct recorder_config *config, struct error *e);

// Sends without waiting. An orphan that does not fit is added to the next message (its pid is then
// 0).
void recording_send(struct recording *r, const struct message *message);
// Waits up to timeout_ms for space.
void recording_send_patiently(struct recording *r, const struct message *message, int timeout_ms);
void recording_say(struct recording *r, const char *kind, const char *text); // MESSAGE_EVENT

// Takes one message. Returns false if there is none. Detects the recorder's end.
bool recording_take(struct recording *r, struct message *ret);
// Takes all messages and notes the recorder's end and completion.
void recording_hear(struct recording *r);
// Waits for a message of this kind. Returns false after timeout_ms or if the recorder is gone.
bool recording_wait(struct recording *r, enum message_kind kind, int timeout_ms);
// Notes that the launcher reaped the recorder.
void recording_reaped(struct recording *r, int status);

// Kills the recorder and removes the file that it created, for a job that never ran. An earlier
// file at the path is kept, unless it was already replaced. Does not wait for a recorder that
// cannot die (its disk hangs).
void recording_discard(struct recording *r);
// Writes the run's end and the job's status in place of a recorder that died.
int recording_close_file(struct recording *r, uint64_t end_ns, int status, struct error *e);
// "recorder was killed (signal 9)", "recorder ended with status 1".
void recording_describe_death(const struct recording *r, char *buffer, size_t size);

// Oom score ---------------------------------------------------------------------------------------
//
// Whom the kernel kills when memory runs out: the recorder or a process of the job.

// The increase of the recorder's oom_score_adj under a memory limit; memory_bytes 0: unknown.
unsigned recording_raise_oom_score(uint64_t memory_bytes);
