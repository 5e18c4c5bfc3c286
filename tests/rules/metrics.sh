#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The committed document is what the program prints: metrics.sh STRAIN-METRICS DOCUMENT
set -eu
"$1" | diff -u "$2" - || {
	echo 'docs/metrics.md is not what the tables say: make docs'
	exit 1
}
