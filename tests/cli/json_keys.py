# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds docs/json.md against what the commands print.

    json_keys.py PAGE FOLDER [--without SECTION]...

In FOLDER, a file "SECTION~ANYTHING" holds what a command printed, SECTION as its heading is called. Prints each
key that is printed and not documented, and each that is documented and was not printed; the status is then 1.
"""

import json
import re
import sys
from pathlib import Path


def documented(page):
    """{section: {where: keys}} of the page's tables."""
    sections, section = {}, None
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = sections.setdefault(line[3:], {})
        cells = [cell.strip() for cell in line.split("|")]
        if section is None or len(cells) < 5 or cells[1].startswith("-") or cells[1] == "where":
            continue
        section[cells[1].strip("`")] = re.findall(r"`([^`]+)`", cells[2])
    return sections


def walk(value, where, found):
    """Adds {where: keys} of a document."""
    if isinstance(value, dict):
        found.setdefault(where, set()).update(value)
        for key, item in value.items():
            walk(item, f"{where}.{key}" if where else key, found)
    elif isinstance(value, list):
        for item in value:
            walk(item, where + "[]", found)


def compare(section, said, found):
    """Lines that say what differs."""
    for where, keys in found.items():
        known = {key.rstrip("?") for key in said.get(where, [])}
        for key in sorted(keys):
            if key not in known and "*" not in known:
                yield f"{section}: {where}.{key}: printed, not in docs/json.md"
    for where, keys in said.items():
        printed = found.get(where, set())
        for key in keys:
            others = printed - {k.rstrip("?") for k in keys}
            if not key.endswith("?") and not (others if key == "*" else key in printed):
                yield f"{section}: {where}.{key}: in docs/json.md, not printed"


def main():
    """The command line."""
    page, folder, without = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[4::2]
    said, found = documented(page), {}
    for path in sorted(folder.iterdir()):
        with path.open(encoding="utf-8") as file:
            walk(json.load(file), "", found.setdefault(path.name.split("~")[0], {}))
    wrong = [f"{section}: printed, and no section of docs/json.md" for section in found if section not in said]
    for section, tables in said.items():
        if tables and section not in without:
            wrong += compare(section, tables, found.get(section, {}))
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
