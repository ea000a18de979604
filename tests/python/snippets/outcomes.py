"""The outcomes of the snippets on a backend."""

from __future__ import annotations

import functools
import json
import subprocess
import sys

from tests.support.child import ROOT, environment
from tests.support.patience import HANG


@functools.cache
def outcomes(backend: str) -> dict[str, dict]:
    """Returns the outcome of each snippet, with the name of its HIP function as the key."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.python.snippets"],
        cwd=ROOT,
        env=environment(backend),
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
