#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The frameworks that tests and workloads use: Debian's PyTorch, and in .frameworks/python (or
# $STRAIN_FRAMEWORKS/python), a virtual environment of that Python, packages of PyPI. Tests look
# there, and skip what they do not find.

set -eu
cd "$(dirname "$0")/.."
folder=${STRAIN_FRAMEWORKS:-$PWD/.frameworks}

tools/install.sh frameworks
echo 'PyTorch is here: strain run -- /usr/bin/python3 workloads/pytorch/train.py --help'

if [ ! -x "$folder/python/bin/python" ]; then
	/usr/bin/python3 -m venv "$folder/python"
fi
# A package that cannot be had leaves out its tests only.
for package in nvtx nvidia-nvtx-cu12 jax pillow tensorflow-cpu tf_keras; do
	"$folder/python/bin/python" -m pip install --quiet --disable-pip-version-check "$package" ||
		echo "strain: $package could not be installed; its tests will be skipped" >&2
done
echo "in $folder/python:" "$("$folder/python/bin/python" -m pip list --format freeze 2>/dev/null |
	grep -E '^(nvtx|nvidia-nvtx-cu12|jax|keras|pillow|tf_keras|tensorflow[-_]cpu)==' | tr '\n' ' ')"
