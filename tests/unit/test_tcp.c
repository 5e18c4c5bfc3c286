// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// TCP connections: a real one as the kernel lists it, and answers that no kernel gives.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/tcp.h"

// A real connection -------------------------------------------------------------------------------

static int listen_on(int family, struct sockaddr_storage *address, socklen_t *length)
{
	struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*length = family == AF_INET ? sizeof(four) : sizeof(six);
	memcpy(address, family == AF_INET ? (void *)&four : (void *)&six, *length);
	if (fd < 0 || bind(fd, (struct sockaddr *)address, *length) < 0) {
		close(fd);
		return -1; // no such protocol here
	}
	assert_int_equal(listen(fd, 1), 0);
	*length = sizeof(*address);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, length), 0);
	return fd;
}

struct wanted {
	uint64_t inode;
	struct tcp_connection found;
	int times;
};

static bool look(void *context, const struct tcp_connection *c)
{
	struct wanted *w = context;
	if (c->inode == w->inode) {
		w->found = *c;
		w->times++;
	}
	return true;
}

static void check_family(int family)
{
	struct sockaddr_storage address;
	socklen_t length;
	struct stat info;
	static char sent[100000], received[sizeof(sent)];
	_cleanup_close_ int listener = listen_on(family, &address, &length);
	if (listener < 0) {
		return;
	}
	_cleanup_close_ int client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address, length), 0);
	_cleanup_close_ int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(send(client, sent, sizeof(sent), 0), sizeof(sent));
	assert_int_equal(recv(server, received, sizeof(received), MSG_WAITALL), sizeof(received));
	assert_int_equal(fstat(client, &info), 0);
	struct wanted one = {.inode = info.st_ino};
	assert_int_equal(tcp_list(look, &one), 0);
	assert_int_equal(one.times, 1); // in one of the two lists
	assert_true(tcp_address_is_loopback(&one.found.remote));
	assert_true(tcp_address_is_loopback(&one.found.local));
	assert_int_equal(one.found.user, geteuid());
	assert_true(one.found.cookie != 0);
	assert_in_range(one.found.sent_bytes, sizeof(sent), sizeof(sent) + 1);
	assert_true(one.found.round_trip_us >= 0 && one.found.busy_us >= 0);
	char text[TCP_ADDRESS_TEXT];
	tcp_address_write(&one.found.remote, text);
	assert_string_equal(text, family == AF_INET ? "127.0.0.1" : "::1");
	assert_int_equal(fstat(server, &info), 0);
	struct wanted other = {.inode = info.st_ino};
	assert_int_equal(tcp_list(look, &other), 0);
	assert_int_equal(other.found.received_bytes, sizeof(sent));
	assert_true(tcp_address_equal(&other.found.local, &one.found.remote));
}

static void a_connection_is_listed(void **state)
{
	(void)state;
	check_family(AF_INET);
	check_family(AF_INET6);
}

static bool refuse(void *context, const struct tcp_connection *c)
{
	(void)c;
	*(int *)context += 1;
	return false;
}

// Made answers ------------------------------------------------------------------------------------

struct answer {
	char bytes[1024];
	size_t n;
};

// A message of the list, with as much of struct tcp_info as `info_bytes`.
static void add_connection(struct answer *a, uint8_t family, size_t info_bytes)
{
	struct inet_diag_msg m = {.idiag_family = family, .idiag_inode = 42, .idiag_uid = 7};
	struct tcp_info info = {.tcpi_rtt = 1500,
		.tcpi_total_retrans = 3,
		.tcpi_min_rtt = 900,
		.tcpi_bytes_acked = 1000,
		.tcpi_bytes_received = 2000,
		.tcpi_busy_time = 50000,
		.tcpi_rwnd_limited = 20000};
	m.id.idiag_dst[0] = inet_addr("10.0.0.2");
	m.id.idiag_dport = htons(443);
	struct rtattr attribute = {
		.rta_len = (unsigned short)RTA_LENGTH(info_bytes), .rta_type = INET_DIAG_INFO};
	struct nlmsghdr header = {
		.nlmsg_len = (uint32_t)NLMSG_LENGTH(NLMSG_ALIGN(sizeof(m)) + attribute.rta_len),
		.nlmsg_type = TCPDIAG_GETSOCK};
	char *at = a->bytes + a->n;
	memcpy(at, &header, sizeof(header));
	memcpy(at + sizeof(header), &m, sizeof(m));
	memcpy(at + sizeof(header) + NLMSG_ALIGN(sizeof(m)), &attribute, sizeof(attribute));
	memcpy(at + sizeof(header) + NLMSG_ALIGN(sizeof(m)) + sizeof(attribute), &info, info_bytes);
	a->n += NLMSG_ALIGN(header.nlmsg_len);
}

