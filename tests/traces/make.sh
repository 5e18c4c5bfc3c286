#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# make.sh BUILD DIRECTORY: records a short training run of workloads/onednn with the strain of a build
# folder, and keeps it as DIRECTORY/schema-VERSION-onednn.strain with the answers that it gives today
# (check.sh). For a new version of the schema: make.sh build tests/traces, look at both files, commit them,
# and add a row to README.md. A file that was released is never made anew.
set -eu

if [ $# -ne 2 ]; then
	echo "usage: make.sh BUILD DIRECTORY" >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
target=$(cd "$2" && pwd)
most_bytes=120000

# Nothing of the machine that it was made on: neither its name nor its paths.
place=$(mktemp -d /tmp/strain-trace.XXXXXX)
trap 'rm -rf "$place"' EXIT
cp "$build/workloads/onednn/onednn-train" "$place/train"
cd "$place"
named=''
if [ "$(id -u)" = 0 ] && unshare --uts true 2>/dev/null; then
	named='unshare --uts sh -c "hostname node1 && exec \"\$@\"" sh'
fi
unset STRAIN_DIR
export STRAIN_HOME="$build"
eval "$named" '"$build/strain"' run -o run.strain --no-hooks --interval 20ms --label batch_size=64 --label workers=2 \
	--epoch-pattern "'epoch (?<epoch>\\d+)/\\d+.*loss (?<loss>[\\d.]+)'" -- \
	./train --batch-size 64 --samples 3000 --epochs 3 --workers 2 --threads 1 >output 2>verdict ||
	{
		cat output verdict >&2
		exit 1
	}

bytes=$(wc -c <run.strain)
if [ "$bytes" -gt $most_bytes ]; then
	echo "make.sh: $bytes bytes, more than $most_bytes" >&2
	exit 1
fi
for private in "$build" "$here" "$HOME"; do
	if [ ${#private} -gt 1 ] && grep -aqF "$private" run.strain; then
		echo "make.sh: the run names $private" >&2
		exit 1
	fi
done
# SQLite keeps user_version at byte 60, the highest first.
version=$(od -An -j60 -N4 -tu1 run.strain | awk '{ print (($1 * 256 + $2) * 256 + $3) * 256 + $4 }')
name=schema-$version-onednn
cp run.strain "$target/$name.strain"
"$here/check.sh" --update "$build/strain" "$target/$name.strain"
echo "$target/$name.strain: $bytes bytes"
