#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Finds which packages of tools/dependencies are missing for the purposes named, says which, and
# installs them: tools/install.sh [--check] PURPOSE...
#
# --check, or STRAIN_NO_INSTALL=1 in the environment: lists them and stops with status 1 (0 where
# only such are missing that can be done without). Elsewhere than on Debian and Ubuntu too.

set -eu

table=$(dirname "$0")/dependencies
tab=$(printf '\t')
check=${STRAIN_NO_INSTALL:-}
if [ "${1:-}" = --check ]; then
	check=1
	shift
fi

say() {
	printf 'strain: %s\n' "$*" >&2
}

has_apt() {
	command -v dpkg-query >/dev/null && command -v apt-get >/dev/null
}

is_installed() {
	has_apt && [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# A pattern is expanded here.
has_file() {
	# shellcheck disable=SC2086
	set -- $1
	[ -e "$1" ]
}

# Whether the thing itself is there, wherever it came from.
probe() {
	case $1 in
	command:*) command -v "${1#*:}" >/dev/null ;;
	library:*) pkg-config --exists "${1#*:}" 2>/dev/null ;;
	header:*) [ -e "/usr/include/${1#*:}" ] || [ -e "/usr/local/include/${1#*:}" ] ||
		printf '#include <%s>\n' "${1#*:}" | cc -E - >/dev/null 2>&1 ;;
	file:*) has_file "${1#*:}" ;;
	python:*) [ -x /usr/bin/python3 ] && /usr/bin/python3 -c "import ${1#*:}" 2>/dev/null ;;
	*) false ;;
	esac
}

is_wanted() {
	case " $purposes " in *" $1 "*) true ;; *) false ;; esac
}

# Prints the rows that are wanted and missing.
missing_rows() {
	while IFS=$tab read -r purpose package probe what; do
		case $purpose in '' | '#'*) continue ;; esac
		is_wanted "$purpose" || continue
		name=${package#\?}
		if ! is_installed "${name%%|*}" && ! is_installed "${name##*|}" && ! probe "$probe"; then
			printf '%s\t%s\t%s\t%s\n' "$purpose" "$package" "$probe" "$what"
		fi
	done <"$table"
}

list_rows() {
	printf '%s\n' "$1" | while IFS=$tab read -r purpose package _ what; do
		printf '  %-10s %-24s %s\n' "$purpose" "${package#\?}" "$what" >&2
	done
}

has_candidate() {
	apt-cache policy "$1" 2>/dev/null | grep -q '^  Candidate: [^(]'
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

apt() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" >&2
}

# Sets $packages to what apt knows of the rows; says what it does not know, status 1 if that is
# needed.
choose_packages() {
	packages='' unknown=''
	while IFS=$tab read -r _ package _; do
		name=${package#\?}
		if has_candidate "${name%%|*}"; then
			packages="$packages ${name%%|*}"
		elif has_candidate "${name##*|}"; then
			packages="$packages ${name##*|}"
		elif [ "$name" = "$package" ]; then
			unknown="$unknown $name"
		else
			say "this system has no package $name; parts that need it are not built"
		fi
	done <<-END
		$1
	END
}

install_packages() {
	if [ -z "$packages" ]; then
		return 0
	fi
	say "installing$packages"
	# shellcheck disable=SC2086 # a list of words
	apt install --no-install-recommends $packages || {
		say 'apt-get failed; updating the package lists'
		apt update
		# shellcheck disable=SC2086
		apt install --no-install-recommends $packages
	}
}

stop_with_list() {
	if printf '%s\n' "$required" | grep -q .; then
		exit 1
	fi
	say 'continuing without them'
	exit 0
}

purposes=$*
rows=$(missing_rows)
if [ -z "$rows" ]; then
	exit 0
fi
required=$(printf '%s\n' "$rows" | grep -v "$tab?" || true)

say "missing packages for $purposes:"
list_rows "$rows"
if [ -n "$check" ]; then
	stop_with_list
fi
if ! has_apt; then
	say 'these are Debian package names; install the equivalent packages of your system'
	stop_with_list
fi
if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
	say 'cannot install packages without root or sudo: run apt-get install as root'
	stop_with_list
fi

choose_packages "$rows" 2>/dev/null
if [ -n "$unknown" ] || [ -z "$packages" ]; then
	apt update
fi
choose_packages "$rows"
if [ -n "$unknown" ]; then
	say "this system has no package$unknown"
	exit 1
fi
install_packages