static void add_message(struct answer *a, uint16_t type, int32_t value)
{
	struct nlmsghdr header = {.nlmsg_len = NLMSG_LENGTH(sizeof(value)), .nlmsg_type = type};
	memcpy(a->bytes + a->n, &header, sizeof(header));
	memcpy(a->bytes + a->n + sizeof(header), &value, sizeof(value));
	a->n += header.nlmsg_len;
}

static void an_older_kernel_tells_less(void **state)
{
	(void)state;
	struct answer all = {.n = 0}, old = {.n = 0};
	struct wanted w = {.inode = 42};
	add_connection(&all, AF_INET, sizeof(struct tcp_info));
	add_message(&all, NLMSG_DONE, 0);
	assert_int_equal(tcp_take_answer(all.bytes, all.n, look, &w), 1);
	assert_int_equal(w.found.busy_us, 50000);
	assert_int_equal(w.found.receiver_limited_us, 20000);
	assert_int_equal(w.found.round_trip_us, 1500);
	assert_int_equal(w.found.round_trip_least_us, 900);
	assert_int_equal(w.found.retransmitted, 3);
	assert_int_equal(w.found.received_bytes, 2000);
	assert_int_equal(w.found.user, 7);
	assert_int_equal(w.found.remote_port, 443);
	char text[TCP_ADDRESS_TEXT];
	tcp_address_write(&w.found.remote, text);
	assert_string_equal(text, "10.0.0.2");
	assert_false(tcp_address_is_loopback(&w.found.remote));
	add_connection(&old, AF_INET, offsetof(struct tcp_info, tcpi_pacing_rate));
	assert_int_equal(tcp_take_answer(old.bytes, old.n, look, &w), 0);
	assert_int_equal(w.found.busy_us, -1);
	assert_int_equal(w.found.sent_bytes, -1);
	assert_int_equal(w.found.round_trip_us, 1500);
}

static void foreign_answers_are_refused(void **state)
{
	(void)state;
	struct answer a = {.n = 0};
	struct wanted w = {.inode = 42};
	int refused = 0;
	add_message(&a, NLMSG_ERROR, -ENOENT);
	assert_int_equal(tcp_take_answer(a.bytes, a.n, look, &w), -ENOENT);
	a.n = 0;
	add_message(&a, NLMSG_ERROR, 0);
	assert_int_equal(tcp_take_answer(a.bytes, a.n, look, &w), -EBADMSG);
	a.n = 0;
	add_message(&a, 99, 0);
	assert_int_equal(tcp_take_answer(a.bytes, a.n, look, &w), -EBADMSG);
	a.n = 0;
	add_connection(&a, AF_UNIX, sizeof(struct tcp_info));
	assert_int_equal(tcp_take_answer(a.bytes, a.n, look, &w), -EBADMSG);
	a.n = 0;
	add_connection(&a, AF_INET, sizeof(struct tcp_info));
	size_t whole = a.n;
	for (size_t n = sizeof(struct nlmsghdr); n < whole; n++) { // cut off anywhere
		assert_int_equal(tcp_take_answer(a.bytes, n, look, &w), -EBADMSG);
	}
	assert_int_equal(tcp_take_answer(a.bytes, whole, refuse, &refused), -ECANCELED);
	assert_int_equal(refused, 1);
	a.bytes[sizeof(struct nlmsghdr) + NLMSG_ALIGN(sizeof(struct inet_diag_msg))] = 1;
	a.bytes[sizeof(struct nlmsghdr) + NLMSG_ALIGN(sizeof(struct inet_diag_msg)) + 1] = 0;
	assert_int_equal(
		tcp_take_answer(a.bytes, whole, look, &w), -EBADMSG); // an attribute of 1 byte
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_is_listed),
		cmocka_unit_test(an_older_kernel_tells_less),
		cmocka_unit_test(foreign_answers_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
