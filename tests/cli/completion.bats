#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What Tab completes: what the program says of it (strain complete), and what bash, zsh and fish make
# of that.

load messages

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	mkdir runs runs/a.sweep
	for name in eval-1 train-1 train-10; do
		"$BUILD_ROOT/tests/tools/make_run" "runs/$name.strain" 1
	done
	cp runs/eval-1.strain runs/a.sweep/0001-1.strain
	echo "command: x" >runs/a.sweep/plan.yaml
	sqlite3 runs/eval-1.strain "INSERT INTO label VALUES ('bad
name', 'x'), ('model', 'cnn 1')"
	sleep 0.1
}

setup() {
	unset STRAIN_DIR
	export XDG_STATE_HOME="$BATS_TEST_TMPDIR/state" XDG_CACHE_HOME="$BATS_TEST_TMPDIR/cache"
	cd "$BATS_FILE_TMPDIR/runs" || return
}

# The candidates for the last of the words, on one line.
candidates() {
	"$STRAIN" complete "$@" | cut -f 1 | paste -s -d ' '
}

# The commands that people see.
commands() {
	"$STRAIN" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'
}

@test "commands are completed, also after help" {
	[ "$(candidates "")" = "$(echo $(commands) help version)" ]
	[ "$(candidates s)" = "show sql sweep" ]
	[ "$(candidates help s)" = "show sql sweep" ]
	[ "$(candidates --v)" = "--version" ]
	[ -z "$(candidates finish x)" ]
	[ -z "$(candidates nothing -)" ]
}

@test "the options of every command are those of its help" {
	for command in $(commands) version; do
		diff <("$STRAIN" complete "$command" - | grep -oE -- '^--[a-z-]+' | sort -u) \
			<("$STRAIN" "$command" --help | grep -E '^ +(-[a-zA-Z?], )*--[a-z]' |
				grep -oE -- '--[a-z][a-z-]*' | grep -vx -- --usage | sort -u) || {
			echo "strain $command: < completed only, > in --help only"
			return 1
		}
	done
}

