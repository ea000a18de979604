#!/bin/sh
# Runs the tests on a machine with an NVIDIA GPU, in the directory where the archive of
# tests/gpu/pack.py was unpacked. What is given is passed on to pytest.
#
# PYTHON names an interpreter that has pytest; what else is needed comes with the archive.
set -e
cd "$(dirname "$0")/../.."
: "${PYTHON:=python3}"

"$PYTHON" -m venv --system-site-packages .venv
.venv/bin/python -m pip install --quiet --no-index --no-deps build/gpu/wheels/*.whl
# The packages of an interpreter that is itself in a virtual environment are not its system's.
"$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("platlib"))' \
	>"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/host.pth"

make -s -f tests/hipstub/build.mk hipstub
make -s -f bench/stock/build.mk stock
MGPU_RT_TEST_PYTHON="$PWD/.venv/bin/python"
export MGPU_RT_TEST_PYTHON
exec .venv/bin/python -m pytest -q -p no:cacheprovider -m gpu "$@" \
	$(grep -l -e BACKENDS_WITH_GPU -e mark.gpu tests/test_*.py)
