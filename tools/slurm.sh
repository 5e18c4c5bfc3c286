#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A private Slurm of one machine, for tests and for trying: a controller and some nodes on the
# loopback interface, with all their files in one folder. Any user may run it, for jobs of that user.
#
# It checks nobody's identity (auth/none): WHOEVER REACHES ITS PORTS CAN RUN COMMANDS AS YOU. These are
# all users of this machine, so use it where you trust them, and stop it afterwards. It listens on the
# loopback interface if that has the address of this machine's name (Slurm binds to no other), and
# otherwise does not start without --insecure: it would listen on a network. For root, it starts only with
# --cgroup or --insecure. With --insecure, it ends after an hour.
#
# With --cgroup, which only root can start, it is as on a cluster: jobs of all users, each as the user
# that submits it, tracked and limited by cgroups of version 1 (proctrack/cgroup, task/cgroup). It
# checks identities by a munged of its own, with a key that only root reads. Its nodes have the first
# numbers of which no cgroup exists, since several nodes and several Slurms share the machine's cgroups.
#
#   tools/slurm.sh start DIR [--nodes 3] [--cpus 4] [--memory 4096] [--gpus 0] [--with FILE] [--insecure]
#                            [--cgroup]
#                                       memory: MiB of a node; gpus: of a node, which it only counts;
#                                       FILE: further lines of slurm.conf;
#                                       with --cgroup cpus are at most, and if not given, the machine's
#   tools/slurm.sh status DIR
#   tools/slurm.sh kill DIR node2       a node dies, with all that runs on it; or the controller ends
#   tools/slurm.sh revive DIR node2     it is started again
#   tools/slurm.sh stop DIR             ends jobs, nodes, controller
#
# Then: export SLURM_CONF=DIR/slurm.conf; sbatch, squeue, strain sweep, ...
#
# Only processes are ended that it started: each daemon by the pid and start time kept in DIR/pids,
# each step by a mark in its environment. A pid file of Slurm vanishes before its process, so it is
# not used.

set -eu

cgroup_root=/sys/fs/cgroup
controllers=(freezer memory cpuset cpuacct) # that Slurm uses

fail() {
	printf 'slurm.sh: %s\n' "$*" >&2
	exit 1
}

# The same, with the status of tests that are skipped: this machine cannot do it.
fail_here() {
	printf 'slurm.sh: %s\n' "$*" >&2
	exit 77
}

usage() {
	fail 'expected start|stop|status DIR [--nodes N] [--cpus N] [--memory MIB] [--gpus N] [--with FILE] [--insecure] [--cgroup], or kill|revive DIR NODE'
}

# The 22nd field of stat; a name may have blanks and brackets. Empty: no such process, or a zombie.
start_time() { # PID
	local stat fields
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	read -ra fields <<<"${stat##*) }"
	[ "${fields[0]}" = Z ] || echo "${fields[19]}"
}

is_alive() { # PID START_TIME
	[ "$(start_time "$1")" = "$2" ]
}

# Starts a daemon in a session of its own and keeps its pid before anything else.
start_daemon() { # NAME COMMAND...
	local name=$1 pid
	shift
	[ ! -e "$dir/insecure" ] || set -- timeout 3600 "$@"
	STRAIN_SLURM=$dir:$name SLURM_CONF=$dir/slurm.conf setsid "$@" </dev/null \
		>"$dir/$name.out" 2>&1 3>&- 4>&- &
	pid=$!
	printf '%s %s %s\n' "$name" "$pid" "$(start_time "$pid")" >>"$dir/pids"
}

