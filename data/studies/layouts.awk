# SPDX-License-Identifier: GPL-3.0-or-later
# Makes C tables of studies and their layouts (README.md): awk -f layouts.awk FILE.study...

function fail(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
	failed = 1
	exit 1
}

function trim(text) {
	gsub(/^[ \t]+|[ \t]+$/, "", text)
	return text
}

function quoted(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	return "\"" text "\""
}

# "LABEL=VALUE" as two strings.
function pair(text,   at) {
	at = index(text, "=")
	if (at < 2) {
		fail("expected LABEL=VALUE, found '" text "'")
	}
	return quoted(trim(substr(text, 1, at - 1))) ", " quoted(trim(substr(text, at + 1)))
}

function list(text, most,   parts, n, i, out) {
	n = split(text, parts, ",")
	if (n > most) {
		fail("more than " most " items")
	}
	for (i = 1; i <= n; i++) {
		out = out (i > 1 ? ", " : "") quoted(trim(parts[i]))
	}
	return out
}

function put(field, value) {
	layout = layout "\n\t\t." field " = " value ","
}

function put_where(text,   parts, n, i, out) {
	n = split(text, parts, ",")
	if (n > 4) {
		fail("more than 4 conditions")
	}
	for (i = 1; i <= n; i++) {
		out = out (i > 1 ? ", " : "") "{" pair(parts[i]) "}"
	}
	put("filters", "{" out "}")
}

function put_rows(text,   first, rest, at) {
	at = index(text, ",")
	first = at ? substr(text, 1, at - 1) : text
	rest = at ? substr(text, at) : ""
	at = index(first, " or ")
	if (at) {
		put("row_instead", quoted(trim(substr(first, at + 4))))
		first = substr(first, 1, at - 1)
	}
	put("rows", "{" list(first rest, 4) "}")
}

function put_value(text,   parts, n, i, at, name, out) {
	n = split(text, parts, ";")
	name = trim(parts[1])
	at = index(name, " or ")
	out = ".measure = " quoted(at ? substr(name, 1, at - 1) : name)
	if (at) {
		out = out ", .instead = " quoted(trim(substr(name, at + 4)))
	}
	scale = 1
	for (i = 2; i <= n; i++) {
		name = trim(parts[i])
		at = index(name, " ")
		if (name ~ /^title /) {
			out = out ", .title = " quoted(substr(name, at + 1))
		} else if (name ~ /^published /) {
			out = out ", .published = " quoted(substr(name, at + 1))
		} else if (name ~ /^scale [0-9.e]+$/) {
			scale = substr(name, at + 1)
		} else {
			fail("expected title, published or scale, found '" name "'")
		}
	}
	if (++n_values > 5) {
		fail("more than 5 values")
	}
	values = values (n_values > 1 ? ", " : "") "{" out ", .published_scale = " scale "}"
}

function put_ratio(text,   at, label, of) {
	at = index(text, " over ")
	label = index(text, "=")
	if (!at || !label) {
		fail("expected LABEL=A over B, found '" text "'")
	}
	of = substr(text, label + 1, at - label - 1)
	put("change", "CHANGE_RATIO")
	put("ratio", "{" quoted(substr(text, 1, label - 1)) ", " quoted(trim(substr(text, at + 6))) ", " quoted(trim(of)) "}")
}

function put_published(text,   at) {
	at = index(text, ", where ")
	put("published", quoted(at ? substr(text, 1, at - 1) : text))
	if (at) {
		put("published_only", "{" pair(substr(text, at + 8)) "}")
	}
}

function end_layout(   i, needed) {
	if (layout != "") {
		split("item title kind", needed, " ")
		for (i in needed) {
			if (index(layout, "." needed[i] " = ") == 0) {
				fail("the section before has no " needed[i])
			}
		}
		layouts = layouts "\t{" layout (n_values ? "\n\t\t.values = {" values "}," : "") "\n\t},\n"
	}
	layout = values = ""
	n_values = 0
}

function end_study() {
	end_layout()
	if (study != "") {
		documents = documents "\t{" quoted(study) ", " quoted(source) ", " (plan != "" ? quoted(plan) : "NULL") ", " (advice != "" ? quoted(advice) : "NULL") "},\n"
	}
}

BEGIN {
	split("table best series epochs runs memory gpu facts waits", kinds, " ")
	split("TABLE BEST SERIES EPOCHS RUNS MEMORY GPU PUBLISHED WAITS", constants, " ")
	for (i in kinds) {
		kind_of[kinds[i]] = "LAYOUT_" constants[i]
	}
	n_studies = 0
}

FNR == 1 {
	end_study()
	study = FILENAME
	sub(/.*\//, "", study)
	sub(/\.study$/, "", study)
	source = plan = advice = ""
	section = ""
	n_studies++
}

/^[ \t]*(#|$)/ { next }

/^\[[a-z0-9.-]+\]$/ {
	end_layout()
	section = substr($0, 2, length($0) - 2)
	put("name", quoted(study "-" section))
	put("document", n_studies - 1)
	next
}

{
	at = index($0, ": ")
	if (!at) {
		fail("expected KEY: VALUE, found '" $0 "'")
	}
	key = substr($0, 1, at - 1)
	value = trim(substr($0, at + 2))
	if (section == "") {
		if (key == "source") {
			source = value
		} else if (key == "plan") {
			plan = value
		} else if (key == "advice") {
			advice = value
		} else {
			fail("expected source, plan, advice or [SECTION], found '" key "'")
		}
	} else if (key == "kind") {
		if (!(value in kind_of)) {
			fail("unknown kind '" value "'")
		}
		put("kind", kind_of[value])
	} else if (key == "item" || key == "title" || key == "best" || key == "note") {
		put(key, quoted(value))
	} else if (key == "says") {
		put("said", quoted(value))
	} else if (key == "waits for") {
		put("waits", quoted(value))
	} else if (key == "where") {
		put_where(value)
	} else if (key == "rows") {
		put_rows(value)
	} else if (key == "columns") {
		put("columns", "{" list(value, 4) "}")
	} else if (key == "value") {
		put_value(value)
	} else if (key == "relative to" && value == "first") {
		put("change", "CHANGE_BY_FIRST")
	} else if (key == "ratio") {
		put_ratio(value)
	} else if ((key == "bars" || key == "each gpu") && value == "yes") {
		put(key == "bars" ? "bars" : "each_gpu", "true")
	} else if (key == "published") {
		put_published(value)
	} else {
		fail("unknown key or value: '" $0 "'")
	}
}

END {
	if (failed) {
		exit 1
	}
	end_study()
	print "#include <stddef.h>\n#include \"study/layout.h\"\n"
	print "const struct document documents[] = {\n" documents "};"
	print "const size_t n_documents = sizeof(documents) / sizeof(*documents);\n"
	print "const struct layout layouts[] = {\n" layouts "};"
	print "const size_t n_layouts = sizeof(layouts) / sizeof(*layouts);"
}