@test "every option that takes a value has candidates, or says that files are meant" {
	for command in $(commands); do
		for option in $("$STRAIN" complete "$command" - | grep -oE -- '^--[a-z-]+=' | tr -d =); do
			grep -qF "{\"$command\", \"${option#--}\"," "$SOURCE_ROOT/src/cmd/complete.c" || {
				echo "strain $command $option: no row in complete.c"
				return 1
			}
			[ "$(candidates "$command" "$option" "")" = "$(candidates "$command" "$option=" | sed "s/$option=//g")" ]
		done
	done
	[ "$(candidates export --format "")" = "csv json jsonl" ]
	[ "$(candidates export --format=j)" = "--format=json --format=jsonl" ]
	[ "$(candidates report -o "")" = ":files" ]
	[ "$(candidates sweep -o "")" = ":directories" ]
}

@test "runs are completed as ls prints them, sweeps where they may be" {
	for command in show export sql; do
		[ "$(candidates "$command" "")" = "eval-1 train-1 train-10" ]
		[ "$(candidates "$command" tr)" = "train-1 train-10" ]
	done
	for command in report compare ls; do
		[ "$(candidates "$command" "")" = "a.sweep/ eval-1 train-1 train-10" ]
		[ "$(candidates "$command" eval-1 tr)" = "train-1 train-10" ]
	done
	[ "$(candidates show x)" = ":files" ]
	[ "$(candidates show ./tr)" = ":files" ]
	[ -z "$(candidates show eval-1 tr)" ]
	[ "$(cd / && STRAIN_DIR="$BATS_FILE_TMPDIR/runs" && export STRAIN_DIR && candidates show ev)" = eval-1 ]
}

@test "labels, their values, measures and metrics are completed" {
	[ "$(candidates ls --where bat)" = "batch_size=" ]
	[ "$(candidates ls --where batch_size=)" = "batch_size=32" ]
	[ "$(candidates ls --where=batch_size=)" = "--where=batch_size=32" ]
	[ "$(candidates run --label mod)" = "model=" ]
	[ "$(candidates run --label model=)" = "model=cnn 1" ]
	[ "$(candidates compare --rows w)" = "workers" ]
	[ "$(candidates compare --rows batch_size,w)" = "batch_size,workers" ]
	[ "$(candidates compare --columns=batch_size,w)" = "--columns=batch_size,workers" ]
	[ "$(candidates compare --value epoch_s)" = "epoch_seconds" ]
	[[ "$(candidates ls --sort "")" == *"duration "*" batch_size "*" epoch_seconds "* ]]
	[[ "$(candidates export train-1 --metric hw.gpu.mem)" == *"hw.gpu.memory.limit"* ]]
	[ "$(candidates export train-1 --metric process.cpu.t)" = "process.cpu.time" ]
	[ -z "$(candidates export none --metric hw)" ]
	[[ "$(candidates compare --layout torres2021-t)" == "torres2021-table1 "* ]]
	# What would break the line is not offered.
	run ! grep -q bad <("$STRAIN" complete ls --where "")
}

@test "the command that a job is, is completed as one" {
	[ "$(candidates run "")" = ":program" ]
	[ "$(candidates run --label a=b py)" = ":program" ]
	[ "$(candidates run -- py)" = ":program" ]
	[ "$(candidates run python3 tr)" = ":files" ]
	[ "$(candidates run python3 --ou)" = ":files" ]
	[ "$(candidates run --ou)" = "--output=" ]
	[ "$(candidates mark e)" = "end epoch epoch-end" ]
	[ "$(candidates completion "")" = "bash zsh fish" ]
}

@test "strain completion prints what is installed" {
	for shell in bash zsh fish; do
		"$STRAIN" completion "$shell" | cmp - "$SOURCE_ROOT/completions/strain.$shell"
	done
	fails_with 2 bash zsh fish "'tcsh'" -- "$STRAIN" completion tcsh
	fails_with 2 bash zsh fish -- "$STRAIN" completion
}

# What bash has for a command line after Tab; as bash cuts it, at = and :, too.
in_bash() {
	PATH="$(dirname "$STRAIN"):$PATH" bash --norc --noprofile -c '
		source <(strain completion bash)
		compopt() { :; }
		COMP_LINE=$1 COMP_POINT=${#1}
		cut=$(sed -E "s/[=:]+/ & /g" <<<"$1")
		read -r -a COMP_WORDS <<<"$cut"
		[[ $1 == *[=:[:space:]] ]] && [[ $1 == *[[:space:]] ]] && COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_strain
		printf "%s\n" "${COMPREPLY[@]}"' bash "$1" | sort | paste -s -d ' '
}

@test "bash completes" {
	[ "$(in_bash "strain sw")" = sweep ]
	[ "$(in_bash "strain show tr")" = "train-1 train-10" ]
	[ "$(in_bash "strain show ")" = "eval-1 train-1 train-10" ]
	[ "$(in_bash "strain ls --where bat")" = "batch_size=" ]
	[ "$(in_bash "strain ls --where batch_size=3")" = "32" ]
	[ "$(in_bash "strain ls --where=batch_size=3")" = "32" ]
	[ "$(in_bash "strain run --label model=")" = 'cnn\ 1' ]
	[ "$(in_bash "strain report -o a.sw")" = a.sweep ]
	[ "$(in_bash "strain sweep -o ./a")" = ./a.sweep ]
	[[ " $(in_bash "strain run bas") " == *" bash "* ]]
}

@test "bash completes in a terminal" {
	command -v tmux >/dev/null || skip "tmux is not installed"
	local socket="$BATS_TEST_TMPDIR/tmux"
	# tmux starts what it is given by the user's shell, which may be none.
	SHELL=$(command -v bash) PATH="$(dirname "$STRAIN"):$PATH" tmux -S "$socket" -f /dev/null new-session -d -x 200 -y 20 \
		"env PS1='> ' bash --norc --noprofile"
	tmux -S "$socket" send-keys 'source <(strain completion bash); clear' Enter
	local tries
	tmux -S "$socket" send-keys -l 'echo rea'
	tmux -S "$socket" send-keys -l 'dy'
	tmux -S "$socket" send-keys Enter
	for ((tries = 0; tries < 600; tries++)); do
		tmux -S "$socket" capture-pane -p | grep -qx ready && break
		sleep 0.1
	done
	tmux -S "$socket" send-keys -l 'strain ls --where batch_size=3'
	tmux -S "$socket" send-keys Tab
	for ((tries = 0; tries < 600; tries++)); do
		tmux -S "$socket" capture-pane -p | grep -q -- '--where batch_size=32' && break
		sleep 0.1
	done
	tmux -S "$socket" capture-pane -p >"$BATS_TEST_TMPDIR/seen"
	tmux -S "$socket" kill-server
	grep -q -- '--where batch_size=32' "$BATS_TEST_TMPDIR/seen"
}

@test "zsh completes" {
	command -v zsh >/dev/null || skip "zsh is not installed"
	# zsh's own list of matches, as a terminal shows it.
	PATH="$(dirname "$STRAIN"):$PATH" python3 - <<-'EOF'
		import os, pty, re, select

		pid, terminal = pty.fork()
		if pid == 0:
		    os.environ.update(PS1="> ", TERM="dumb", HOME="/nonexistent")
		    os.execvp("zsh", ["zsh", "-f"])
		seen = ""

		def until(pattern, seconds=60):
		    global seen
		    while not re.search(pattern, seen):
		        ready, _, _ = select.select([terminal], [], [], seconds)
		        assert ready, seen
		        seen += os.read(terminal, 65536).decode(errors="replace")
		    taken, seen = seen, ""
		    return taken

		def send(text):
		    os.write(terminal, text.encode())

		send("autoload -Uz compinit; compinit -D -u; source <(strain completion zsh); echo rea''dy\n")
		until("ready")
		send("strain show ev\t")
		until("eval-1")
		send("\x15strain ls --where batch_size=3\t")
		until("batch_size=32")
		send("\x15strain sw\t")
		until("sweep")
		send("\x15strain compare --figure \t")
		assert "heatmap" in until("timeline")
		send("\x15exit\n")
		os.waitpid(pid, 0)
	EOF
}

@test "fish completes" {
	command -v fish >/dev/null || skip "fish is not installed"
	in_fish() {
		HOME="$BATS_TEST_TMPDIR" PATH="$(dirname "$STRAIN"):$PATH" fish --no-config -c \
			'strain completion fish | source; complete -C "$argv"' "$1" | cut -f 1 | sort | paste -s -d ' '
	}
	[ "$(in_fish "strain sw")" = sweep ]
	[ "$(in_fish "strain show tr")" = "train-1 train-10" ]
	[ "$(in_fish "strain ls --where batch_size=3")" = "batch_size=32" ]
	[ "$(in_fish "strain ls --where=batch_size=3")" = "--where=batch_size=32" ]
	[ "$(in_fish "strain sweep -o a")" = "a.sweep/" ]
	[[ " $(in_fish "strain run bas") " == *" bash "* ]]
}
