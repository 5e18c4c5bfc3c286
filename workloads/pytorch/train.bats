#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The PyTorch job, where there is PyTorch. $SCRIPT is it; Debian's PyTorch belongs to /usr/bin/python3.

bats_require_minimum_version 1.5.0

setup() {
	python=/usr/bin/python3
	"$python" -c 'import torch' 2>/dev/null || skip "no PyTorch (python3-torch) for $python"
	export OMP_NUM_THREADS=1
}

@test "prints the model and a line per epoch, and the loss falls" {
	run --separate-stderr "$python" "$SCRIPT" --samples 3200 --epochs 2 --workers 2 --batch-size 32
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" =~ ^cnn:\ 89450\ parameters,\ 3200\ images,\ batch\ size\ 32,\ 2\ workers, ]]
	[[ "${lines[1]}" =~ ^epoch\ 1/2\ \ loss\ ([0-9.]+)\ \ accuracy\ [01]\.[0-9]{3}\ \ [0-9.]+\ s\ \ [0-9]+\ images/s$ ]]
	first=${BASH_REMATCH[1]}
	[[ "${lines[2]}" =~ ^epoch\ 2/2\ \ loss\ ([0-9.]+) ]]
	last=${BASH_REMATCH[1]}
	[ "${#lines[@]}" -eq 3 ]
	awk -v first="$first" -v last="$last" 'BEGIN { exit !(last < first) }'
}

@test "the same seed gives the same loss, without workers" {
	once() {
		"$python" "$SCRIPT" --samples 320 --epochs 1 --workers 0 --threads 1 --seed 3 | sed -n 's/.*\(loss [0-9.]*\).*/\1/p'
	}
	first=$(once)
	[ -n "$first" ]
	[ "$first" = "$(once)" ]
}
