#!/bin/sh
# Runs the tests on a machine with an NVIDIA GPU, in the directory where the archive of
# tests/devices/gpu/pack.py was unpacked. What is given is passed on to pytest.
#
# PYTHON names an interpreter that has pytest; what else is needed comes with the archive. Where it has
# NumPy, PyTorch or CuPy, kernels are launched on their arrays too.
# SANITIZE=1 runs them once more, under compute-sanitizer.
set -e
cd "$(dirname "$0")/../../.."
. tests/devices/gpu/venv.sh

make -s -f tests/devices/hipstub/build.mk hipstub
make -s -f bench/stock/build.mk stock
MGPU_RT_TEST_PYTHON="$PWD/.venv/bin/python"
export MGPU_RT_TEST_PYTHON
tests=".venv/bin/python -m pytest -q -p no:cacheprovider -m gpu"

files=$(grep -rl --include='test_*.py' -e BACKENDS_WITH_GPU -e mark.gpu tests)

status=0
$tests "$@" $files || status=$?

if [ "${SANITIZE:-}" = 1 ]; then
	# Calls that fail are for the tests to judge: some make them on purpose.
	log=build/gpu/sanitizer.log
	compute-sanitizer --tool=memcheck --target-processes=all --report-api-errors=no \
		--log-file="$log" $tests "$@" -k 'not sanitizer and not out_of_bounds' $files || status=$?
	if grep -q 'ERROR SUMMARY: 0 errors' "$log"; then
		echo "compute-sanitizer found nothing wrong"
	else
		cat "$log"
		status=1
	fi
fi
exit "$status"
