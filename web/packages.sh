#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# packages.sh SOURCE BUILD: installs what package-lock.json names into BUILD/node_modules, unless it
# is there already. Nothing is written into the source tree. One line on why where it fails.
set -eu

lock=$1/package-lock.json
mkdir -p "$2"
cd "$2"

if ! node -e 'process.exitCode = parseInt(process.versions.node) < 18 ? 1 : 0'; then
	echo "Node.js 18 or later is needed, and this is $(node --version)" >&2
	exit 1
fi
if cmp -s "$lock" node_modules/.installed; then
	exit 0
fi
cp "$1/package.json" "$lock" .
# No scripts: what is installed does not run here before it is asked to.
if ! npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >npm.log 2>&1; then
	echo "npm could not install its packages ($(pwd)/npm.log)" >&2
	exit 1
fi
cp "$lock" node_modules/.installed
