// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs one trial in a task of Slurm.

#include "sweep/slurm_trial.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sweep/attempt.h"
#include "sweep/slurm_client.h"
#include "sweep/slurm_ledger.h"
#include "sweep/slurm_text.h"
#include "sweep/sweep.h"

struct trial {
	struct sweep sweep;
	struct slurm_ticket ticket;
	int ledger;
	char *owner;
};

// Asks Slurm why it ends this task: once, and only then.
static enum slurm_state ask_state(uint32_t task, struct slurm_job *ret)
{
	_cleanup_slurm_answer_ struct slurm_answer answer = {0};
	const char *job = getenv("SLURM_JOB_ID");
	*ret = (struct slurm_job){0};
	const char *const words[] = {"scontrol", "--oneliner", "show", "job", job ? job : ""};
	struct slurm_command command = {0};
	slurm_command_add_words(&command, words, ARRAY_LENGTH(words));
	if (slurm_client_run(&command, "", 0, &answer, NULL) < 0 ||
		!slurm_text_find_job(answer.output.data ? answer.output.data : "",
			answer.output.length, task, ret)) {
		return SLURM_UNKNOWN;
	}
	return ret->state;
}

// Slurm sends SIGTERM to all processes of a job that it ends, and SIGKILL later (KillWait, 30 s by
// default). slurmstepd writes why; only if it did not, Slurm is asked. A job that will run again
// has no outcome.
static enum outcome tell_interrupted(void *context, struct text *why)
{
	struct trial *t = context;
	struct slurm_job job = {0};
	_cleanup_text_ struct text output = {0};
	slurm_ledger_read_output(t->ledger, &t->ticket, &output);
	const char *data = output.data ? output.data : "";
	if (slurm_ledger_is_cancelled(t->ledger, t->ticket.token)) {
		return N_OUTCOMES;
	}
	enum outcome outcome = slurm_text_judge(&job, data, output.length, why);
	if (outcome == N_OUTCOMES && slurm_state_is_final(ask_state(t->ticket.task, &job))) {
		text_clear(why);
		outcome = slurm_text_judge(&job, data, output.length, why);
	}
	bool again = (outcome == OUTCOME_PREEMPTED || outcome == OUTCOME_NODE_FAILURE) &&
	             !t->sweep.plan.slurm.no_requeue;
	return again ? N_OUTCOMES : outcome;
}

static bool is_ours(void *context)
{
	const struct trial *t = context;
	return slurm_ledger_owns(t->ledger, &t->ticket, t->owner);
}

static size_t find_index(const struct trials *trials, struct trial_place place)
{
	for (size_t i = 0; i < trials->n; i++) {
		if (trials->order[i].configuration == place.configuration &&
			trials->order[i].repeat == place.repeat) {
			return i;
		}
	}
	return trials->n;
}

static int run(struct trial *t, const struct slurm_trial_request *request, struct error *e)
{
	const struct attempt_watch watch = {
		.interrupts = request->interrupts,
		.context = t,
		.interrupted = tell_interrupted,
		.may_complete = is_ours,
	};
	struct attempt attempt;
	size_t index = find_index(&t->sweep.trials, t->ticket.trial);
	if (index == t->sweep.trials.n || t->sweep.done[index]) {
		return error_set(
			e, ENOENT, "%s: not a pending trial of this sweep", request->ticket);
	}
	const char *restarts = getenv("SLURM_RESTART_COUNT");
	int result = slurm_ledger_take(
		t->ledger, &t->ticket, restarts && strcmp(restarts, "0") != 0, &t->owner);
	if (result < 0) {
		return result == -ENOENT
		               ? error_set(e, ENOENT, "%s: the sweep has withdrawn this trial",
					 request->ticket)
		               : error_errno(e, -result, "%s", request->ticket);
	}
	sweep_remove_trial(&t->sweep, t->ticket.trial); // remains of an attempt before this
	result = attempt_run(&t->sweep, index, &watch, &attempt, e);
	if (result == 0) {
		attempt_done(&attempt);
	}
	return result;
}

int slurm_trial_run(const struct slurm_trial_request *request, struct error *e)
{
	struct trial t = {.ledger = -1};
	if (!slurm_ticket_parse(request->ticket, strlen(request->ticket), &t.ticket)) {
		return error_set(e, EINVAL, "'%.100s': expected a ticket of a sweep under Slurm",
			request->ticket);
	}
	_cleanup_free_ char *part = sweep_trial_name(t.ticket.trial);
	const struct sweep_options options = {
		.plan = request->directory, .look = true, .part = part ? part : ""};
	int result = sweep_open(&options, &t.sweep, e);
	if (result < 0) {
		return result;
	}
	t.ledger = slurm_ledger_open(t.sweep.folder, request->directory, false, e);
	result = t.ledger < 0 ? t.ledger : run(&t, request, e);
	cleanup_close(&t.ledger);
	free(t.owner);
	sweep_close(&t.sweep);
	return result;
}
