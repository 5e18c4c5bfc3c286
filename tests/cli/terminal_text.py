#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A run whose command, labels, file name, process name, marks and output hold control characters,
# shown by every command on a pseudo-terminal:
#
#   terminal_text.py terminal|errors|pipe
#
# Prints what went wrong and exits with 1, or exits with 0.

import csv
import io
import json
import os
import pty
import re
import shutil
import sqlite3
import subprocess
import sys

STRAIN = os.environ["STRAIN"]
# A title for the terminal, colours, a line that goes back over itself, C1's CSI, text from right to
# left, a space of no width, the marks of the two directions, and an isolate.
EVIL = "\x1b]0;owned\x07\x1b[31mred\rEVIL\u009b5m\u202egnp\u200b\u200e\u200f\u061c\u2066x\u2069"
EVIL_NAME = "e" + EVIL.replace("/", "")
# What is none of these and stays.
HARMLESS = "\u00e9\u4e2d\u0939"
# Ours: progress goes back and clears its line.
OWN = re.compile(r"\r[^\r\n\x1b]*\x1b\[K")
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e"
                       "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")


class Failed(Exception):
    pass


FAILURES = []
CHECKED = set()


def fail(text):
    """Goes on: one call tells all that is wrong."""
    FAILURES.append(text)


