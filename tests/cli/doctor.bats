#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain doctor on the machine that runs the test. What it finds on others: tests/hosts.

load messages

setup() {
	mkdir "$BATS_TEST_TMPDIR/here"
	cd "$BATS_TEST_TMPDIR/here" || exit 1
}

left_behind() {
	find /sys/fs/cgroup -type d -name "strain-$1*" 2>/dev/null
}

@test "each source and each check has a line, and nothing is left behind" {
	run -0 --separate-stderr "$STRAIN" doctor
	for name in processes memory cgroup pressure host disks network nvml "cpu time" timing nvtx hooks \
		"run file"; do
		[[ $'\n'"$output" =~ $'\n'"$name"\ +(available|partly|missing)\  ]]
	done
	[ -z "$stderr" ]
	[ -z "$(ls -A)" ]
}

@test "its cgroup is gone when it has ended" {
	"$STRAIN" doctor >found &
	pid=$!
	wait "$pid"
	[ -z "$(left_behind "$pid")" ]
}

@test "--metrics has a value or a reason for each metric" {
	run -0 "$STRAIN" doctor --metrics
	[[ "$output" == *"host "*" system.cpu.time.user "*" s"* ]]
	[[ "$output" == *"system.memory.limit"*" B"* ]]
	if printf '%s\n' "$output" | grep 'no value yet'; then
		false
	fi
}

@test "groups of metrics have words, not the names that the code has for them" {
	for host in "$SOURCE_ROOT"/tests/hosts/*/root; do
		"$STRAIN" doctor --sysroot "$host"
	done >found
	"$STRAIN" doctor >>found
	run -0 cat found
	[[ "$output" == *"CPU time and memory, number of processes, "* ]]
	run -1 grep -E '(job|gpu)_|(^|[ ,])(stat|status|pss|gpm),' found
	# One row of words for each group that there is.
	sed -n 's/^## \(.*\)/source \1/p; s/^### \([a-z_]*\), .*/group \1/p' "$SOURCE_ROOT/docs/metrics.md" |
		awk '$1 == "source" {source = $2} $1 == "group" && source != "recorder" {
			print "\t{\"" source "\", \"" $2 "\", "}' >groups
	[ "$(wc -l <groups)" -gt 30 ]
	while IFS= read -r group; do
		grep -F "$group" "$SOURCE_ROOT/src/record/readiness.c"
	done <groups
}

@test "--json is what programs read" {
	"$STRAIN" doctor --json --metrics >found.json
	python3 - <<-'END'
	import json
	found = json.load(open("found.json"))
	assert found["machine"]["cpus"] >= 1
	names = [source["source"] for source in found["sources"]]
	assert names[:2] == ["processes", "memory"], names
	assert {check["check"] for check in found["checks"]} >= {"cpu time", "timing", "run file"}
	processes, host = found["sources"][0], names.index("host")
	assert "process.cpu.time" in processes["measured"], processes["measured"]
	assert "system.cpu.time.user" in found["sources"][host]["measured"]
	for source in found["sources"]:
	    assert (source["state"] == "missing") == (not source["measured"]), source
	    for missing in source["missing"]:
	        assert missing["reason"] and missing["what"] and missing["metrics"], missing
	metrics = [metric for source in found["sources"] for metric in source["metrics"]]
	assert len(metrics) > 60
	for metric in metrics:
	    assert (metric["value"] is None) == ("reason" in metric), metric
	END
}

@test "a directory that cannot hold a run file is told" {
	if [ "$(id -u)" = 0 ]; then
		skip "root writes anywhere"
	fi
	mkdir closed
	chmod 500 closed
	cd closed
	run -0 "$STRAIN" doctor
	[[ "$output" == *"run file"*"partly"*"Permission denied"* ]]
}

@test "in a container without writable cgroups it says why, and goes on" {
	command -v bwrap >/dev/null || skip "bubblewrap is not installed"
	inside=(bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /mnt --unshare-pid)
	"${inside[@]}" true 2>/dev/null || skip "bubblewrap may not be used here"
	run -0 --separate-stderr "${inside[@]}" --chdir /mnt "$STRAIN" doctor
	[[ "$output" == *"cpu time"*"partly"*cgroup* ]]
	[[ "$output" =~ host\ +available ]]
}

@test "a captured machine is not this one" {
	run -0 "$STRAIN" doctor --sysroot "$SOURCE_ROOT/tests/hosts/many-cpus/root"
	[[ "$output" == "gpu012: 128 CPUs"* ]]
	[[ "$output" != *"timing"* ]]
}

@test "a captured machine that is empty has reasons for everything" {
	mkdir empty
	run -0 --separate-stderr "$STRAIN" doctor --sysroot empty
	[[ "$output" != *" available "* ]]
	[[ "$output" =~ host\ +missing\ +/proc/ ]]
	[ -z "$stderr" ]
}

@test "wrong usage is said in one line" {
	fails_with 2 "'everything'" "strain doctor --help" -- "$STRAIN" doctor everything
	fails_with 1 nowhere "No such file or directory" -- "$STRAIN" doctor --sysroot nowhere
}
