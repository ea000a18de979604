"""Tests that each allocation and registration in a trace shows its place in the program."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from mgpu_rt import _record_json
from mgpu_rt._record import Recording
from tests.support import recordings
from tests.support.child import environment
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
def test_allocations_show_their_places(
    backend: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    recording = played(program(tmp_path, SOURCE, "-O1", *flags), tmp_path, backend)
    allocations = [
        event["args"]["place"]
        for event in json.loads(_record_json.trace(recording))["traceEvents"]
        if event["name"] == "mgpuMemAlloc"
    ]
    assert len(allocations) == 5 and len(set(allocations)) == 2
    named = re.compile(r"(weights|activations)\+0x[0-9a-f]+ \(program\+0x[0-9a-f]+\)")
    assert all(map(named.fullmatch, allocations))


REGISTERS = """
#include "program.h"

static float values[1024];

int main(void) {
    struct { float *allocated, *aligned; int64_t offset, size, stride; } part = {
        values, values, 16, 100, 1};
    mgpuMemHostRegister(values, sizeof values);
    mgpuMemHostUnregister(values);
    mgpuMemHostRegisterMemRef(1, (void *)&part, sizeof(float));
    mgpuMemHostUnregisterMemRef(1, (void *)&part, sizeof(float));
    return 0;
}
"""


@pytest.mark.parametrize("backend", ["stub", "softgpu"])
def test_registrations_show_their_memory(backend: str, tmp_path: Path) -> None:
    recording = played(program(tmp_path, REGISTERS, "-O1"), tmp_path, backend)
    calls = [
        event["args"]
        for event in json.loads(_record_json.trace(recording))["traceEvents"]
        if event["name"].startswith("mgpuMemHost")
    ]
    first, *rest = (int(call["address"], 16) for call in calls)
    assert [address - first for address in rest] == [0, 64, 64]
    assert [call.get("bytes") for call in calls] == [4096, None, 400, None]
    named = re.compile(r"main\+0x[0-9a-f]+ \(program\+0x[0-9a-f]+\)")
    assert all(named.fullmatch(call["place"]) for call in calls[::2])
    assert calls[0]["place"] != calls[2]["place"]
    assert not any("place" in call for call in calls[1::2])
