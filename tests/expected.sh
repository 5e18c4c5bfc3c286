# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=sh disable=SC2034
#
# For check.sh of a folder, whose arguments these are: [--update] STRAIN THING... Leaves the things
# as arguments. What strain says of each must be what a kept file says; --update writes it instead.

update=
status=0
if [ "${1-}" = --update ]; then
	update=yes
	shift
fi
if [ $# -lt 2 ]; then
	echo "usage: check.sh [--update] STRAIN THING..." >&2
	exit 2
fi
strain=$1
shift

compare() { # FOUND EXPECTED-FILE THING
	if [ -n "$update" ]; then
		printf '%s\n' "$1" >"$2"
	elif ! printf '%s\n' "$1" | diff -u "$2" -; then
		echo "$3: it does not say what it said; if that is right, $(basename "$0") --update" >&2
		status=1
	fi
}
