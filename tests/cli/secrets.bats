#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Secrets of a command line are in no file that strain writes, and such a file is its owner's alone.
# What is a secret and what is not: tests/unit/secrets.txt.

load run_helpers

# Every file below a folder, and what is in the tables of the runs among them.
everything() {
	local file
	find "$1" -type f -print0 | xargs -0 cat
	find "$1" -name '*.strain' | while read -r file; do
		for table in run label entity event span missing; do
			"$STRAIN" sql --json "$file" "SELECT * FROM $table"
		done
		"$STRAIN" show --all "$file"
		"$STRAIN" show --json "$file"
		"$STRAIN" export --every 1s "$file"
		"$STRAIN" ls --json "$1"
	done
}

no_secret_below() {
	everything "$1" >"$BATS_TEST_TMPDIR/everything.txt"
	! grep -a -n -o '.\{0,60\}S3cr3t.\{0,20\}' "$BATS_TEST_TMPDIR/everything.txt"
}

only_ours_below() {
	[ -z "$(find "$1" -type f -perm /077 -printf '%m %p\n' | tee /dev/stderr)" ]
}

# A job that holds secrets as a program, a script, a child and an output; it fails.
secret_job() {
	local script='HF_TOKEN=S3cr3t sh -c "sleep 0.4; :" x --pass S3cr3t --jwt=S3cr3t https://S3cr3t@h/x &
		echo "cannot open https://u:S3cr3t@host/x (api_key=S3cr3t)"; wait; exit 3'
	"$STRAIN" run --interval 20ms --epoch-pattern 'epoch (?<epoch>\d+)' "$@" -- env \
		WANDB_API_KEY=S3cr3t sh -c "$script" x --password S3cr3t --password -S3cr3t --private_key=S3cr3t \
		'{"api_key": "S3cr3t"}' 'https://h/x?X-Amz-Signature=S3cr3t' 'AccountKey=S3cr3t' --lr=0.1
}

@test "a run, its page, its figures and its tables" {
	umask 022
	mkdir files
	run -3 secret_job -o files/one.strain
	run -3 secret_job -o files/two.strain
	[ "$("$STRAIN" sql --json files/one.strain "SELECT text FROM event WHERE kind = 'output'" |
		jq -r '.[0].text')" = 'cannot open https://u:***@host/x (api_key=***)' ]
	"$STRAIN" sql --json files/one.strain "SELECT value FROM run WHERE key = 'command'" | grep -q -- --lr=0.1
	"$STRAIN" compare files/one.strain files/two.strain -o files/table.csv
	"$STRAIN" compare files/one.strain files/two.strain --format latex -o files/table.tex
	if "$STRAIN" report files/one.strain files/two.strain -o files/page.html; then
		"$STRAIN" report files -o files/many.html
	fi
	if command -v gnuplot >/dev/null; then
		"$STRAIN" report files/one.strain --keep-script files/script -o files/one.svg
	fi
	no_secret_below files
	only_ours_below files
}

@test "a sweep: its plan, its page, what is printed of it" {
	umask 022
	cat >job.sh <<'END'
[ "$2" = S3cr3t ] && [ "$WANDB_API_KEY" = S3cr3t ]
END
	cat >plan.yaml <<'END'
# password: S3cr3t
command: [sh, job.sh, --password, S3cr3t, "${lr}"]
env: {WANDB_API_KEY: S3cr3t}
parameters: {lr: {values: [0.1, 0.2]}}
END
	"$STRAIN" sweep plan.yaml --dry-run >printed 2>&1
	"$STRAIN" sweep plan.yaml >>printed 2>&1
	"$STRAIN" sweep plan.yaml >>printed 2>&1 # the plan is the same, though the copy is masked
	"$STRAIN" report plan.sweep -o plan.sweep/page.html >>printed 2>&1 || true
	run -1 grep S3cr3t printed
	[ "$(find plan.sweep -name '*.strain' | wc -l)" -eq 2 ]
	"$STRAIN" ls plan.sweep --json | jq -e 'all(.outcome == "success")'
	[ "$(grep -c '\*\*\*' plan.sweep/plan.yaml)" -eq 3 ] # the comment, command, env
	rm -f plan.sweep/*.log # a job's own words
	no_secret_below plan.sweep
	only_ours_below plan.sweep
	run -1 --separate-stderr "$STRAIN" sweep plan.sweep
	notes plan.sweep/plan.yaml "(***)"
	"$STRAIN" sweep plan.sweep --dry-run
	sed -i 's/0.2/0.3/' plan.yaml
	run -1 --separate-stderr "$STRAIN" sweep plan.yaml
	notes parameters.lr.values "[0.1, 0.2]" "[0.1, 0.3]"
	"$STRAIN" sweep --force plan.yaml
	[ "$(find plan.sweep -name '*.strain' | wc -l)" -ge 2 ]
}

@test "a plan without secrets stays as it was written" {
	printf 'command: [sh, -c, "true", x, --tokenizer, bpe]   # mine\n' >plan.yaml
	"$STRAIN" sweep plan.yaml
	cmp plan.yaml plan.sweep/plan.yaml
	"$STRAIN" sweep plan.sweep
}

# Long output whose last part, as it is kept, begins within a key and within a value of JSON.
@test "a secret whose beginning was cut off from the last output" {
	cat >job.sh <<'END'
filler() { seq "$1" | tr '\n' ' '; }
if [ "$1" = key ]; then
	echo "-----BEGIN PRIVATE KEY-----"
	seq -f 'S3cr3t%06g' 800
	echo "-----END PRIVATE KEY-----"
else
	printf '{"x": "%s", "password": "%s", "y": 1}\n' "$(filler 3000)" "$(seq -f 'S3cr3t%06g' 800 | tr '\n' ' ')"
fi
echo "ValueError: the last"
exit 3
END
	cat >plan.yaml <<'END'
command: [sh, job.sh, "${what}"]
parameters: {what: {values: [key, value]}}
END
	for what in key value; do
		"$STRAIN" run -o "$what.strain" sh job.sh "$what" >log 2>&1 || [ $? = 3 ]
		"$STRAIN" sql --json "$what.strain" "SELECT text FROM event WHERE kind = 'output'" >"$what.said"
		grep -q 'ValueError: the last' "$what.said"
		run -1 grep S3cr3t "$what.said"
	done
	grep -q -- '\*\*\*-----END PRIVATE KEY' key.said
	"$STRAIN" sweep plan.yaml >printed 2>&1 || true
	rm plan.sweep/*.log
	no_secret_below plan.sweep
}
