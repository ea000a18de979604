"""Finds the MLIR programs that the tests lower. Bench measures some of these programs."""

from __future__ import annotations

from bench import PROGRAMS, ROOT

FOLDERS = (PROGRAMS, ROOT / "tests" / "runtime" / "programs" / "lowered")
#: The file of each program.
SOURCES = {path.stem: path for folder in FOLDERS for path in sorted(folder.glob("*.mlir"))}
