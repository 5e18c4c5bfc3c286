#compdef strain
# SPDX-License-Identifier: GPL-3.0-or-later
# Completion of strain for zsh. What there is to complete, the program itself says: strain complete.

_strain() {
	local line candidate kind=''
	local -a candidates shown open open_shown
	for line in "${(@f)$("${(@Q)words[1]}" complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
		candidate=${line%%$'\t'*}
		case $line in
		'') ;;
		:*) kind=$candidate ;;
		*)
			if [[ $candidate == *[=/,] ]]; then
				open+=("$candidate")
				open_shown+=("${line//$'\t'/  -- }")
			else
				candidates+=("$candidate")
				shown+=("${line//$'\t'/  -- }")
			fi
			;;
		esac
	done
	case $kind in
	:directories) [[ $PREFIX == -*=* ]] && compset -P '*='; _files -/ ;;
	:program) _command_names -e || _files ;;
	:files) [[ $PREFIX == -*=* ]] && compset -P '*='; _files ;;
	*)
		(( $#open )) && compadd -S '' -l -d open_shown -a open
		(( $#candidates )) && compadd -l -d shown -a candidates
		;;
	esac
}

if [[ $funcstack[1] == _strain ]]; then
	_strain "$@"
else
	compdef _strain strain
fi
