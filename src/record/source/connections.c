// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's TCP connections to other machines, summed by machine. They show who is slow where ranks
// exchange gradients: a rank that sends over a slow link has data on their way for long, with
// little arriving; a rank that others wait for has none. Connections within the machine are left
// out.
//
// A listing of the kernel's connections names no process, only the socket's inode. So when unknown
// sockets appear, the descriptors of the job's processes are searched for them. Connections that
// begin and end between two listings are not seen. NCCL over InfiniBand or RoCE makes none.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "machine/tcp.h"
#include "machine/tree.h"
#include "record/sample/source.h"

enum {
	PEERS_MAX = 64, // other machines
	CONNECTIONS_MAX = 4096, // of all programs; a listing of as many takes some milliseconds
	PROCESSES_MAX = 256, // whose descriptors are searched
	DESCRIPTORS_MAX = 8192, // in one search
	SKIP_MOST = 7, // readings between two listings while the job has no connections
};
#define SEARCH_LEAST_NS NS_PER_S
#define SEARCH_MOST_NS (30 * NS_PER_S) // between searches that found nothing

#define OF_KERNEL " (tcp_info, sock_diag)."

enum {
	TCP_SENT,
	TCP_RECEIVED,
	TCP_RETRANSMITTED,
	TCP_BUSY,
	TCP_ROUND_TRIP,
	TCP_ROUND_TRIP_LEAST,
	TCP_CONNECTIONS,
	N_TCP,
};
static const struct metric tcp_metrics[N_TCP] = {
	[TCP_SENT] = {"strain.tcp.sent", METRIC_COUNTER, "By", 1,
		"Bytes that the job's TCP connections sent to the other machine, and that it "
		"acknowledged" OF_KERNEL},
	[TCP_RECEIVED] = {"strain.tcp.received", METRIC_COUNTER, "By", 1,
		"Bytes that the job's TCP connections received from the other machine" OF_KERNEL},
	[TCP_RETRANSMITTED] = {"strain.tcp.retransmitted", METRIC_COUNTER, "{packet}", 1,
		"Packets to the other machine that were sent again" OF_KERNEL},
	[TCP_BUSY] = {"strain.tcp.busy_time", METRIC_COUNTER, "s", 1e-6,
		"Time in which the busiest connection had data on their way or to be sent, and the "
		"other side had room for them" OF_KERNEL},
	[TCP_ROUND_TRIP] = {"strain.tcp.round_trip", METRIC_GAUGE, "s", 1e-6,
		"Smoothed round-trip time of the connection that sent most, while it "
		"sent" OF_KERNEL},
	[TCP_ROUND_TRIP_LEAST] = {"strain.tcp.round_trip.least", METRIC_GAUGE, "s", 1e-6,
		"Least round-trip time of the last minutes, of all connections to the other "
		"machine" OF_KERNEL},
	[TCP_CONNECTIONS] = {"strain.tcp.connections", METRIC_GAUGE, "{connection}", 1,
		"Connections between the job and the other machine" OF_KERNEL},
};

static int read_connections(void *state, struct sink *sink, uint64_t now_ns);

static const struct group groups[] = {
	{"tcp", ENTITY_NETWORK, tcp_metrics, N_TCP, NS_PER_S, read_connections, SHARED_NOT},
};

struct peer { // another machine, as seen from one of this one's addresses
	struct tcp_address local, remote;
	int64_t entity;
	struct stream *stream;
	int64_t totals[N_TCP]; // VALUE_MISSING: this kernel does not tell
	// In this reading:
	int64_t connections, most_sent, busiest_us;
	int64_t round_trip_us, round_trip_least_us; // -1: not known
};

enum owner { OWNER_UNKNOWN, OWNER_OTHERS, OWNER_JOB };

struct known { // a connection
	uint64_t cookie;
	enum owner owner;
	uint64_t seen; // the number of the listing that had it last
	struct tcp_connection last; // as that listing had it
	struct tcp_connection counted; // what its peer's totals have of it
};

