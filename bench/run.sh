#!/bin/sh
# Measures on a machine with a GPU, in a checkout where the archive of `python -m bench prepare` was
# unpacked. What is given is passed on to `python -m bench`.
set -e
cd "$(dirname "$0")/.."
. tests/devices/gpu/venv.sh
exec .venv/bin/python -m bench "$@"
