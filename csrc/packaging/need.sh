#!/bin/sh
# Finds out what a step needs and this machine lacks, by what is there and not by a list of packages.
#
#     need.sh NAME...           installs what is missing with apt-get, where there is one and the
#                               right to use it; else says in words what is missing, and fails
#     need.sh --list NAME...    prints what is missing, a line each
#
# CC, PYTHON and HOST_PYTHON are make's. The names are the functions `has_...` below.

CC=${CC:-cc}
PYTHON=${PYTHON:-python3}

command_there() {
    command -v "$1" >/dev/null 2>&1
}

# A command may be several words, such as CC="ccache gcc".
has_cc() {
    command_there "${CC%% *}" && printf '#include <stdio.h>\n' | $CC $CFLAGS -E -x c - >/dev/null 2>&1
}
words_cc="a C compiler with the C library's headers (make CC=...)"
packages_cc="gcc libc6-dev"

has_make() { command_there make; }
words_make="make"
packages_make="make"

has_binutils() { command_there "${LD:-ld}" && command_there "${STRIP:-strip}" && command_there objcopy; }
words_binutils="ld, strip and objcopy of binutils (make LD=... STRIP=...)"
packages_binutils="binutils"

has_python() { "$PYTHON" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }
words_python="Python 3.10 or newer with its modules venv and ensurepip (make PYTHON=...)"
packages_python="python3 python3-venv"

has_python_headers() {
    "$PYTHON" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' 2>/dev/null
}
words_python_headers="Python.h, the C headers of $PYTHON (make PYTHON=... for a Python that has them)"
packages_python_headers="python3-dev"

# Only programs that are no Python ones need it, and they go on without.
has_libpython() {
    "$PYTHON" -c 'import ctypes, os, sysconfig as s; ctypes.CDLL(
os.path.join(s.get_config_var("LIBDIR") or "", s.get_config_var("INSTSONAME") or "none"))' 2>/dev/null
}
words_libpython="libpython3, the shared library of $PYTHON (make PYTHON=... for a Python that has one)"
packages_libpython=$("$PYTHON" -c 'import sys; print("libpython%d.%d" % sys.version_info[:2])' 2>/dev/null)

has_hsakmt() {
    # Not to -, which some compilers take for a name.
    out=$(mktemp) || return 1
    printf '#include <hsakmt.h>\n_Static_assert(sizeof(HsaNodeProperties) == 356, "5 or 6");\n' |
        $CC $CFLAGS -idirafter /usr/include/hsakmt -idirafter /opt/rocm/include \
            -idirafter /opt/rocm/include/hsakmt -S -o "$out" -x c - >/dev/null 2>&1
    set -- $?
    rm -f "$out"
    return "$1"
}
words_hsakmt="hsakmt.h of AMD's driver library from ROCm 5 or 6, libhsakmt-dev or hsakmt-roct-devel (make CFLAGS=-I... where it lies elsewhere; make SOFTGPU=no goes on without the software GPU)"
packages_hsakmt="libhsakmt-dev"

has_hip() {
    for library in /usr/lib/*/libamdhip64.so.* /usr/lib64/libamdhip64.so.* /opt/rocm*/lib/libamdhip64.so.* "$MGPU_RT_HIP"; do
        [ -f "$library" ] && return 0
    done
    return 1
}
words_hip="AMD's HIP library libamdhip64 (MGPU_RT_HIP=...)"
packages_hip="libamdhip64-5"

# A release of LLVM's tools: Debian's folder of it, or names that end so in PATH.
has_llvm() {
    for tool in "$2" mlir-opt mlir-translate llc ld.lld; do
        [ -x "/usr/lib/llvm-$1/bin/$tool" ] || command_there "$tool-$1" || return 1
    done
}
for release in 22 19 15; do
    eval "words_llvm_$release='mlir-opt, mlir-translate, llc, ld.lld and the JIT runner of LLVM $release, in PATH with the ending -$release'
          packages_llvm_$release='mlir-$release-tools llvm-$release lld-$release'"
