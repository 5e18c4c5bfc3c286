#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain compare --layout: every table and figure of the documents, over real runs at toy size. The
# runs are of the C workload; the labels are as a sweep of the document's would give them.

load messages

# A run of a batch size, with further labels.
record() {
	local batch=$1 name=$2 labels=() label
	shift 2
	for label in "batch_size=$batch" "$@"; do
		labels+=(--label "$label")
	done
	"$STRAIN" run -o "runs/$name.strain" "${labels[@]}" -- \
		"$BUILD_ROOT/workloads/onednn/onednn-train" --model tiny --threads 1 \
		--batch-size "$batch" --samples 1024 --epochs 2 >"runs/$name.log" 2>&1
}

record_all() {
	local framework
	for framework in tensorflow pytorch; do
		record 32 "$framework-dt1-32" framework=$framework model=cnn dataset=dt1
		record 512 "$framework-dt1-512" framework=$framework model=cnn dataset=dt1
		record 512 "$framework-dt2-512" framework=$framework model=cnn dataset=dt2
	done
	record 32 again framework=pytorch model=cnn dataset=dt1
	record 32 alexnet framework=tensorflow model=alexnet
	record 64 onednn-1 framework=onednn model=cnn threads=1 gpus=0
	record 64 onednn-2 framework=onednn model=cnn threads=2 gpus=0
	record 64 cpus1-64 model=vgg16 cpus=1
	record 128 cpus1-128 model=vgg16 cpus=1
	record 64 cpus2-64 model=vgg16 cpus=2
	record 32 r50-0-1 model=resnet50 workers=0 memory=1GiB processes=1
	record 32 r50-2-1 model=resnet50 workers=2 memory=1GiB processes=1
	record 32 r50-2-2 model=resnet50 workers=2 memory=2GiB processes=2
	record 64 r34 model=resnet34 workers=2
	record 64 c3d model=conv3d workers=2
}

has_trainer() {
	[ -x "$BUILD_ROOT/workloads/onednn/onednn-train" ] && [ -x "$BUILD_ROOT/strain-record" ]
}

setup_file() {
	has_trainer || return 0 # older bats do not know skip here
	export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
	cd "$BATS_FILE_TMPDIR" || return 1
	mkdir runs path
	record_all
}

setup() {
	has_trainer || skip 'onednn-train is not built'
	cd "$BATS_FILE_TMPDIR" || return 1
}

# The layout as comma-separated values; notes are in $BATS_TEST_TMPDIR/notes.
csv() {
	"$STRAIN" compare runs --layout "$1" --format csv "${@:2}" 2>"$BATS_TEST_TMPDIR/notes"
}

# The figure's script and data, as gnuplot would have got them; it need not be there.
figure() {
	PATH=$PWD/path run -1 "$STRAIN" compare runs --layout "$1" -o figure.svg \
		--keep-script kept "${@:2}"
	[[ $output == *'gnuplot is not installed'* ]] || { echo "$output"; return 1; }
}

# Whether the figure has these words, each as a whole.
says() {
	local word
	for word; do
		grep -qF "'$word'" kept/figure.gp || { echo "no '$word'"; cat kept/figure.gp; return 1; }
	done
}

has_no_gpu() {
	[ "$("$STRAIN" sql runs/r34.strain --csv "select count(*) from entity where kind = 'gpu'" |
		tail -n 1)" = 0 ]
}

@test "the list names every layout of docs/studies.md, and no other" {
	"$STRAIN" compare --layout list | tail -n +2 >listed
	[ "$(wc -l <listed)" -gt 35 ]
	grep -o -e '--layout [a-z0-9.-]*' "$SOURCE_ROOT/docs/studies.md" | cut -d ' ' -f 2 | sort >written
	grep -v ' not yet ' listed | cut -d ' ' -f 1 | sort | diff - written
}

@test "Torres Table 3: the time of the epochs, by machine, framework, dataset and batch size" {
	csv torres2021-table3 >table.csv
	head -n 1 table.csv | grep -q '^machine,framework,dataset,batch_size,'
	expected=$("$STRAIN" sql runs/tensorflow-dt2-512.strain --csv \
		"select (max(end_ns) - min(start_ns)) / 1e9 from span where kind = 'epoch'" | tail -n 1)
	awk -F, -v e="$expected" '$2 == "tensorflow" && $3 == "dt2" && $4 == 512 {
		print; found = ($9 - e) ^ 2 < 1e-6 } END {exit !found}' table.csv
	# two repeats of one configuration share a cell
	awk -F, '$2 == "pytorch" && $3 == "dt1" && $4 == 32 {found = $7 == 2} END {exit !found}' table.csv
	[ "$(grep -c training_seconds table.csv)" -eq 7 ]
}

