// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The variables of torchrun, Open MPI, MPICH, PMIx, Slurm, PBS and LSF.

#include "runfile/labels.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"

#define NAME_BYTES_MAX 120

const char *const labels_of_launchers[] = {
	"RANK",
	"LOCAL_RANK",
	"WORLD_SIZE",
	"LOCAL_WORLD_SIZE",
	"GROUP_RANK",
	"NODE_RANK",
	"TORCHELASTIC_RUN_ID",
	"MASTER_ADDR",
	"MASTER_PORT",
	"OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_LOCAL_RANK",
	"OMPI_COMM_WORLD_SIZE",
	"PMI_RANK",
	"PMI_SIZE",
	"PMIX_NAMESPACE",
	"PMIX_RANK",
	"SLURM_JOB_ID",
	"SLURM_JOB_NAME",
	"SLURM_STEP_ID",
	"SLURM_PROCID",
	"SLURM_LOCALID",
	"SLURM_NODEID",
	"SLURM_NTASKS",
	"SLURM_ARRAY_JOB_ID",
	"SLURM_ARRAY_TASK_ID",
	"PBS_JOBID",
	"LSB_JOBID",
	"LSB_JOBINDEX",
	NULL,
};

const char *const labels_of_rank[] = {
	"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL};

// RANK and WORLD_SIZE are not here: scripts read them, too, and runs that differ in them differ.
bool labels_is_of_launcher(const char *name)
{
	static const char *const different[] = {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"};
	for (size_t i = 0; i < ARRAY_LENGTH(different); i++) {
		if (strcmp(name, different[i]) == 0) {
			return false;
		}
	}
	for (size_t i = 0; labels_of_launchers[i]; i++) {
		if (strcmp(name, labels_of_launchers[i]) == 0) {
			return true;
		}
	}
	return false;
}

const char *labels_find(const struct run_label *labels, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(labels[i].name, name) == 0) {
			return labels[i].value;
		}
	}
	return NULL;
}

char *labels_job(const struct run_label *labels, size_t n, const char **ret_label)
{
	// The most certain first. Steps of a Slurm job are jobs of their own.
	static const struct {
		const char *label, *second; // second: NULL: none
		const char *nothing; // a value that names nothing
	} names[] = {
		{"job", NULL, NULL},
		{"SLURM_JOB_ID", "SLURM_STEP_ID", NULL},
		{"TORCHELASTIC_RUN_ID", NULL, "none"},
		{"PMIX_NAMESPACE", NULL, NULL},
		{"PBS_JOBID", NULL, NULL},
		{"LSB_JOBID", "LSB_JOBINDEX", "0"},
		{"MASTER_ADDR", "MASTER_PORT", NULL},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const char *value = labels_find(labels, n, names[i].label),
			   *nothing = names[i].nothing;
		const char *second = names[i].second ? labels_find(labels, n, names[i].second)
		                                     : NULL;
		if (!value || *value == '\0' || (nothing && strcmp(value, nothing) == 0)) {
			continue;
		}
		struct text name = {0};
		text_format(&name, "%.*s%s%.*s", NAME_BYTES_MAX, value, second ? "." : "",
			NAME_BYTES_MAX, second ? second : "");
		*ret_label = names[i].label;
		return text_steal(&name);
	}
	return NULL;
}

int labels_rank(const struct run_label *labels, size_t n)
{
	for (size_t i = 0; labels_of_rank[i]; i++) {
		const char *text = labels_find(labels, n, labels_of_rank[i]);
		int64_t rank;
		if (text && parse_integer(text, 0, INT32_MAX, &rank, NULL) == 0) {
			return (int)rank;
		}
	}
	return -1;
}

// In a batch script, SLURM_NTASKS is what srun would start.
int64_t labels_world(const struct run_label *labels, size_t n)
{
	static const char *const sizes[] = {
		"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
	bool step = labels_find(labels, n, "SLURM_STEP_ID") != NULL;
	size_t known = ARRAY_LENGTH(sizes) - !step;
	int64_t world = 0;
	for (size_t i = 0; i < known && world == 0; i++) {
		const char *text = labels_find(labels, n, sizes[i]);
		if (!text || parse_integer(text, 1, INT32_MAX, &world, NULL) < 0) {
			world = 0;
		}
	}
	return world;
}