done
has_llvm_22() { has_llvm 22 mlir-runner; }
has_llvm_19() { has_llvm 19 mlir-cpu-runner; }
has_llvm_15() { has_llvm 15 mlir-cpu-runner; }

has_device_libs() { [ -d /usr/lib/x86_64-linux-gnu/amdgcn ]; }
words_device_libs="AMD's device libraries, in /usr/lib/x86_64-linux-gnu/amdgcn"
packages_device_libs="rocm-device-libs"

has_cxx() { command_there "${CXX:-c++}"; }
words_cxx="a C++ compiler"
packages_cxx="g++"

has_valgrind() { command_there valgrind; }
words_valgrind="valgrind"
packages_valgrind="valgrind"

has_clang_format() { command_there clang-format-22; }
words_clang_format="clang-format-22"
packages_clang_format="clang-format-22"

has_gcc_12() { command_there gcc-12; }
words_gcc_12="gcc-12"
packages_gcc_12="gcc-12"

has_clang_22() {
    printf 'int LLVMFuzzerTestOneInput(const char *d, long n) { return !d && n; }\n' |
        clang-22 -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null
}
words_clang_22="clang-22 with libFuzzer"
packages_clang_22="clang-22 libclang-rt-22-dev"

# Compiles HIP; the bundler lies beside it.
has_hip_clang() { command_there clang++-22 && [ -x /usr/lib/llvm-22/bin/clang-offload-bundler ]; }
words_hip_clang="clang++-22 and its clang-offload-bundler"
packages_hip_clang="clang-22 clang-tools-22"

has_mpi() { command_there mpicc && command_there mpirun; }
words_mpi="mpicc and mpirun of Open MPI"
packages_mpi="openmpi-bin libopenmpi-dev"

has_hipsparse() { ldconfig -p 2>/dev/null | grep -q 'libhipsparse\.so\.'; }
words_hipsparse="hipSPARSE of the same ROCm as HIP (libhipsparse.so)"
packages_hipsparse="libhipsparse0"

has_cmake() { command_there cmake; }
words_cmake="cmake"
packages_cmake="cmake"

has_pkg_config() { command_there pkg-config; }
words_pkg_config="pkg-config"
packages_pkg_config="pkg-config"

has_mmdebstrap() { command_there mmdebstrap; }
words_mmdebstrap="mmdebstrap"
packages_mmdebstrap="mmdebstrap"

# Its package's name differs between systems, and so does the command's.
has_chromium() { command_there chromium || command_there chromium-browser || command_there google-chrome; }
words_chromium="a Chromium that runs without a screen"
packages_chromium="chromium"

look() {
    missing= packages=
    for name in "$@"; do
        name=$(printf '%s' "$name" | tr -- - _)
        "has_$name" && continue
        eval "missing=\"\$missing  \$words_$name
\" packages=\"\$packages \$packages_$name\""
    done
}

list=
[ "$1" = --list ] && list=yes && shift
look "$@"
[ -z "$missing" ] && exit 0
if [ -n "$list" ]; then
    printf '%s' "$missing" | sed 's/^  //'
    exit 1
fi

# Root, or somebody whom sudo believes or can ask.
may_install() {
    command_there apt-get || return 1
    sudo=
    [ "$(id -u)" = 0 ] && return 0
    sudo=sudo
    command_there sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }
}

if may_install; then
    echo "Installing Debian packages:$packages"
    $sudo apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $packages >/dev/null
    look "$@"
    [ -z "$missing" ] && exit 0
fi
{
    printf 'This machine lacks:\n%s' "$missing"
    if command_there apt-get; then
        echo "Run make again when it is installed (as root: apt-get install$packages)."
    else
        echo "Run make again when this system's package manager has installed it."
    fi
} >&2
exit 1
