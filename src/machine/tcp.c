// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Asks the kernel for its TCP connections, and reads its answers.

#include "machine/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

// Of a connection that exists: enum in include/net/tcp_states.h, which is not installed.
enum { STATE_ESTABLISHED = 1, STATE_FIN_WAIT1 = 4, STATE_FIN_WAIT2 = 5, STATE_CLOSE_WAIT = 8 };
#define STATES                                                                     \
	(1u << STATE_ESTABLISHED | 1u << STATE_FIN_WAIT1 | 1u << STATE_FIN_WAIT2 | \
		1u << STATE_CLOSE_WAIT)

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; // ::ffff:0:0/96

bool tcp_address_equal(const struct tcp_address *a, const struct tcp_address *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static bool is_mapped(const struct tcp_address *a)
{
	return memcmp(a->bytes, mapped, sizeof(mapped)) == 0;
}

bool tcp_address_is_loopback(const struct tcp_address *a)
{
	static const struct tcp_address loopback = {{[15] = 1}};
	return is_mapped(a) ? a->bytes[12] == 127 : tcp_address_equal(a, &loopback);
}

void tcp_address_write(const struct tcp_address *a, char ret[TCP_ADDRESS_TEXT])
{
	bool four = is_mapped(a);
	if (!inet_ntop(four ? AF_INET : AF_INET6, four ? &a->bytes[12] : a->bytes, ret,
		    TCP_ADDRESS_TEXT)) {
		ret[0] = '\0';
	}
}

static struct tcp_address address_of(uint8_t family, const uint32_t words[4])
{
	struct tcp_address a;
	if (family == AF_INET) {
		memcpy(a.bytes, mapped, sizeof(mapped));
		memcpy(a.bytes + sizeof(mapped), words, 4);
	} else {
		memcpy(a.bytes, words, sizeof(a.bytes));
	}
	return a;
}

// Answers -----------------------------------------------------------------------------------------

// A newer kernel tells more than this header knows, an older one less.
#define HAS(length, member) \
	((length) >= offsetof(struct tcp_info, member) + sizeof(((struct tcp_info *)0)->member))
#define TAKE(to, length, info, member) \
	((to) = HAS(length, member) ? (int64_t)(info)->member : (int64_t)-1)

static void take_info(const void *data, size_t length, struct tcp_connection *ret)
{
	struct tcp_info info = {0};
	memcpy(&info, data, length < sizeof(info) ? length : sizeof(info));
	TAKE(ret->sent_bytes, length, &info, tcpi_bytes_acked);
	TAKE(ret->received_bytes, length, &info, tcpi_bytes_received);
	TAKE(ret->retransmitted, length, &info, tcpi_total_retrans);
	TAKE(ret->busy_us, length, &info, tcpi_busy_time);
	TAKE(ret->receiver_limited_us, length, &info, tcpi_rwnd_limited);
	TAKE(ret->round_trip_us, length, &info, tcpi_rtt);
	TAKE(ret->round_trip_least_us, length, &info, tcpi_min_rtt);
	if (ret->round_trip_least_us == UINT32_MAX) { // none was measured
		ret->round_trip_least_us = -1;
	}
}

// message: what follows the header of a message.
static bool take_connection(const char *message, size_t n, struct tcp_connection *ret)
{
	struct inet_diag_msg m;
	struct rtattr attribute;
	if (n < sizeof(m)) {
		return false;
	}
	memcpy(&m, message, sizeof(m));
	if (m.idiag_family != AF_INET && m.idiag_family != AF_INET6) {
		return false;
	}
	*ret = (struct tcp_connection){
		.inode = m.idiag_inode,
		.cookie = (uint64_t)m.id.idiag_cookie[1] << 32 | m.id.idiag_cookie[0],
		.user = m.idiag_uid,
		.local = address_of(m.idiag_family, m.id.idiag_src),
		.remote = address_of(m.idiag_family, m.id.idiag_dst),
		.remote_port = ntohs(m.id.idiag_dport),
		.sent_bytes = -1,
		.received_bytes = -1,
		.retransmitted = -1,
		.busy_us = -1,
		.receiver_limited_us = -1,
		.round_trip_us = -1,
		.round_trip_least_us = -1,
	};
	for (size_t at = NLMSG_ALIGN(sizeof(m)); at < n && n - at >= sizeof(attribute);) {
		memcpy(&attribute, message + at, sizeof(attribute));
		if (attribute.rta_len < sizeof(attribute) || attribute.rta_len > n - at) {
			return false;
		}
		if (attribute.rta_type == INET_DIAG_INFO) {
			take_info(message + at + sizeof(attribute),
				attribute.rta_len - sizeof(attribute), ret);
		}
		at += RTA_ALIGN(attribute.rta_len);
	}
	return true;
}

// The error of a message that the kernel sends instead of a list: struct nlmsgerr begins with it.
static int error_of(const char *message, size_t n)
{
	int32_t error = 0;
	memcpy(&error, message, n < sizeof(error) ? n : sizeof(error));
	return error < 0 && error > -4096 ? error : -EBADMSG;
}

int tcp_take_answer(const void *answer, size_t n, tcp_visit *visit, void *context)
{
	const char *bytes = answer;
	struct nlmsghdr header;
	struct tcp_connection connection;
	for (size_t at = 0; at < n && n - at >= sizeof(header);) {
		memcpy(&header, bytes + at, sizeof(header));
		if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > n - at) {
			return -EBADMSG;
		}
		const char *message = bytes + at + sizeof(header);
		size_t length = header.nlmsg_len - sizeof(header);
		if (header.nlmsg_type == NLMSG_DONE) {
			return 1;
		}
		if (header.nlmsg_type == NLMSG_ERROR) {
			return error_of(message, length);
		}
		if (header.nlmsg_type != TCPDIAG_GETSOCK ||
			!take_connection(message, length, &connection)) {
			return -EBADMSG;
		}
		if (connection.inode != 0 && !visit(context, &connection)) {
			return -ECANCELED;
		}
		at += NLMSG_ALIGN(header.nlmsg_len);
	}
	return 0;
}

// Asking ------------------------------------------------------------------------------------------

// The older of two questions: its answer has IPv4 and IPv6. The other would have to be asked for
// each, and the kernel walks its whole table of some 100,000 buckets each time.
static int ask(int fd)
{
	const struct {
		struct nlmsghdr header;
		struct inet_diag_req request;
	} question = {
		.header = {.nlmsg_len = sizeof(question),
			.nlmsg_type = TCPDIAG_GETSOCK,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.request = {.idiag_family = AF_INET,
			.idiag_ext = 1u << (INET_DIAG_INFO - 1),
			.idiag_states = STATES},
	};
	ssize_t sent = send(fd, &question, sizeof(question), 0);
	return sent < 0 ? -errno : sent == sizeof(question) ? 0 : -EBADMSG;
}

// The kernel writes each part of its list when it is asked for: nothing here waits.
int tcp_list(tcp_visit *visit, void *context)
{
	char buffer[32768];
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int r = fd < 0 ? -errno : ask(fd);
	while (r == 0) {
		ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT | MSG_TRUNC);
		r = n < 0    ? -errno
		    : n == 0 ? -EBADMSG
		    : (size_t)n > sizeof(buffer)
		            ? -EMSGSIZE
		            : tcp_take_answer(buffer, (size_t)n, visit, context);
	}
	return r < 0 ? r : 0;
}
