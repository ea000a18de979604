"""`mgpu-rt check` finds copies past the end of a block of the host's malloc, and says nothing about
other memory of the host."""

from __future__ import annotations

import json
from pathlib import Path

from tests.python.runtime.hooked import hip
from tests.support.child import library
from tests.support.command import UNEXAMINED, command
from tests.support.compiled import compile_c

SOURCE = Path(__file__).with_name("host_blocks.c").read_text()

#: For each case: the access to the host's memory, the size of its block, and the address in it.
FAULTS = {
    "too_small": ("store", 500, 0),
    "inside": ("store", 600, 100),
    "cleared": ("store", 500, 0),
    "shrunk": ("store", 500, 0),
    "aligned": ("store", 448, 0),
    "of_posix": ("store", 500, 0),
    "of_pages": ("store", 500, 0),
    "one_of_many": ("store", 400, 0),
    "empty": ("store", 0, 0),
    "read_too_far": ("load", 500, 0),
}


def test_copies_past_the_end_of_a_block_are_found(tmp_path: Path) -> None:
    built = library()
    flags = ("-w", "-O1", "-pthread", str(built), f"-Wl,-rpath,{built.parent}")
    program, out = compile_c(tmp_path / "copies", SOURCE, *flags), tmp_path / "found.json"
    done = command("check", "--json", out, "--", program, **hip())
    assert done.returncode == 1, done.stderr
    found = {
        report["place"][0]["symbol"]: (
            report["access"],
            report["allocation"]["bytes"],
            report["address"] - report["allocation"]["address"],
        )
        for report in json.loads(out.read_text())["reports"]
    }
    assert found == FAULTS
    assert "error: mgpuMemcpy stores 512 bytes at 0x" in done.stderr
    assert ", the last 12 bytes of them behind the host's block [out-of-bounds]\n" in done.stderr
    assert "  the host's block has 500 bytes at 0x" in done.stderr
    assert done.stderr.endswith(f"\nmgpu-rt: {len(FAULTS)} faults{UNEXAMINED}\n")
