#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Asks `strain advise` for each model of Tripathi (2019) and each memory limit, and keeps the answers in FOLDER
# (tripathi2019-advice). Tables 5.1, 5.2, 5.6, 5.7 and 5.8 print from them.
#
#     make frameworks                                                     # once: PyTorch and torchvision
#     /usr/bin/python3 workloads/datasets/make.py jpeg --images 400 --classes 10 build/images    # 46 MB
#     sh examples/tripathi2019-advice.sh [FOLDER]
#     strain compare tripathi2019-advice/*.advice --layout tripathi2019-table5.1 --beside published
#
# Answers that are in FOLDER are kept: a second call goes on after an interrupted one. The environment selects:
#
#     MODELS    models (alexnet resnet34 resnet50 resnet152 densenet201 conv3d)
#     LIMITS    limits of memory (4GiB 2GiB), which need a cgroup; "-": the limit that applies here, such as that of a GPU
#     ARGS      more arguments of the job (--dataset build/images --image-size 64 --validation-samples 64)
#     VALIDATE  longest time of each of the two trainings that compare convergence (2min)
#     TIME      longest time of the other runs (10min)
#
# On a GPU: LIMITS=- ARGS='--dataset FOLDER --image-size 224 --validation-samples 1000'. Table 5.2 is of GPUs with less memory:
# call it on each machine, with one FOLDER or several.

set -u

folder=${1:-tripathi2019-advice}
strain=${STRAIN:-strain}
here=$(dirname "$0")
failed=0
trap 'exit 130' INT TERM

advise() { # MODEL LIMIT
	kept=$folder/$1-$2.advice
	if [ -e "$kept/advice.json" ]; then
		return
	fi
	rm -rf "$kept" # of a call that ended early
	echo "tripathi2019-advice: $1, memory $2" >&2
	# shellcheck disable=SC2046,SC2086 # arguments of the job, and none or two of strain
	"$strain" advise -o "$kept" --label "model=$1" $([ "$2" = - ] || echo "--memory $2") --thesis \
		--time "${TIME:-10min}" --validate="${VALIDATE:-2min}" -- \
		"$here/../workloads/train" --framework pytorch --model "$1" \
		${ARGS:---dataset build/images --image-size 64 --validation-samples 64} \
		--epochs 1000 --batch-size '{batch_size=16}' --workers '{workers=1}' || failed=1
}

mkdir -p "$folder" || exit 1
for limit in ${LIMITS:-4GiB 2GiB}; do
	for model in ${MODELS:-alexnet resnet34 resnet50 resnet152 densenet201 conv3d}; do
		advise "$model" "$limit"
	done
done
exit "$failed"
