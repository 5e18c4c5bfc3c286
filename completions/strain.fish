# SPDX-License-Identifier: GPL-3.0-or-later
# Completion of strain for fish. What there is to complete, the program itself says: strain complete.

function __strain_complete
	set -l words (commandline -opc)
	set -l word (commandline -ct)
	for line in ($words[1] complete $words[2..-1] $word 2>/dev/null)
		switch $line
			case ':directories'
				__fish_complete_directories $word ''
			case ':program'
				__fish_complete_subcommand --commandline $word 2>/dev/null
				or complete -C "$word"
			case ':*'
				__fish_complete_path $word
			case '*'
				printf '%s\n' $line
		end
	end
end

complete -c strain -f -a '(__strain_complete)'
