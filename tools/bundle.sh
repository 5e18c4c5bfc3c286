#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Makes dist/strain-VERSION-linux-ARCH.tar.xz: the programs with their libraries beside them. It
# runs from any folder, without installation or root, where the C library is not older than here.
# What is not in it: the C library itself (it has to be the machine's), and NVML (the driver's).

set -eu
cd "$(dirname "$0")/.."
export BUILD="${BUILD:-build}-bundle"

tools/install.sh build pages man bundle
tools/build.sh -Dbuildtype=release -Dtests=disabled -Dworkloads=disabled --prefix=/ >/dev/null

version=$("$BUILD/strain" --version | cut -d ' ' -f 2)
name=strain-$version-linux-$(uname -m)
tree=$BUILD/$name
rm -rf "$tree"
DESTDIR='' meson install -C "$BUILD" --destdir "$PWD/$tree" --no-rebuild --quiet

# The libraries that a program loads, by path, without those that belong to the C library.
libraries_of() {
	ldd "$@" | sed -n 's/.* => \(\/.*\) (0x.*)$/\1/p' | sort -u |
		grep -vE '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util|anl|BrokenLocale|nss_[a-z]+))\.so'
}

mkdir -p "$tree/lib/strain"
programs="$tree/bin/strain $tree/lib/strain/strain-record"
# shellcheck disable=SC2086 # a list of files
libraries_of $programs | while read -r library; do
	cp -L "$library" "$tree/lib/strain/"
done
# A path inside the file, not in the environment: the job never sees it.
# shellcheck disable=SC2016
patchelf --set-rpath '$ORIGIN/../lib/strain' "$tree/bin/strain"
# shellcheck disable=SC2016
for file in "$tree"/lib/strain/*; do
	case $file in */libstrain-*.so) continue ;; esac # enters the job, and needs nothing of ours
	if patchelf --print-rpath "$file" >/dev/null 2>&1; then
		patchelf --set-rpath '$ORIGIN' "$file"
	fi
done
cp LICENSE README.md CHANGELOG.md "$tree/"
mkdir -p "$tree/share/doc"
for library in "$tree"/lib/strain/lib*.so*; do
	package=$(dpkg-query -S "$(basename "$library")" 2>/dev/null | head -n 1 | cut -d : -f 1)
	if [ -n "$package" ] && [ -e "/usr/share/doc/$package/copyright" ]; then
		cp "/usr/share/doc/$package/copyright" "$tree/share/doc/$package.copyright"
	fi
done

mkdir -p dist
tar -C "$BUILD" --owner=0 --group=0 --sort=name -cJf "dist/$name.tar.xz" "$name"
tests/bundle/check.sh "dist/$name.tar.xz"
echo "dist/$name.tar.xz: $(wc -c <"dist/$name.tar.xz") bytes"
