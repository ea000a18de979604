#!/bin/sh
# Measures on a machine with an NVIDIA GPU, in the folder where the archive of `python -m bench prepare`
# was unpacked. The results go to the folder OUT, by default build/bench/results: bench.json and
# log.txt. Each part adds its results when the part ends, so that an end after nine minutes keeps them.
#
# What is given is passed on to `python -m bench`, in place of the parts below.
set -e
cd "$(dirname "$0")/.."
: "${OUT:=build/bench/results}"
. tests/devices/gpu/venv.sh
llvm=build/bench/llvm/libmlir_cuda_runtime.so
bench() {
	.venv/bin/python -m bench --llvm-runtime "$llvm" --out "$OUT/bench.json" "$@"
}
if [ $# -gt 0 ]; then
	bench "$@"
	exit
fi
mkdir -p "$OUT"
status=0
for part in \
	"--device cuda --only programs --only processes --repetitions 5" \
	"--device cuda --only models --model decode --model block --model blocks --repetitions 5" \
	"--device cuda --only graphs --model mlp --model block --model blocks --repetitions 5" \
	"--device cuda --only in_python --repetitions 5" \
	"--device stub --only calls --only threads --only in_python --repetitions 10" \
	"--device cuda --only models --model mlp --repetitions 5"; do
	date +%T
	# shellcheck disable=SC2086 # words
	bench $part || status=$?
done >"$OUT/log.txt" 2>&1
tail -n 300 "$OUT/log.txt"
exit "$status"
