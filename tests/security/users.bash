# SPDX-License-Identifier: GPL-3.0-or-later
#
# Two users of one machine, whom root plays. Neither has a name or a home of the system's.

load ../cli/messages

VICTIM=61234
ATTACKER=61235
PYTHON=/usr/bin/python3

# as UID COMMAND...
as() {
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid "$uid" --clear-groups --no-new-privs \
		env HOME="$HOMES/$uid" XDG_CACHE_HOME="$HOMES/$uid/.cache" "$@"
}

setup() {
	[ "$(id -u)" = 0 ] || skip "needs root, which plays two users"
	command -v setpriv >/dev/null || skip "needs setpriv (util-linux)"
	# A folder that both may enter, and nobody else may change.
	HOMES=$(mktemp -d "${STRAIN_USER_PARENT:-/opt}/strain-security-XXXXXX") || skip "no folder for homes"
	chmod 0755 "$HOMES"
	for uid in $VICTIM $ATTACKER; do
		install -d -m 0755 -o $uid -g $uid "$HOMES/$uid"
	done
	as $VICTIM test -x "$STRAIN" || skip "other users may not enter the build folder"
	cd "$HOMES/$VICTIM" || return 1
	unset STRAIN_DIR RANK SLURM_PROCID SLURM_STEP_ID
	[ "$(type -t prepare)" != function ] || prepare
}

teardown() {
	cd / || return
	local pid
	for pid in ${STARTED:-}; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	[ -z "${HOMES:-}" ] || rm -rf "$HOMES"
}
