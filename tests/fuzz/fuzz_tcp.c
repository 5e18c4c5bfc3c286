// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Answers of the kernel's socket diagnostics.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine/tcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool visit(void *context, const struct tcp_connection *c)
{
	char text[TCP_ADDRESS_TEXT];
	unsigned *n = context;
	tcp_address_write(&c->remote, text);
	if (!memchr(text, '\0', sizeof(text)) || c->inode == 0) {
		abort();
	}
	return ++*n < 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned n = 0;
	int r = tcp_take_answer(data, size, visit, &n);
	if (r > 1 || n > 3 || (n == 3 && r != -ECANCELED)) {
		abort();
	}
	return 0;
}
