"""Runs a test in a process whose cached.py has one text changed (test_guards.py)."""

from __future__ import annotations

import importlib.util
import sys

from tests.support import child

MODULE = "mgpu_rt.runtime.cached"


def main() -> None:
    """The arguments: the text, what becomes of it, and the test's module and name."""
    old, new = sys.argv[1:3]
    del sys.argv[1:3]
    spec = importlib.util.find_spec(MODULE)
    assert spec and spec.origin
    with open(spec.origin, encoding="utf-8") as file:
        text = file.read()
    if text.count(old) != 1:
        print(f"cached.py must hold this once: {old}")
        sys.exit(2)  # a test that fails exits with 1
    changed = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = changed
    exec(compile(text.replace(old, new), spec.origin, "exec"), changed.__dict__)
    child.main()
