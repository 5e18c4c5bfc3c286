#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Stands in for a test that this machine cannot run: says why, with the status that means skipped.
echo "$*"
exit 77
