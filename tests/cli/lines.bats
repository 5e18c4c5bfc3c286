#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain run --lines: which lines of the script the first thread was in.

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
	while "STRAIN_LINES" in os.environ and looks() < 3 and time.monotonic() < end:
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
	[ "$(cat out)" = 2 ]
	[ "$(lines 'rows[0]["function"], rows[0]["place"].split(":")[0]')" = "('hot', 'train.py')" ]
	[ "$(lines 'rows[0]["line"] in (11, 12)')" = True ]
	[ "$(lines 'rows[0]["file"].endswith("/train.py")')" = True ]
	[ "$(lines 'abs(sum(r["share_ratio"] for r in rows) - 1) < 0.01 and len(rows) < 20')" = True ]
	"$STRAIN" show run.strain >show
	grep -q '^LINE  *FUNCTION  *SHARE  *LOOKS' show
	grep -q '^train.py:1[12]  *hot ' show
}

@test "a job that is killed keeps what was counted" {
	run "$STRAIN" run --lines -o run.strain -- python3 train.py killed
	[ "$status" -eq 137 ]
	[ "$(lines 'rows[0]["function"]')" = hot ]
}

@test "nothing looks without being asked" {
	"$STRAIN" run -o run.strain -- python3 train.py ends >out
	[ "$(cat out)" = 1 ]
	[ "$(lines 'rows')" = '[]' ]
	"$STRAIN" show run.strain >show
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
