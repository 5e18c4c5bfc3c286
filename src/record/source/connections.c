// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's TCP connections to other machines, summed by machine; those to a service there (a port
// below 1024) apart, because ranks have none. They show which rank has a slow link: its
// data is in transit most of the time, while the data of a rank that is slow for another reason is
// not. Connections within the machine are left out.
//
// A listing of the kernel's connections names no process, only the socket's inode. So when unknown
// sockets appear, the descriptors of the job's processes are searched for them. Connections that
// begin and end between two listings are not seen. NCCL over InfiniBand or RoCE makes none.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "machine/tcp.h"
#include "machine/tree.h"
#include "record/sample/source.h"

enum {
	PEERS_MAX = 64, // other machines
	CONNECTIONS_MAX = 4096, // to other machines, of the user
	LISTED_MAX = 16384, // of all programs: a listing of as many takes some 20 ms
	SERVICE_PORTS = 1024, // below: of programs that root starts (HTTPS, SSH)
	PROCESSES_MAX = 256, // whose descriptors are searched
	DESCRIPTORS_MAX = 8192, // in one search
	SEARCHES_MAX = 3, // after which a socket belongs to others
	ABSENT_MAX = 2, // listings that may lack a connection: another one closed meanwhile
};
#define REST_MOST_NS (7 * NS_PER_S) // between two listings while the job has no connections
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
		"Packets to the other machine that were retransmitted" OF_KERNEL},
	[TCP_BUSY] = {"strain.tcp.busy_time", METRIC_COUNTER, "s", 1e-6,
		"Time in which the busiest connection had data in transit or to be sent, and the "
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
	uint16_t service; // port; 0: of no service
	int64_t entity;
	struct stream *stream;
	int64_t totals[N_TCP]; // VALUE_MISSING: this kernel does not tell
	uint64_t row_ns; // of its last row
	bool idle; // that row had no connections
	// In this reading:
	int64_t connections, most_sent, busiest_us;
	int64_t round_trip_us, round_trip_least_us; // -1: not known
};

enum owner { OWNER_UNKNOWN, OWNER_OTHERS, OWNER_JOB };

struct known { // a connection
	uint64_t cookie;
	enum owner owner;
	unsigned searches; // in which it was not found
	uint64_t seen; // the number of the listing that had it last
	struct tcp_connection last; // as that listing had it
	struct tcp_connection counted; // what its peer's totals have of it
};

struct unknown {
	uint64_t inode;
	size_t index; // in `known`
};

