# SPDX-License-Identifier: GPL-3.0-or-later
#
# For tests of messages. A test names what a message must name (an option, a path, a number, a value
# that was given), never its sentence: the sentences are in words.golden, and may change.

bats_require_minimum_version 1.5.0

# Whether a line has all of these, each as a whole: 1 is not in 10, 1.5 or run-1, a.yaml not in aa.yaml.
line_names() { # LINE WORD...
	local line=" $1 " word before after
	shift
	for word; do
		before='' after=''
		[[ $word != [[:alnum:]_]* ]] || before='([^[:alnum:]_.-]|[^[:alnum:]][.-])'
		[[ $word != *[[:alnum:]_] ]] || after='([^[:alnum:]_.-]|[.-][^[:alnum:]])'
		[[ $line =~ $before"$word"$after ]] || return 1
	done
}

# Whether a line of strain's on standard error, as `run --separate-stderr` left it, has all of these.
notes() { # WORD...
	local line
	for line in "${stderr_lines[@]}"; do
		if [[ $line == "strain: "* ]] && line_names "$line" "$@"; then
			return 0
		fi
	done
	printf 'no line of strain that has: %s\nin: %s\n' "$*" "$stderr"
	return 1
}

# The same, where nothing else is on standard error.
notes_only() { # WORD...
	[ "${#stderr_lines[@]}" = 1 ] || { printf 'not one line: %s\n' "$stderr"; return 1; }
	notes "$@"
}

# Whether standard output has a line with all of these.
prints() { # WORD...
	local line
	for line in "${lines[@]}"; do
		if line_names "$line" "$@"; then
			return 0
		fi
	done
	printf 'no line that has: %s\nin: %s\n' "$*" "$output"
	return 1
}

# A command fails with this exit status and one line, which has all of these words; it prints nothing.
fails_with() { # STATUS WORD... -- COMMAND...
	local expected=$1 words=()
	shift
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	run "-$expected" --separate-stderr "$@"
	[ -z "$output" ] || { printf 'it printed: %s\n' "$output"; return 1; }
	notes_only "${words[@]}"
}

# Of a document that a command prints with --json: an expression of Python over `d`.
json() { # EXPRESSION COMMAND...
	"${@:2}" --json 2>/dev/null | /usr/bin/python3 -c '
import json, sys
d = json.load(sys.stdin)
print(eval("(" + sys.argv[1] + ")"))' "$1"
}
