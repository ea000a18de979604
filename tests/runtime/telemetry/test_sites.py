"""Tests which places of a program held device memory at the peak: memory_history, and `peak` in the
JSON."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from mgpu_rt._memory_table import memory_history
from tests.support.child import environment
from tests.support.known import program
from tests.support.patience import HANG

SOURCE = """
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

void *mgpuMemAlloc(uint64_t bytes, void *stream, bool shared);
void mgpuMemFree(void *block, void *stream);

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


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("sites"), SOURCE, "-O1")


def rows(stats: dict) -> dict[str, tuple[int, int]]:
    return {
        re.sub(r"\+.*", "", row["symbol"] or "none"): (row["bytes"], row["blocks"])
        for row in stats["memory"]["0"]["peak"]
    }


def played(path: Path, tmp_path: Path, backend: str) -> dict:
    file = tmp_path / "stats.json"
    env = environment(backend, MGPU_RT_STATS=str(file), MGPU_RT_MANAGER="off")
    subprocess.run([str(path)], env=env, check=True, timeout=HANG)
    return json.loads(file.read_text())


@pytest.mark.parametrize("backend", ["stub", "softgpu"])
def test_places_hold_memory_at_the_peak(path: Path, tmp_path: Path, backend: str) -> None:
    stats = played(path, tmp_path, backend)
    assert rows(stats) == {"weights": (4096, 1), "activations": (3072, 2)}
    table = memory_history(stats)
    assert re.search(r"4.1 kB +1  weights\+0x[0-9a-f]+ \(program\+0x[0-9a-f]+\)\n", table), table


def test_nothing_is_counted_without_statistics() -> None:
    assert "MGPU_RT_STATS" in memory_history({"memory": {"0": {"peak": []}}})


def test_a_jits_code_has_an_address() -> None:
    row = {"symbol": None, "file": None, "offset": 0x7F00, "bytes": 512, "blocks": 1}
    other = {**row, "offset": 0}
    table = memory_history({"memory": {"0": {"peak": [row, other]}}})
    assert "0x7f00" in table and "elsewhere" in table
