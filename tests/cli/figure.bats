#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain report -o FILE.pdf|svg|png: a run as a paper shows one.

bats_require_minimum_version 1.5.0

setup() {
	mkdir "$BATS_TEST_TMPDIR/work"
	cd "$BATS_TEST_TMPDIR/work" || return 1
	"$BUILD_ROOT/tests/tools/make_run" run.strain 20
}

needs() {
	command -v "$1" >/dev/null || skip "$1 is not installed"
}

# The words of an SVG, one a line.
words() {
	grep -o '<text>[^<]*' "$1" | sed 's/<text>//'
}

has_words() {
	local file=$1 word
	shift
	for word; do
		words "$file" | grep -qxF "$word" || { echo "no '$word' in $file"; words "$file"; return 1; }
	done
}

@test "three panels over time: memory, PCIe, utilisation, with epoch starts" {
	needs gnuplot
	run -0 "$STRAIN" report run.strain -o run.svg
	[[ $output =~ ^strain:\ run.svg,\ [0-9]+\ kB$ ]]
	has_words run.svg 'memory (GB)' host device 'PCIe (MB/s)' 'to the device' 'from the device' \
		'utilisation (%)' 'CPU (sum over cores)' GPU 'time (s)' 'epoch starts' run \
		'batch_size=32, workers=2'
	[ "$(find . -type f | sort | tr '\n' ' ')" = './run.strain ./run.svg ' ]
}

@test "a script that is kept draws the same; its lines are at the epochs of the run" {
	needs gnuplot
	"$STRAIN" report run.strain -o run.svg --keep-script kept
	(cd kept && gnuplot run.gp)
	cmp run.svg kept/run.svg
	starts=$("$STRAIN" sql run.strain --csv \
		"select start_ns / 1e9 from span where kind = 'epoch'" | tail -n +2 | wc -l)
	[ "$starts" -gt 1 ]
	grep -q "@VERTICALS title 'epoch starts'$" kept/run.gp
	# a block in each of three panels
	[ "$(awk '/columns: x$/ {on = 1} /^$/ {on = 0} on && !/^#/' kept/run.dat | wc -l)" -eq $((3 * starts)) ]
	# the job's memory as the run has it, in GB
	mean=$("$STRAIN" sql run.strain --csv "select round(avg(value) / 1e9, 2) from samples
		where metric = 'hw.gpu.memory.usage'" | tail -n 1)
	awk -v mean="$mean" '/panel 1, device/ {on = 1} /^$/ {on = 0}
		on && !/^#/ {sum += $2; n++} END {exit !(n > 5 && (sum / n - mean)^2 < 0.01)}' kept/run.dat
}

@test "the host's memory is the one that show tells" {
	needs gnuplot
	"$STRAIN" report run.strain -o run.svg --keep-script kept
	grep -q "title 'host'" kept/run.gp
	peak=$("$STRAIN" show --json run.strain |
		sed -n 's/.*"memory_peak_bytes": \([0-9]*\),.*/\1/p' | head -n 1)
	awk -v peak="$peak" '/panel 1, host/ {on = 1} /panel 1, device/ {on = 0}
		/^# x/ && on && /\(GB\)/ {scale = 1e9} /^# x/ && on && /\(MB\)/ {scale = 1e6}
		on && !/^#/ && NF == 4 {most = $2 > most ? $2 : most; high = $4 == "NaN" ? $2 : $4
			most = high > most ? high : most}
		END {print most * scale, peak; exit !(peak > 0 && (most * scale / peak - 1)^2 < 1e-8)}' \
		kept/run.dat
}

@test "a PDF and a PNG" {
	needs gnuplot
	"$STRAIN" report run.strain -o run.PDF
	"$STRAIN" report run.strain -o run.png
	[ "$(head -c 5 run.PDF)" = %PDF- ]
	[ "$(head -c 4 run.png | tail -c 3)" = PNG ]
	needs pdftotext
	pdftotext -layout run.PDF - | grep -q 'CPU (sum over cores)'
}

@test "what was not measured is said, and reads take the place of PCIe" {
	needs gnuplot
	[ -x "$BUILD_ROOT/strain-record" ] || skip 'no recorder'
	env -u LD_LIBRARY_PATH "$STRAIN" run -o none.strain -- sh -c 'cat /bin/* >cat.out; sleep 0.3'
	if [ "$("$STRAIN" sql none.strain --csv "select count(*) from entity where kind = 'gpu'" |
		tail -n 1)" != 0 ]; then
		skip 'this machine has a GPU'
	fi
	"$STRAIN" report none.strain -o none.svg
	words none.svg | grep -q '^no PCIe without a GPU: '
	words none.svg | grep -q '^no memory of a device: '
	words none.svg | grep -q '^no GPU: '
	words none.svg | grep -q '^reads ('
	has_words none.svg 'by read calls'
	[ "$(words none.svg | grep -c '^PCIe')" -eq 0 ]
}

@test "several runs stand beside each other, five do not" {
	needs gnuplot
	cp run.strain other.strain
	"$STRAIN" report run.strain other.strain -o two.svg
	has_words two.svg run other
	[ "$(words two.svg | grep -cx 'time (s)')" -eq 2 ]
	run -2 "$STRAIN" report run.strain run.strain run.strain run.strain run.strain -o five.svg
	[[ ${lines[0]} == *'a figure can show 4 runs, not 5'* ]]
	[ ! -e five.svg ]
}

@test "a name that gnuplot could take for a command" {
	needs gnuplot
	mv run.strain "it's \`touch pwned\` %d _{x}.strain"
	"$STRAIN" report it* -o run.svg
	has_words run.svg "it's \`touch pwned\` %d _{x}"
	[ ! -e pwned ]
}

@test "without gnuplot: one line, what to install, nothing left" {
	mkdir path
	PATH=$PWD/path run -1 "$STRAIN" report run.strain -o run.pdf
	[ "${#lines[@]}" -eq 1 ]
	[ "$output" = 'strain: cannot draw run.pdf: gnuplot is not installed (Debian: apt install gnuplot-nox)' ]
	PATH=$PWD/path run -1 "$STRAIN" report run.strain -o run.pdf --keep-script kept
	[ "$(find . -type f | sort | tr '\n' ' ')" = './kept/run.dat ./kept/run.gp ./run.strain ' ]
}

@test "a figure is replaced, another file is not" {
	needs gnuplot
	for name in run.svg run.pdf run.png; do
		"$STRAIN" report run.strain -o "$name"
		"$STRAIN" report run.strain -o "$name"
		echo notes >"$name"
		run -1 "$STRAIN" report run.strain -o "$name"
		[ "$output" = "strain: cannot write $name: it exists and is not a report (--force overwrites it)" ]
		[ "$(cat "$name")" = notes ]
	done
}

@test "wrong usage, and what is no run" {
	run -2 "$STRAIN" report run.strain -o page.html --keep-script kept
	[[ ${lines[0]} == *'--keep-script needs a figure (.pdf, .svg, .png); page.html is none'* ]]
	echo text >no.strain
	run -1 "$STRAIN" report no.strain -o no.pdf
	[ "$output" = 'strain: no.strain: not a run file' ]
	[ ! -e no.pdf ]
}
