# What a user of another Debian does, in $HOME, with the archives beside this script.
# Run by test_install.py.
set -eu
given=$(cd "$(dirname "$0")" && pwd)
cd "$HOME"
export PIP_NO_INDEX=1 PIP_FIND_LINKS="$given/wheels" PIP_DISABLE_PIP_VERSION_CHECK=1

# $1: the command of an installation.
serve() {
    "$1" doctor --device softgpu
    cc "$given/forum.o" $("$1" config --libs) -o forum
    "$1" run --device softgpu --stats -- ./forum 2>stats || true # its main returns nothing
    grep ' 100 mgpuLaunchKernel' stats || { cat stats; exit 1; }
    grep ' 1 hipStreamCreate' stats || { cat stats; exit 1; }
    cmake -S "$given/example" -B cmake -Dmgpu_rt_DIR="$("$1" config --cmakedir)" >/dev/null
    cmake --build cmake >/dev/null
    cmake/version
    rm -r cmake
    echo "served by $1"
}

python3 -m venv wheel
wheel/bin/pip install -q "$given"/*.whl
serve wheel/bin/mgpu-rt

python3 -m venv source
source/bin/pip install -q setuptools cffi click
source/bin/pip install -q --no-build-isolation "$given"/*.tar.gz
serve source/bin/mgpu-rt

tar -xf "$given"/*.tar.gz
cd mgpu_rt-*/
make PYTHON=python3 native
make PYTHON=python3 PREFIX="$HOME/usr" INSTALL_PYTHON="$HOME/wheel/bin/python" install
cd ..
rm -r mgpu_rt-*/
serve usr/bin/mgpu-rt