# Pids of the processes that carry a daemon's mark: the daemon and its steps.
marked() { # NAME...
	local name environ
	for environ in /proc/[0-9]*/environ; do
		for name; do
			if { tr '\0' '\n' <"$environ"; } 2>/dev/null | grep -qxF "STRAIN_SLURM=$dir:$name"; then
				environ=${environ#/proc/}
				echo "${environ%/environ}"
			fi
		done
	done
}

# Pids of processes of jobs, which may outlive their step: proctrack/linuxproc follows parents only.
# sbatch hands its SLURM_CONF to them. Not of the job that runs this script.
of_jobs() {
	local environ
	for environ in /proc/[0-9]*/environ; do
		if { tr '\0' '\n' <"$environ"; } 2>/dev/null |
			awk -v conf="SLURM_CONF=$dir/slurm.conf" -v own="SLURM_JOB_ID=${SLURM_JOB_ID:-}" \
				'$0 == conf { c = 1 } /^SLURM_JOB_ID=/ && $0 != own { j = 1 } END { exit !(c && j) }'; then
			environ=${environ#/proc/}
			echo "${environ%/environ}"
		fi
	done
}

# With their descendants.
families() { # PID...
	local all=" $* " pid parent more=1
	while [ -n "$more" ]; do
		more=
		while read -r pid parent; do
			if [[ $all == *" $parent "* && $all != *" $pid "* ]]; then
				all+="$pid "
				more=1
			fi
		done < <(ps -eo pid=,ppid=)
	done
	echo "$all"
}

end_all() { # SIGNAL NAME...
	local pids signal=$1
	shift
	pids=$(marked "$@" | paste -sd ' ')
	if [ "$signal" = KILL ] && [ -n "$pids" ]; then
		# shellcheck disable=SC2086
		pids=$(families $pids)
	fi
	# shellcheck disable=SC2086
	[ -z "${pids// /}" ] || kill "-$signal" $pids 2>/dev/null || true
}

# Waits for a condition, at most some seconds.
await() { # SECONDS COMMAND...
	local until=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.05
	done
}

free_ports() { # N
	python3 -c '
import socket, sys
kept = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in kept:
    one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in kept])' "$1"
}

# The address to which Slurm's daemons bind with NoInAddrAny, if it is one of loopback. Empty: it is not.
loopback_of_name() {
	getent ahostsv4 "$(hostname)" | awk '$1 !~ /^127[.]/ { other = 1 } !address { address = $1 }
		END { if (NR > 0 && !other) print address }'
}

can_bind_cpus() {
	[ "$(id -u)" = 0 ]
}

# Who is who, and how jobs are kept together.
write_plugins() {
	if [ -e "$dir/cgroups" ]; then
		write_cgroup_plugins
		return
	fi
	cat <<-END
		AuthType=auth/none
		CredType=cred/none
		CryptoType=crypto/none
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/$(can_bind_cpus && echo affinity || echo none)
		JobAcctGatherType=jobacct_gather/linux
		JobAcctGatherParams=OverMemoryKill
	END
}

# The same as on a cluster. The kernel limits the memory, not OverMemoryKill.
write_cgroup_plugins() {
	cat <<-END
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge/socket
		CredType=cred/munge
		ProctrackType=proctrack/cgroup
		TaskPlugin=task/affinity,task/cgroup
		JobAcctGatherType=jobacct_gather/cgroup
	END
}

write_cgroup_configuration() {
	cat <<-END
		CgroupPlugin=cgroup/v1
		CgroupMountpoint=$cgroup_root
		CgroupAutomount=no
		ConstrainCores=yes
		ConstrainRAMSpace=yes
		ConstrainSwapSpace=yes
		AllowedSwapSpace=0
	END
}

# NODES CPUS MEMORY GPUS ADDRESS NAME...: the address is one of loopback, or '' for all interfaces.
write_configuration() {
	local ports i user names=("${@:6}") address=${5:-127.0.0.1}
	user=$(id -un)
	read -ra ports <<<"$(free_ports $(($1 + 1)))"
	cat <<-END
		ClusterName=strain
		SlurmctldHost=localhost($address)
		${5:+CommunicationParameters=NoInAddrAny,NoCtldInAddrAny}
		SlurmUser=$user
		SlurmdUser=$user
		SlurmctldPort=${ports[0]}
		$(write_plugins)
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core_Memory
		JobAcctGatherFrequency=task=1
		AccountingStorageType=accounting_storage/none
		JobCompType=jobcomp/none
		MpiDefault=none
		SlurmdParameters=config_overrides
		SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,max_array_tasks=10001
		SchedulerType=sched/backfill
		ReturnToService=2
		SlurmctldTimeout=30
		SlurmdTimeout=6
		KillWait=2
		MinJobAge=300
		MaxJobCount=20000
		MaxArraySize=10001
		InactiveLimit=0
		Waittime=0
		JobRequeue=1
		StateSaveLocation=$dir/state
		SlurmdSpoolDir=$dir/spool.%n
		SlurmctldPidFile=$dir/controller.pid
		SlurmdPidFile=$dir/%n.pid
		SlurmctldLogFile=$dir/controller.log
		SlurmdLogFile=$dir/%n.log
		MailProg=/bin/true
		GresTypes=gpu
	END
	for ((i = 0; i < $1; i++)); do
		printf 'NodeName=%s NodeHostname=localhost NodeAddr=%s Port=%d CPUs=%d RealMemory=%d Gres=gpu:%d\n' \
			"${names[i]}" "$address" "${ports[i + 1]}" "$2" "$3" "$4"
	done
	# A job of the first takes the place of jobs of the others.
	cat <<-END
		PreemptType=preempt/partition_prio
		PreemptMode=REQUEUE
		PartitionName=main Nodes=ALL Default=YES PriorityTier=9 PreemptMode=OFF
		PartitionName=requeued Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE
		PartitionName=cancelled Nodes=ALL PriorityTier=1 PreemptMode=CANCEL
	END
}

