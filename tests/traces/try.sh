#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# try.sh BUILD: a run made by make.sh holds what a kept run has to, and says the same twice.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$here/make.sh" "$1" "$place"
set -- "$1" "$place"/*.strain
"$here/check.sh" "$1/strain" "$2"
cp "$2" "$place/copy.strain"
cp "${2%.strain}.expected" "$place/copy.expected"
"$here/check.sh" "$1/strain" "$place/copy.strain"
for line in '^ *"role": "loader"' '^process,process.memory.usage,' '^host,strain.pressure.cpu.some,' '^epoch,epoch,3,'; do
	if ! grep -q "$line" "$place/copy.expected"; then
		echo "try.sh: the run lacks what matches $line" >&2
		exit 1
	fi
done
