"""The outcomes of the snippets on a backend."""

from __future__ import annotations

import functools
import json
import sys

from tests.support.child import ROOT, environment
from tests.support.patience import run_process


@functools.cache
def outcomes(backend: str) -> dict[str, dict]:
    """Returns the outcome of each snippet, with the name of its HIP function as the key."""
    done = run_process(
        [sys.executable, "-m", "tests.python.snippets"], environment(backend), cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
