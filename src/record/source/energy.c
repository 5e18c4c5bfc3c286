// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Energy of the machine, from the counters of its processors (RAPL, in /sys/class/powercap). A
// package is a processor; its memory ("dram") is counted apart; "core" and "uncore" are parts of a
// package. Some laptops also count the whole platform ("psys"): a second source, which disagrees
// with the first by what the other parts draw. Since Linux 5.10 only root may read the counters.

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "machine/file.h"
#include "record/sample/source.h"

enum { HOST_ENERGY, PLATFORM_ENERGY, N_ENERGY };
static const struct metric energy_metrics[N_ENERGY] = {
	[HOST_ENERGY] = {"strain.host.energy", METRIC_COUNTER, "J", 1e-3,
		"Energy of the machine's processors and, where it is counted, their memory, by all "
		"programs, since the start of the run (RAPL: /sys/class/powercap; needs root)."},
	[PLATFORM_ENERGY] = {"strain.host.energy.platform", METRIC_COUNTER, "J", 1e-3,
		"The same of the whole platform, on machines that count it (RAPL domain psys)."},
};

static int read_energy(void *state, struct sink *sink, uint64_t now_ns);

// The counter of 32 bits wraps after a minute at the highest power of a large processor.
static const struct group groups[] = {
	{"energy", ENTITY_HOST, energy_metrics, N_ENERGY, NS_PER_S, read_energy, SHARED_NOT},
};

enum { PACKAGES_MAX = 64, PARTS_MAX = 8, DOMAINS_MAX = 2 * PACKAGES_MAX };

struct domain {
	struct host_file file;
	size_t metric;
	int64_t range_uj; // the counter begins again after this value; 0: not known
	int64_t last_uj; // -1: not read yet
};

struct energy_source {
	struct domain domains[DOMAINS_MAX];
	size_t n;
	int64_t total_uj[N_ENERGY]; // since the first reading
	bool has[N_ENERGY];
	int64_t host;
	struct stream *stream;
};

// The growth since the last reading; 0 if the counter went back for a reason that is not known.
static int64_t growth(struct domain *d, int64_t now_uj)
{
	int64_t last_uj = d->last_uj;
	d->last_uj = now_uj;
	if (last_uj < 0 || now_uj >= last_uj) {
		return last_uj < 0 ? 0 : now_uj - last_uj;
	}
	return d->range_uj > last_uj ? d->range_uj - last_uj + now_uj : 0;
}

static bool read_domain(struct domain *d, int64_t *ret_uj)
{
	struct cursor text;
	return host_file_read(&d->file, &text) == 0 && cursor_i64(&text, ret_uj) && *ret_uj >= 0;
}

static int read_energy(void *state, struct sink *sink, uint64_t now_ns)
{
	struct energy_source *s = state;
	int64_t values[N_ENERGY];
	bool failed[N_ENERGY] = {false};
	for (size_t i = 0; i < s->n; i++) {
		int64_t uj;
		if (read_domain(&s->domains[i], &uj)) {
			s->total_uj[s->domains[i].metric] += growth(&s->domains[i], uj);
		} else {
			failed[s->domains[i].metric] = true;
		}
	}
	for (size_t i = 0; i < N_ENERGY; i++) {
		values[i] = s->has[i] && !failed[i] ? s->total_uj[i] / 1000 : VALUE_MISSING;
	}
	if (!s->stream) {
		s->stream = sink_stream(sink, s->host, &groups[0]);
	}
	stream_row(s->stream, now_ns, values);
	return 0;
}

static void energy_close(void *state)
{
	struct energy_source *s = state;
	for (size_t i = 0; s && i < s->n; i++) {
		host_file_close(&s->domains[i].file);
	}
	free(s);
}

// The metric of a domain by its name; N_ENERGY: it is part of another.
static size_t metric_of(const char *name)
{
	return strncmp(name, "package", strlen("package")) == 0 || strcmp(name, "dram") == 0
	               ? HOST_ENERGY
	       : strcmp(name, "psys") == 0 ? PLATFORM_ENERGY
	                                   : N_ENERGY;
}

static int64_t read_range(int root_fd, const char *folder)
{
	char path[96], line[32];
	int64_t range_uj;
	snprintf(path, sizeof(path), "%s/max_energy_range_uj", folder);
	bool is = file_read_line(root_fd, path, line, sizeof(line)) &&
	          parse_integer(line, 0, INT64_MAX, &range_uj, NULL) == 0;
	return is ? range_uj : 0;
}

// Opens the counter of a folder. Returns 0 if it has none that counts.
static int open_domain(struct energy_source *s, int root_fd, const char *folder, struct error *e)
{
	char path[96], name[32];
	int64_t uj;
	snprintf(path, sizeof(path), "%s/name", folder);
	size_t metric = file_read_line(root_fd, path, name, sizeof(name)) ? metric_of(name)
	                                                                  : N_ENERGY;
	if (metric == N_ENERGY || s->n == DOMAINS_MAX) {
		return 0;
	}
	struct domain *d = &s->domains[s->n];
	*d = (struct domain){HOST_FILE_CLOSED, metric, read_range(root_fd, folder), -1};
	snprintf(path, sizeof(path), "%s/energy_uj", folder);
	int r = host_file_open(&d->file, root_fd, path, e);
	if (r < 0) {
		return r;
	}
	s->n++;
	s->has[metric] = true;
	return read_domain(d, &uj) ? 0 : error_set(e, EIO, "/%s: cannot be read", path);
}

// A domain that cannot be read would make the sum too small, so it ends the search.
static int open_domains(struct energy_source *s, int root_fd, struct error *e)
{
	char folder[64];
	int r = 0;
	for (unsigned i = 0; i < PACKAGES_MAX && r == 0; i++) {
		snprintf(folder, sizeof(folder), "sys/class/powercap/intel-rapl:%u", i);
		if (!file_has_entries(root_fd, folder)) {
			break;
		}
		r = open_domain(s, root_fd, folder, e);
		for (unsigned k = 0; k < PARTS_MAX && r == 0; k++) {
			snprintf(folder, sizeof(folder), "sys/class/powercap/intel-rapl:%u:%u", i,
				k);
			r = open_domain(s, root_fd, folder, e);
		}
	}
	if (r == 0 && s->n == 0) {
		r = error_set(e, ENOENT,
			"no energy counters (/sys/class/powercap/intel-rapl:*); load the module "
			"intel_rapl_msr, unless this is a virtual machine");
	}
	return r == -EACCES ? error_set(e, EACCES,
				      "only root may read the energy counters "
				      "(/sys/class/powercap); run as root, or let your group read "
				      "energy_uj")
	                    : r;
}

static int energy_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	static const char *const reasons[N_ENERGY] = {
		[HOST_ENERGY] = "the processors have no energy counters",
		[PLATFORM_ENERGY] = "this machine does not count it"};
	struct energy_source *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_errno(e, ENOMEM, "energy");
	}
	s->host = context->host;
	int r = open_domains(s, context->root_fd, e);
	if (r < 0) {
		energy_close(s);
		return r;
	}
	for (size_t i = 0; i < N_ENERGY; i++) {
		if (!s->has[i]) {
			sink_missing(sink, s->host, &groups[0], i, reasons[i]);
		}
	}
	*ret_state = s;
	return 0;
}

const struct source source_energy = {
	.name = "energy",
	.help = "energy of the machine's processors and memory",
	.lane = LANE_TICK,
	.groups = groups,
	.n_groups = ARRAY_LENGTH(groups),
	.open = energy_open,
	.close = energy_close,
};
