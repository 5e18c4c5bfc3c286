# SPDX-License-Identifier: GPL-3.0-or-later
# Makes a C string of SQL, without comments and empty lines, because every run file holds its schema:
# awk -f embed.awk -v name=schema_sql schema.sql
BEGIN { printf "extern const char %s[];\nconst char %s[] =", name, name }
{ sub(/[ \t]*--.*/, "") }
NF { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); printf "\n\t\"%s\\n\"", $0 }
END { print ";" }
