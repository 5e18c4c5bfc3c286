// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fuzz target: the output of Slurm's commands, and names of tickets.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sweep/slurm_ledger.h"
#include "sweep/slurm_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(void *context, const struct slurm_queued *line)
{
	const char *const *bounds = context;
	if (line->reason < bounds[0] || line->reason + line->reason_length > bounds[1] ||
		line->name < bounds[0] || line->name + line->name_length > bounds[1]) {
		abort();
	}
}

static void check_job(const char *text, size_t size, uint32_t task)
{
	struct slurm_job job = {0};
	struct text why = {0};
	if (slurm_text_find_job(text, size, task, &job) &&
		(job.exit_status < -1 || job.exit_status > 255 || job.exit_signal < 0 ||
			strlen(job.reason) >= sizeof(job.reason) ||
			strlen(job.node) >= sizeof(job.node))) {
		abort();
	}
	enum outcome outcome = slurm_text_judge(&job, text, size, &why);
	if (outcome > N_OUTCOMES || why.length == 0) {
		abort();
	}
	text_done(&why);
}

static bool same_ticket(const struct slurm_ticket *a, const struct slurm_ticket *b)
{
	return memcmp(&a->trial, &b->trial, sizeof(a->trial)) == 0 && a->attempt == b->attempt &&
	       strcmp(a->token, b->token) == 0 && a->task == b->task && a->taken == b->taken;
}

static void check_ticket(const char *text, size_t size)
{
	struct slurm_ticket ticket, again;
	if (!slurm_ticket_parse(text, size, &ticket)) {
		return;
	}
	char *stem = slurm_ticket_stem(&ticket);
	if (!stem || !slurm_ticket_parse(stem, strlen(stem), &again) ||
		!same_ticket(&ticket, &again)) {
		abort();
	}
	free(stem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *const bounds[] = {text, text + size};
	uint64_t job;
	slurm_text_queue(text, size, check_line, (void *)(uintptr_t)bounds);
	slurm_text_job(text, size, &job);
	char *version = slurm_text_setting(text, size, "SLURM_VERSION");
	if (version) {
		slurm_text_version(version);
		free(version);
	}
	check_job(text, size, 0);
	check_job(text, size, 3);
	check_ticket(text, size);
	return 0;
}
