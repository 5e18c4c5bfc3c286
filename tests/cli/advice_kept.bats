#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What ls, compare, show and report read of the answers that strain advise kept. The answers in kept_advice are of real
# jobs; the runs beside them are made here.

load messages

# A folder with the answer, and short runs of the names in it.
make_folder() { # FOLDER ANSWER MODEL
	local name
	mkdir "$1"
	cp "$SOURCE_ROOT/tests/cli/kept_advice/$2.json" "$1/advice.json"
	for name in $(grep -o '"run": "[^"]*"' "$1/advice.json" | cut -d '"' -f 4); do
		"$STRAIN" run --no-verdict -o "$1/$name" --label "model=$3" -- true
	done
}

setup_file() {
	export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
	unset STRAIN_DIR
	mkdir "$BATS_FILE_TMPDIR/made"
	cd "$BATS_FILE_TMPDIR/made" || return 1
	make_folder alexnet.advice memory alexnet
	make_folder conv3d.advice rate conv3d
}

setup() {
	unset STRAIN_DIR
	cp -r "$BATS_FILE_TMPDIR/made" "$BATS_TEST_TMPDIR/made"
	cd "$BATS_TEST_TMPDIR/made" || return 1
}

# What a layout prints of one's own runs: labels, measure, value or a sign.
cells() { # LAYOUT ARGUMENT...
	"$STRAIN" compare "${@:2}" --layout "tripathi2019-$1" --beside published --format csv 2>notes >cells.csv
	/usr/bin/python3 -c '
import csv
for row in csv.DictReader(open("cells.csv")):
    if row["from"] == "here":
        labels = list(row.values())[1:list(row).index("measure")]
        value = "%.4g" % float(row["mean"]) if row["mean"] else "- (" + row["note"] + ")"
        print(*[label or "-" for label in labels], row["measure"], value)'
}

@test "Tripathi Tables 5.1 and 5.2: the largest batch" {
	unknown='- (memory does not grow with the batch size between 4 and 512)'
	diff - <(cells table5.1 *.advice) <<-EOF
		alexnet 400MB largest_batch_thesis 1142
		alexnet 400MB largest_batch_estimate 1142
		alexnet 400MB largest_batch_verified 1124
		alexnet 400MB largest_batch_error 1.601
		alexnet 400MB memory_limit 4e+08
		conv3d - largest_batch_thesis - (its rule needs two runs of different batch sizes)
		conv3d - largest_batch_estimate $unknown
		conv3d - largest_batch_verified $unknown
		conv3d - largest_batch_error $unknown
		conv3d - memory_limit 2.458e+10
	EOF
	grep -q '^published,alexnet,,largest_batch_verified,.*,2875,' cells.csv
	grep -q '^published,alexnet,,largest_batch_error,%,.*,26.4,' cells.csv
	diff - <(cells table5.2 alexnet.advice) <<-EOF
		alexnet 400MB largest_batch_thesis 1142
		alexnet 400MB largest_batch 1124
		alexnet 400MB largest_batch_low 1124
		alexnet 400MB largest_batch_high 1186
		alexnet 400MB memory_limit 4e+08
	EOF
	grep -q '^published,resnet50,,largest_batch_thesis,.*,102,' cells.csv
}

@test "Tripathi Table 5.6: workers, batch size and their rate" {
	diff - <(cells table5.6 .) <<-EOF
		alexnet 400MB workers_thesis - (the memory of a worker is not known)
		alexnet 400MB advised_workers 0
		alexnet 400MB advised_batch_size 64
		alexnet 400MB advised_samples_per_second 5286
		alexnet 400MB advised_gain - (the present configuration is kept)
		conv3d - workers_thesis 2127
		conv3d - advised_workers 0
		conv3d - advised_batch_size 384
		conv3d - advised_samples_per_second 2.086e+05
		conv3d - advised_gain 6.842
	EOF
	grep -q '^published,resnet152,128GB,workers_thesis,.*,64,' cells.csv
}

@test "Tripathi Table 5.7: the loss with the present and with the advised batch size" {
	diff - <(cells table5.7 *.advice) <<-EOF
		conv3d 4 validation_loss 0.1087
		conv3d 4 validation_accuracy 0.9675
		conv3d 4 validation_seconds 6.513
		conv3d 384 validation_loss 1.323
		conv3d 384 validation_accuracy 0.4012
		conv3d 384 validation_seconds 0.8551
	EOF
	grep -q '^published,conv3d,16,validation_seconds,s,.*,13200,' cells.csv
	grep -q 'equal numbers of samples' notes
}

