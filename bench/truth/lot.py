#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Splits the items of items.toml at random: half are open, half are held out until the end.

    lot.py      prints the two halves

The seed is in this file, and the half of an item depends only on its name and the seed: a new item
moves no other.
"""

import hashlib
import sys
import tomllib
from pathlib import Path

SEED = "2026-11-23"
SEEN = "varied-"  # items with which the rules were written


def held_out(name):
    """Whether nobody looks at the item's verdict until the end."""
    lot = hashlib.sha256(f"{SEED} {name}".encode()).digest()[0] & 1
    return lot == 1 and not name.startswith(SEEN)


def items():
    """All items, in the order of the file."""
    with open(Path(__file__).with_name("items.toml"), "rb") as file:
        return tomllib.load(file)["item"]


def main():
    """The command line."""
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    for title, half in (("open", False), ("held out", True)):
        print(f"{title}: " + ", ".join(i["name"] for i in items() if held_out(i["name"]) is half))


if __name__ == "__main__":
    main()
