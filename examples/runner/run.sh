#!/bin/sh
# Runs a program in LLVM's JIT with mgpu_rt in place of LLVM's runtime:
#
#     sh run.sh [22|19]     the LLVM release, whose runner is mlir-runner, or mlir-cpu-runner
#
# Prints 499500. mgpu-rt has to be in PATH. DEVICE=hip or DEVICE=cuda runs it on a GPU, for which
# CHIP says what to compile for.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
llvm=${1:-22}
lowered=$(mktemp)
trap 'rm -f "$lowered"' EXIT

case $llvm in
22) name=mlir-runner ;;
19) name=mlir-cpu-runner ;;
*) echo "run.sh: '$llvm' is neither 22 nor 19" >&2 && exit 2 ;;
esac
runner=$(command -v "$name-$llvm" || echo "/usr/lib/llvm-$llvm/bin/$name")
for tool in mgpu-rt "$runner"; do
    command -v "$tool" >/dev/null || { echo "run.sh: there is no $tool" >&2 && exit 2; }
done

# Device code and LLVM's dialect; a flow of one's own ends the same way.
mgpu-rt lower --llvm "$llvm" ${CHIP:+--chip "$CHIP"} --emit mlir "$here/sum.mlir" -o "$lowered"

# The library is the only thing that differs from a run with LLVM's own.
mgpu-rt run --device "${DEVICE:-softgpu}" -- "$runner" "$lowered" \
    -e main --entry-point-result=i32 \
    --shared-libs="$(mgpu-rt config --path)/libmlir_rocm_runtime.so"
