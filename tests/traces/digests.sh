#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# digests.sh STRAIN [--update]: the digests of kept runs (src/study/digest.h), computed from their
# samples, must be what digests.expected says: finished runs store their digest, and a digest of other
# rules must not be taken for one of today's. Where the rules have changed on purpose, raise
# DIGEST_RULES, then --update.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
expected=$here/digests.expected
rules=$(sed -n 's/^#define DIGEST_RULES //p' "$here/../../src/study/digest.h")
place=$(mktemp -d "${TMPDIR:-/tmp}/strain-digests.XXXXXX")
trap 'rm -rf "$place"' EXIT
mkdir "$place/runs"
cp "$here"/*.strain "$here"/../truth/*.strain "$place/runs"
# Measures of answers of `strain advise` and of price lists, and the rate in tokens, are not stored in runs.
measures=$("$1" compare --value help | awk '$1 ~ /^[a-z_]+$/ && !/ (strain advise|--prices)[:, ]/ && $1 != "tokens_per_second" { printf "%s%s", n++ ? "," : "", $1 }')
{
	echo "rules $rules"
	python3 - "$place/runs" <<-'END'
		import pathlib, sqlite3, sys
		for path in pathlib.Path(sys.argv[1]).iterdir():  # what is stored is not asked for here
		    with sqlite3.connect(path) as run:
		        if run.execute("SELECT 1 FROM sqlite_schema WHERE name = 'finding'").fetchone():
		            run.execute("DELETE FROM finding")
	END
	"$1" compare "$place/runs" --all --rows run --columns "" --value "$measures" --format csv 2>/dev/null >"$place/table"
	python3 - "$place/table" <<-'END'
		import csv, sys
		for row in csv.DictReader(open(sys.argv[1], newline="")):
		    mean = f"{float(row['mean']):.4g}" if row["mean"] else ""  # compilers differ in the last digits
		    print(row["run"], row["measure"], mean or row["words"] or "-")
	END
} >"$place/found"
if [ "${2:-}" = --update ]; then
	cp "$place/found" "$expected"
elif ! diff "$expected" "$place/found" >"$place/difference"; then
	head -n 40 "$place/difference"
	[ "rules $rules" != "$(head -n 1 "$expected")" ] ||
		echo "digests.sh: digests have changed: raise DIGEST_RULES in src/study/digest.h, then digests.sh STRAIN --update"
	exit 1
fi
