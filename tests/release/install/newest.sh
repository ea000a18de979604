# The newest Python as the manager's and as the host, in $HOME, over a stub of HIP: Debian's newest has
# no HIP. The archives lie beside this script. Run by test_install.py.
set -eu
given=$(cd "$(dirname "$0")" && pwd)
cd "$HOME"
python3 -m venv --system-site-packages wheel # Debian's cffi and click
wheel/bin/pip install -q --no-index --no-deps "$given"/*.whl
export MGPU_RT_HIP="$given/libamdhip64.so.5" MGPU_RT_VERBOSE=1 MGPU_RT_MANAGER=delay=0 MGPU_RT_STATS=1
wheel/bin/python "$given/newest.py" "$given/forum.hsaco"
