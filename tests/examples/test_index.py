"""examples/README.md lists what is there."""

from __future__ import annotations

import re

from tests.examples.conftest import EXAMPLES

INDEX = (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_every_program_and_script_is_listed() -> None:
    linked = set(re.findall(r"\]\(([\w/.]+)\)", INDEX))
    files = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*") if path.is_file()}
    shown = {name for name in files if name.endswith((".c", ".cpp", ".py")) or "CMake" in name}
    assert shown - linked <= {"mpi/CMakeLists.txt"}
    for script in (name for name in files if name.endswith(".sh")):
        assert f"`sh {script}" in INDEX, script
