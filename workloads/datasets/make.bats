#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Datasets for the workloads. $SCRIPT creates them, $TRAIN is the PyTorch job.

bats_require_minimum_version 1.5.0

setup() {
	python=/usr/bin/python3
	"$python" -c 'import PIL, numpy' 2>/dev/null ||
		skip "no Pillow and NumPy (python3-pil, python3-numpy) for $python"
	cd "$BATS_TEST_TMPDIR"
}

sums() {
	(cd "$1" && find . -name '*.jpeg' -print0 | sort -z | xargs -0 sha256sum)
}

@test "images of about ImageNet's size, the same from the same seed" {
	run -0 "$python" "$SCRIPT" jpeg --images 24 --classes 3 first
	[[ "$output" == *" MB in first, of "*" MB free" ]]
	"$python" "$SCRIPT" jpeg --images 24 --classes 3 again
	"$python" "$SCRIPT" jpeg --images 24 --classes 3 --seed 2 other
	[ "$(sums first | wc -l)" = 24 ]
	[ "$(sums first)" = "$(sums again)" ]
	[ "$(sums first)" != "$(sums other)" ]
	[ "$(ls first | wc -l)" = 3 ]
	bytes=$(find first -name '*.jpeg' -printf '%s\n' | awk '{ sum += $1 } END { print int(sum / NR) }')
	echo "$bytes bytes in the mean"
	[ "$bytes" -gt 70000 ] && [ "$bytes" -lt 180000 ]
}

@test "a folder that is not empty is left alone" {
	mkdir full
	touch full/thesis.tex
	run -1 "$python" "$SCRIPT" jpeg --images 2 full
	[ "$output" = "make.py: full: expected an empty folder" ]
	[ "$(ls full)" = thesis.tex ]
}

@test "the PyTorch job trains on it" {
	"$python" -c 'import torchvision' 2>/dev/null || skip "no torchvision (python3-torchvision)"
	"$python" "$SCRIPT" jpeg --images 64 --classes 2 images
	OMP_NUM_THREADS=1 run -0 "$python" "$TRAIN" --dataset images --epochs 1 --threads 1 --batch-size 16
	[[ "$output" == *"89186 parameters, 64 images"* ]]
	[[ "$output" == *"epoch 1/1  loss "* ]]
	run -2 "$python" "$TRAIN" --dataset nowhere
	[[ "$output" == *"expected dt1, dt2 or a folder, found 'nowhere'"* ]]
}
