#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Frames between two network interfaces arrive later: delay.py ONE OTHER SECONDS, in their network namespace. For kernels without
netem. delay.py --whole INTERFACE: its packets have whole checksums and are no longer than the wire's, as they must be here."""

import ctypes
import fcntl
import select
import socket
import struct
import sys
import time
from collections import deque

SIOCETHTOOL = 0x8946
STXCSUM, STSO, SGSO, SGRO = 0x17, 0x1F, 0x24, 0x2C  # of linux/ethtool.h: switch off
OUTGOING = 4  # of linux/if_packet.h


def send_whole(interface):
    """Switches off what the hardware of an interface would do."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in STXCSUM, STSO, SGSO, SGRO:
            value = ctypes.create_string_buffer(struct.pack("=II", command, 0))
            request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def forward(one, other, seconds):
    """Forwards until an interface is gone."""
    sockets = []
    for name in one, other:
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
        raw.bind((name, 0))
        sockets.append(raw)
    late = deque()  # (when, to which, frame)
    while True:
        wait = max(0, late[0][0] - time.monotonic()) if late else None
        for raw in select.select(sockets, [], [], wait)[0]:
            frame, address = raw.recvfrom(65536)
            if address[2] != OUTGOING:
                late.append((time.monotonic() + seconds, sockets[1 - sockets.index(raw)], frame))
        while late and late[0][0] <= time.monotonic():
            _, raw, frame = late.popleft()
            raw.send(frame)


if sys.argv[1] == "--whole":
    send_whole(sys.argv[2])
else:
    forward(sys.argv[1], sys.argv[2], float(sys.argv[3]))
