#!/bin/sh
# Builds the example in a folder and runs it with Open MPI's mpirun, on this machine alone:
#
#     sh run.sh [RANKS [FOLDER]]     3 ranks, ./build-mpi
#
# mgpu-rt has to be in PATH. On a machine without a GPU two devices are emulated for each rank;
# DEVICE=hip or DEVICE=cuda says otherwise, and CHIP which GPU to compile for.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
ranks=${1:-3}
build=${2:-build-mpi}

for tool in mgpu-rt cmake mpicc mpirun; do
    command -v "$tool" >/dev/null || { echo "run.sh: there is no $tool in PATH" >&2 && exit 2; }
done

mkdir -p "$build"
log=$build/build.log
cmake -S "$here" -B "$build" -Dmgpu_rt_DIR="$(mgpu-rt config --cmakedir)" -DCHIP="${CHIP:-gfx90a}" \
    >"$log" 2>&1 &&
    cmake --build "$build" >>"$log" 2>&1 || { cat "$log" >&2; exit 1; }

export MGPU_RT_DEVICE=local-rank
export MGPU_RT_SOFTGPU="${MGPU_RT_SOFTGPU:-gfx90a,gfx90a}"

# Ranks may outnumber cores, and each has threads; nothing leaves this machine, and a minute is
# enough. Containers often have no user but root.
set -- --oversubscribe --bind-to none --timeout 60 --mca btl self,vader --mca oob_tcp_if_include lo
[ "$(id -u)" = 0 ] && set -- --allow-run-as-root "$@"
exec mpirun "$@" -n "$ranks" mgpu-rt run --device "${DEVICE:-softgpu}" -- "$build/ranks"
