// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The recorder: so far it only opens and closes the run file.

#include "record/recorder.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/describe.h"
#include "record/job/output.h"
#include "record/protocol.h"
#include "trace/writer.h"

static void tell(int socket, enum message_kind kind, const char *text)
{
	struct message message = {.kind = kind};
	snprintf(message.text, sizeof(message.text), "%s", text);
	(void)!send(socket, &message, sizeof(message), MSG_NOSIGNAL);
}

struct epochs {
	struct writer *w;
	uint64_t start_ns;
	int64_t span;
};

static void matched(void *context, const struct output_match *match)
{
	struct epochs *epochs = context;
	int64_t now = (int64_t)(clock_monotonic_ns() - epochs->start_ns);
	if (epochs->span > 0) {
		writer_end_span(epochs->w, epochs->span, now);
	}
	writer_put_span(epochs->w,
		&(struct writer_span){.name = "epoch",
			.kind = "epoch",
			.start_ns = now,
			.end_ns = -1,
			.number = match->number,
			.samples = -1,
			.value = __builtin_nan("")},
		&epochs->span);
}

int recorder_run(const struct recorder_config *config)
{
	struct writer *w = NULL;
	struct error e = {0};
	struct message message;
	int status = -1;
	struct output_pattern *pattern = NULL;
	struct output_stream *streams[2] = {0};
	struct writer_options options = {
		.replace = config->options->force, .max_bytes = config->options->max_bytes};
	if (writer_create(config->path, &options, &w, &e) < 0) {
		tell(config->socket, MESSAGE_FAILED, e.text);
		return 1;
	}
	describe_run(w, config);
	writer_commit(w, &e);
	if (config->options->epoch_pattern) {
		output_pattern_new(config->options->epoch_pattern, &pattern, &e);
		output_stream_new(pattern, &streams[0]);
		output_stream_new(pattern, &streams[1]);
	}
	struct epochs epochs = {w, config->start_ns, 0};
	tell(config->socket, MESSAGE_READY, "");
	for (bool ended = false; !ended;) {
		struct pollfd fds[] = {{config->socket, POLLIN, 0}};
		int ready = poll(fds, 1, 10);
		for (int i = 0; i < 2 && pattern; i++) {
			char buffer[65536];
			ssize_t n = config->output[i] >= 0
			                    ? read(config->output[i], buffer, sizeof(buffer))
			                    : 0;
			if (n > 0) {
				output_stream_feed(streams[i], buffer, (size_t)n, matched, &epochs);
			}
		}
		if (ready <= 0) {
			continue;
		}
		ssize_t n = recv(config->socket, &message, sizeof(message), 0);
		status = n > 0 && message.kind == MESSAGE_END ? message.status : status;
		ended = n <= 0 || message.kind == MESSAGE_END;
		if (n > 0 && message.kind == MESSAGE_EXITED) {
			tell(config->socket, MESSAGE_LAST_READ, "");
		}
	}
	writer_finish(w, (int64_t)(clock_monotonic_ns() - config->start_ns), status, &e);
	writer_free(w);
	tell(config->socket, MESSAGE_DONE, "");
	return 0;
}