def on_terminal(arguments, columns="200"):
    """The bytes that a command sends to its terminal (standard output and error), and its status."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(NO_COLOR="1", COLUMNS=columns, TERM="xterm")
        os.execv(STRAIN, [STRAIN] + arguments)
    output = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            piece = b""
        if not piece:
            break
        output += piece
    os.close(master)
    return output, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check_terminal(arguments, wanted=None, quiet=False):
    output, status = on_terminal(arguments)
    name = " ".join(arguments)
    if wanted is not None and status != wanted:
        raise Failed("%r ended with %d, not %d: %r" % (name, status, wanted, output))
    CHECKED.add(arguments[0])
    if not output and not quiet:
        fail("%r printed nothing" % name)
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError as error:
        fail("%r printed bytes that are no UTF-8: %s" % (name, error))
        return ""
    text = OWN.sub("", text.replace("\r\n", "\n"))
    found = FORBIDDEN.search(text)
    if found:
        at = found.start()
        fail("%r printed %r in %r" % (name, found.group(0), text[max(at - 60, 0):at + 30]))
    return text


def record(path):
    """A run of a job that is called, says and is labelled what it should not."""
    sleeper = os.path.join(os.getcwd(), EVIL_NAME[:60])
    shutil.copy("/bin/sleep", sleeper)
    script = 'printf "epoch 1 %s\\n" "$1"; "$2" 0.3; "$3" mark begin "$1"; "$3" mark end "$1"; exit 3'
    command = [STRAIN, "run", "--epoch-pattern", "epoch (?<epoch>\\d+)", "--label", "k=x",
               "--interval", "50ms", "-o", path, "--", "sh", "-c", script, "x" + EVIL, EVIL, sleeper, STRAIN]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if result.returncode != 3 or not os.path.exists(path):
        raise Failed("could not record: %r" % result.stderr)
    # strain run takes no such labels, but a file from somebody else has them.
    database = sqlite3.connect(path)
    database.execute("UPDATE label SET value = ? WHERE name = 'k'", (EVIL + HARMLESS,))
    database.execute("INSERT INTO label (name, value) VALUES (?, ?)", (EVIL, "1"))
    database.commit()
    database.close()


def plan(path, directory):
    with open(path, "w", encoding="utf-8") as file:
        file.write('name: %s\ncommand: [sh, -c, "exit 3", x, "${p}"]\nparameters: {p: [%s, b]}\n'
                   % (json.dumps(EVIL), json.dumps(EVIL)))
    return ["sweep", path, "-o", directory]


def all_commands():
    text = subprocess.run([STRAIN, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return set(re.findall(r"^  ([a-z]+) ", text, re.MULTILINE))


def terminal():
    run, other = "./" + EVIL_NAME + ".strain", "./other" + EVIL_NAME + ".strain"
    record(run)
    record(other)
    commands = [
        ["show", run], ["show", "--all", run], ["show", "--json", run],
        ["ls", "."], ["ls", "--json", "."], ["ls", "--sort", "k", "."], ["ls", "--sort", EVIL, "."],
        ["compare", run, other], ["compare", "--json", run, other],
        ["compare", "--format", "csv", run, other], ["compare", "--format", "markdown", run, other],
        ["compare", "--format", "latex", run, other], ["compare", "--columns", "k", run, other],
        ["export", run], ["export", "--format", "json", run], ["export", "--format", "jsonl", run],
        ["sql", run, "SELECT * FROM run"], ["sql", "--csv", run, "SELECT * FROM run"],
        ["sql", "--json", run, "SELECT * FROM run"], ["sql", "--csv", run, "SELECT * FROM entity"],
        ["sql", run, "SELECT * FROM label"], ["sql", "--json", run, "SELECT value AS \"%s\" FROM label" % EVIL],
        ["sql", "--csv", run, "SELECT value AS \"%s\" FROM label" % EVIL],
        ["sql", run, "SELECT value AS \"%s\" FROM label" % EVIL],
        ["finish", run],
        ["report", run, "-o", "page" + EVIL_NAME + ".html"],
        ["report", run, "-o", "page" + EVIL_NAME + ".svg"],
    ]
    for arguments in commands:
        check_terminal(arguments)
    check_terminal(["compare", "--figure", "timeline", run, other, "-o", "f" + EVIL_NAME + ".svg"], quiet=True)
    text = check_terminal(["show", run])
    for wanted in ("\\x1b[31m", "\\u202e", HARMLESS):
        if wanted not in text:
            raise Failed("%r is not in what strain show printed: %r" % (wanted, text))
    sweep = plan(EVIL_NAME + ".yaml", "./" + EVIL_NAME + ".sweep")
    check_terminal(sweep + ["--dry-run"])
    check_terminal(sweep + ["--dry-run", "--json"])
    check_terminal(sweep)
    check_terminal(["ls", "."])
    check_terminal(["compare", sweep[3]])
    check_terminal(["report", sweep[3], "-o", "s" + EVIL_NAME + ".html"])
    check_terminal(["run", "-o", "new" + EVIL_NAME + ".strain", "--label", "k=\u202e", "--", "true"], 0)
    # Of a job that says nothing: all is ours.
    shutil.copy("/bin/false", "./false" + EVIL_NAME)
    check_terminal(["run", "--", "./false" + EVIL_NAME, EVIL])
    check_terminal(["doctor"])
    check_terminal(["completion", "bash"])
    check_terminal(["advise", "--stalls", "--", "sh", "-c", 'echo "$1"; exit 3', "x", EVIL])
    check_terminal(["mark", "begin", EVIL], quiet=True)
    for command in all_commands() - CHECKED:
        fail("strain %s is not tried" % command)


def errors():
    missing = "./no" + EVIL_NAME
    with open("damaged" + EVIL_NAME, "wb") as file:
        file.write(b"SQLite format 3\0" + b"x" * 5000)
    with open("plan" + EVIL_NAME + ".yaml", "w", encoding="utf-8") as file:
        file.write("command: [%s]\n%s: 1\n" % (json.dumps(EVIL), json.dumps(EVIL)))
    for path in (missing, "./damaged" + EVIL_NAME, "."):
        for command in ("show", "report", "export", "compare", "ls"):
            check_terminal([command, path])
        check_terminal(["sql", path, "SELECT 1"])
    for command in ("show", "report", "export", "compare", "ls", "sql", "sweep", "advise", "doctor",
                    "run", "mark", "finish"):
        check_terminal([command, "--" + EVIL])
        check_terminal([command, "-" + EVIL])
        check_terminal([command, missing, EVIL, EVIL])
    for arguments in ([EVIL], ["sweep", missing], ["sweep", "plan" + EVIL_NAME + ".yaml"],
                      ["run", "--label", EVIL, "--", "true"], ["run", "--interval", EVIL, "--", "true"],
                      ["run", "--epoch-pattern", "(" + EVIL, "--", "true"], ["run", "--", missing],
                      ["run", "-o", missing + "/x", "--", "true"], ["doctor", "--sysroot", missing],
                      ["show", "-o", EVIL], ["ls", "--where", EVIL], ["ls", "--sort", EVIL],
                      ["compare", "--layout", EVIL], ["compare", "--value", EVIL, "."],
                      ["compare", "--format", EVIL, "."], ["export", "--format", EVIL],
                      ["export", "--metric", EVIL], ["sql", missing, EVIL],
                      ["report", missing, "-o", EVIL]):
        check_terminal(arguments)


def pipe():
    run = "./" + EVIL_NAME + ".strain"
    record(run)
    query = "SELECT value FROM label WHERE name = 'k'"  # a row of one column
    as_csv = subprocess.run([STRAIN, "sql", "--csv", run, query], stdout=subprocess.PIPE, check=True).stdout
    rows = list(csv.reader(io.StringIO(as_csv.decode("utf-8"), newline="")))
    if rows[1] != [EVIL + HARMLESS]:
        raise Failed("CSV has %r" % rows)
    for arguments in (["sql", "--json", run, query], ["ls", "--json", "."]):
        text = subprocess.run([STRAIN] + arguments, stdout=subprocess.PIPE, check=True).stdout.decode("utf-8")
        if not has(json.loads(text), EVIL + HARMLESS):
            raise Failed("%r has %r" % (arguments, text))


def has(value, wanted):
    if isinstance(value, dict):
        return any(has(item, wanted) for item in value.values())
    if isinstance(value, list):
        return any(has(item, wanted) for item in value)
    return value == wanted


if __name__ == "__main__":
    try:
        {"terminal": terminal, "errors": errors, "pipe": pipe}[sys.argv[1]]()
    except Failed as failure:
        fail(str(failure))
    for line in FAILURES:
        print(ascii(line))
    sys.exit(1 if FAILURES else 0)