struct connections {
	struct tree *tree;
	int root_fd; // borrowed
	int64_t job;
	uint64_t n_listings;
	struct known known[CONNECTIONS_MAX]; // by no order
	size_t n;
	size_t hint; // where the next connection of a listing is likely
	struct peer peers[PEERS_MAX];
	size_t n_peers;
	bool too_many, elsewhere; // and that was said
	uint64_t search_ns, searched_ns; // between searches; the last one
	unsigned skip, skipped; // readings between two listings
};

// Listing -----------------------------------------------------------------------------------------

// The kernel's order hardly changes between listings.
static struct known *find_known(struct connections *s, uint64_t cookie)
{
	for (size_t i = 0; i < s->n; i++) {
		size_t at = (s->hint + i) % s->n;
		if (s->known[at].cookie == cookie) {
			s->hint = at + 1;
			return &s->known[at];
		}
	}
	return NULL;
}

static bool visit(void *context, const struct tcp_connection *connection)
{
	struct connections *s = context;
	uid_t user = geteuid();
	bool ours = user == 0 || connection->user == user;
	if (!ours || tcp_address_is_loopback(&connection->remote) ||
		tcp_address_equal(&connection->remote, &connection->local)) {
		return true;
	}
	struct known *k = find_known(s, connection->cookie);
	if (!k && s->n == CONNECTIONS_MAX) {
		return false;
	}
	if (!k) {
		// Those that were there when the recording began count from now on, others from
		// their start.
		static const struct tcp_connection none = {0};
		k = &s->known[s->n++];
		*k = (struct known){.cookie = connection->cookie,
			.counted = s->n_listings == 1 ? *connection : none};
	}
	k->last = *connection;
	k->seen = s->n_listings;
	return true;
}

// Forgets what the last listing did not have.
static void forget_closed(struct connections *s)
{
	size_t kept = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (s->known[i].seen == s->n_listings) {
			s->known[kept++] = s->known[i];
		}
	}
	s->n = kept;
	s->hint = 0;
}

// Whose they are ----------------------------------------------------------------------------------

// Gives the job a socket that a descriptor names.
static void take_socket(struct connections *s, uint64_t inode, size_t *unknown)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->known[i].owner == OWNER_UNKNOWN && s->known[i].last.inode == inode) {
			s->known[i].owner = OWNER_JOB;
			*unknown -= 1;
		}
	}
}

static void search_process(struct connections *s, pid_t pid, size_t *unknown, size_t *left)
{
	char path[48], target[64];
	snprintf(path, sizeof(path), "proc/%d/fd", (int)pid);
	int fd = openat(s->root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	if (!folder) {
		if (fd >= 0) {
			close(fd);
		}
		return;
	}
	const struct dirent *entry;
	while (*unknown > 0 && *left > 0 && (entry = readdir(folder))) {
		ssize_t n = readlinkat(fd, entry->d_name, target, sizeof(target) - 1);
		struct cursor text = cursor_of(target, n > 0 ? (size_t)n : 0);
		uint64_t inode;
		*left -= 1;
		if (cursor_literal(&text, "socket:[") && cursor_u64(&text, &inode)) {
			take_socket(s, inode, unknown);
		}
	}
	closedir(folder);
}

static size_t count_unknown(const struct connections *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		n += s->known[i].owner == OWNER_UNKNOWN;
	}
	return n;
}

// Finds the owners of unknown sockets. Where other programs of the user connect all the time, ever
// less often.
static void search_owners(struct connections *s, uint64_t now_ns)
{
	size_t before = count_unknown(s), unknown = before, left = DESCRIPTORS_MAX, n;
	if (unknown == 0 || now_ns < s->searched_ns + s->search_ns) {
		return;
	}
	struct process *const *members = tree_members(s->tree, &n);
	for (size_t i = 0; i < n && i < PROCESSES_MAX && unknown > 0; i++) {
		if (!members[i]->zombie) {
			search_process(s, members[i]->pid, &unknown, &left);
		}
	}
	for (size_t i = 0; i < s->n && left > 0; i++) {
		if (s->known[i].owner == OWNER_UNKNOWN) {
			s->known[i].owner = OWNER_OTHERS;
		}
	}
	uint64_t longer = 2 * (s->search_ns > 0 ? s->search_ns : SEARCH_LEAST_NS / 2);
	s->search_ns = unknown < before ? 0 : longer > SEARCH_MOST_NS ? SEARCH_MOST_NS : longer;
	s->searched_ns = now_ns;
}

