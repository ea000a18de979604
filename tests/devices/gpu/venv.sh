# Makes .venv of PYTHON's packages and of the wheels that were carried. To be read by a shell in the
# repository's root.
: "${PYTHON:=python3}"

"$PYTHON" -m venv --system-site-packages .venv
.venv/bin/python -m pip install --quiet --no-index --no-deps build/gpu/wheels/*.whl
# The packages of an interpreter that is itself in a virtual environment are not its system's.
"$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("platlib"))' \
	>"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/host.pth"
