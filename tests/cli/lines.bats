#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Lines of the script in which the first thread was: a few samples of a PyTorch job, more with --lines.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	python3 -c 'import sys; assert sys.version_info >= (3, 8)' 2>/dev/null || skip 'no python3'
	# It goes on until it was looked at often enough, however slow the machine is.
	cat >train.py <<-'EOF'
	import glob
	import os
	import signal
	import sys
	import threading
	import time


	def hot():
	    total = 0
	    for i in range(2000000):
	        total += i
	    return total


	def looks():
	    files = glob.glob(os.environ["STRAIN_MARKERS"] + "/lines-*")
	    return sum(open(name).read().count("\thot\n") for name in files)


	if os.fork() == 0:
	    hot()
	    os._exit(threading.active_count() - 1)
	assert os.waitstatus_to_exitcode(os.wait()[1]) == 0 if sys.version_info >= (3, 9) else os.wait()
	end = time.monotonic() + 60
	while os.environ.get("STRAIN_LINES") == "all" and looks() < 3 and time.monotonic() < end:
	    hot()
	print(threading.active_count())
	if sys.argv[1] == "killed":
	    os.kill(os.getpid(), signal.SIGKILL)
	EOF
}

lines() {
	"$STRAIN" show --json run.strain | python3 -c '
import json, sys
rows = json.load(sys.stdin)["lines"]
print(eval(sys.argv[1]))' "$1"
}

@test "the line that takes the time is named" {
	"$STRAIN" run --lines -o run.strain -- python3 train.py ends >out
	[ "$(cat out)" = 1 ] # threads of the script
	[ "$(lines 'rows[0]["function"], rows[0]["place"].split(":")[0]')" = "('hot', 'train.py')" ]
	[ "$(lines 'rows[0]["line"] in (11, 12)')" = True ]
	[ "$(lines 'rows[0]["file"].endswith("/train.py")')" = True ]
	[ "$(lines 'abs(sum(r["share_ratio"] for r in rows) - 1) < 0.01 and len(rows) < 20')" = True ]
	"$STRAIN" show --all run.strain >show
	grep -q '^LINE  *FUNCTION  *ROLE  *SHARE  *SAMPLES' show
	grep -q '^train.py:1[12]  *hot ' show
}

@test "a job that is killed keeps what was counted" {
	run "$STRAIN" run --lines -o run.strain -- python3 train.py killed
	[ "$status" -eq 137 ]
	[ "$(lines 'rows[0]["function"]')" = hot ]
}

@test "without a framework nothing looks without being asked" {
	"$STRAIN" run -o run.strain -- python3 train.py ends >out
	[ "$(cat out)" = 1 ]
	[ "$(lines 'rows')" = '[]' ]
	"$STRAIN" show --all run.strain >show
	run ! grep -q '^LINE ' show
	"$STRAIN" run --lines -o outer.strain -- "$STRAIN" run -o inner.strain -- python3 train.py ends >out
	[ "$(cat out)" = 1 ]
}

@test "frames of PyTorch say the phase" {
	/usr/bin/python3 -c 'import torch' 2>/dev/null || skip 'no PyTorch in /usr/bin/python3'
	cat >phases.py <<-'EOF'
	import glob
	import os
	import time

	import torch

	model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10))
	optimizer = torch.optim.Adam(model.parameters())
	end = time.monotonic() + 60
	seen = set()
	while len(seen) < 3 and time.monotonic() < end:
	    for _ in range(30):
	        optimizer.zero_grad()
	        loss = model(torch.randn(128, 512)).sum()
	        loss.backward()
	        optimizer.step()
	    for name in glob.glob(os.environ["STRAIN_MARKERS"] + "/lines-*"):
	        seen = {line.split("\t")[1] for line in open(name) if "\t" in line} & {
	            "forward", "backward", "optimizer"}
	EOF
	OMP_NUM_THREADS=1 "$STRAIN" run --lines -o run.strain -- /usr/bin/python3 phases.py
	lines 'sorted({r["phase"] for r in rows if r["phase"]})'
	[ "$(lines '{"backward", "forward", "optimizer"} <= {r["phase"] for r in rows}')" = True ]
	[ "$(lines '{r["line"] for r in rows if r["phase"] == "backward"}')" = '{15}' ]
}

# A job whose workers and training process each spend their time in one function, until both were seen
# often enough.
trains() { # OPTION...
	/usr/bin/python3 -c 'import torch' 2>/dev/null || skip 'no PyTorch in /usr/bin/python3'
	cat >loads.py <<-'EOF'
	import glob
	import os
	import threading
	import time

	import torch
	from torch.utils.data import DataLoader, Dataset


	def spin(seconds):
	    until = time.process_time() + seconds
	    while time.process_time() < until:
	        pass


	class Data(Dataset):
	    def __len__(self):
	        return 400

	    def __getitem__(self, index):
	        return self.augment(index)

	    def augment(self, index):
	        spin(0.005)
	        return torch.ones(8)


	def metrics():
	    spin(0.02)


	def seen(name):
	    files = glob.glob(os.environ["STRAIN_MARKERS"] + "/lines-*")
	    rows = [row.split("\t") for file in files for row in open(file) if "\t" in row]
	    return sum(int(row[0]) for row in rows if row[4] == "spin\n" and (row[1] == "data") == (name == "worker"))


	if __name__ == "__main__":
	    model = torch.nn.Linear(8, 1)
	    optimizer = torch.optim.SGD(model.parameters(), 0.01)
	    end = time.monotonic() + (60 if "STRAIN_LINES" in os.environ else 3)
	    while time.monotonic() < end and not (seen("worker") >= 25 and seen("trainer") >= 25):
	        for batch in DataLoader(Data(), 4, num_workers=1):
	            optimizer.zero_grad()
	            model(batch).sum().backward()
	            optimizer.step()
	            metrics()
	            if time.monotonic() >= end:
	                break
	    print([thread.name for thread in threading.enumerate() if "QueueFeeder" not in thread.name])
	EOF
	OMP_NUM_THREADS=1 "$STRAIN" run "$@" -o run.strain -- /usr/bin/python3 loads.py
}

@test "PyTorch: a few samples by default, of the training process and of a worker" {
	trains >out
	cat out
	[ "$(head -n 1 out)" = "['MainThread']" ]
	[ "$(lines 'sorted({r["role"] for r in rows})')" = "['loader', 'main']" ]
	[ "$(lines '{r["phase"] for r in rows if r["role"] == "loader"}')" = "{'data'}" ]
	[ "$(lines '[abs(sum(r["share_ratio"] for r in rows if r["role"] == role) - 1) < 0.05 for role in ("main", "loader")]')" = '[True, True]' ]
	"$STRAIN" show --all run.strain >show
	grep 'lines' show
	grep -q 'lines, workers  *[0-9]* % in loads.py:[0-9]* spin() (data)' show
}

@test "no samples of code, no samples of lines, and none without hooks" {
	trains --no-profile >out
	[ "$(lines 'rows')" = '[]' ]
	"$STRAIN" run --no-hooks -o run.strain --force -- sh -c 'echo ${STRAIN_LINES-none}' >out
	[ "$(cat out)" = none ]
}

@test "whose line counts, and what the sampling thread leaves behind" {
	run -0 python3 -B "$SOURCE_ROOT/tests/hooks/lines.py" "$SOURCE_ROOT/hooks/python"
	echo "$output"
	[ "$(grep -c '^passed' <<<"$output")" -eq 12 ]
}
