#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Code common to the Python jobs, without a framework. $FOLDER is workloads/.

bats_require_minimum_version 1.5.0

setup() {
	python=/usr/bin/python3
	"$python" -c 'import numpy' 2>/dev/null || skip "no NumPy (python3-numpy) for $python"
	export PYTHONPATH=$FOLDER:$FOLDER/datasets PYTHONDONTWRITEBYTECODE=1
	cd "$BATS_TEST_TMPDIR" || return
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

@test "images that do not fit into memory are refused before they are made" {
	run -1 "$python" - <<-'EOF'
		import jobs, synthetic
		jobs.run(lambda: synthetic.images(1 << 40, 1))
	EOF
	[[ "$output" == "-: MemoryError: 1099511627776 images take 13519595.0 GB, "*" GB are available ("*"); --samples: fewer" ]]
	[ "$(wc -l <<<"$output")" = 1 ]
	# The minimum over the machine and all cgroups of the process.
	mkdir -p root/proc/self root/sys/fs/cgroup/memory/a/b root/sys/fs/cgroup/x
	printf 'MemTotal: 9 kB\nMemAvailable: 4000000 kB\nSwapFree: 1000000 kB\n' >root/proc/meminfo
	there() {
		"$python" -c 'import memory; memory.ROOT = "root"; print(*memory.available())'
	}
	[ "$(there)" = "5120000000 this machine" ]
	printf '4:memory:/a/b\n1:cpu:/\n0::/x\n' >root/proc/self/cgroup
	echo 9223372036854771712 >root/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes
	echo 500 >root/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes
	[ "$(there)" = "5120000000 this machine" ]
	echo 3000 >root/sys/fs/cgroup/memory/a/memory.limit_in_bytes
	echo 1000 >root/sys/fs/cgroup/memory/a/memory.usage_in_bytes
	printf 'cache 1\ntotal_inactive_file 200\n' >root/sys/fs/cgroup/memory/a/memory.stat
	[ "$(there)" = "2200 cgroup /a" ]
	echo max >root/sys/fs/cgroup/x/memory.max
	echo 7 >root/sys/fs/cgroup/x/memory.current
	[ "$(there)" = "2200 cgroup /a" ]
	echo 100 >root/sys/fs/cgroup/x/memory.max
	[ "$(there)" = "93 cgroup /x" ]
}

@test "train finds what a framework needs, or says what is not here" {
	mkdir -p frameworks/python/bin none
	cat >frameworks/python/bin/python <<-'EOF'
		#!/bin/sh
		# has jax, and prints its arguments
		case $1 in
		-c) [ "$3" = jax ] ;;
		*) echo "${1##*/workloads/}" "$2" "$3" "$4" ;;
		esac
	EOF
	chmod +x frameworks/python/bin/python
	export STRAIN_FRAMEWORKS=$PWD/frameworks
	run -0 "$FOLDER/train" --framework jax --model cnn --seed 'a b'
	[ "$output" = "jax/train.py --model cnn --seed" ]
	run -0 "$FOLDER/train" --seed 'a b' --framework=jax --epochs=2
	[ "$output" = "jax/train.py --seed a b --epochs=2" ]
	run -77 "$FOLDER/train" --framework tensorflow
	[ "$output" = "train: TensorFlow is not installed here (make frameworks)" ]
	run -0 "$FOLDER/train" --framework jax --application=classification --seed=3 --epochs 2
	[ "$output" = "jax/train.py --seed=3 --epochs 2" ]
	cat >python <<-'EOF'
		#!/bin/sh
		# has torch, and prints its arguments
		[ "$1" = -c ] || echo "${1##*/workloads/}" "$2" "$3"
	EOF
	chmod +x python
	for application in translation detection unsupervised reinforcement; do
		STRAIN_PYTORCH=$PWD/python run -0 "$FOLDER/train" --seed 3 --application $application --framework pytorch
		[ "$output" = "pytorch/$application/train.py --seed 3" ]
		[ -x "$FOLDER/pytorch/$application/train.py" ]
	done
	for wrong in 'pytorch --application vision' 'jax --application translation' 'onednn --application=../onednn'; do
		# shellcheck disable=SC2086
		run -2 "$FOLDER/train" --framework $wrong
		[[ "$output" == "train: --application ${wrong##*[ =]}: expected classification, or with --framework pytorch also"* ]]
	done
	STRAIN_FRAMEWORKS=$PWD/none run -77 "$FOLDER/train" --framework jax
	[ "$output" = "train: JAX is not installed here (make frameworks)" ]
	STRAIN_PYTORCH=/nonexistent run -77 "$FOLDER/train" --framework pytorch
	[ "$output" = "train: PyTorch is not installed here (make frameworks)" ]
	for wrong in '' '--framework' '--framework caffe' '--model cnn'; do
		# shellcheck disable=SC2086
		run -2 "$FOLDER/train" $wrong
		[[ "$output" == *": expected --framework pytorch|tensorflow|jax|onednn and the job's options" ]]
	done
	printf '#!/bin/sh\necho onednn "$@"\n' >onednn-train
	chmod +x onednn-train
	mkdir -p built/workloads/onednn
	mv onednn-train built/workloads/onednn
	BUILD=$PWD/built run -0 "$FOLDER/train" --framework onednn --epochs 1
	[ "$output" = "onednn --epochs 1" ]
}

@test "the plans of examples/ are plans" {
	[ -x "$STRAIN" ] || skip "strain was not built"
	cd "$FOLDER/.."
	for plan in examples/*.yaml; do
		[ "$(basename "$plan")" = prices.yaml ] && continue # a price list
		run -0 "$STRAIN" sweep --dry-run -o "$BATS_TEST_TMPDIR/none" "$plan"
		[[ "${lines[0]}" =~ ^[0-9]+\ trials\ of\ [0-9]+\ configurations ]]
		# The number in its comment.
		grep -q "^# ${lines[0]%% *} trials, [1-9][0-9]* minutes" "$plan"
	done
}
