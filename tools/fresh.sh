#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Proves README's two commands: on minimal systems, made by debootstrap in a folder, an ordinary
# user with sudo clones the sources at HEAD and types `make demo` and `make test`:
#
#     tools/fresh.sh [SYSTEM]...        bookworm and trixie without SYSTEM
#
# Needs root. Everything happens in mount and process namespaces of its own: whatever way this ends,
# nothing stays mounted and nothing keeps running.
#
# FRESH_DIR     where systems are made, several GB (a folder under /var/tmp)
# FRESH_MIRROR  a mirror of the distribution; else the one that apt uses here, else debootstrap's
# FRESH_KEEP=1  keeps the systems, to look into them; base systems are kept as tarballs anyway
# FRESH_COMMANDS  "make demo; make test"
#
# How packages are had here is how they are had there: apt's mirrors and Acquire options, the
# certificates that were added, npm's configuration, proxies.

set -euo pipefail
cd "$(dirname "$0")/.."
folder=${FRESH_DIR:-${TMPDIR:-/var/tmp}/strain-fresh}
commands=${FRESH_COMMANDS:-make demo; make test}

say() {
	printf '\nfresh: %s\n' "$*"
}

# The mirror of the release here whose name ends with $1 ("" or -security), as apt knows it.
mirror_here() {
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk -v release="$codename$1" '$1 == release {print $2; exit}'
}

# Removes a system; never what is mounted in it.
remove_system() {
	if grep -qF " $1/" /proc/self/mountinfo; then
		echo "fresh: something is mounted below $1; not removed" >&2
		return 1
	fi
	rm -rf --one-file-system "$1"
}

# In namespaces of its own: isolated COMMAND...
isolated() {
	unshare --mount --pid --fork --kill-child --propagation private "$@"
}

make_base() {
	local system=$1 root=$2 mirror
	mirror=${FRESH_MIRROR:-$(mirror_here '')}
	say "$system: debootstrap"
	# shellcheck disable=SC2086 # no word where there is no mirror
	isolated debootstrap --variant=minbase --include=ca-certificates "$system" "$root" $mirror \
		>"$folder/$system-debootstrap.log" 2>&1 || {
		tail -n 20 "$folder/$system-debootstrap.log" >&2
		return 1
	}
	tar -C "$root" -cf "$folder/$system.tar.new" .
	mv "$folder/$system.tar.new" "$folder/$system.tar"
}

# How packages are had: sources, options, certificates, names.
configure_packages() {
	local system=$1 root=$2 mirror security
	mirror=${FRESH_MIRROR:-$(mirror_here '')}
	security=$(mirror_here -security)
	if [ -n "$mirror" ]; then
		{
			echo "deb $mirror $system main"
			echo "deb $mirror $system-updates main"
			if [ -n "$security" ] && [ -z "${FRESH_MIRROR:-}" ]; then
				echo "deb $security $system-security main"
			fi
		} >"$root/etc/apt/sources.list"
	fi
	apt-config dump | grep -E '^Acquire::(https?|ftp|Check|Retries|Force|Proxy)' \
		>"$root/etc/apt/apt.conf.d/99as-outside" || true
	for added in /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/resolv.conf /etc/hosts; do
		if [ -e "$added" ]; then
			cp -rL "$added" "$root$(dirname "$added")/"
		fi
	done
	if compgen -G '/usr/local/share/ca-certificates/*' >/dev/null; then
		cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
		chroot "$root" update-ca-certificates >/dev/null
	fi
}

# The environment that package managers go by.
passed_environment() {
	env | grep -E '^(npm_config_[a-z_]*|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|[a-z]+_proxy|[A-Z]+_PROXY)=' ||
		true
}

# Whoever comes with a checkout has these.
make_user() {
	local root=$1 home=$1/home/user
	isolated tools/fresh.sh --enter "$root" sh -c 'apt-get -q update &&
		DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends \
			git make sudo && useradd -m -s /bin/bash user' >"$root/setup.log" 2>&1 || {
		tail -n 20 "$root/setup.log" >&2
		return 1
	}
	{
		echo 'Defaults env_keep += "http_proxy https_proxy no_proxy"'
		echo 'user ALL=(ALL) NOPASSWD: ALL'
	} >"$root/etc/sudoers.d/user"
	if command -v npm >/dev/null; then
		cat "$(npm config get globalconfig)" "$(npm config get userconfig)" \
			>"$home/.npmrc" 2>/dev/null || true
	fi
	passed_environment >"$home/.environment"
	git -c safe.directory='*' clone -q --no-hardlinks . "$home/strain"
	chroot "$root" chown -R user:user /home/user
}

# Mounts what a running system has, and goes in. The namespace's end unmounts it. This shell stays,
# as the process 1 that belongs to root.
enter() {
	local root=$1
	shift
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	chroot "$root" /usr/bin/env -i LANG=C.UTF-8 TERM="${TERM:-dumb}" HOME=/root \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# Types one of the commands, as the user.
type_command() {
	local root=$1 command=$2
	# shellcheck disable=SC2016 # expanded inside
	isolated tools/fresh.sh --enter "$root" setpriv --reuid user --regid user --init-groups sh -c '
		cd ~user/strain && export HOME=~user USER=user &&
		while read -r line; do export "$line"; done <~user/.environment && eval "$1"
		' sh "$command" </dev/null
}

try_system() {
	local system=$1 root=$folder/$1 command started status=0
	remove_system "$root"
	mkdir -p "$root"
	if [ -e "$folder/$system.tar" ]; then
		tar -C "$root" -xf "$folder/$system.tar"
	else
		make_base "$system" "$root"
	fi
	configure_packages "$system" "$root"
	make_user "$root"
	while read -r command; do
		started=$SECONDS
		say "$system: $command"
		if type_command "$root" "$command"; then
			say "$system: $command: passed in $((SECONDS - started)) s"
		else
			status=1
			say "$system: $command: FAILED after $((SECONDS - started)) s"
		fi
	done < <(tr ';' '\n' <<<"$commands" | sed 's/^ *//')
	if [ $status = 0 ] && [ ! -s "$root/home/user/strain/report.html" ] &&
		[[ $commands == *demo* ]]; then
		say "$system: make demo wrote no report.html: FAILED"
		status=1
	fi
	if [ -z "${FRESH_KEEP:-}" ]; then
		remove_system "$root"
	fi
	return $status
}

if [ "${1:-}" = --enter ]; then
	shift
	enter "$@"
	exit
fi
if [ "$(id -u)" != 0 ]; then
	echo 'fresh: needs root, for debootstrap and chroot: sudo make fresh' >&2
	exit 1
fi
tools/install.sh fresh
systems=("$@")
if [ $# = 0 ]; then
	systems=(bookworm trixie)
fi
for system in "${systems[@]}"; do
	if [[ ! $system =~ ^[a-z]+$ ]] || [ ! -e "/usr/share/debootstrap/scripts/$system" ]; then
		echo "fresh: expected a release that debootstrap knows (bookworm, trixie), found '$system'" >&2
		exit 2
	fi
done
mkdir -p "$folder"
passed=0
failed=0
for system in "${systems[@]}"; do
	if (try_system "$system"); then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
