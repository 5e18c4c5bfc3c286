#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sources' own rules, each of which no other tool knows.

    tools/check_sources.py [--root FOLDER] [RULE]...      all rules without RULE; --list names them

Prints FILE:LINE: what is wrong; the status is 1 if there was anything. Looks at what Git tracks,
or, where there is no Git, at every file of the folders that hold sources.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Which folder may include which, apart from itself. A folder may also include all that these may include.
LAYERS = {
    "base": set(),
    "machine": {"base"},
    "runfile": {"machine"},
    "record/sample": {"runfile"},
    "record/mark": {"record/sample"},
    "record/job": {"runfile"},
    "record/source": {"record/mark"},
    "record/output": {"record/sample"},
    "record": {"record/source", "record/job", "record/output"},
    "record/launch": {"record"},
    "run": {"runfile"},
    "verdict": {"run"},
    "study": {"verdict"},
    "sweep": {"study"},
    "probe": {"verdict"},
    "show": {"sweep", "probe"},
    "cmd": {"record", "show"},
    "": {"cmd", "record/launch"},  # src/main.c
}

LONGEST_FUNCTION = 100
OLDEST_PYTHON = (3, 7)

BANNED = {
    "sscanf": "parse through base/parse",
    "atoi": "parse through base/parse",
    "atol": "parse through base/parse",
    "atof": "parse through base/parse",
    "strtok": "parse through base/parse",
    "strtok_r": "parse through base/parse",
    "sprintf": "snprintf, or base/text",
    "vsprintf": "vsnprintf, or base/text",
    "strcpy": "base/text, or memcpy with the length known",
    "strcat": "base/text",
    "strncpy": "base/text, or memcpy with the length known",
    "gets": "nothing bounds it",
    "system": "posix_spawn or fork",
    "popen": "posix_spawn or fork",
    "alloca": "the stack is not ours to spend",
    "tmpnam": "mkstemp",
    "mktemp": "mkstemp",
}
# Only commands and the recording program's own main and launcher end the program or print.
MAY_EXIT = re.compile(r"^src/(main\.c|cmd/|record/launch/(main|launcher)\.c$|record/output/forwarding\.c$)")
EXIT_CALLS = {"exit": "return an error", "printf": "only cmd/ prints", "puts": "only cmd/ prints"}

# The one place where SQLite opens a database, hardened (src/runfile/database.h).
OPENS_DATABASES = "src/runfile/database.c"
DATABASE_CALL = re.compile(r"\b(sqlite3_(?:open\w*|load_extension|enable_load_extension|close_v2))\s*\(")

# Variables that say where strain's own files are: a program with more privileges than its caller must
# not take them from him.
OURS = re.compile(r'(?<!_)\bgetenv\("(?:STRAIN_|XDG_|TMPDIR"|HOME")')
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
CALL = re.compile(r"\b([a-z_]+)\s*\(")
MACHINE_PATH = re.compile(r"(?<![\w.$}~-])/(?!home/(?:user|me)\b)(?:home|Users|work|workspace|mnt)/[\w.-]+")
ADDRESS = re.compile(r'"resolved"\s*:|(?:registry|tarball)"?\s*[:=]\s*"?https?://')


