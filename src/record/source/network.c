// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Network interfaces except the loopback, whose traffic never leaves the machine. An interface
// without any packets so far is left out. RDMA traffic (InfiniBand, RoCE) bypasses interfaces and
// is not in these counters.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "machine/file.h"
#include "machine/procfs.h"
#include "record/sample/source.h"

// A node of a container cluster has hundreds of virtual interfaces that come and go.
#define MAX_INTERFACES 64u

enum {
	NET_RECEIVE,
	NET_TRANSMIT,
	NET_RECEIVE_PACKETS,
	NET_TRANSMIT_PACKETS,
	NET_RECEIVE_ERRORS,
	NET_TRANSMIT_ERRORS,
	NET_RECEIVE_DROPPED,
	NET_TRANSMIT_DROPPED,
	N_NET,
};
static const struct metric net_metrics[N_NET] = {
	[NET_RECEIVE] = {"system.network.io.receive", METRIC_COUNTER, "By", 1,
		"Bytes received by the interface (/proc/net/dev)."},
	[NET_TRANSMIT] = {"system.network.io.transmit", METRIC_COUNTER, "By", 1,
		"Bytes sent by the interface (/proc/net/dev)."},
	[NET_RECEIVE_PACKETS] = {"system.network.packets.receive", METRIC_COUNTER, "{packet}", 1,
		"Packets received by the interface (/proc/net/dev)."},
	[NET_TRANSMIT_PACKETS] = {"system.network.packets.transmit", METRIC_COUNTER, "{packet}", 1,
		"Packets sent by the interface (/proc/net/dev)."},
	[NET_RECEIVE_ERRORS] = {"system.network.errors.receive", METRIC_COUNTER, "{error}", 1,
		"Packets received with errors (/proc/net/dev)."},
	[NET_TRANSMIT_ERRORS] = {"system.network.errors.transmit", METRIC_COUNTER, "{error}", 1,
		"Packets that could not be sent (/proc/net/dev)."},
	[NET_RECEIVE_DROPPED] = {"system.network.dropped.receive", METRIC_COUNTER, "{packet}", 1,
		"Packets received and dropped for lack of room (/proc/net/dev)."},
	[NET_TRANSMIT_DROPPED] = {"system.network.dropped.transmit", METRIC_COUNTER, "{packet}", 1,
		"Packets dropped before they were sent (/proc/net/dev)."},
};

static int read_interfaces(void *state, struct sink *sink, uint64_t now_ns);

static const struct group groups[] = {
	{"io", ENTITY_NETWORK, net_metrics, N_NET, NS_PER_S, read_interfaces, SHARED},
};

struct interface {
	char name[16]; // IFNAMSIZ
	bool present;
	bool seen; // in this reading
	int64_t entity;
	struct stream *stream;
};

struct network_source {
	int root_fd;
	int64_t host;
	struct host_file dev;
	struct interface *interfaces;
	size_t n_interfaces, capacity;
};

// Reads the line of sys/class/net/INTERFACE/FILE.
static bool read_attribute(
	int root_fd, const char *interface, const char *file, char *to, size_t size)
{
	char path[128];
	snprintf(path, sizeof(path), "sys/class/net/%s/%s", interface, file);
	return file_read_line(root_fd, path, to, size);
}

static bool read_attribute_number(
	int root_fd, const char *interface, const char *file, int64_t *ret)
{
	char value[32];
	if (!read_attribute(root_fd, interface, file, value, sizeof(value))) {
		return false;
	}
	struct cursor c = cursor_of(value, strlen(value));
	return cursor_i64(&c, ret) && *ret > 0; // a link that is down has speed -1
}

static char *describe(int root_fd, const char *interface)
{
	struct text t = {0};
	char value[32], path[128];
	int64_t number;
	snprintf(path, sizeof(path), "sys/class/net/%s/device", interface);
	text_format(
		&t, "{\"virtual\":%s", faccessat(root_fd, path, F_OK, 0) < 0 ? "true" : "false");
	if (read_attribute_number(root_fd, interface, "speed", &number)) {
		text_format(&t, ",\"speed_bits_per_second\":%lld", (long long)number * 1000000);
	}
	if (read_attribute_number(root_fd, interface, "mtu", &number)) {
		text_format(&t, ",\"mtu_bytes\":%lld", (long long)number);
	}
	if (read_attribute(root_fd, interface, "operstate", value, sizeof(value))) {
		text_append_string(&t, ",\"state\":");
		text_append_json_string(&t, value);
	}
	text_append_string(&t, "}");
	return text_steal(&t);
}

