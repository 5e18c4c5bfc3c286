#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What a recording may cost: --overhead is kept by slowing down, --max-size by thinning what is old.

load run_helpers

ask() {
	"$STRAIN" sql --csv run.strain "$1" 2>/dev/null | sed -n 2p
}

# Readings of the job's CPU time in a stretch of time: from, to (s after the first).
readings() {
	ask "SELECT count(*) FROM (SELECT t - min(t) OVER () AS since FROM samples s JOIN entity e ON e.id = s.entity
		WHERE e.kind = 'job' AND s.metric = 'process.cpu.time') WHERE since BETWEEN $1 AND $2"
}

@test "--overhead: it reads less often, and says so" {
	# shellcheck disable=SC2016
	run -0 --separate-stderr "$STRAIN" run -o run.strain --overhead 0.05% --interval 2ms \
		sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep 6 & done; wait'
	[ "$(ask "SELECT count(*) FROM event WHERE kind = 'interval'")" -ge 2 ]
	[[ "$(ask "SELECT text FROM event WHERE kind = 'interval' ORDER BY t_ns LIMIT 1")" == \
		*"the interval is now "*" ms, to stay within 0.05 % of one CPU"* ]]
	local first last
	first=$(readings 0 1)
	last=$(readings 4 5)
	echo "$first readings in the first second, $last in a late one"
	[ "$first" -gt 0 ] && [ "$last" -le $((first / 2)) ]
	# The recorder's own row tells what was due.
	[ "$(ask "SELECT max(value) > 2 * min(value) FROM samples WHERE metric = 'strain.recorder.interval'")" = 1 ]
	# No step is said that had no time to be felt.
	[ "$(ask "SELECT min(gap) >= 5e8 FROM (SELECT t_ns - lag(t_ns) OVER (ORDER BY t_ns) AS gap
		FROM event WHERE kind = 'interval')")" = 1 ]
}

@test "an interval without --overhead has no budget" {
	run -0 --separate-stderr "$STRAIN" run -o run.strain --interval 1ms \
		sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep 3 & done; wait'
	[ "$(ask "SELECT count(*) FROM event WHERE kind = 'interval'")" = 0 ]
}

@test "--max-size: what is old is thinned, its spikes stay, and the run says so" {
	local limit=$((1 << 20)) size job
	"$STRAIN" run -o run.strain --interval 1ms --max-size 1MiB "$BUILD_ROOT/tests/tools/misbehave" crowd 150 2>err &
	job=$!
	# Until it was thinned while it was recorded; a slow machine takes longer to fill the file.
	eventually test -e run.strain
	SECONDS=0
	while kill -0 $job 2>/dev/null && [ $SECONDS -lt 40 ]; do
		if [ $SECONDS -ge 12 ] && [ "$(ask "SELECT count(*) > 0 FROM event WHERE kind = 'thinned'")" = 1 ]; then
			break
		fi
		sleep 1
	done
	touch stop
	wait $job
	size=$(stat -c %s run.strain)
	[ "$(ask "SELECT count(*) FROM event WHERE kind = 'thinned'")" -ge 1 ] ||
		skip "this machine did not read fast enough: $size bytes"
	[[ "$(ask "SELECT text FROM event WHERE kind = 'thinned' LIMIT 1")" == \
		*"the file reached its limit of 1.0 MB: before "*" only one row each 100 ms is kept"* ]]
	# The summary comes on top, with some 20 bytes a row; and the last block may pass the limit.
	local summary
	summary=$(ask "SELECT count(*) FROM summary")
	echo "$size bytes, $summary rows of summary"
	[ "$size" -le $((limit + 65536 + 24 * summary)) ]
	# Of each of the job's blocks that ended before the moment that the event tells, about one row is
	# left for 100 ms. A block that goes on beyond that moment is for the next time.
	local until kept
	until=$(ask "SELECT text FROM event WHERE kind = 'thinned' ORDER BY t_ns LIMIT 1")
	until=${until##*before } until=${until%% s *}
	kept=$(ask "SELECT max(rows / ((b.t_last - b.t_first) / 100000000 + 1)) FROM block b JOIN entity e ON e.id = b.entity
		WHERE e.kind = 'job' AND b.t_last < ($until - 0.1) * 1e9")
	echo "until $until s; at most $kept rows each 100 ms before"
	[ "${kept:-NULL}" = NULL ] || [ "$kept" -le 3 ]
	local main="(SELECT min(id) FROM entity WHERE kind = 'process')"
	# A moment of 100 MiB: gone from the mean, kept as the maximum.
	echo "mean $(ask "SELECT max(value) FROM samples WHERE entity = $main AND metric = 'process.memory.usage'")"
	[ "$(ask "SELECT value > 100e6 FROM summary_by_name WHERE entity_kind = 'process' AND entity_key =
		(SELECT key FROM entity WHERE id = $main) AND metric = 'process.memory.usage' AND aggregate = 'max' AND epoch IS NULL")" = 1 ]
}
