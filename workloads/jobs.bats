#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What the jobs in Python have in common, without a framework. $FOLDER is workloads/.

bats_require_minimum_version 1.5.0

setup() {
	python=/usr/bin/python3
	"$python" -c 'import numpy' 2>/dev/null || skip "no NumPy (python3-numpy) for $python"
	export PYTHONPATH=$FOLDER:$FOLDER/datasets PYTHONDONTWRITEBYTECODE=1
}

options() {
	"$python" - "$@" <<-'EOF'
		import jobs
		models = {"cnn": jobs.Model(None, 32, 18, 1e-3), "alexnet": jobs.Model(None, 224, 63, 1e-4)}
		def main():
		    options = jobs.parse_options("Train.", models)
		    jobs.check_samples(options, options.samples or 60000)
		    print(*(f"{name}={value}" for name, value in sorted(vars(options).items()) if value))
		jobs.run(main)
	EOF
}

@test "options" {
	run -0 options --model alexnet --batch-size 64 --processes 2
	[ "$output" = "batch_size=64 dataset=dt1 epochs=3 image_size=224 model=alexnet processes=2 seed=1 workers=2" ]
	for wrong in '--model lenet|choose from' '--batch-size 0|0 is not at least 1' '--workers many|invalid number' \
		'--dataset dt3|expected dt1, dt2 or a folder' '--processes 3|3 processes cannot share batches of 32' \
		'--model alexnet --image-size 32|alexnet needs images of at least 63 pixels'; do
		# shellcheck disable=SC2086
		run -2 options ${wrong%|*}
		echo "$output"
		[[ "$output" == *"${wrong#*|}"* ]]
	done
	run -1 options --samples 3
	[ "$output" = "-: 3 samples do not fill a batch of 32" ]
	run -1 options --validation-samples 31
	[ "$output" = "-: 31 validation samples do not fill a batch of 32" ]
}

@test "the images of a seed and a number are always these" {
	run -0 "$python" - <<-'EOF'
		import hashlib, synthetic
		pixels, classes = synthetic.levels(0, 100, 1)
		print(hashlib.sha256(pixels.tobytes() + classes.astype("u1").tobytes()).hexdigest())
		images, numbers = synthetic.images(1100, 1)
		later, same = synthetic.images(30, 1, 1050)
		assert (images[1050:1080] == later).all() and (numbers[1050:1080] == same).all()
		assert images.shape == (1100, 32, 32, 3) and images.dtype == "float32" and 0 <= images.min() <= images.max() <= 1
		assert set(numbers) == set(range(10)) and (synthetic.images(1, 2)[0] != images[:1]).any()
	EOF
	[ "$output" = 950f362762dc0a9f348b3ae7090ed2f9445c997fc8d4510280ec2fe699daf434 ]
}
