#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""server.py PORT: answers each request of 4 bytes (microseconds) after that time with 4096 bytes."""

import socketserver
import sys
import time


class Answer(socketserver.BaseRequestHandler):
    """One connection."""

    def handle(self):
        while True:
            request = self.request.recv(4)
            if len(request) < 4:
                return
            time.sleep(min(int.from_bytes(request, "little") / 1e6, 1))
            self.request.sendall(b"x" * 4096)


class Server(socketserver.ThreadingTCPServer):
    """A thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[1])), Answer) as server:
        server.serve_forever()