// Machines ----------------------------------------------------------------------------------------

static struct peer *find_peer(
	struct connections *s, struct sink *sink, const struct tcp_connection *c, uint64_t now_ns)
{
	char local[TCP_ADDRESS_TEXT], remote[TCP_ADDRESS_TEXT];
	char key[2 * TCP_ADDRESS_TEXT + 8], attributes[2 * TCP_ADDRESS_TEXT + 64];
	for (size_t i = 0; i < s->n_peers; i++) {
		if (tcp_address_equal(&s->peers[i].remote, &c->remote) &&
			tcp_address_equal(&s->peers[i].local, &c->local)) {
			return &s->peers[i];
		}
	}
	if (s->n_peers == PEERS_MAX) {
		return NULL;
	}
	struct peer *p = &s->peers[s->n_peers++];
	*p = (struct peer){.local = c->local, .remote = c->remote};
	tcp_address_write(&c->local, local);
	tcp_address_write(&c->remote, remote);
	snprintf(key, sizeof(key), "tcp:%s-%s", local, remote);
	snprintf(attributes, sizeof(attributes),
		"{\"peer\":true,\"local\":\"%s\",\"remote\":\"%s\"}", local, remote);
	const struct sink_entity entity = {
		.kind = ENTITY_NETWORK,
		.key = key,
		.name = remote,
		.parent = s->job,
		.first_ns = now_ns,
		.attributes = attributes,
		.own = true,
	};
	p->entity = sink_entity(sink, &entity);
	p->stream = sink_stream(sink, p->entity, &groups[0]);
	return p;
}

// Adds what a counter gained. last: -1 if the kernel does not tell.
static void add_gain(int64_t *total, int64_t last, int64_t counted)
{
	if (last < 0) {
		*total = VALUE_MISSING;
	} else if (last > counted && *total != VALUE_MISSING) {
		*total += last - counted;
	}
}

static int64_t busy_of(const struct tcp_connection *c)
{
	return c->busy_us < 0 || c->unready_us < 0 ? -1 : c->busy_us - c->unready_us;
}

static void add_connection(struct peer *p, struct known *k)
{
	const struct tcp_connection *last = &k->last, *counted = &k->counted;
	int64_t sent = last->sent_bytes - counted->sent_bytes;
	int64_t least = last->round_trip_least_us;
	p->connections++;
	add_gain(&p->totals[TCP_SENT], last->sent_bytes, counted->sent_bytes);
	add_gain(&p->totals[TCP_RECEIVED], last->received_bytes, counted->received_bytes);
	add_gain(&p->totals[TCP_RETRANSMITTED], last->retransmitted, counted->retransmitted);
	if (busy_of(last) < 0) {
		p->totals[TCP_BUSY] = VALUE_MISSING;
	} else if (busy_of(last) - busy_of(counted) > p->busiest_us) {
		p->busiest_us = busy_of(last) - busy_of(counted);
	}
	if (sent > p->most_sent) {
		p->most_sent = sent;
		p->round_trip_us = last->round_trip_us;
	}
	if (least >= 0 && (p->round_trip_least_us < 0 || least < p->round_trip_least_us)) {
		p->round_trip_least_us = least;
	}
	k->counted = k->last;
}

static void put_row(struct peer *p, uint64_t now_ns)
{
	int64_t values[N_TCP];
	if (p->totals[TCP_BUSY] != VALUE_MISSING) {
		p->totals[TCP_BUSY] += p->busiest_us;
	}
	memcpy(values, p->totals, sizeof(values));
	values[TCP_ROUND_TRIP] = p->round_trip_us >= 0 ? p->round_trip_us : VALUE_MISSING;
	values[TCP_ROUND_TRIP_LEAST] = p->round_trip_least_us >= 0 ? p->round_trip_least_us
	                                                           : VALUE_MISSING;
	values[TCP_CONNECTIONS] = p->connections;
	stream_row(p->stream, now_ns, values);
}

