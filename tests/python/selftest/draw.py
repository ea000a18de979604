"""Writes random sequences for the selftest into a folder, for tests/proofs/programs/bundle.py.

    python -m tests.python.selftest.draw FOLDER

The random driver generates the sequences, which run on any HIP and do not depend on the null
stream's order.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from pathlib import Path

from tests.proofs.random import cases, runner

SEQUENCES, SEED = 300, 28
#: The number of sequences that may reset the device. Only --harsh plays these sequences.
HARSH = 60
#: Actions that need steps of the tests' player.
TESTS_ALONE = ("bad", "crowd", "elapsed", "end-busy", "end-busy-handlers")
TESTS_ALONE += ("graph", "hoard", "refused")


def draw(folder: Path) -> None:
    device = dataclasses.replace(runner.SOFTGPU, name="any")
    folder.mkdir(parents=True, exist_ok=True)
    for kind, count, seed, without in (
        ("calm", SEQUENCES, SEED, (*TESTS_ALONE, "reset")),
        ("harsh", HARSH, SEED + 1, TESTS_ALONE),
    ):
        with tempfile.TemporaryDirectory() as scratch:
            paths = cases.write(count, Path(scratch), device, seed, without)
            for number, path in enumerate(paths):
                text = json.dumps(json.loads(path.read_text()), separators=(",", ":"))
                (folder / f"{kind}-{number:02}.json").write_text(text)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