static struct interface *find_interface(struct network_source *s, struct cursor name)
{
	for (size_t i = 0; i < s->n_interfaces; i++) {
		if (cursor_is(name, s->interfaces[i].name)) {
			return &s->interfaces[i];
		}
	}
	size_t length = (size_t)(name.end - name.at);
	void *interfaces = s->interfaces;
	if (s->n_interfaces == MAX_INTERFACES || length >= sizeof(s->interfaces->name) ||
		memchr(name.at, '/', length) || memchr(name.at, '\0', length) ||
		array_reserve(&interfaces, &s->capacity, s->n_interfaces + 1,
			sizeof(*s->interfaces)) < 0) {
		return NULL;
	}
	s->interfaces = interfaces;
	struct interface *new = &s->interfaces[s->n_interfaces++];
	*new = (struct interface){0};
	memcpy(new->name, name.at, length);
	return new;
}

static void interface_appeared(
	struct network_source *s, struct interface *i, struct sink *sink, uint64_t now_ns)
{
	_cleanup_free_ char *attributes = describe(s->root_fd, i->name);
	const struct sink_entity entity = {
		.kind = ENTITY_NETWORK,
		.key = i->name,
		.name = i->name,
		.parent = s->host,
		.first_ns = now_ns,
		.attributes = attributes,
	};
	if (i->entity) {
		sink_entity_update(sink, i->entity, &entity);
	} else {
		i->entity = sink_entity(sink, &entity);
	}
	i->stream = sink_stream(sink, i->entity, &groups[0]);
	i->present = true;
}

static void take_line(
	struct network_source *s, struct cursor text, struct sink *sink, uint64_t now_ns)
{
	struct interface_line line;
	if (interface_line_parse(text, &line) < 0 || cursor_is(line.name, "lo") ||
		(line.receive_packets == 0 && line.transmit_packets == 0)) {
		return;
	}
	struct interface *i = find_interface(s, line.name);
	if (!i) {
		return;
	}
	if (!i->present) {
		interface_appeared(s, i, sink, now_ns);
	}
	i->seen = true;
	const int64_t values[N_NET] = {
		[NET_RECEIVE] = line.receive_bytes,
		[NET_TRANSMIT] = line.transmit_bytes,
		[NET_RECEIVE_PACKETS] = line.receive_packets,
		[NET_TRANSMIT_PACKETS] = line.transmit_packets,
		[NET_RECEIVE_ERRORS] = line.receive_errors,
		[NET_TRANSMIT_ERRORS] = line.transmit_errors,
		[NET_RECEIVE_DROPPED] = line.receive_dropped,
		[NET_TRANSMIT_DROPPED] = line.transmit_dropped,
	};
	stream_row(i->stream, now_ns, values);
}

static int read_interfaces(void *state, struct sink *sink, uint64_t now_ns)
{
	struct network_source *s = state;
	struct cursor text, line;
	int r = host_file_read(&s->dev, &text);
	if (r < 0) {
		sink_missing_group(sink, 0, &groups[0], strerrordesc_np(-r));
		return r;
	}
	while (cursor_line(&text, &line)) {
		take_line(s, line, sink, now_ns);
	}
	for (size_t k = 0; k < s->n_interfaces; k++) {
		struct interface *i = &s->interfaces[k];
		if (i->present && !i->seen) {
			sink_entity_end(sink, i->entity, now_ns, NULL);
			stream_close(take_pointer(i->stream));
			i->present = false;
		}
		i->seen = false;
	}
	return 0;
}

static void network_close(void *state)
{
	struct network_source *s = state;
	if (s) {
		host_file_close(&s->dev);
		free(s->interfaces);
		free(s);
	}
}

static int network_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	struct network_source *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_errno(e, ENOMEM, "network");
	}
	s->root_fd = context->root_fd;
	s->host = context->host;
	s->dev = HOST_FILE_CLOSED;
	// net is a link to self/net: the interfaces that the recorder sees, in its network
	// namespace.
	int r = host_file_open(&s->dev, context->root_fd, "proc/net/dev", e);
	if (r == 0) {
		r = read_interfaces(s, sink, clock_monotonic_ns());
		if (r < 0) {
			error_errno(e, -r, "/proc/net/dev");
		}
	}
	if (r < 0) {
		network_close(s);
		return r;
	}
	*ret_state = s;
	return 0;
}

const struct source source_network = {
	.name = "network",
	.help = "traffic of the network interfaces, by all processes",
	.lane = LANE_TICK,
	.groups = groups,
	.n_groups = ARRAY_LENGTH(groups),
	.open = network_open,
	.close = network_close,
};