def tracked_files():
    """Paths relative to the root, as Git knows them (new files too), else all that look like ours."""
    try:
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z", "-c", "-o", "--exclude-standard"],
            cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        files = [Path(name) for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        files = [path.relative_to(ROOT) for top in ("src", "hooks", "tests", "tools", "web", "workloads", "docs")
                 for path in (ROOT / top).rglob("*") if "node_modules" not in path.parts]
    return sorted(path for path in files if (ROOT / path).is_file())


def read_lines(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace").splitlines()


def c_files(files, top="src"):
    return [path for path in files if path.parts[0] == top and path.suffix in (".c", ".h")]


def without_comments(lines):
    """The lines with comments and the insides of strings blanked, so that calls are calls."""
    text = "\n".join(lines)
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, blank, text, flags=re.DOTALL).split("\n")


def may_include(layer):
    """All layers that layer may include, itself among them."""
    reached, open_layers = {layer}, [layer]
    while open_layers:
        for below in LAYERS.get(open_layers.pop(), ()):
            if below not in reached:
                reached.add(below)
                open_layers.append(below)
    return reached


def folder_of(path):
    """The folder of src/FOLDER/file, as LAYERS has it."""
    return "/".join(path.parts[1:-1])


def module_of(path):
    """A module is a source and its headers: x.c, x.h, x_internal.h."""
    return re.sub(r"_internal$", "", str(path.with_suffix("")))


def included_files(files):
    """(path, line, path from the root) of each include of a file of ours."""
    for path in c_files(files):
        for number, line in enumerate(read_lines(path), 1):
            match = INCLUDE.match(line)
            if match and (ROOT / "src" / match.group(1)).is_file():
                yield path, number, Path("src") / match.group(1)


def check_include(path, included):
    """What is wrong with this include, or None."""
    target = Path("src") / included
    if not (ROOT / target).is_file():
        if (ROOT / path.parent / included).is_file():
            return f'"{included}": write the path from src/'
        return None  # generated, or the workload's own
    folder, below = folder_of(path), folder_of(target)
    if below not in may_include(folder):
        return f"{folder or 'main'} must not include {below} ({included})"
    return None


def rule_includes(files):
    """folders include what lies below them: base < machine < runfile < record, run < verdict ... (LAYERS)"""
    for path in c_files(files):
        if folder_of(path) not in LAYERS:
            yield path, 1, f"src/{folder_of(path)} is no folder of LAYERS"
            continue
        for number, line in enumerate(read_lines(path), 1):
            match = INCLUDE.match(line)
            wrong = match and check_include(path, match.group(1))
            if wrong:
                yield path, number, wrong


def rule_circles(files):
    """no module includes one that includes it, directly or through others"""
    includes, places = {}, {}
    for path, number, target in included_files(files):
        here, there = module_of(path), module_of(target)
        if here != there:
            includes.setdefault(here, set()).add(there)
            places.setdefault((here, there), (path, number))
    for circle in circles_of(includes):
        members = set(circle)
        for here in sorted(circle):
            for there in sorted(includes[here] & members):
                path, number = places[here, there]
                yield path, number, f"a circle of {len(circle)}: {there} includes {here} in turn"


PROTOTYPE = re.compile(r"^(?!static|typedef|extern|#|\s)(?:\w+[\s*]+)+?(\w+)\s*\(", re.M)


def rule_names(files):
    """what a header exports begins with its module's name, or with that of a struct or enum that it is about"""
    for path in c_files(files):
        if path.suffix != ".h":
            continue
        text = "\n".join(without_comments(read_lines(path)))
        module = Path(module_of(path)).name
        prefixes = {module, module.rstrip("s"), re.sub("ies$", "y", module)}
        prefixes.update(re.findall(r"\b(?:struct|enum|union)\s+(\w+)", text))
        while True:  # what is in braces is no prototype; lines stay
            flat = re.sub(r"\{[^{}]*\}", lambda match: "\n" * match.group(0).count("\n"), text)
            if flat == text:
                break
            text = flat
        for match in PROTOTYPE.finditer(text):
            name = match.group(1)
            if name != module and not any(name == prefix or name.startswith(prefix + "_") for prefix in prefixes):
                number = text.count("\n", 0, match.start(1)) + 1
                yield path, number, f"{name}(): begin it with {module}_, or with a struct's or enum's name"


def circles_of(graph):
    """Strongly connected parts of more than one node (Tarjan 1972), each a list."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(part) > 1:
                found.append(part)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def rule_functions(files):
    """no function over 100 lines"""
    for path in c_files(files) + c_files(files, "workloads") + c_files(files, "tests"):
        lines = read_lines(path)
        start = None
        for number, line in enumerate(lines, 1):
            if line == "{":
                start = number
            elif line == "}" and start:
                if number - start + 1 > LONGEST_FUNCTION:
                    yield path, start, f"a function of {number - start + 1} lines; " \
                                       f"at most {LONGEST_FUNCTION}"
                start = None


def rule_calls(files):
    """no calls that cannot be made safely, no exit and no print below the commands"""
    for path in c_files(files):
        banned = dict(BANNED)
        if not MAY_EXIT.match(str(path)):
            banned.update(EXIT_CALLS)
        for number, line in enumerate(without_comments(read_lines(path)), 1):
            for match in CALL.finditer(line):
                if match.group(1) in banned:
                    yield path, number, f"{match.group(1)}(): {banned[match.group(1)]}"


def rule_environment(files):
    """variables that say where strain's own files are, by secure_getenv()"""
    for path in c_files(files):
        for number, line in enumerate(read_lines(path), 1):
            if OURS.search(line):
                yield path, number, "getenv(): secure_getenv() for what is strain's own"


def rule_terminal(files):
    """what is said on standard error goes through cmd/command.h, which escapes it"""
    for path in c_files(files):
        if path.parts[1] not in ("cmd", "show") or path.name == "command.c":
            continue
        for number, line in enumerate(without_comments(read_lines(path)), 1):
            if re.search(r"\bstderr\b", line):
                yield path, number, "stderr: command_note, command_fail or command_progress"


def rule_databases(files):
    """sqlite3_open*() only in src/runfile/database.c, which hardens the connection"""
    for path in c_files(files):
        if str(path) == OPENS_DATABASES:
            continue
        for number, line in enumerate(without_comments(read_lines(path)), 1):
            for match in DATABASE_CALL.finditer(line):
                yield path, number, f"{match.group(1)}(): database_open() of runfile/database.h"


def rule_paths(files):
    """no path of one machine in what is committed"""
    for path in files:
        if path.parts[:2] in (("tests", "hosts"), ("tests", "fuzz"), ("tests", "traces")):
            continue
        if path.suffix in (".png", ".strain"):
            continue
        for number, line in enumerate(read_lines(path), 1):
            match = MACHINE_PATH.search(line)
            if match and "check_sources" not in path.name:
                yield path, number, f"a path of one machine: {match.group(0)}"


def rule_locks(files):
    """lock files name packages, not where they were fetched from"""
    for path in files:
        if path.name in ("package-lock.json", ".npmrc", "requirements.txt"):
            for number, line in enumerate(read_lines(path), 1):
                if ADDRESS.search(line):
                    yield path, number, "an address in a lock file"


def rule_python(files):
    """the hooks are as old a Python as they enter (docs/hooks.md)"""
    for path in files:
        if path.parts[:2] == ("hooks", "python") and path.suffix == ".py":
            try:
                ast.parse("\n".join(read_lines(path)), feature_version=OLDEST_PYTHON)
            except SyntaxError as error:
                yield path, error.lineno, f"not Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]}: {error.msg}"


def rule_headers(files):
    """every source begins with its licence"""
    for path in files:
        if path.suffix in (".c", ".h", ".sh", ".py", ".ts", ".bats") and path.parts[0] != "docs":
            head = read_lines(path)[:3]
            if not any("SPDX-License-Identifier:" in line for line in head):
                yield path, 1, "no SPDX-License-Identifier in the first three lines"


RULES = {name[5:]: function for name, function in sorted(globals().items())
         if name.startswith("rule_")}


def main(arguments):
    global ROOT
    if arguments[:1] == ["--root"] and len(arguments) > 1:
        ROOT = Path(arguments[1]).resolve()
        arguments = arguments[2:]
    if arguments == ["--list"]:
        for name, function in RULES.items():
            print(f"{name:10} {function.__doc__}")
        return 0
    unknown = [name for name in arguments if name not in RULES]
    if unknown:
        print(f"check_sources: no rule '{unknown[0]}' (--list)", file=sys.stderr)
        return 2
    files = tracked_files()
    found = 0
    for name in arguments or RULES:
        for path, number, wrong in RULES[name](files):
            print(f"{path}:{number}: {wrong} [{name}]")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
