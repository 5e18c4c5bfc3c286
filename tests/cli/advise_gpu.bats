#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain advise on a GPU: a fake NVML (tests/fake), and a job with a fake of PyTorch's allocator.

load advise_helpers

setup() {
	enter_folder
	unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
	cat >script <<-'EOF2'
		driver 550.54.15
		gpu 0 name Fake
		gpu 0 memory.total 10000000000
		gpu 0 memory.used 1000
		gpu 0 utilization.gpu 80
		gpu 0 processes job:held:80
	EOF2
}

teardown() {
	leave_folder
}

# The fake is found as the driver's library would be. The job runs in place: an overlay would hide its memory.
advise() { # OPTIONS -- OPTIONS OF THE JOB
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	LD_LIBRARY_PATH=$BUILD_ROOT/tests/fake/full STRAIN_FAKE_NVML=$PWD/script "$STRAIN" advise "${options[@]}" --in-place \
		-o kept -- /usr/bin/python3 "$SOURCE_ROOT/tests/cli/advise_gpu.py" "$PWD/script" "$@" --batch-size '{batch_size=16}'
}

# The largest batch for a cap of the allocator, in MB.
truth() {
	echo $((($1 * 100 / 102 - 300) / 20))
}

@test "the largest batch for a smaller GPU runs under a cap of PyTorch's allocator" {
	is_slow
	has_torch
	run -0 --separate-stderr advise --gpu-memory 4GB --json --
	echo "$stderr"
	echo "$output" | tee answer.json
	# 100 MB are outside of the allocator.
	local most
	most=$(truth 3900)
	[ "$(field "$most * 0.95 <= largest['verified'] <= $most")" = True ]
	[ "$(field "largest['verified_by'], a['memory']['limit'], a['memory']['limit_kind']")" = "('limit', 4000000000, 'gpu')" ]
	# What it cached beyond the memory in use is not needed.
	[ "$(field "abs(a['memory']['line']['bytes_per_sample'] - 20e6) < 1e5")" = True ]
	[ "$(field "[r['limit'] for r in runs if r['step'] == 'verify'][0]")" = 3900000000 ]
}

@test "a script's own cap on PyTorch's allocator is the limit" {
	is_slow
	has_torch
	run -0 --separate-stderr advise --json -- --own-cap 0.3
	echo "$stderr"
	echo "$output" | tee answer.json
	[ "$(field "abs(a['memory']['limit'] - 3.1e9) < 2, a['memory']['limit_kind']")" = "(True, 'gpu')" ]
	local most
	most=$(truth 3000)
	[ "$(field "$most * 0.95 <= largest['verified'] <= $most")" = True ]
}

@test "--gpu-memory needs a job that uses a GPU, and more than it holds beside the allocator" {
	has_torch
	run -1 --separate-stderr advise --gpu-memory 50MB --
	line_names "$stderr" --gpu-memory '100 MB' '50 MB'
	[[ $output != *'0 B'* ]] # what is limited is not known, and not 0
	rm -r kept
	sed -i '/processes/d' script
	run -1 --separate-stderr advise --gpu-memory 4GB --
	line_names "$stderr" --gpu-memory 'a job that uses a GPU'
	run -2 --separate-stderr "$STRAIN" advise --gpu-memory 1 -- true
	line_names "$stderr" --gpu-memory '1 MiB' "'1'"
}