static void put_rows(struct connections *s, struct sink *sink, uint64_t now_ns)
{
	for (size_t i = 0; i < s->n_peers; i++) {
		struct peer *p = &s->peers[i];
		p->connections = p->most_sent = p->busiest_us = 0;
		p->round_trip_us = p->round_trip_least_us = -1;
	}
	for (size_t i = 0; i < s->n; i++) {
		struct known *k = &s->known[i];
		struct peer *p = k->owner == OWNER_JOB ? find_peer(s, sink, &k->last, now_ns)
		                                       : NULL;
		if (p) {
			add_connection(p, k);
		}
	}
	for (size_t i = 0; i < s->n_peers; i++) {
		put_row(&s->peers[i], now_ns);
	}
}

// Reading -----------------------------------------------------------------------------------------

static bool read_namespace(const struct connections *s, const char *process, char ret[64])
{
	char path[48];
	snprintf(path, sizeof(path), "proc/%s/ns/net", process);
	ssize_t n = readlinkat(s->root_fd, path, ret, 63);
	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

// The kernel lists the connections of the recorder's own network namespace only.
static void say_what_namespaces_hide(struct connections *s, struct sink *sink)
{
	char ours[64], theirs[64], process[16];
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	bool known = read_namespace(s, "self", ours);
	for (size_t i = 0; i < n && i < PROCESSES_MAX && known; i++) {
		snprintf(process, sizeof(process), "%d", (int)members[i]->pid);
		if (read_namespace(s, process, theirs) && strcmp(ours, theirs) != 0) {
			s->elsewhere = true;
			sink_missing_group(sink, 0, &groups[0],
				"processes of the job have a network namespace of their own");
			return;
		}
	}
}

static int read_connections(void *state, struct sink *sink, uint64_t now_ns)
{
	struct connections *s = state;
	if (s->skipped < s->skip) {
		s->skipped++;
		return 0;
	}
	s->skipped = 0;
	s->n_listings++;
	int r = tcp_list(visit, s);
	if (r == -ECANCELED) {
		if (!s->too_many) {
			s->too_many = true;
			sink_missing_group(sink, 0, &groups[0],
				"more than 4096 TCP connections on this machine: some of the job's "
				"may "
				"be missing");
		}
	} else if (r < 0) {
		sink_missing_group(sink, 0, &groups[0], strerrordesc_np(-r));
		return r;
	}
	forget_closed(s);
	search_owners(s, now_ns);
	put_rows(s, sink, now_ns);
	// Most jobs make no connections. One is counted from its start, so little is lost.
	s->skip = s->n_peers > 0 ? 0 : s->skip < SKIP_MOST ? 2 * s->skip + 1 : SKIP_MOST;
	if (s->n_listings > 1 && s->n_peers == 0 && !s->elsewhere) {
		say_what_namespaces_hide(s, sink);
	}
	return 0;
}

static void connections_close(void *state)
{
	free(state); // the sink owns the streams
}

static bool visit_none(void *context, const struct tcp_connection *connection)
{
	(void)context;
	(void)connection;
	return false;
}

static int connections_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	(void)sink;
	if (context->captured) {
		return error_set(e, ENOENT, "a captured machine has no connections");
	}
	if (!context->tree) {
		return error_set(e, ENOENT, "there is no job that could have connections");
	}
	int r = tcp_list(visit_none, NULL);
	if (r < 0 && r != -ECANCELED) {
		return error_set(e, -r, "socket diagnostics (sock_diag): %s", strerrordesc_np(-r));
	}
	struct connections *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_errno(e, ENOMEM, "connections");
	}
	s->tree = context->tree;
	s->root_fd = context->root_fd;
	s->job = context->job;
	*ret_state = s;
	return 0;
}

const struct source source_connections = {
	.name = "connections",
	.help = "the job's TCP connections to other machines: traffic, waits, round trips",
	.lane = LANE_TICK,
	.of_deeds = true,
	.groups = groups,
	.n_groups = ARRAY_LENGTH(groups),
	.open = connections_open,
	.close = connections_close,
};
