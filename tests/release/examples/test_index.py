"""examples/README.md lists all examples."""

from __future__ import annotations

import re

from tests.release.examples.conftest import EXAMPLES, INDEX


def test_every_program_and_script_is_listed() -> None:
    linked = set(re.findall(r"\]\(([\w/.]+)\)", INDEX))
    folders = [path for path in EXAMPLES.iterdir() if path.is_dir() and "build" not in path.name]
    files = {str(path.relative_to(EXAMPLES)) for folder in folders for path in folder.iterdir()}
    shown = {name for name in files if name.endswith((".c", ".cpp", ".py")) or "CMake" in name}
    parts = {"mpi/CMakeLists.txt", "python/descriptor.py", "python/lowered.py"}  # of the others
    assert shown - linked <= parts
    for script in (name for name in files if name.endswith(".sh")):
        assert f"`sh {script}" in INDEX, script
