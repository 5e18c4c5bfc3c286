# SPDX-License-Identifier: GPL-3.0-or-later
# Makes C strings of the tables, which strain prints beside one's own: awk -f embed.awk FILE.csv...
BEGIN { print "#include <stddef.h>\n#include \"study/layout.h\"\nconst struct published_file published_files[] = {" }
FNR == 1 {
	if (NR > 1) { print "}," }
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\.csv$/, "", name)
	printf "\t{\"%s\",", name
}
{ gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); printf "\n\t\t\"%s\\n\"", $0 }
END { print "},\n};\nconst size_t n_published_files = sizeof(published_files) / sizeof(*published_files);" }