struct connections {
	struct tree *tree;
	int root_fd; // borrowed
	int64_t job;
	uid_t user; // whose connections count; 0: all
	uint64_t network_namespace; // inode; 0: not known
	uint64_t n_listings;
	uint64_t listed_ns; // when the last listing was made
	size_t n_listed; // connections in this listing
	struct known *known; // [n] owned, in no order
	size_t n, capacity;
	size_t hint; // where the next connection of a listing is likely
	struct unknown *unknown; // owned; sorted, while descriptors are searched
	size_t unknown_capacity;
	size_t next_process; // the first whose descriptors are searched next
	uint64_t search_ns, searched_ns; // between searches; the last one
	struct peer peers[PEERS_MAX];
	size_t n_peers;
	uint64_t rest_ns; // between two listings, at least
	bool full; // connections of this listing have no place in `known`
	bool said_full, said_peers, said_elsewhere;
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

static bool make_room(struct connections *s)
{
	void *known = s->known;
	bool room = s->n < CONNECTIONS_MAX &&
	            array_reserve(&known, &s->capacity, s->n + 1, sizeof(*s->known)) == 0;
	s->known = known;
	return room;
}

static bool visit(void *context, const struct tcp_connection *connection)
{
	struct connections *s = context;
	bool ours = s->user == 0 || connection->user == s->user;
	if (++s->n_listed > LISTED_MAX) {
		return false;
	}
	if (!ours || tcp_address_is_loopback(&connection->remote) ||
		tcp_address_equal(&connection->remote, &connection->local)) {
		return true;
	}
	struct known *k = find_known(s, connection->cookie);
	if (!k && !make_room(s)) {
		s->full = true;
		return true;
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

static void forget_closed(struct connections *s)
{
	size_t kept = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (s->known[i].seen + ABSENT_MAX >= s->n_listings) {
			s->known[kept++] = s->known[i];
		}
	}
	s->n = kept;
	s->hint = 0;
}

// Whose they are ----------------------------------------------------------------------------------

static int compare_inodes(const void *left, const void *right)
{
	const struct unknown *a = left, *b = right;
	return (a->inode > b->inode) - (a->inode < b->inode);
}

// Gives the job a socket that a descriptor names. n: of s->unknown.
static void take_socket(struct connections *s, uint64_t inode, size_t n, size_t *left)
{
	const struct unknown wanted = {.inode = inode};
	const struct unknown *found = bsearch(
		&wanted, s->unknown, n, sizeof(wanted), compare_inodes);
	if (found && s->known[found->index].owner == OWNER_UNKNOWN) {
		s->known[found->index].owner = OWNER_JOB;
		*left -= 1;
	}
}

// Returns whether all descriptors that matter were looked at.
static bool search_process(
	struct connections *s, pid_t pid, size_t n, size_t *left, size_t *descriptors)
{
	char path[48], target[64];
	snprintf(path, sizeof(path), "proc/%d/fd", (int)pid);
	int fd = openat(s->root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	if (!folder) {
		bool gone = errno == ENOENT || errno == ESRCH;
		if (fd >= 0) {
			close(fd);
		}
		return gone;
	}
	const struct dirent *entry;
	while (*left > 0 && *descriptors > 0 && (entry = readdir(folder))) {
		ssize_t length = readlinkat(fd, entry->d_name, target, sizeof(target) - 1);
		struct cursor text = cursor_of(target, length > 0 ? (size_t)length : 0);
		uint64_t inode;
		*descriptors -= 1;
		if (cursor_literal(&text, "socket:[") && cursor_u64(&text, &inode)) {
			take_socket(s, inode, n, left);
		}
	}
	closedir(folder);
	return *left == 0 || *descriptors > 0;
}

// Returns their number; 0 also if memory lacks.
static size_t list_unknown(struct connections *s)
{
	void *unknown = s->unknown;
	size_t n = 0;
	int r = array_reserve(&unknown, &s->unknown_capacity, s->n, sizeof(*s->unknown));
	s->unknown = unknown;
	for (size_t i = 0; i < s->n && r == 0; i++) {
		if (s->known[i].owner == OWNER_UNKNOWN) {
			s->unknown[n++] = (struct unknown){s->known[i].last.inode, i};
		}
	}
	if (n > 1) {
		qsort(s->unknown, n, sizeof(*s->unknown), compare_inodes);
	}
	return n;
}

// Searches the descriptors of as many processes as one reading may. n: of s->unknown. Sets *left to
// those that were not found. Returns whether all processes were searched.
static bool search_processes(struct connections *s, size_t n, size_t *left)
{
	size_t n_members, descriptors = DESCRIPTORS_MAX;
	struct process *const *members = tree_members(s->tree, &n_members);
	bool all = n_members <= PROCESSES_MAX;
	size_t most = all ? n_members : PROCESSES_MAX, first = all ? 0 : s->next_process;
	*left = n;
	for (size_t i = 0; i < most; i++) {
		const struct process *p = members[(first + i) % n_members];
		if (!p->zombie && *left != 0) {
			all = search_process(s, p->pid, n, left, &descriptors) && all;
		}
	}
	s->next_process = n_members > 0 ? (first + most) % n_members : 0;
	return all;
}

// Finds the owners of unknown sockets. Where other programs of the user connect all the time, ever
// less often.
static void search_owners(struct connections *s, uint64_t now_ns)
{
	size_t n, left;
	if (now_ns < s->searched_ns + s->search_ns || (n = list_unknown(s)) == 0) {
		return;
	}
	bool all = search_processes(s, n, &left);
	for (size_t i = 0; i < s->n && all; i++) {
		struct known *k = &s->known[i];
		if (k->owner == OWNER_UNKNOWN && ++k->searches >= SEARCHES_MAX) {
			k->owner = OWNER_OTHERS;
		}
	}
	uint64_t longer = 2 * (s->search_ns > 0 ? s->search_ns : SEARCH_LEAST_NS / 2);
	s->search_ns = left < n ? 0 : longer > SEARCH_MOST_NS ? SEARCH_MOST_NS : longer;
	s->searched_ns = now_ns;
}

// Machines ----------------------------------------------------------------------------------------

static void put_row(struct peer *p, uint64_t now_ns)
{
	int64_t values[N_TCP];
	memcpy(values, p->totals, sizeof(values));
	values[TCP_ROUND_TRIP] = p->round_trip_us > 0 ? p->round_trip_us : VALUE_MISSING;
	values[TCP_ROUND_TRIP_LEAST] = p->round_trip_least_us >= 0 ? p->round_trip_least_us
	                                                           : VALUE_MISSING;
	values[TCP_CONNECTIONS] = p->connections;
	stream_row(p->stream, now_ns, values);
	p->row_ns = now_ns;
	p->idle = p->connections == 0;
}

// from_ns: its counters were 0 then.
static void announce_peer(
	struct connections *s, struct sink *sink, struct peer *p, uint64_t from_ns)
{
	char local[TCP_ADDRESS_TEXT], remote[TCP_ADDRESS_TEXT];
	char space[40] = "", service[24] = "", name[TCP_ADDRESS_TEXT + 8], port[8] = "";
	char key[2 * TCP_ADDRESS_TEXT + 16], attributes[2 * TCP_ADDRESS_TEXT + 128];
	tcp_address_write(&p->local, local);
	tcp_address_write(&p->remote, remote);
	if (p->service > 0) {
		snprintf(port, sizeof(port), ":%u", (unsigned)p->service);
		snprintf(service, sizeof(service), ",\"service\":%u", (unsigned)p->service);
	}
	if (s->network_namespace != 0) {
		snprintf(space, sizeof(space), ",\"namespace\":%" PRIu64, s->network_namespace);
	}
	snprintf(name, sizeof(name), "%s%s", remote, port);
	snprintf(key, sizeof(key), "tcp:%s-%s", local, name);
	snprintf(attributes, sizeof(attributes),
		"{\"peer\":true,\"local\":\"%s\",\"remote\":\"%s\"%s%s}", local, remote, space,
		service);
	const struct sink_entity entity = {
		.kind = ENTITY_NETWORK,
		.key = key,
		.name = name,
		.parent = s->job,
		.first_ns = from_ns,
		.attributes = attributes,
		.own = true,
	};
	p->entity = sink_entity(sink, &entity);
	p->stream = sink_stream(sink, p->entity, &groups[0]);
	put_row(p, from_ns);
}

// before_ns: when the listing before was made.
static struct peer *find_peer(struct connections *s, struct sink *sink,
	const struct tcp_connection *c, uint64_t before_ns)
{
	uint16_t service = c->remote_port < SERVICE_PORTS ? c->remote_port : 0;
	for (size_t i = 0; i < s->n_peers; i++) {
		if (tcp_address_equal(&s->peers[i].remote, &c->remote) &&
			tcp_address_equal(&s->peers[i].local, &c->local) &&
			s->peers[i].service == service) {
			return &s->peers[i];
		}
	}
	if (s->n_peers == PEERS_MAX) {
		if (!s->said_peers) {
			s->said_peers = true;
			sink_missing_group(sink, 0, &groups[0],
				"the job has connections to more than 64 other machines");
		}
		return NULL;
	}
	struct peer *p = &s->peers[s->n_peers++];
	*p = (struct peer){.local = c->local,
		.remote = c->remote,
		.service = service,
		.round_trip_us = -1,
		.round_trip_least_us = -1};
	announce_peer(s, sink, p, before_ns);
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
	return c->busy_us < 0 || c->receiver_limited_us < 0 ? -1
	                                                    : c->busy_us - c->receiver_limited_us;
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

// The owner of a connection may be found late: its time counts only since the last row.
static void add_busy_time(struct peer *p, uint64_t now_ns)
{
	int64_t most_us = (int64_t)((now_ns - p->row_ns) / 1000);
	if (p->totals[TCP_BUSY] != VALUE_MISSING) {
		p->totals[TCP_BUSY] += p->busiest_us < most_us ? p->busiest_us : most_us;
	}
}

static void put_rows(struct connections *s, struct sink *sink, uint64_t before_ns, uint64_t now_ns)
{
	for (size_t i = 0; i < s->n_peers; i++) {
		struct peer *p = &s->peers[i];
		p->connections = p->most_sent = p->busiest_us = 0;
		p->round_trip_us = p->round_trip_least_us = -1;
	}
	for (size_t i = 0; i < s->n; i++) {
		struct known *k = &s->known[i];
		bool counts = k->owner == OWNER_JOB && k->seen == s->n_listings;
		struct peer *p = counts ? find_peer(s, sink, &k->last, before_ns) : NULL;
		if (p) {
			add_connection(p, k);
		}
	}
	for (size_t i = 0; i < s->n_peers; i++) {
		struct peer *p = &s->peers[i];
		if (now_ns > p->row_ns && (p->connections > 0 || !p->idle)) {
			add_busy_time(p, now_ns);
			put_row(p, now_ns);
		}
	}
}

// Reading -----------------------------------------------------------------------------------------

static uint64_t namespace_of(const struct connections *s, const char *process)
{
	char path[48];
	struct stat info;
	snprintf(path, sizeof(path), "proc/%s/ns/net", process);
	return fstatat(s->root_fd, path, &info, 0) == 0 ? (uint64_t)info.st_ino : 0;
}

// The kernel lists the connections of the recorder's own network namespace only.
static void say_what_namespaces_hide(struct connections *s, struct sink *sink)
{
	char process[16];
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	for (size_t i = 0; i < n && i < PROCESSES_MAX && s->network_namespace != 0; i++) {
		snprintf(process, sizeof(process), "%d", (int)members[i]->pid);
		uint64_t theirs = namespace_of(s, process);
		if (theirs != 0 && theirs != s->network_namespace) {
			s->said_elsewhere = true;
			sink_missing_group(sink, 0, &groups[0],
				"processes of the job have a network namespace of their own");
			return;
		}
	}
}

// Reads what the kernel lists. Returns 0; 1 if it could not this time; -errno if it never will.
static int list(struct connections *s, struct sink *sink)
{
	s->n_listings++;
	s->n_listed = 0;
	s->full = false;
	int r = tcp_list(visit, s);
	if (r == -ECANCELED) { // by visit()
		sink_missing_group(
			sink, 0, &groups[0], "more than 16384 TCP connections on this machine");
		return r;
	}
	if (r == -ENOBUFS || r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -EINTR) {
		return 1;
	}
	if (r < 0) {
		const char *reason = strerrordesc_np(-r);
		sink_missing_group(sink, 0, &groups[0], reason ? reason : "unknown error");
		return r;
	}
	if (s->full && !s->said_full) {
		s->said_full = true;
		sink_missing_group(sink, 0, &groups[0],
			"more than 4096 TCP connections to other machines: some are missing");
	}
	return 0;
}

static int read_connections(void *state, struct sink *sink, uint64_t now_ns)
{
	struct connections *s = state;
	if (now_ns < s->listed_ns + s->rest_ns) {
		return 0;
	}
	int r = list(s, sink);
	if (r != 0) {
		return r < 0 ? r : 0;
	}
	uint64_t before_ns = s->listed_ns;
	s->listed_ns = now_ns;
	forget_closed(s);
	search_owners(s, now_ns);
	put_rows(s, sink, before_ns, now_ns);
	if (s->n_listings > 2 && s->n_peers == 0 && !s->said_elsewhere) {
		say_what_namespaces_hide(s, sink);
	}
	// Most jobs make no connections. In time, not in readings: these may be rare already, where
	// recording is at its budget.
	uint64_t longer_ns = 2 * s->rest_ns + NS_PER_S;
	s->rest_ns = s->n_peers > 0 ? 0 : longer_ns < REST_MOST_NS ? longer_ns : REST_MOST_NS;
	return 0;
}

static void connections_close(void *state)
{
	struct connections *s = state;
	if (s) {
		free(s->known);
		free(s->unknown);
		free(s); // the sink owns the streams
	}
}

static int connections_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	(void)sink;
	if (context->captured) {
		return error_set(e, ENOENT, "a captured machine has no connections");
	}
	if (!context->tree) {
		return error_set(e, ENOENT, "needs a running job");
	}
	struct connections *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_errno(e, ENOMEM, "connections");
	}
	s->user = geteuid();
	s->n_listings = 1; // before the job starts
	s->listed_ns = clock_monotonic_ns();
	int r = tcp_list(visit, s);
	if (r < 0 && r != -ECANCELED) {
		connections_close(s);
		return error_set(e, -r, "socket diagnostics (sock_diag): %s", strerrordesc_np(-r));
	}
	s->tree = context->tree;
	s->root_fd = context->root_fd;
	s->job = context->job;
	s->network_namespace = namespace_of(s, "self");
	*ret_state = s;
	return 0;
}

const struct source source_connections = {
	.name = "connections",
	.help = "the job's TCP connections to other machines: traffic, waits, round trips",
	.lane = LANE_TICK,
	.needs_job = true,
	.groups = groups,
	.n_groups = ARRAY_LENGTH(groups),
	.open = connections_open,
	.close = connections_close,
};
