"""Tests which places of a program held device memory at the peak: memory_history sums the
allocations in a trace."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import mgpu_rt
from mgpu_rt import _record_json
from mgpu_rt._memory_table import memory_history
from mgpu_rt._record import Recording
from tests.support import recordings
from tests.support.child import Mgpu, environment, in_child
from tests.support.known import program
from tests.support.patience import HANG

SOURCE = """
#include "program.h"

#define PLACE __attribute__((noinline, noipa))

static PLACE void *weights(void) {
    void *block = mgpuMemAlloc(4096, NULL, false);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return block;
}

static PLACE void *activations(uint64_t bytes) {
    void *block = mgpuMemAlloc(bytes, NULL, false);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return block;
}

int main(void) {
    void *kept = weights(), *first = activations(1024), *second = activations(2048);
    mgpuMemFree(first, NULL);
    mgpuMemFree(first = activations(1024), NULL); /* a peak that was reached before */
    mgpuMemFree(second, NULL);
    second = activations(512); /* less than then */
    mgpuMemFree(second, NULL);
    mgpuMemFree(kept, NULL);
    return 0;
}
"""


def played(path: Path, tmp_path: Path, backend: str) -> Recording:
    file = tmp_path / "trace"
    env = environment(backend, MGPU_RT_TRACE=str(file), MGPU_RT_MANAGER="off")
    subprocess.run([str(path)], env=env, check=True, timeout=HANG)
    return recordings.read(file)


@pytest.mark.parametrize("flags", [(), ("-no-pie", "-fno-pie")])
@pytest.mark.parametrize("backend", ["stub", "softgpu"])
def test_places_hold_memory_at_the_peak(
    backend: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    recording = played(program(tmp_path, SOURCE, "-O1", *flags), tmp_path, backend)
    table = memory_history(recording)
    assert "at its peak: 7.2 kB\n" in table
    for row in (r"4.1 kB +1  weights\+", r"3.1 kB +2  activations\+"):
        assert re.search(row + r"0x[0-9a-f]+ \(program\+0x[0-9a-f]+\)\n", table), table
    allocations = [
        event["args"]["place"]
        for event in json.loads(_record_json.trace(recording))["traceEvents"]
        if event["name"] == "mgpuMemAlloc"
    ]
    assert len(allocations) == 5 and len(set(allocations)) == 2
    assert all(place.startswith("program+0x") for place in allocations)


def test_a_jits_code_has_an_address(tmp_path: Path) -> None:
    """Nothing names the code of a JIT, and the file of a place may be gone."""
    path = program(tmp_path, SOURCE, "-O1")
    recording = played(path, tmp_path, "stub")
    path.unlink()
    assert re.search(r"4.1 kB +1  program\+0x[0-9a-f]+\n", memory_history(recording))


@in_child(policies=("builtin",), MGPU_RT_STATS="/dev/null")
def test_no_place_is_known_without_a_trace(mgpu: Mgpu) -> None:
    mgpu.MemAlloc(1000, mgpu.StreamCreate(), False)
    assert "set MGPU_RT_TRACE" in mgpu_rt.memory_history()


@in_child(policies=("builtin",), MGPU_RT_TRACE="/dev/null")
def test_a_process_can_look_at_itself(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    for size in (1024, 4096):
        mgpu.MemAlloc(size, stream, False)
    assert "at its peak: 5.1 kB\n" in mgpu_rt.memory_history()
