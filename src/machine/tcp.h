// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The TCP connections of the network namespace, as the kernel's socket diagnostics list them to any
// user: sock_diag(7), struct tcp_info in linux/tcp.h.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// In network order; an IPv4 address as ::ffff:a.b.c.d.
struct tcp_address {
	uint8_t bytes[16];
};
enum { TCP_ADDRESS_TEXT = 46 }; // INET6_ADDRSTRLEN

bool tcp_address_equal(const struct tcp_address *a, const struct tcp_address *b);
// Whether it is one of the machine's own, which no network carries: 127.0.0.0/8, ::1.
bool tcp_address_is_loopback(const struct tcp_address *a);
void tcp_address_write(const struct tcp_address *a, char ret[TCP_ADDRESS_TEXT]);

// A connection that a process still holds. Counters are since its start.
struct tcp_connection {
	uint64_t inode; // of the socket: /proc/PID/fd/N is "socket:[inode]"
	uint64_t cookie; // never given again while the machine runs
	uid_t user; // who made the socket
	struct tcp_address local, remote;
	uint16_t remote_port;
	// -1: this kernel does not tell.
	int64_t sent_bytes; // acknowledged by the other side
	int64_t received_bytes;
	int64_t retransmitted; // packets
	int64_t busy_us; // data were on their way, or waited to be sent
	int64_t receiver_limited_us; // part of busy_us: the other side had no room for more
	int64_t round_trip_us; // smoothed; of an idle connection the last one known; 0: none
	int64_t round_trip_least_us; // of the last minutes
};

// Returns false to end the list.
typedef bool tcp_visit(void *context, const struct tcp_connection *connection);
// Calls visit for each connection. Returns 0; -ECANCELED if visit ended the list; or another
// -errno: there are no socket diagnostics here.
int tcp_list(tcp_visit *visit, void *context);
// The same for one answer of the kernel. Returns 1 if it was the last one, 0 if more follow, or a
// -errno as above; -EBADMSG if it is no such answer.
int tcp_take_answer(const void *answer, size_t n, tcp_visit *visit, void *context);
