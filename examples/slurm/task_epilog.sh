#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# TaskEpilog: waits until the recorder that task_prolog.sh started has written its file, at most 15 s,
# and puts one line into the job's Comment, unless the user has written one:
#
#	strain: input pipeline: ... (412.strain)
#
# Only the first task of a step (SLURM_PROCID 0) writes it. The batch script, which ends last and
# mostly waits for its steps, does so only if no step has.
# Slurm runs this as the job's user after each task, before it ends what is left of the step. It waits
# for it without a limit, and drains a node whose processes do not end: after 30 s this ends itself.

PATH=/usr/local/bin:/usr/bin:/bin:$PATH
exec >/dev/null 2>&1 </dev/null

if [ "${1:-}" != finish ]; then
	timeout -k 1 30 "$0" finish
	exit 0
fi

[ "${SLURM_LOCALID:-0}" = 0 ] || exit 0
case ${SLURM_JOB_ID:-} in '' | *[!0-9]*) exit 0 ;; esac

folder=${STRAIN_SITE_DIR:+$STRAIN_SITE_DIR/$(id -un)}
folder=${folder:-${HOME:?}/.strain-jobs}
[ -O "$folder" ] && [ ! -L "$folder" ] || exit 0
attempt=${SLURM_RESTART_COUNT:+.attempt$((SLURM_RESTART_COUNT + 1))}
name=$folder/$SLURM_JOB_ID.${SLURM_STEP_ID:-batch}.${SLURMD_NODENAME:-node}$attempt
[ -f "$name.pid" ] && [ ! -L "$name.pid" ] || exit 0
read -r recorder <"$name.pid"
case $recorder in '' | *[!0-9]*) exit 0 ;; esac
if [ ! -e "$name.strain" ]; then # it has not begun: a short step
	kill -KILL "-$recorder"
	rm -f "$name.pid" "$name.log"
	exit 0
fi
tries=0
while kill -0 "$recorder" && [ $tries -lt 150 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
rm -f "$name.pid"

# The verdict in one line, of printable characters.
line=$("${STRAIN:-strain}" sql "$name.strain" \
	"SELECT text FROM finding WHERE name = 'headline'" | tail -n +2 | head -n 1 |
	tr -cd '[:alnum:] .,:;%/()+-' | cut -c 1-200)
[ -n "$line" ] || exit 0
printf '%s\n' "$line" >"$name.txt"

# The tasks of a step on other nodes have verdicts of their own, but the job has one Comment.
[ "${SLURM_PROCID:-0}" = 0 ] || exit 0
if [ -z "${SLURM_STEP_ID:-}" ]; then
	for step in "$folder/$SLURM_JOB_ID".[0-9]*"$attempt".txt; do
		case $attempt,$step in ,*.attempt*) continue ;; esac # of another attempt
		[ ! -e "$step" ] || exit 0
	done
fi
comment=$(scontrol --oneliner show job "$SLURM_JOB_ID" | sed -n 's/.* Comment=\(.*\)/\1/p')
case $comment in
'' | 'strain: '*) scontrol update JobId="$SLURM_JOB_ID" Comment="strain: $line" ;;
esac
exit 0