@test "Tripathi Table 5.8: the time to find it" {
	diff - <(cells table5.8 alexnet.advice) <<-EOF
		alexnet 400MB largest_batch_seconds 17.92
		alexnet 400MB largest_batch 1124
		alexnet 400MB seconds_thesis 10.92
		alexnet 400MB advice_seconds 23.65
	EOF
	grep -q '^published,densenet201,,largest_batch_seconds,s,.*,134.35,' cells.csv
}

@test "probes have their step, batch size and workers as labels" {
	run -0 --separate-stderr "$STRAIN" compare conv3d.advice --rows step,batch_size --value duration_seconds
	prints converge 384
	prints now 4
	[ "$(json '[r["labels"]["workers"] for r in d if r["name"] == "05-workers"]' "$STRAIN" ls conv3d.advice)" = "['1']" ]
	fails_with 1 . -- "$STRAIN" compare . # only layouts of answers look into these folders by themselves
}

@test "ls lists an answer in a line, and its runs where the folder is named" {
	run -0 --separate-stderr "$STRAIN" ls
	[ "${#lines[@]}" -eq 3 ]
	prints alexnet.advice 4 "memory=400MB" "model=alexnet" 1124 64 0
	prints conv3d.advice 9 384
	[ "$(json '[(r["state"], r["trials"], r["labels"]["model"]) for r in d]' "$STRAIN" ls --sort name)" = \
		"[('advice', 4, 'alexnet'), ('advice', 9, 'conv3d')]" ]
	[ "$(json '[(r["measures"]["largest_batch"], r["measures"]["advised_batch_size"]) for r in d]' \
		"$STRAIN" ls --sort name)" = "[(1124, 64), (None, 384)]" ]
	run -0 --separate-stderr "$STRAIN" ls alexnet.advice
	[ "${#lines[@]}" -eq 5 ]
	prints 03-verify step=verify batch_size=1124
	run -0 --separate-stderr "$STRAIN" ls alexnet.advice --sort largest_batch
	[[ ${lines[1]} == 01-now*1,124* ]]
}

@test "show prints what was printed, and the answer" {
	/usr/bin/python3 -c 'import json; print(*json.load(open("alexnet.advice/advice.json"))["page"], sep="\n")' >page
	"$STRAIN" show alexnet.advice >shown
	diff page shown
	grep -q '^largest batch  1124 ran under the limit' shown
	"$STRAIN" show alexnet.advice/ --json >shown.json
	cmp shown.json alexnet.advice/advice.json
	"$STRAIN" show alexnet >shown # as ls prints it, without the ending
	diff page shown
	"$STRAIN" show alexnet.advice/01-now >shown # a run of it is a run
	run ! diff -q page shown
	fails_with 1 "in the current directory" -- "$STRAIN" show # the newest run, not the newest answer
	"$STRAIN" run --no-verdict -o own -- true
	"$STRAIN" show >shown
	[[ $(head -n 1 shown) == own* ]]
}

@test "the page of a folder begins with the answer" {
	if "$STRAIN" report alexnet.advice -o page.html 2>&1 | grep -q 'built without HTML pages'; then
		skip 'strain was built without HTML pages'
	fi
	sed -n 's/.*<script type="application\/json" id="data">\(.*\)<\/script>.*/\1/p' page.html >data
	/usr/bin/python3 -c 'import json
page = json.load(open("data"))
kept = json.load(open("alexnet.advice/advice.json"))
assert page["name"] == "alexnet" and page["measure"] == "samples_per_second"
assert page["advice"].splitlines() == kept["page"], page["advice"]
measures = {m["name"]: m["values"] for m in page["measures"]}
assert 1124 in measures["largest_batch"] and "validation_loss" not in measures
assert len(page["runs"]["names"]) == 4'
}

# The answer of alexnet.advice is none: one line says where and why, and what can be read is shown.
refused() { # WORD...
	run -0 --separate-stderr "$STRAIN" compare *.advice --layout tripathi2019-table5.1
	prints conv3d
	notes_only alexnet.advice/advice.json "$@"
	[[ $output != *1124* ]]
	run -0 --separate-stderr "$STRAIN" ls alexnet.advice
	notes_only alexnet.advice/advice.json "$@"
	prints 01-now
	fails_with 1 alexnet.advice/advice.json "$@" -- "$STRAIN" show alexnet.advice
	fails_with 1 alexnet.advice/advice.json "$@" -- "$STRAIN" show alexnet.advice --json
}

