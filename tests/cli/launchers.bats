#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Jobs of several ranks under the programs that start them: torchrun and mpirun, under one strain run,
# and with one for each rank. (srun: slurm.bats.)

load messages
load joined

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir runs
	export OMP_NUM_THREADS=1 JOB=$SOURCE_ROOT/tests/cli/ranks_job.py MASTER_ADDR=127.0.0.1 MASTER_PORT
	MASTER_PORT=$(free_port)
	# as root, and on a machine with one CPU
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
	# Open MPI leaves its folders of sessions in a directory that tests of other users share.
	export TMPDIR=$BATS_TEST_TMPDIR
}

# torchrun 1.13 with Python 3.11 starts nothing without these two.
by_torchrun() { # ARGUMENT...
	has_torch
	/usr/bin/python3 -m torch.distributed.run --nproc_per_node=2 --redirects 1 --tee 1 --master_port "$MASTER_PORT" "$@"
}

# That of Debian 13 asks for libuv, which its PyTorch lacks, whatever USE_LIBUV says.
has_torchrun() {
	by_torchrun --no_python true >torchrun.log 2>&1 || skip "torchrun does not start here: $(tail -n 1 torchrun.log)"
}

by_mpirun() { # COMMAND ARGUMENT...
	command -v mpirun >/dev/null || skip "mpirun is not installed"
	has_torch
	timeout 300 mpirun -np 2 "$@"
}

is_one_run_of_two() { # RUN SLOWEST
	"$STRAIN" show "$1"
	"$STRAIN" show --json "$1" >one
	python3 - "$2" <<-'END'
		import json, sys
		j = json.load(open("one"))
		ranks, slowest = j["ranks"], int(sys.argv[1])
		assert [r["rank"] for r in ranks] == [0, 1], ranks
		assert [r["slowest"] for r in ranks] == [i == slowest for i in range(2)], ranks
		assert f"rank {slowest} of 2 is slower" in j["verdict"]["headline"], j["verdict"]
	END
}

are_two_runs_of_one_job() { # SLOWEST NAMED_BY
	"$STRAIN" show runs
	"$STRAIN" show --json runs >j
	[ "$(field 'j["runs"], [r["rank"] for r in ranks], slowest["rank"], slowest["phase"], j["named_by"]' j)" = \
		"(2, [0, 1], $1, 'forward', '$2')" ]
}

@test "torchrun: one strain run above it" {
	has_torchrun
	"$STRAIN" run -o run.strain -- /usr/bin/python3 -m torch.distributed.run --nproc_per_node=2 --redirects 1 --tee 1 \
		--master_port "$MASTER_PORT" "$JOB" --slow 1
	is_one_run_of_two run.strain 1
}

@test "torchrun: a strain run for each rank" {
	has_torchrun
	by_torchrun --no_python sh -c '"$STRAIN" run -o "runs/$RANK.strain" -- /usr/bin/python3 "$JOB" --slow 0'
	are_two_runs_of_one_job 0 MASTER_ADDR
}

@test "mpirun: one strain run above it" {
	command -v mpirun >/dev/null || skip "mpirun is not installed"
	has_torch
	"$STRAIN" run -o run.strain -- mpirun -np 2 /usr/bin/python3 "$JOB" --slow 0
	is_one_run_of_two run.strain 0
}

@test "mpirun: a strain run for each rank" {
	by_mpirun sh -c '"$STRAIN" run -o "runs/$OMPI_COMM_WORLD_RANK.strain" -- /usr/bin/python3 "$JOB" --slow 1'
	are_two_runs_of_one_job 1 PMIX_NAMESPACE
}
