#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# check.sh STRAIN FILE.strain...: what show, sql and export tell of a kept run must be what
# FILE.expected says.
# check.sh --update STRAIN FILE.strain...: writes it instead; look at the difference before committing.
set -eu

here=$(dirname "$0")
# shellcheck source=tests/expected.sh
. "$here/../expected.sh"

# Figures, not sentences: those may become better.
figures() { # FILE
	echo "# show"
	"$strain" show --json "$1" | tr -d ',' | grep -E '^ +"(duration_s|exit_status|exit_signal|damaged_blocks|batch_size|workers|cpu_seconds|cpus_used|memory_peak_bytes|memory_kind|io_requested_bytes|number|start_s|end_s|role|pid)":'
	echo "# metrics"
	"$strain" sql --csv "$1" "SELECT e.kind, s.metric, count(*), count(value), round(min(value), 6),
		round(max(value), 6), round(sum(value), 3), round(max(t), 3)
		FROM samples s JOIN entity e ON e.id = s.entity GROUP BY 1, 2 ORDER BY 1, 2"
	echo "# spans"
	"$strain" sql --csv "$1" "SELECT name, kind, number, start_ns, end_ns, attributes FROM span
		WHERE kind IN ('epoch', 'point') ORDER BY start_ns, id"
	"$strain" sql --csv "$1" "SELECT name, kind, count(*) AS n, min(id) AS first, max(id) AS last, sum(start_ns) AS starts,
		sum(end_ns) AS ends, sum(parent) AS parents, sum(number) AS numbers, sum(samples) AS samples, max(thread) AS thread,
		max(attributes) AS attributes FROM span WHERE kind NOT IN ('epoch', 'point') GROUP BY 1, 2 ORDER BY 1, 2"
	echo "# events"
	"$strain" sql --csv "$1" "SELECT t_ns, kind, text FROM event ORDER BY t_ns, id"
	echo "# missing"
	"$strain" sql --csv "$1" "SELECT reason, count(*) FROM missing GROUP BY 1 ORDER BY 1"
	if [ -n "$("$strain" sql --csv "$1" "SELECT name FROM sqlite_schema WHERE name = 'phase_sample'" | sed 1d)" ]; then
		echo "# CPU time samples"
		"$strain" sql --csv "$1" "SELECT entity, leader, path, name, sum(samples) FROM profile_sample AS s
			JOIN profile_object AS o ON o.id = s.object
			LEFT JOIN profile_symbol AS y ON y.object = s.object AND y.address = s.address
			GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
		"$strain" sql --csv "$1" "SELECT entity, phase, leader, path, sum(samples) FROM phase_sample AS s
			JOIN profile_object AS o ON o.id = s.object GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
	fi
	echo "# export"
	"$strain" export --format csv --entity job --metric process.cpu.time --every 200ms "$1"
	"$strain" export --format csv --entity process --metric process.memory.usage --every 1s "$1"
}

for file in "$@"; do
	compare "$(figures "$file")" "${file%.strain}.expected" "$file"
done
exit "$status"