# The folders that slurmd creates for a node in a build with MULTIPLE_SLURMD (Debian's).
cgroups_of() { # NODE
	local controller
	for controller in "${controllers[@]}"; do
		echo "$cgroup_root/$controller/slurm_$1"
	done
}

# Takes the first free numbers for nodes. A folder of each is created now, so that no other Slurm takes it.
claim_nodes() { # N
	local number=0 claimed=0 folder is_free
	while [ $claimed -lt "$1" ]; do
		number=$((number + 1))
		if [ $number -gt 99 ]; then
			stop
			fail "$cgroup_root/*/slurm_node*: all 99 numbers are taken; remove the cgroups of Slurms that were killed (rmdir)"
		fi
		is_free=1
		for folder in $(cgroups_of "node$number"); do
			[ ! -e "$folder" ] || is_free=
		done
		folder=$cgroup_root/freezer/slurm_node$number
		if [ -n "$is_free" ] && mkdir "$folder" 2>/dev/null; then
			echo "node$number" >>"$dir/cgroups"
			claimed=$((claimed + 1))
		fi
	done
}

# Ends with status 77 where this machine has no such cgroups, or not for this user.
check_cgroups() {
	local controller probe=$cgroup_root/freezer/slurm_probe.$$
	[ "$(id -u)" = 0 ] || fail_here '--cgroup: only root can start jobs of all users'
	for controller in "${controllers[@]}"; do
		[ -e "$cgroup_root/$controller/tasks" ] ||
			fail_here "--cgroup: no cgroups of version 1 for $controller in $cgroup_root/$controller"
	done
	mkdir "$probe" 2>/dev/null || fail_here "--cgroup: cannot create a cgroup in $cgroup_root/freezer"
	rmdir "$probe"
	command -v munged >/dev/null || fail_here 'munged is not installed (tools/install.sh test)'
}

