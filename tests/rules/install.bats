#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# tools/install.sh on a machine that is made up: dpkg-query and apt-get are scripts that write down
# what they are asked, and the path holds nothing else of use.

bats_require_minimum_version 1.5.0

# A program of the made-up machine, from standard input.
program() {
	{
		echo '#!/bin/sh'
		cat
	} >"$path/$1"
	chmod +x "$path/$1"
}

setup() {
	path=$BATS_TEST_TMPDIR/bin
	mkdir -p "$path" "$BATS_TEST_TMPDIR/tools"
	for name in sh dirname grep cat env mkdir touch sed; do
		ln -s "$(command -v $name)" "$path/$name"
	done
	cp "$SOURCE_ROOT/tools/install.sh" "$BATS_TEST_TMPDIR/tools/"
	printf '%s\t%s\t%s\t%s\n' \
		build alpha command:no-such-program 'is needed' \
		build 'beta|gamma' none 'has two names' \
		build there command:grep 'is there already' \
		extra '?delta' none 'can be done without' \
		>"$BATS_TEST_TMPDIR/tools/dependencies"
	export ASKED=$BATS_TEST_TMPDIR/asked KNOWN='alpha gamma delta'
	: >"$ASKED"
	program dpkg-query </dev/null
	# Only after an update does apt know packages.
	program apt-cache <<'END'
[ -e "$ASKED.updated" ] || exit 0
case " $KNOWN " in *" $2 "*) echo '  Candidate: 1.0' ;; *) echo '  Candidate: (none)' ;; esac
END
	program apt-get <<'END'
echo "apt-get $*" >>"$ASKED"
case "$*" in *update) touch "$ASKED.updated" ;; esac
END
	program id <<<'echo 0'
}

install() {
	env -i PATH="$path" ASKED="$ASKED" KNOWN="$KNOWN" "${extra_environment[@]}" \
		sh "$BATS_TEST_TMPDIR/tools/install.sh" "$@"
}

@test "what is missing is named and installed, after one update, without recommendations" {
	run -0 install build
	[[ "$output" == *"alpha"*"is needed"* ]]
	[[ "$output" != *"is there already"* ]]
	[ "$(grep -c update "$ASKED")" = 1 ]
	grep -q -- 'install --no-install-recommends alpha gamma$' "$ASKED"
}

@test "STRAIN_NO_INSTALL=1 lists and stops" {
	extra_environment=(STRAIN_NO_INSTALL=1)
	run -1 install build
	[[ "$output" == *"alpha"*"is needed"* ]]
	[ ! -s "$ASKED" ]
}

@test "--check lists and stops; what can be done without does not stop" {
	run -1 install --check build extra
	run -0 install --check extra
	[[ "$output" == *"delta"* ]]
	[ ! -s "$ASKED" ]
}

@test "where nothing is missing nothing is said" {
	program dpkg-query <<<'printf installed'
	run -0 install build extra
	[ -z "$output" ]
	[ ! -s "$ASKED" ]
}

@test "an ordinary user installs by sudo" {
	program id <<<'echo 1000'
	program sudo <<'END'
echo sudo >>"$ASKED"
exec "$@"
END
	run -0 install extra
	grep -q sudo "$ASKED"
	grep -q 'install.*delta' "$ASKED"
}

@test "an ordinary user without sudo is told" {
	program id <<<'echo 1000'
	run -1 install build
	[[ "$output" == *"neither root nor sudo"* ]]
	[ ! -s "$ASKED" ]
}

@test "a package that the system does not have stops, unless it can be done without" {
	KNOWN='alpha' run -1 install build
	[[ "$output" == *"no package beta|gamma"* ]]
	KNOWN='alpha gamma' run -0 install build extra
	[[ "$output" == *"no package delta; what needs it is left out"* ]]
}

@test "elsewhere than on Debian the names are a hint" {
	rm "$path/dpkg-query" "$path/apt-get"
	run -1 install build
	[[ "$output" == *"names of Debian packages"* ]]
	run -0 install extra
}
