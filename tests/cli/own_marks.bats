#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The package `strain` for Python: what a job marks with it, where it is found, and that a job is the
# same without it.

load run_helpers

PYTHON=/usr/bin/python3
JOB="$SOURCE_ROOT/tests/hooks/own_marks.py"

record() {
	"$STRAIN" run -o run.strain --force "$@"
}

spans() { # SQL: of the last run
	python_sql run.strain "SELECT kind, name, count(*), coalesce(sum(samples), '') FROM span $1
		GROUP BY kind, name ORDER BY kind, name"
}

# A Python that has the modules of the package alone, without the hooks.
alone() {
	mkdir -p alone
	cp "$SOURCE_ROOT"/hooks/python/strain{,_folder,_ring}.py alone
	PYTHONPATH="$PWD/alone" PYTHONDONTWRITEBYTECODE=1 "$@"
}

@test "epochs, iterations, phases and points of a job that marks itself, in show" {
	record "$PYTHON" "$JOB" train >out
	[[ "$(cat out)" == *"/hooks/python/strain.py True" ]]
	[ "$(spans)" = $'epoch|epoch|3|1440\niteration|iteration|60|1440\nphase|data|63|\nphase|forward|60|\npoint|checkpoint|1|\npoint|loss|3|\nuser|bare|60|\nuser|tokenize|60|' ] ||
		{ spans; false; }
	run -0 "$STRAIN" show run.strain
	[[ "$output" == *$'\n'"forward "* ]]
	[[ "$output" == *$'\n'"bare "*" 60 "*" iterations"* ]]
	[[ "$output" == *$'\n'"  tokenize "*" 60 "*" iterations"* ]]
	[[ "$output" == *"EPOCH "*" loss"* ]]
}

@test "a run without epochs or iterations says in a line what to type" {
	local job='import sys, time
for epoch in (1, 2):
    print("epoch", epoch, flush=True)
    time.sleep(0.6)'
	run -0 --separate-stderr record "$PYTHON" -c "$job"
	local epochs='import strain; for epoch in strain.epochs(range(3)):'
	[[ "$stderr" == *$'\n        '*"$epochs"*--epoch-pattern* ]]
	run -0 "$STRAIN" show run.strain
	[[ "$output" == *$'\n'"Hint "*"import strain; "* ]]
	[[ "$(json 'd["verdict"]["marking"]' "$STRAIN" show run.strain)" == *"$epochs"* ]]
	run -0 --separate-stderr record --epoch-pattern '^epoch' "$PYTHON" -c "$job"
	[[ "$stderr" == *$'\n        '*"import strain; for batch in strain.iterations(loader):"$'\n'* ]]
	[[ "$stderr" != *"strain.epochs"* && "$stderr" != *--epoch-pattern* ]]
	run -0 --separate-stderr record sleep 1.2
	[[ "$stderr" == *--epoch-pattern*"strain mark epoch 1"* && "$stderr" != *"import strain"* ]]
	run -0 --separate-stderr record --no-markers "$PYTHON" -c "$job"
	[[ "$stderr" == *--epoch-pattern* && "$stderr" != *"import strain"* && "$stderr" != *"strain mark"* ]]
	# What has both is told nothing.
	run -0 --separate-stderr record "$PYTHON" -c 'import strain, time
for epoch in strain.epochs(range(2)):
    for batch in strain.iterations(range(20)):
        time.sleep(0.03)'
	[[ "$stderr" != *"for epochs"* && "$stderr" != *"for iterations"* ]]
}

@test "the same by calls and contexts; spans of coroutines cross" {
	record "$PYTHON" "$JOB" by_hand
	[ "$(spans)" = $'epoch|epoch|2|125\niteration|iteration|21|125\nphase|forward|10|\nuser|crossing|1|\nuser|wait|2|' ] ||
		{ spans; false; }
}

@test "threads and forked children have marks of their own, also within a phase" {
	record "$PYTHON" "$JOB" forks
	[ "$(spans)" = $'user|after it|1|\nuser|around|1|\nuser|in a child|1|\nuser|in a thread|3|' ] || { spans; false; }
	[ "$(python_sql run.strain "SELECT count(DISTINCT thread) FROM span")" -ge 3 ]
	[ "$(python_sql run.strain "SELECT count(DISTINCT thread) FROM span WHERE name IN ('around', 'in a child')")" = 2 ]
}

@test "nothing raises, whatever is said, recorded or not" {
	record "$PYTHON" "$JOB" odd
	[ "$(python_sql run.strain "SELECT count(*) FROM event WHERE kind != 'wall_clock'")" = 0 ]
	[ "$(spans "WHERE name = '(other)'" | cut -d'|' -f3)" -gt 100 ]
	run -0 alone "$PYTHON" "$JOB" odd
	[ "$output" = "$PWD/alone/strain.py False" ]
}