# Kills what is in the cgroups of nodes; what is frozen dies only when thawed.
end_in_cgroups() { # NODE...
	local node state pids
	for node; do
		find "$cgroup_root/freezer/slurm_$node" -depth -name freezer.state 2>/dev/null | while read -r state; do
			echo THAWED >"$state" || true
		done
		pids=$(find "$cgroup_root/freezer/slurm_$node" -name cgroup.procs -exec cat {} + 2>/dev/null)
		# shellcheck disable=SC2086
		[ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true
	done
}

# Removes the cgroups of nodes; fails while a process is in one.
remove_cgroups() { # NODE...
	local node folder
	end_in_cgroups "$@"
	for node; do
		for folder in $(cgroups_of "$node"); do
			[ ! -e "$folder" ] || find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null || true
			[ ! -e "$folder" ] || return 1
		done
	done
}

# The nodes that have cgroups of this Slurm. Only from a file of our own: root acts on it.
nodes_with_cgroups() {
	[ ! -e "$dir/cgroups" ] || [ ! -O "$dir/cgroups" ] || grep -xE 'node[0-9]+' "$dir/cgroups" || true
}

idle() { # N
	[ "$(sinfo -h -N -p main -t idle -o %N 2>/dev/null | wc -l)" -ge "$1" ]
}

start_controller() {
	# -i: a state folder that is new or damaged is no reason to stop
	start_daemon controller slurmctld -D -i -f "$dir/slurm.conf"
}

start_node() { # NAME
	mkdir -p "$dir/spool.$1"
	start_daemon "$1" slurmd -D -f "$dir/slurm.conf" -N "$1"
}

start_munge() {
	mkdir -p "$dir/munge"
	chmod 755 "$dir/munge" # its socket is for all users, its key for none
	(umask 077 && head -c 1024 /dev/urandom >"$dir/munge/key")
	start_daemon munge munged --foreground --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
		--pid-file="$dir/munge/pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed"
	await 30 test -S "$dir/munge/socket"
}

# Users can reach the folder of what root starts, but cannot change it, or put another in its place.
make_safe_folder() {
	local folder
	(umask 022 && mkdir -p "$dir")
	folder=$(realpath "$dir")
	! is_writable_for_others "$folder" ||
		fail "$dir: with --cgroup, only root may be able to write there"
	while [ "$folder" != / ]; do
		folder=$(dirname "$folder")
		[ -k "$folder" ] || ! is_writable_for_others "$folder" ||
			fail "$dir: with --cgroup, only root may be able to replace it; others can write to $folder"
	done
	setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$dir" ||
		fail "$dir: other users cannot reach it, and so cannot submit jobs"
}

is_writable_for_others() { # FOLDER
	[ ! -O "$1" ] || [ -n "$(find "$1" -maxdepth 0 -perm /022)" ]
}

start() {
	local nodes=3 cpus='' memory=4096 gpus=0 with=/dev/null insecure='' cgroup='' address i names
	local devices=(/dev/null /dev/zero /dev/full /dev/random)
	while [ $# -gt 0 ]; do
		case $1 in
		--insecure)
			insecure=1
			shift
			continue
			;;
		--cgroup)
			cgroup=1
			shift
			continue
			;;
		--nodes) nodes=$2 ;;
		--cpus) cpus=$2 ;;
		--memory) memory=$2 ;;
		--gpus) gpus=$2 ;;
		--with) with=$2 ;;
		*) usage ;;
		esac
		shift 2
	done
	for i in slurmctld slurmd sinfo scontrol scancel; do
		command -v "$i" >/dev/null || fail "$i is not installed (tools/install.sh test)"
	done
	[ -z "$cgroup" ] || check_cgroups
	address=$(loopback_of_name)
	if [ -z "$insecure" ]; then
		[ "$(id -u)" != 0 ] || [ -n "$cgroup" ] ||
			fail 'any user of this machine could run commands as root; start it as another user, or with --cgroup, which checks identities (or --insecure)'
		[ -n "$address" ] || [ -z "$cgroup" ] ||
			fail "the address of the name of this machine, $(hostname), is not 127.*: Slurm would listen on the network (--insecure starts it)"
		[ -n "$address" ] ||
			fail "anyone who reaches this machine could run commands as you: the address of its name, $(hostname), is not 127.* (--insecure starts it)"
	fi
	if [ -e "$dir/pids" ] && [ -n "$(marked controller)" ]; then
		fail "$dir: a Slurm runs there (tools/slurm.sh stop $dir)"
	fi
	[ "$gpus" -le ${#devices[@]} ] || fail "--gpus: at most ${#devices[@]}"
	[ -z "$cgroup" ] || [ "${cpus:-1}" -le "$(nproc)" ] ||
		fail "--cpus: with --cgroup at most $(nproc), as many as this machine has"
	[ ! -e "$dir/cgroups" ] || fail "$dir: cgroups of an earlier Slurm are left (tools/slurm.sh stop $dir)"
	[ -z "$cgroup" ] || make_safe_folder
	mkdir -p "$dir/state"
	: >"$dir/pids"
	rm -f "$dir/insecure"
	[ -z "$insecure" ] || : >"$dir/insecure"
	mapfile -t names < <(seq -f 'node%g' "$nodes")
	if [ -n "$cgroup" ]; then
		claim_nodes "$nodes"
		mapfile -t names <"$dir/cgroups"
		write_cgroup_configuration >"$dir/cgroup.conf"
		cpus=${cpus:-$(nproc)}
	fi
	write_configuration "$nodes" "${cpus:-4}" "$memory" "$gpus" "$address" "${names[@]}" >"$dir/slurm.conf"
	# Slurm wants a device for each GPU. It opens none, and keeps no job from one here.
	: >"$dir/gres.conf"
	[ "$gpus" = 0 ] || printf 'Name=gpu File=%s\n' "${devices[@]:0:gpus}" >"$dir/gres.conf"
	cat "$with" >>"$dir/slurm.conf"
	[ -z "$cgroup" ] || start_munge || true # no node becomes idle, below
	start_controller
	for i in "${names[@]}"; do
		start_node "$i"
	done
	if ! await 30 idle "$nodes"; then
		tail -n 5 "$dir"/*.log "$dir"/*.out >&2 || true
		stop
		fail 'the nodes did not become idle within 30 s; see above'
	fi
	echo "export SLURM_CONF=$dir/slurm.conf"
}

names() {
	cut -d ' ' -f 1 "$dir/pids" | sort -u
}

no_jobs() {
	local jobs
	jobs=$(squeue -h -o %A 2>/dev/null) || return 0
	[ -z "$jobs" ]
}

none_marked() {
	# shellcheck disable=SC2046
	[ -z "$(marked $(names))" ]
}

stop() {
	[ -e "$dir/pids" ] || return 0
	if [ -n "$(marked controller)" ]; then
		timeout 10 squeue -h -o %A 2>/dev/null | sort -u | timeout 10 xargs -r scancel 2>/dev/null || true
		await 5 no_jobs || true
	fi
	# shellcheck disable=SC2046
	end_all TERM $(names)
	if ! await 10 none_marked; then
		# shellcheck disable=SC2046
		end_all KILL $(names)
		await 5 none_marked || fail "$dir: some of its processes do not end"
	fi
	# shellcheck disable=SC2046
	kill -KILL $(of_jobs) 2>/dev/null || true
	# shellcheck disable=SC2046
	await 10 remove_cgroups $(nodes_with_cgroups) || fail "$dir: some of its cgroups are left"
	rm -f "$dir/pids" "$dir/cgroups"
}

status() {
	local name pid started
	[ -e "$dir/pids" ] || fail "$dir: no Slurm was started there"
	while read -r name pid started; do
		printf '%-12s %-8s %s\n' "$name" "$pid" "$(is_alive "$pid" "$started" && echo runs || echo ended)"
	done <"$dir/pids"
	sinfo
	squeue
}

is_gone() { # NAME
	[ -z "$(marked "$1")" ]
}

kill_node() {
	if [ "$1" = munge ] || ! grep -q "^$1 " "$dir/pids"; then
		fail "$dir: no node $1"
	fi
	if [ "$1" = controller ]; then
		end_all TERM "$1" # killed, it forgets jobs of the last seconds
		await 20 is_gone "$1" || end_all KILL "$1"
	else
		end_all KILL "$1"
		[ -z "$(nodes_with_cgroups)" ] || end_in_cgroups "$1"
	fi
	await 5 is_gone "$1" || fail "$dir: $1 does not end"
	sed -i "/^$1 /d" "$dir/pids"
	# Slurm itself notices after a minute or two.
	[ "$1" = controller ] || scontrol update "NodeName=$1" State=DOWN Reason=killed
}

revive() {
	[ -z "$(marked "$1")" ] || fail "$dir: $1 runs"
	if [ "$1" = controller ]; then
		start_controller
	elif [ -d "$dir/spool.$1" ]; then
		start_node "$1"
		scontrol update "NodeName=$1" State=RESUME
	else
		fail "$dir: no node $1"
	fi
}

[ $# -ge 2 ] || usage
command=$1
case $2 in
/*) dir=$2 ;;
*) dir=$PWD/$2 ;;
esac
shift 2
PATH=$PATH:/usr/sbin:/sbin
export SLURM_CONF=$dir/slurm.conf
case $command in
start) start "$@" ;;
stop) stop ;;
status) status ;;
kill) [ $# = 1 ] || usage; kill_node "$1" ;;
revive) [ $# = 1 ] || usage; revive "$1" ;;
*) usage ;;
esac
