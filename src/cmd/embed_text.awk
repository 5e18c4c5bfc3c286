# SPDX-License-Identifier: GPL-3.0-or-later
# Makes a C string of each file, called after it: completion_bash of completions/strain.bash.
# awk -f embed_text.awk completions/strain.*
FNR == 1 {
	if (NR > 1) { print ";" }
	name = FILENAME
	sub(/.*\./, "completion_", name)
	printf "extern const char %s[];\nconst char %s[] =", name, name
}
{ gsub(/\\/, "&&"); gsub(/"/, "\\\""); gsub(/\t/, "\\t"); printf "\n\t\"%s\\n\"", $0 }
END { print ";" }
