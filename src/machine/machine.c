// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// CPUs, memory and limits of a machine, read once at the start of a run.

#include "machine/machine.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "machine/file.h"
#include "machine/procfs.h"

// Only the first lines of these files are needed (cpuinfo has a kB for every CPU).
#define READ_MAX_BYTES 8192u
#define TABLE_MAX_BYTES (512 * 1024) // of PCI devices: 2,000 with all their resources

// Copies the first line, trimmed.
static void copy_line(struct cursor c, char *to, size_t size)
{
	struct cursor line;
	cursor_skip_blanks(&c);
	if (!cursor_line(&c, &line)) {
		return;
	}
	size_t length = (size_t)(line.end - line.at);
	length = length < size ? length : size - 1;
	memcpy(to, line.at, length);
	to[length] = '\0';
}

static unsigned read_list(int root_fd, const char *path)
{
	char buffer[1024];
	struct cursor c;
	return file_read_once(root_fd, path, buffer, sizeof(buffer), &c, NULL) == 0
	               ? procfs_list_count(c)
	               : 0;
}

// The value of the first key found: x86 has "model name", others "Processor", "cpu", "cpu model".
static void read_model(int root_fd, char *to, size_t size)
{
	static const char *const keys[] = {"model name", "cpu model", "Processor", "cpu"};
	char buffer[READ_MAX_BYTES];
	struct cursor text, line;
	if (file_read_once(root_fd, "proc/cpuinfo", buffer, sizeof(buffer), &text, NULL) < 0) {
		return;
	}
	while (cursor_line(&text, &line)) {
		for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
			struct cursor rest = line;
			if (cursor_literal(&rest, keys[i])) {
				cursor_skip_blanks(&rest);
				if (cursor_literal(&rest, ":")) {
					copy_line(rest, to, size);
					return;
				}
			}
		}
	}
}

// The kernel gives the table a page at a time: the GPUs are often behind the first one.
int machine_pci_devices(int root_fd, const char *vendor)
{
	struct host_file f = HOST_FILE_CLOSED;
	struct cursor table, line, place, field;
	int n = 0, r = host_file_open(&f, root_fd, "proc/bus/pci/devices", NULL);
	r = r < 0 ? r : host_file_read_to_end(&f, &table);
	if (r == 0 && table.end - table.at > TABLE_MAX_BYTES) {
		r = -EFBIG;
	}
	while (r == 0 &&
		cursor_line(&table, &line)) { // "0100\t10de20b2\t...": place, vendor and device
		bool is = cursor_word(&line, &place) && cursor_word(&line, &field) &&
		          field.end - field.at == 8;
		n += is && strncasecmp(field.at, vendor, 4) == 0;
	}
	host_file_close(&f);
	return r < 0 ? r : n;
}

static unsigned read_allowed_cpus(int root_fd)
{
	struct proc_status status;
	return proc_status_read(root_fd, "proc/self/status", &status) == 0 ? status.cpus_allowed
	                                                                   : 0;
}

void machine_read(int root_fd, struct machine *ret)
{
	struct machine m = {0};
	struct cgroup_places places = {0};
	m.cpus = read_list(root_fd, "sys/devices/system/cpu/online");
	m.cpus_allowed = read_allowed_cpus(root_fd);
	m.nodes = read_list(root_fd, "sys/devices/system/node/online");
	(void)procfs_meminfo(root_fd, "MemTotal", &m.memory_bytes);
	read_model(root_fd, m.cpu_model, sizeof(m.cpu_model));
	(void)file_read_line(root_fd, "proc/sys/kernel/osrelease", m.kernel, sizeof(m.kernel));
	(void)file_read_line(root_fd, "proc/sys/kernel/hostname", m.name, sizeof(m.name));
	if (cgroup_places_find(root_fd, "self", &places, NULL) == 0) {
		(void)cgroupfs_memory_limit(root_fd, &places, &m.memory_limit_bytes, NULL);
		(void)cgroupfs_cpu_quota(root_fd, &places, &m.cpu_quota, NULL);
		cgroup_places_done(&places);
	}
	*ret = m;
}

static void put_name(struct text *t, const char *name)
{
	text_format(t, "%s\"%s\":", t->length > 1 ? "," : "", name);
}

static void put_count(struct text *t, const char *name, uint64_t number)
{
	if (number) {
		put_name(t, name);
		text_format(t, "%llu", (unsigned long long)number);
	}
}

static void put_string(struct text *t, const char *name, const char *string)
{
	if (*string) {
		put_name(t, name);
		text_append_json_string(t, string);
	}
}

char *machine_attributes(const struct machine *machine)
{
	struct text t = {0};
	text_append_string(&t, "{");
	put_count(&t, "cpus", machine->cpus);
	put_count(&t, "cpus_allowed", machine->cpus_allowed);
	if (machine->cpu_quota > 0) {
		put_name(&t, "cpu_quota");
		text_format(&t, "%.3f", machine->cpu_quota);
	}
	put_count(&t, "numa_nodes", machine->nodes);
	put_count(&t, "memory_bytes", machine->memory_bytes);
	put_count(&t, "memory_limit_bytes", machine->memory_limit_bytes);
	put_string(&t, "cpu_model", machine->cpu_model);
	put_string(&t, "kernel", machine->kernel);
	put_string(&t, "hostname", machine->name);
	text_append_string(&t, "}");
	return text_steal(&t);
}
