# SPDX-License-Identifier: GPL-3.0-or-later
# Completion of strain for bash. What there is to complete, the program itself says: strain complete.

_strain() {
	local line=${COMP_LINE:0:COMP_POINT} word before i candidate rest kind='' shown
	local -a words=()
	# bash has cut the words at = and :, which are part of ours.
	line=${line#*"${COMP_WORDS[0]}"}
	for ((i = 1; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if ((i == COMP_CWORD)); then
			word=${line#"${line%%[![:space:]]*}"}
		fi
		before=${line%%[![:space:]]*}
		line=${line#"$before"}
		line=${line#"$word"}
		if [[ -z $before && ${#words[@]} -gt 0 ]]; then
			words[-1]+=$word
		else
			words+=("$word")
		fi
	done
	word=${words[-1]}
	before=${word%"${word##*[=:]}"}
	COMPREPLY=()
	while IFS=$'\t' read -r candidate rest; do
		case $candidate in
		:*) kind=$candidate ;;
		*)
			[[ $candidate == *[=/,] ]] && compopt -o nospace
			printf -v shown '%q' "${candidate#"$before"}"
			COMPREPLY+=("$shown")
			;;
		esac
	done < <("${COMP_WORDS[0]}" complete "${words[@]}" 2>/dev/null)
	[[ -z $kind ]] && return
	word=${word#"$before"}
	compopt -o filenames
	case $kind in
	:directories) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
	:program) mapfile -t COMPREPLY < <(compgen -c -- "$word") ;;
	*) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
	esac
}

complete -F _strain strain
