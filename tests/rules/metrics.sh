#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The committed document is what the program prints: metrics.sh PROGRAM DOCUMENT
set -eu
"$1" | diff -u "$2" - || {
	echo "docs/${2##*/} is not what the tables say: make docs"
	exit 1
}
