#!/bin/sh
# The example on two NVIDIA GPUs, by hand: LLVM's calls over NVIDIA's driver (csrc/cuhip).
#
#     sh examples/mpi/two_gpus.sh pack    where MLIR, mpicc and this checkout's build/ are: leaves
#                                         all that a run needs in build/two_gpus (or FOLDER)
#     sh examples/mpi/two_gpus.sh         on the machine with the GPUs, which needs Open MPI's
#                                         mpirun, and neither MLIR nor a compiler: runs 1, 2 and 3
#                                         ranks and prints a line of JSON for each
#
# CHIP is the GPU to compile for (sm_90).
set -eu
cd "$(dirname "$0")/../.."
folder=${FOLDER:-$PWD/build/two_gpus}

fail() {
    echo "two_gpus.sh: $1" >&2
    exit 2
}

pack() {
    command -v mpicc >/dev/null || fail "there is no mpicc: install libopenmpi-dev"
    [ -f build/cuhip/libamdhip64.so ] || fail "build/cuhip is missing: run make"
    mkdir -p "$folder"
    .venv/bin/mgpu-rt lower --chip "${CHIP:-sm_90}" examples/mpi/squares.mlir -o "$folder/squares.o"
    cp build/lib/libmlir_rocm_runtime.so "$folder"
    cp build/cuhip/libamdhip64.so "$folder/libamdhip64.so.5"
    # shellcheck disable=SC2016 # the loader's word, not the shell's
    mpicc -O2 examples/mpi/ranks.c "$folder/squares.o" "$folder/libmlir_rocm_runtime.so" \
        "$folder/libamdhip64.so.5" -Wl,-rpath,'$ORIGIN' -o "$folder/ranks"
    echo "packed into $folder"
}

run() {
    mpirun=$(command -v mpirun) || fail "there is no mpirun: install Open MPI"
    [ -x "$folder/ranks" ] || fail "$folder/ranks is missing: pack it where MLIR is (two_gpus.sh pack)"
    # Open MPI may lie in a folder of its own, which no loader's configuration names.
    library=$(dirname "$(dirname "$(readlink -f "$mpirun")")")/lib
    [ -e "$library/libmpi.so.40" ] && export LD_LIBRARY_PATH="$library:${LD_LIBRARY_PATH:-}"
    ldd "$folder/ranks" | grep -q 'libmpi.so.40 => not found' &&
        fail "libmpi.so.40, the library of Open MPI 3 to 5, was not found"

    export MGPU_RT_HIP="$folder/libamdhip64.so.5" MGPU_RT_MANAGER=off MGPU_RT_DEVICE=local-rank
    set -- --oversubscribe --bind-to none --timeout 60 --mca btl self,vader
    set -- "$@" --mca oob_tcp_if_include lo # nothing leaves the machine
    [ "$(id -u)" = 0 ] && set -- --allow-run-as-root "$@"
    for ranks in 1 2 3; do
        mpirun "$@" -n "$ranks" "$folder/ranks" --json
    done
}

case "${1:-run}" in
pack) pack ;;
run) run ;;
*) fail "'$1' is neither pack nor run" ;;
esac
