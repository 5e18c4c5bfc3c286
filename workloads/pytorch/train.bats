#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The PyTorch job, if PyTorch is installed. $SCRIPT is the job; Debian's PyTorch is for /usr/bin/python3.

bats_require_minimum_version 1.5.0

setup() {
	python=/usr/bin/python3
	"$python" -c 'import torch' 2>/dev/null || skip "no PyTorch (python3-torch) for $python"
	export OMP_NUM_THREADS=1
	cd "$BATS_TEST_TMPDIR"
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

@test "models have as many parameters as were published" {
	"$python" -c 'import torchvision' 2>/dev/null || skip "no torchvision (python3-torchvision)"
	[ "$("$python" "${SCRIPT%/*}/count.py" images)" = 'cnn 89450
alexnet 61100840
vgg16 138357544
inception3 27161264
resnet34 21797672
resnet50 25557032
resnet152 60192808
densenet121 7978856
densenet201 20013928
conv3d 246184
lstm 1145832' ]
}

@test "clips and sequences train, with both optimizers, and passes end after the steps" {
	for options in 'conv3d --frames 4' 'conv3d --frames 4 --image-size 48 --optimizer sgd' lstm 'lstm --optimizer sgd'; do
		# shellcheck disable=SC2086
		run -0 "$python" "$SCRIPT" --model $options --samples 2000 --steps 20 --batch-size 8 --workers 0 --epochs 2 \
			--validation-samples 400 --threads 1
		echo "$output"
		[[ "${lines[0]}" == "${options%% *}: "*" parameters, 2000 images, batch size 8, 0 workers, cpu"* ]]
		[[ "${lines[4]}" =~ ^validation\ 2/2\ \ loss\ [0-9.]+\ \ accuracy\ [01]\.[0-9]{3}\ \ ([0-9.]+)\ s\ \ ([0-9]+)\ images/s$ ]]
	done
}

@test "the optimizer and the steps are those of the options" {
	run -0 "$python" - <<-EOF
		import sys
		sys.path[:0] = ["${SCRIPT%/*}", "${SCRIPT%/*}/..", "${SCRIPT%/*}/../datasets"]
		sys.argv[1:] = ["--model", "lstm", "--optimizer", "sgd", "--steps", "3", "--samples", "200"]
		sys.dont_write_bytecode = True
		import images, jobs, train
		options = jobs.parse_options("", train.MODELS, ("adam", "sgd"))
		model = train.make_model(options, 10, "cpu")
		optimizer = train.make_optimizer(options, model.parameters())
		print(type(optimizer).__name__, optimizer.defaults["lr"], len(images.Order(200, options, 0)))
		options.optimizer, options.steps = "adam", None
		optimizer = train.make_optimizer(options, model.parameters())
		print(type(optimizer).__name__, optimizer.defaults["lr"], len(images.Order(200, options, 0)))
	EOF
	[ "$output" = 'SGD 0.01 96
Adam 0.001 192' ]
}

@test "frames that a model cannot have are refused" {
	run -2 "$python" "$SCRIPT" --frames 8
	[[ "$output" == *"cnn is a model of images, not of clips: --frames does not apply" ]]
	run -2 "$python" "$SCRIPT" --model conv3d --frames 3
	[[ "$output" == *"conv3d needs clips of at least 4 frames" ]]
}

@test "images are resized for models that need larger ones, and it says so" {
	"$python" -c 'import torchvision' 2>/dev/null || skip "no torchvision (python3-torchvision)"
	run -0 "$python" "$SCRIPT" --model resnet34 --image-size 64 --samples 8 --batch-size 4 --workers 0 --epochs 1
	[ "${lines[0]}" = "resnet34: 21289802 parameters, 8 images, batch size 4, 0 workers, cpu, images resized from 32 to 64 pixels" ]
}

@test "two processes with half a batch each train as one does" {
	scores() {
		"$python" "$SCRIPT" --samples 320 --epochs 1 --validation-samples 64 --workers 1 --threads 1 "$@" |
			sed -n 's/ *[0-9.]* s .*//; s/^[a-z]* 1.1 //p'
	}
	scores >one
	scores --processes 2 >two
	[ "$(wc -l <one)" = 2 ]
	# Sums are rounded differently, which 10 steps of Adam amplify: 0.0001 was seen.
	paste one two | awk '{ print; if (($2 - $6) ^ 2 > 0.01 ^ 2 || ($4 - $8) ^ 2 > 0.02 ^ 2 || NF != 8) exit 1 }'
}

@test "recorded, its workers are processes of their own, and shared pages count once" {
	[ -x "$STRAIN" ] || skip "strain was not built"
	"$STRAIN" run --no-cgroup -o run.strain --epoch-pattern 'epoch (?<epoch>\d+)/\d+ +loss (?<loss>[0-9.]+)' -- \
		"$python" "$SCRIPT" --samples 3200 --epochs 2 --workers 2 --batch-size 32 --validation-samples 64
	"$STRAIN" show --json run.strain >show.json
	"$STRAIN" sql --json run.strain "SELECT metric, value FROM summary_by_name WHERE epoch IS NULL
		AND entity_kind = 'job' AND aggregate = 'max' AND metric LIKE 'strain.memory.%s%'" >memory.json
	"$STRAIN" sql --json run.strain "SELECT kind, name, count(*) AS times, sum(samples) AS samples FROM span
		GROUP BY kind, name" >spans.json
	"$python" - <<-'EOF'
		import json
		spans = {(row["kind"], row["name"]): row for row in json.load(open("spans.json"))}
		for kind in "epoch", "iteration":
		    assert spans[kind, kind]["samples"] == 6400, spans
		for name in "forward", "backward", "optimizer", "data", "prepare":
		    assert spans["phase", name]["times"] >= 200, spans
		assert spans["phase", "validation"]["times"] == 2, spans
		run = json.load(open("show.json"))
		assert [e["epoch"] for e in run["epochs"]] == [1, 2], run["epochs"]
		assert run["epochs"][1]["loss"] < run["epochs"][0]["loss"], run["epochs"]
		workers = [p for p in run["processes"] if p["role"] == "loader"]
		assert len(workers) == 4, run["processes"]  # two validate
		assert all(w["cpu_seconds"] > 0 and w["memory_peak_bytes"] > 0 for w in workers), workers
		most = {row["metric"]: row["value"] for row in json.load(open("memory.json"))}
		assert most["strain.memory.pss"] < 0.8 * most["strain.memory.rss_sum"], most
	EOF
}

@test "a sweep that ends a job with workers lets it save its work" {
	[ -x "$STRAIN" ] || skip "strain was not built"
	cat >job.py <<-'EOF'
		import signal, sys, torch

		ended = False
		def end(*_):
		    global ended
		    ended = True
		signal.signal(signal.SIGTERM, end)
		torch.set_num_threads(1)
		data = torch.utils.data.TensorDataset(torch.zeros(256, 8))
		model = torch.nn.Linear(8, 1)
		optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
		while True:
		    batches = 0
		    for (batch,) in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2):
		        optimizer.zero_grad()
		        model(batch).sum().backward()
		        optimizer.step()
		        batches += 1
		    assert batches == 32
		    if ended:  # the epoch was completed, with both workers
		        print("saved")
		        sys.exit(0)
	EOF
	printf 'command: [%s, job.py]\nstop: {epochs: 1}\ngrace: 2min\n' "$python" >plan.yaml
	run -0 --separate-stderr "$STRAIN" sweep plan.yaml
	[[ "$output" == *"1 of 1 trials: 1 stopped"* ]]
	run -0 "$STRAIN" sql --json plan.sweep/0001-1.strain "SELECT text FROM event WHERE kind = 'output'"
	[[ "$output" == *'saved'* && "$output" != *Traceback* ]]
}
