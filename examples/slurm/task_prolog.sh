#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# TaskProlog: records every job of a cluster at low cost, without a change of the job. Slurm runs this
# as the job's user before each task, as a child of the process that becomes the task: strain attaches
# to that process. docs/guides/slurm.md has the lines of slurm.conf.
#
# Steps shorter than 10 s (STRAIN_SITE_AFTER) are not recorded: starting and ending a recorder would take longer
# than many of them.
#
# One recorder for each step and node. A user opts out with STRAIN_SITE=off in the environment of
# sbatch; jobs that run strain themselves should do so.
#
# Slurm reads the standard output of a TaskProlog: nothing here may write to it. A task whose TaskProlog
# fails does not run: every way out is exit 0, and after 10 s this is one (a home that hangs).

PATH=/usr/local/bin:/usr/bin:/bin:$PATH

# In a session of its own, because Slurm kills the process group of a TaskProlog when that has ended.
if [ "${1:-}" = attach ]; then # PID NAME
	echo $$ >"$3.pid" || exit 0 # the disk may be full
	echo started
	exec >/dev/null
	sleep "${STRAIN_SITE_AFTER:-10}"
	# As long as the process is still Slurm's own: at most five seconds.
	tries=0
	until program=$(readlink "/proc/$2/exe") && [ "${program##*/}" != slurmstepd ]; do
		tries=$((tries + 1))
		if [ $tries -ge 100 ] || ! kill -0 "$2"; then
			exit 0
		fi
		sleep 0.05
	done
	exec "${STRAIN:-strain}" run --pid "$2" --interval 1s --no-profile --force --output "$3.strain" \
		2>"$3.log"
fi

exec >/dev/null 2>&1 </dev/null

if [ "${1:-}" != start ]; then
	timeout -k 1 10 "$0" start "$PPID"
	exit 0
fi

if [ "${STRAIN_SITE:-on}" = off ] || [ "${SLURM_LOCALID:-0}" != 0 ]; then
	exit 0
fi
case ${SLURM_JOB_ID:-} in '' | *[!0-9]*) exit 0 ;; esac

# A folder of the user's own. A shared one above it, which all users can write (mode 1777), must exist.
folder=${STRAIN_SITE_DIR:+$STRAIN_SITE_DIR/$(id -un)}
folder=${folder:-${HOME:?}/.strain-jobs}
[ -d "$folder" ] || mkdir -m 700 "$folder" || exit 0
[ -O "$folder" ] && [ ! -L "$folder" ] || exit 0

# Attempts of a job that was requeued are told apart.
name=$folder/$SLURM_JOB_ID.${SLURM_STEP_ID:-batch}.${SLURMD_NODENAME:-node}
name=$name${SLURM_RESTART_COUNT:+.attempt$((SLURM_RESTART_COUNT + 1))}
rm -f "$name.pid"

# The job waits for the session only, some milliseconds: until the other side closes the pipe.
: "$(setsid "$0" attach "$2" "$name" 2>/dev/null &)"
exit 0
