#!/bin/sh
# Sparse matrices on a machine with an NVIDIA GPU, in the directory where the archive of
# tests/gpu/pack.py was unpacked: a sparse matrix times a dense one in a loop, by this library, as
# LLVM's own does it, and by hand on cuSPARSE. Needs cc, and libcusparse.so.12 where the loader finds it.
#
# Each line: the way, nanoseconds for one product, a checksum that is the same for all ways. Then
# the ratios, ours to stock's and ours to by hand, and what was wrong.
set -e
cd "$(dirname "$0")/../.."
program=$(mktemp)
trap 'rm -f "$program"' EXIT
cc -std=c11 -D_GNU_SOURCE -O2 -o "$program" bench/native/sparse.c -ldl
library=build/lib/libmlir_rocm_runtime.so
MGPU_RT_HIP=$PWD/build/cuhip/libamdhip64.so
MGPU_RT_PYTHON=off
export MGPU_RT_HIP MGPU_RT_PYTHON

status=0
for size in "1024 8 16 500" "4096 16 64 200" "16384 32 128 50"; do
	echo "rows, elements of a row, columns, repeats: $size"
	{
		"$program" lowered "$PWD/$library" $size
		"$program" stock $size
		"$program" byhand $size
	} | awk '
		{ print "  " $0; time[$1] = $2; sum[$1] = $3 }
		END {
			printf "  ours / stock %.2f, ours / by hand %.2f\n", \
				time["lowered"] / time["stock"], time["lowered"] / time["byhand"]
			if (NR != 3 || sum["lowered"] != sum["stock"] || sum["lowered"] != sum["byhand"]) {
				print "  THE RESULTS DIFFER"
				exit 1
			}
		}' || status=1
done
exit "$status"