@test "what was published stands beside it, marked, with its source" {
	run -0 "$STRAIN" compare runs --layout torres2021-table3 --beside published
	[[ $output == *'published  FELIX '*' PyTorch '*' DT2 '*3048*1682*796*535*466* ]]
	prints Torres 2021 "Table 3"
	run -0 "$STRAIN" compare runs --layout torres2021-table3
	[[ $output != *FELIX* && $output != *published* && $output != *3048* ]]
}

@test "Torres Table 4: peak memory at batch size 32" {
	csv torres2021-table4 >table.csv
	expected=$("$STRAIN" compare runs/tensorflow-dt1-32.strain --value host_memory_peak \
		--rows framework --format csv | awk -F, '$2 == "host_memory_peak" {print $6}')
	awk -F, -v e="$expected" '$2 == "tensorflow" && $4 == "host_memory_peak" {
		found = $8 == e && e > 1e6} END {exit !found}' table.csv
	if has_no_gpu; then
		csv torres2021-table4 | awk -F, '$4 == "device_memory_peak" && $8 != "" {exit 1}'
	fi
	csv torres2021-table4 --beside published |
		grep -q '^published,Chifflot,TensorFlow,DT1,device_memory_peak,By,.*15621000000'
}

@test "Torres Figures 1, 3, 8, 9, 10: a run over time" {
	for layout in fig1 fig3 fig8 fig9 fig10; do
		figure "torres2021-$layout"
		says 'memory (MB)' 'utilisation (%)' 'epoch starts' "$(uname -n)"
		grep -q "^set xlabel 'time (" kept/figure.gp
		# two epochs in each panel; one in which nothing was read is a note
		rows=$(sed -n 's/^rows = //p' kept/figure.gp)
		[ "$rows" -ge 2 ]
		[ "$(awk '/columns: x$/ {on = 1} /^$/ {on = 0} on && !/^#/' kept/figure.dat | wc -l)" -eq $((2 * rows)) ]
	done
}

@test "Torres Figures 2, 4, 6, 7: memory, a line for each batch size" {
	figure torres2021-fig4
	says 'batch size 32' 'batch size 512' 'host memory (MB)'
	figure torres2021-fig7
	says 'batch size 512'
	[ "$(grep -c 'batch size 32' kept/figure.gp)" -eq 0 ] # DT2 has been trained with 512 only
	figure torres2021-fig2
	figure torres2021-fig6
	awk '!/^#/ && NF == 4 {n++; most = $2 > most ? $2 : most} END {exit !(n > 0 && most > 1)}' \
		kept/figure.dat
}

@test "Torres Figure 5: utilisation of the frameworks" {
	figure torres2021-fig5
	says tensorflow pytorch
	if has_no_gpu; then
		says 'CPU utilisation (%)'
		grep -q 'GPU: ' kept/figure.gp # why it is the CPUs that are drawn
	else
		says 'utilisation (%)'
	fi
}

