# SPDX-License-Identifier: GPL-3.0-or-later
# Makes a C table of the metrics in docs/metrics.md: awk -f metric_help.awk metrics.md
# A metric is a row "| `NAME` | KIND | `UNIT` | HELP |" under "### GROUP, of each ENTITY KIND, ...".
BEGIN {
	print "#include \"run/metric_help.h\"\n\nconst struct metric_help metric_helps[] = {"
}
/^### / {
	kind = $0
	sub(/.*, of each /, "", kind)
	sub(/,.*/, "", kind)
}
/^\| `/ {
	split($0, cell, "`")
	help = $0
	sub(/^\| `[^`]*` \| [a-z]* \| `[^`]*` \| /, "", help)
	sub(/ \|$/, "", help)
	gsub(/\\\|/, "|", help)
	gsub(/\\/, "\\\\", help)
	gsub(/"/, "\\\"", help)
	printf "\t{\"%s\", \"%s\",\n\t\t\"%s\"},\n", kind, cell[2], help
}
END { print "\t{0},\n};" }
