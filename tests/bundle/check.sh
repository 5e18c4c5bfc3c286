#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Unpacks a bundle into a folder with an odd name and records `true` and a look at the environment
# with it, in a clean environment: check.sh BUNDLE.tar.xz

set -eu
bundle=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
folder=$(mktemp -d "${TMPDIR:-/tmp}/strain bundle '\$x' XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
tar -xJf "$bundle"
top=$(echo strain-*)
strain=$folder/$top/bin/strain

fail() {
	echo "bundle: $*" >&2
	exit 1
}
# What enters a job from a folder like /tmp is a copy in the user's cache.
cache=$("$here/../cache_folder.sh" "$folder")
clean() {
	env -i PATH=/usr/bin:/bin HOME="$folder" XDG_CACHE_HOME="$cache" "$@"
}

clean "$strain" --version | grep -qx 'strain [0-9.]*' || fail 'strain --version does not run'
for program in "$strain" "$folder/$top/lib/strain/strain-record"; do
	outside=$(ldd "$program" | sed -n 's/.* => \(.*\) (0x.*)$/\1/p' | grep -vF "$folder" |
		grep -vE '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv))\.so' || true)
	[ -z "$outside" ] || fail "$(basename "$program") takes libraries of the machine: $outside"
done
clean "$strain" run -o true.strain -- true || fail 'cannot record true'
[ -s true.strain ] || fail 'no run file'
clean "$strain" show true.strain | grep -q true || fail 'cannot show the run'
clean "$strain" run -o env.strain -- env >environment || fail 'cannot record env'
if grep -E '^(LD_LIBRARY_PATH|LD_PRELOAD|STRAIN_HOME)=' environment; then
	fail 'something of ours reached the job'
fi
for file in include/strain/marker.h share/man/man1/strain-run.1 share/man/man3/strain-marker.3; do
	[ -s "$top/$file" ] || fail "no $file in it"
done
[ -n "$(sed -n "s/^NVTX_INJECTION64_PATH=//p" environment)" ] || fail "no library for NVTX"
status=0
clean "$strain" run -o status.strain -- sh -c 'exit 7' || status=$?
[ "$status" = 7 ] || fail "the job's status 7 became $status"
echo 'bundle: unpacked, recorded, shown'