@test "Dube and Sura Figures 1 to 3: throughput by CPUs, its gains" {
	figure dube-sura-fig1
	says threads 'gpus 0'
	grep -q 'Caffe.*VGG16.*oneDNN' kept/figure.gp
	csv dube-sura-fig2 >table.csv
	awk -F, '$1 == 1 && $2 == "vgg16" {first = $8} $1 == 2 && $2 == "vgg16" {second = $8}
		END {exit !(first == 1 && second > 0 && second != 1)}' table.csv
	one=$("$STRAIN" compare runs/cpus1-64.strain runs/cpus1-128.strain --rows batch_size \
		--value samples_per_second --format csv | awk -F, 'NR > 1 {v[$1] = $6}
			END {printf "%.6f", v[128] / v[64]}')
	csv dube-sura-fig3 | awk -F, -v e="$one" '$1 == 1 && $2 == "vgg16" {found = ($8 - e) ^ 2 < 1e-9}
		END {exit !found}'
	figure dube-sura-fig3 --beside published
	grep -q 'Dube and Sura, Figure 3: ' kept/figure.gp
}

@test "Tripathi Table 3.1: the best number of workers" {
	csv tripathi2019-table3.1 --where model=resnet50 --beside published >table.csv
	grep -q '^here,resnet50,1GiB,32,workers,' table.csv
	grep -q '^published,resnet50,20GB,256,workers,.*,16,' table.csv
}

@test "Tripathi Tables 5.3 to 5.5: workers and batch size" {
	csv tripathi2019-table5.3 --beside published >table.csv
	grep -q '^published,64,160,epoch_seconds,s,.*3544.27' table.csv
	[ "$(grep -c '^here,.*,epoch_seconds,' table.csv)" -eq 2 ]
	csv tripathi2019-table5.4 | grep -q '^2,64,epoch_seconds,'
	csv tripathi2019-table5.5 | grep -q '^2,64,epoch_seconds,'
}

@test "Tripathi Tables 5.1 to 5.8 need answers of strain advise" {
	for table in 5.1 5.2 5.6 5.7 5.8; do
		fails_with 1 "tripathi2019-table$table" "strain advise" -- \
			"$STRAIN" compare runs/r34.strain --layout "tripathi2019-table$table"
	done
}

@test "Tripathi Figures 3.3 and 3.4 have a line for each of several GPUs" {
	local script=$BATS_TEST_TMPDIR/script fake=$BUILD_ROOT/tests/fake/full
	[ -d "$fake" ] || skip 'no fake NVML'
	[ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ] ||
		skip 'in a pid namespace of its own, where a process must hold /dev/nvidia*'
	{
		cat "$SOURCE_ROOT/tests/fake/training.script"
		echo 'gpu 1 utilization.gpu 20'
		echo 'gpu 1 memory.used 42760404992'
		# A name of its own: other tests sleep, too.
		echo 'gpu 0 processes @studies_gpus:2000000000:31'
		echo 'gpu 1 processes @studies_gpus:2000000000:20'
	} >"$script"
	cp "$(command -v sleep)" "$BATS_TEST_TMPDIR/studies_gpus"
	mkdir -p "$BATS_TEST_TMPDIR/gpus"
	for batch in 32 64; do
		LD_LIBRARY_PATH=$fake STRAIN_FAKE_NVML=$script "$STRAIN" run -o "$BATS_TEST_TMPDIR/gpus/$batch.strain" \
			--label batch_size=$batch --label workers=2 --label gpus=2 -- "$BATS_TEST_TMPDIR/studies_gpus" 1.5
	done
	cd "$BATS_TEST_TMPDIR"
	"$STRAIN" compare gpus --layout tripathi2019-fig3.3 --format csv >fig3.3.csv 2>notes
	awk -F, 'NR > 1 && $2 == "GPU 0 of 2" && $8 > 20 {a++} NR > 1 && $2 == "GPU 1 of 2" && $8 > 10 && $8 <= 20.1 {b++}
		END {exit !(a == 2 && b == 2 && NR == 5)}' fig3.3.csv || { cat fig3.3.csv notes; false; }
	"$STRAIN" compare gpus --layout tripathi2019-fig3.4 --format csv 2>notes |
		awk -F, '$2 == "GPU 1 of 2" && $8 > 49 && $8 < 51 {n++} END {exit n != 2}'
	mkdir path # without gnuplot the script is left all the same
	PATH=$PWD/path run -1 "$STRAIN" compare gpus --layout tripathi2019-fig3.3 -o figure.svg --keep-script kept
	says 'GPU 0 of 2' 'GPU 1 of 2' 'workers 2'
	grep -q '2 runs' kept/figure.gp # not four: it is the GPUs that are four
}

@test "Tripathi Figures 3.1 to 3.8" {
	figure tripathi2019-fig3.1 --where model=resnet50
	says epoch 'batch size 32'
	figure tripathi2019-fig3.2 --where model=resnet50
	says 'batch size' 'workers 0' 'workers 2'
	grep -q "^set ylabel 'epoch time (" kept/figure.gp
	figure tripathi2019-fig3.3 --where model=resnet50
	says 'workers 0' 'workers 2'
	figure tripathi2019-fig3.4 --where model=resnet50
	figure tripathi2019-fig3.5 --where model=resnet50
	says workers 'batch size 32'
	figure tripathi2019-fig3.6 --where model=resnet50
	figure tripathi2019-fig3.7 --where model=resnet50
	says processes
	figure tripathi2019-fig3.8 --where model=resnet50
	says 'memory 1GiB' 'memory 2GiB'
	grep -q "'workers (0, 2): .* 2'" kept/figure.gp # both memories have these
}

@test "where lines end epochs, the first has no length in Tripathi Figure 3.1" {
	points() {
		awk '!/^#/ && NF == 4 {print $1, $2 == "NaN" ? "gap" : "time"}' kept/figure.dat
	}
	mkdir -p lines/runs
	cp runs/r34.strain lines/runs/
	cd lines || return 1
	figure tripathi2019-fig3.1
	[ "$(points)" = $'1 time\n2 time' ]
	/usr/bin/python3 -c 'import sqlite3
with sqlite3.connect("runs/r34.strain") as run:
    run.execute("INSERT INTO run VALUES (?, ?)", ("epochs", "lines end epochs"))'
	figure tripathi2019-fig3.1
	[ "$(points)" = $'1 gap\n2 time' ]
}

@test "Jayarajan and Fedorova: throughput and utilisation by model and machine" {
	local run
	mkdir five
	# As the plan labels its runs: batch sizes and numbers of samples differ.
	for run in classification,resnet50,16,96 translation,lstm,32,6400 reinforcement,a3c,20,10000; do
		IFS=, read -r application model batch samples <<<"$run"
		"$STRAIN" run -o "five/$model.strain" --label application="$application" --label model="$model" \
			--label batch_size="$batch" --label samples="$samples" --label epochs=3 -- \
			"$BUILD_ROOT/workloads/onednn/onednn-train" --model tiny --threads 1 --samples 256 --epochs 1 >log 2>&1
	done
	for layout in throughput utilization; do
		"$STRAIN" compare five --layout "jayarajan-$layout" --format csv >"$layout.csv" 2>notes
		cat "$layout.csv" notes
		for model in resnet50 lstm a3c; do
			expected=$("$STRAIN" compare "five/$model.strain" --value samples_per_second,cpu_utilization --format csv 2>/dev/null |
				awk -F, -v layout=$layout '$2 == (layout ~ /^th/ ? "samples_per_second" : "cpu_utilization") {print $6}')
			awk -F, -v e="$expected" -v model=$model 'NR == 1 {for (i = split($0, name); i > 0; i--) at[name[i]] = i}
				$at["model"] == model {found = $at["mean"] == e && e > 0} END {exit !found}' "$layout.csv"
		done
	done
	# Gathered from several machines: a series for each.
	mkdir other
	"$STRAIN" run -o other/a3c.strain --label application=reinforcement --label model=a3c --label batch_size=20 \
		--label samples=10000 --label epochs=3 --label machine=other -- \
		"$BUILD_ROOT/workloads/onednn/onednn-train" --model tiny --threads 1 --samples 256 --epochs 1 >log 2>&1
	"$STRAIN" compare five other --layout jayarajan-throughput --format csv 2>notes | cut -d, -f 1,2 | sort >machines
	cat machines
	[ "$(grep -c '^a3c,' machines)" = 2 ]
	grep -qx a3c,other machines
	[ "$(grep -c ^lstm, machines)" = 1 ]
	PATH=$PWD/path run -1 "$STRAIN" compare five other --layout jayarajan-throughput -o figure.svg --keep-script kept
	says resnet50 lstm a3c 'samples per second' other
}

@test "a figure of numbers is a table without -o; the others say what they are" {
	run -0 "$STRAIN" compare runs --layout tripathi2019-fig3.5 --where model=resnet50
	prints "Tripathi 2019" "Figure 3.5"
	prints workers 32
	fails_with 2 torres2021-fig1 -o .pdf .svg .png -- "$STRAIN" compare runs --layout torres2021-fig1
	fails_with 2 torres2021-table3 -- "$STRAIN" compare runs --layout torres2021-table3 -o table.pdf
	[ ! -e table.pdf ]
}

@test "facts of the documents, and what waits" {
	run -0 "$STRAIN" compare --layout torres2021-table2
	prints "Tesla P100" Pascal 3584
	prints Torres 2021 "Table 2"
	waiting=$("$STRAIN" compare --layout list | awk '/ not yet / {print $1; exit}')
	fails_with 1 "$waiting" Jayarajan -- "$STRAIN" compare --layout "$waiting"
}

@test "runs that lack a label, or are none of the document's" {
	run -0 --separate-stderr "$STRAIN" compare runs/r34.strain --layout dube-sura-fig1
	prints framework threads gpus "strain run --label NAME=VALUE"
	fails_with 1 tripathi2019-table5.3 model=resnet50 1 resnet34 -- \
		"$STRAIN" compare runs/r34.strain --layout tripathi2019-table5.3
	run -0 --separate-stderr "$STRAIN" compare runs/c3d.strain --layout tripathi2019-fig3.8
	prints memory "strain run --label NAME=VALUE"
	fails_with 2 --layout "'torres2021-table33'" "--layout list" -- "$STRAIN" compare runs --layout torres2021-table33
}

@test "gnuplot draws them" {
	command -v gnuplot >/dev/null || skip 'gnuplot is not installed'
	for layout in torres2021-fig1 torres2021-fig4 tripathi2019-fig3.8; do
		"$STRAIN" compare runs --layout "$layout" -o figure.svg
		[ "$(grep -c '<text>' figure.svg)" -gt 8 ]
		rm figure.svg
	done
}
