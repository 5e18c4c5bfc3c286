// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Messages between the processes are single bytes through a socket. The end of a process closes its
// socket, which the other side notices when it waits.

#pragma once

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>

// False: the other side has closed the socket.
static inline bool byte_send(int socket)
{
	ssize_t n;
	do {
		n = send(socket, "", 1, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n == 1;
}

static inline bool byte_wait(int socket)
{
	char byte;
	ssize_t n;
	do {
		n = recv(socket, &byte, 1, 0);
	} while (n < 0 && errno == EINTR);
	return n == 1;
}