@test "answers that are none: JSON, types, sizes" {
	local file=alexnet.advice/advice.json
	cp "$file" kept
	echo 'not JSON' >"$file"
	refused JSON line 1
	head -c 3000 kept >"$file"
	refused JSON line
	printf '[%.0s' {1..9999} >"$file"
	refused JSON
	: >"$file"
	refused JSON
	printf '{"largest_batch": {"value": "1124"}}' >"$file"
	refused largest_batch.value number string
	printf '{"largest_batch": {"value": 1e999}}' >"$file"
	refused JSON
	printf '{"runs": []}' >"$file"
	refused largest_batch
	/usr/bin/python3 -c 'import json
a = json.load(open("kept"))
a["runs"] = a["runs"] * 20
json.dump(a, open("alexnet.advice/advice.json", "w"))'
	refused runs 64 80
	cp kept "$file"
	truncate -s 2M "$file"
	refused 1 MiB
}

@test "answers that are no files: a directory, a FIFO, a link, unreadable" {
	local file=alexnet.advice/advice.json
	mv "$file" kept
	mkdir "$file"
	refused regular
	rmdir "$file"
	mkfifo "$file"
	refused regular
	rm "$file"
	ln -s ../kept "$file"
	refused link
	rm "$file"
	ln -s /dev/zero "$file"
	refused link
	rm "$file"
	if [ "$(id -u)" != 0 ]; then
		install -m 0 kept "$file"
		refused Permission
	fi
}

@test "texts of an answer cannot write to the terminal, and its names open nothing" {
	/usr/bin/python3 -c 'import json
a = json.load(open("alexnet.advice/advice.json"))
evil = "\x1b]0;title\x07\x1b[31mred\u202e"
a["page"] = [evil, "two\nlines"]
a["largest_batch"].update(value=None, missing=evil)
a["runs"][0]["step"] = evil
a["runs"][1]["run"] = "/etc/passwd"
a["runs"][2]["run"] = "../conv3d.advice/01-now.strain"
json.dump(a, open("alexnet.advice/advice.json", "w"))'
	"$STRAIN" show alexnet.advice >printed
	[ "$(wc -l <printed)" -eq 2 ]
	"$STRAIN" compare alexnet.advice --rows step --value largest_batch,duration_seconds >>printed 2>&1
	"$STRAIN" ls alexnet.advice >>printed
	"$STRAIN" ls >>printed
	grep -q 'x1b' printed
	run ! grep -q -P '[\x00-\x08\x0b-\x1f\x7f]|\x{202e}' printed
	run ! grep -q 'root:' printed
	[ "$(json '[r["labels"]["step"] for r in d if r["name"] == "01-now"]' "$STRAIN" ls conv3d.advice)" = "['now']" ]
}

@test "without an answer beside them, runs say so, and layouts need the folders" {
	mkdir plain
	"$STRAIN" run --no-verdict -o plain/run.strain --label model=alexnet -- true
	run -0 --separate-stderr "$STRAIN" compare plain --rows model --value largest_batch
	prints "strain advise"
	[ "$(json 'd["cells"][0]["mean"], "strain advise" in d["cells"][0]["note"]' \
		"$STRAIN" compare plain --rows model --value largest_batch)" = "(None, True)" ]
	[ "$(json '"largest_batch" in d[0]["measures"]' "$STRAIN" ls plain)" = False ]
	run -0 --separate-stderr "$STRAIN" ls alexnet.advice --where 'largest_batch>1000'
	[ "${#lines[@]}" -eq 2 ]
}

@test "an answer of today is kept, labelled and without secrets, and shown as it was printed" {
	/usr/bin/python3 -c 'import torch' 2>/dev/null || skip "no PyTorch"
	export OMP_NUM_THREADS=1
	"$STRAIN" advise --label model=tiny --label place=here --memory 1GB --time 5s --limit 15s --thesis -o today.advice -- \
		env API_TOKEN=3f8a1b2c9d /usr/bin/python3 "$SOURCE_ROOT/tests/cli/advise_small.py" \
		--batch-size '{batch_size=4}' >printed
	"$STRAIN" show today.advice >shown
	diff <(sed 's/3f8a1b2c9d/***/' printed) shown
	grep -q '^Tripathi 2019' shown
	run ! grep -r -q 3f8a1b2c9d today.advice/*.json today.advice/*.strain
	[ "$(json '[(r["labels"]["model"], r["labels"]["place"], r["labels"]["memory"], r["measures"]["memory_limit"]) for r in d
		if r["name"] == "today.advice/"]' "$STRAIN" ls)" = "[('tiny', 'here', '1GB', 1000000000)]" ]
	cells table5.6 today.advice | grep -x 'tiny 1GB advised_workers [0-9].*'
	fails_with 2 --label NAME=VALUE "'model'" -- "$STRAIN" advise --label model -- true
	fails_with 2 --label "'=tiny'" -- "$STRAIN" advise --label =tiny -- true
	fails_with 2 --label --try -- "$STRAIN" advise --try --label a=b -- true
	fails_with 2 --label --from -- "$STRAIN" advise --from today.advice --label a=b
}
