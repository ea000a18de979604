"""The table of handles: the cost of a lookup does not grow with the number of live handles."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from bench.setup import native
from tests.support import instructions
from tests.support.known import program
from tests.support.patience import HANG

pytestmark = pytest.mark.check  # counts instructions of a hundred thousand handles

#: Creates many objects of a kind, and then destroys each object; each destroy looks up the object.
PROGRAM = """
#include "program.h"
int main(int argc, char **argv) {
    const int count = atoi(argv[2]), events = !strcmp(argv[1], "events");
    void **all = calloc(count, sizeof *all);
    for (int i = 0; i < count; i++)
        all[i] = events ? mgpuEventCreate() : mgpuStreamCreate();
    for (int i = 0; i < count; i++)
        events ? mgpuEventDestroy(all[i]) : mgpuStreamDestroy(all[i]);
    return 0 * argc;
}
"""
FEW, MANY = 2_000, 20_000


def instructions_of(path: Path, kind: str, count: int) -> float:
    """Returns how many instructions the library executes for each handle."""
    env = native.stub_environment(MGPU_RT_MANAGER="off", MGPU_RT_EXCLUSIVE="on")
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "callgrind.out")
        tool = ["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]
        command = [*tool, f"--callgrind-out-file={out}", path, kind, str(count)]
        subprocess.run(command, env=env, check=True, capture_output=True, timeout=HANG)
        return instructions.parse(out.read_text(), count).per_iteration(native.RUNTIME.name)


@pytest.mark.skipif(not instructions.available(), reason="valgrind is missing")
@pytest.mark.parametrize("kind", ["events", "streams"])
def test_the_price_of_a_handle_does_not_depend_on_their_number(kind: str, tmp_path: Path) -> None:
    path = program(tmp_path, PROGRAM)
    few, many = (instructions_of(path, kind, count) for count in (FEW, MANY))
    assert many < 1.5 * few
