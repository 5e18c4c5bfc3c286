# SPDX-License-Identifier: GPL-3.0-or-later
# Makes a C string of each file, called by a prefix and the file's ending: completion_bash of strain.bash.
# awk -v prefix=completion_ -f embed_text.awk completions/strain.*
FNR == 1 {
	if (NR > 1) { print ";" }
	name = FILENAME
	sub(/.*\./, prefix, name)
	printf "extern const char %s[];\nconst char %s[] =", name, name
}
{ gsub(/\\/, "&&"); gsub(/"/, "\\\""); gsub(/\t/, "\\t"); printf "\n\t\"%s\\n\"", $0 }
END { print ";" }