@test "without strain run nothing is marked, opened or imported" {
	cat >look.py <<-'EOF'
		import sys
		import strain
		def function(): pass
		assert strain.phase(function) is function is strain.phase("x")(function)
		assert strain.phase("x") is strain.phase("y") is strain.epoch(1)
		assert list(strain.epochs(range(2))) == [0, 1] and type(strain.iterations([1])) is type(iter([]))
		assert not [name for name in sys.modules if name.startswith("strain_")] and "mmap" not in sys.modules
		assert not strain.recorded()
	EOF
	alone "$PYTHON" -S look.py
	for what in train by_hand forks; do
		run -0 alone "$PYTHON" "$JOB" "$what"
		[ "$output" = "$PWD/alone/strain.py False" ]
	done
}

@test "a module of the job's own that is called strain is the one that is found" {
	mkdir own editable
	echo 'mine = 1' >own/strain.py
	cp own/strain.py editable/strain.py
	record env PYTHONPATH="$PWD/own" true
	PYTHONPATH="$PWD/own" record "$PYTHON" -c 'import strain; assert strain.mine == 1'
	(cd own && record "$PYTHON" -c 'import strain; assert strain.mine == 1')
	# By a finder that was put at the end after ours, as those of editable installations are.
	record "$PYTHON" -c 'import sys
from importlib.util import spec_from_file_location
class Editable:
    def find_spec(name, path=None, target=None):
        return spec_from_file_location(name, "editable/strain.py") if name == "strain" else None
sys.meta_path.append(Editable)
import strain; assert strain.mine == 1'
	record "$PYTHON" -c 'import strain, sys; assert strain.phase
assert not any("hooks/python" in path for path in sys.path)
try: import strain.nothing
except ModuleNotFoundError: pass'
}

@test "what a run has left behind finds the package, which marks nothing" {
	record sh -c 'echo "$PYTHONPATH $STRAIN_MARKERS"' >out
	read -r path markers <out
	[ ! -e "$markers" ]
	run -0 env PYTHONPATH="$path" STRAIN_MARKERS="$markers" "$PYTHON" -B "$JOB" train
	[[ "$output" == *"/strain.py False" ]]
}

@test "what the program marks itself, no hook marks in its thread" {
	"$PYTHON" "$SOURCE_ROOT/tests/hooks/program.py" "$SOURCE_ROOT/hooks/python"
}

@test "PyTorch: the program's epochs and iterations take the place of the hooks', their phases stay" {
	[ -d /usr/lib/python3/dist-packages/torch ] || skip "no PyTorch (python3-torch) for $PYTHON"
	export OMP_NUM_THREADS=1
	for samples in 960 480; do # the hook's, of all; the program's, who says half
		record "$PYTHON" "$SOURCE_ROOT/tests/hooks/own_torch.py" $([ $samples = 960 ] || echo iterations)
		[ "$(spans "WHERE kind IN ('epoch', 'iteration') OR name = 'augment'")" = \
			$'epoch|epoch|3|'$samples$'\niteration|iteration|30|'$samples$'\nuser|augment|30|' ] || { spans; false; }
		[ "$(python_sql run.strain "SELECT min(number), max(number) FROM span WHERE kind = 'epoch'")" = "10|12" ]
		[ "$(spans "WHERE name IN ('backward', 'optimizer')")" = $'phase|backward|30|\nphase|optimizer|30|' ]
	done
}

@test "the package has the program's version" {
	[ "strain $(sed -n 's/^version = "\(.*\)"/\1/p' "$SOURCE_ROOT/hooks/python/pyproject.toml")" = \
		"$("$STRAIN" --version | head -1)" ]
}

@test "a wheel is built without a network, and needs nothing else" {
	"$PYTHON" -c 'import setuptools, wheel, pip' 2>/dev/null || skip "no pip, setuptools and wheel for $PYTHON"
	cp -r "$SOURCE_ROOT/hooks/python" source
	"$PYTHON" -m pip -q --disable-pip-version-check wheel --no-index --no-deps --no-build-isolation -w wheels ./source
	[ "$(ls wheels)" = "strain_marks-$("$STRAIN" --version | grep -o '[0-9][0-9.]*' | head -1)-py3-none-any.whl" ] || { ls wheels; false; }
	"$PYTHON" -m zipfile -e wheels/*.whl site
	[ "$(cd site && ls *.py)" = $'strain.py\nstrain_folder.py\nstrain_ring.py' ]
	[ -n "$(find site -name 'LICENSE*')" ]
	grep -q '^License: MIT' site/*.dist-info/METADATA
	run ! grep '^Requires-Dist' site/*.dist-info/METADATA
	run -0 env PYTHONPATH="$PWD/site" "$PYTHON" -B "$JOB" train
	[ "$output" = "$PWD/site/strain.py False" ]
	# Recorded without the hooks; with them, whose ring is the thread's one.
	PYTHONPATH="$PWD/site" record --no-hooks "$PYTHON" -B "$JOB" train >out
	[ "$(cat out)" = "$PWD/site/strain.py True" ]
	[[ "$(spans)" == $'epoch|epoch|3|1440\niteration|iteration|60|1440\n'* ]]
	PYTHONPATH="$PWD/site" record "$PYTHON" -B -c 'import os, strain
with strain.phase("x"):
    import strain_ring
assert strain.__file__.endswith("site/strain.py") and "site" not in strain_ring.__file__
assert len([name for name in os.listdir(os.environ["STRAIN_MARKERS"]) if name.startswith("ring-")]) == 1'
	[ "$(spans)" = "user|x|1|" ]
}
