"""`mgpu-rt compare --report`: its advice, and the evidence for each piece of advice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mgpu_rt._cli.report.advice import advice
from tests.python.cli.test_report import counted, read
from tests.support import recorded


def titles(folder: Path, **contents: Any) -> list[str]:
    return [item.title for item in advice(read(folder, **contents))]


def with_modules(**changes: Any) -> dict[str, Any]:
    return recorded.statistics(modules=[recorded.module(**changes)])


def undestroyed(**values: int) -> dict[str, Any]:
    """Returns statistics of a program that destroys no stream."""
    whole = counted("cache", "streams", evictions=0, **values)
    whole["abi"].pop("mgpuStreamDestroy")
    return whole


FAILED = {"function": "mgpuLaunchKernel", "error": "hipErrorInvalidImage", "calls": 1}

FINDINGS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # the title of the advice; files for which the page gives the advice; similar files for which
    # the page does not give the advice
    ("No cache was in use", {"s": recorded.stock()}, {"s": recorded.statistics()}),
    (
        "A module is loaded 100 times: writable globals",
        {"s": with_modules(driver_loads=100, why="writable globals")},
        {"s": with_modules(driver_loads=1, why="writable globals")},
    ),
    (
        "Streams are not reused",
        {"s": undestroyed(hits=9, misses=10)},
        {"s": undestroyed(hits=5, misses=9)},
    ),
    (  # the program destroys the streams while they are at work
        "Streams are not reused",
        {"s": undestroyed(hits=0, misses=100)},
        {"s": counted("cache", "streams", hits=0, misses=100, evictions=0)},
    ),
    (
        "The program registers host memory again and again",
        {"s": counted("abi", "mgpuMemHostRegisterMemRef", calls=10, ns=10_000)},
        {"s": counted("abi", "mgpuMemHostRegisterMemRef", calls=9, ns=10_000)},
    ),
    (
        "The program registers host memory again and again",
        {"s": counted("abi", "mgpuMemHostRegister", calls=10, ns=10_000)},
        {"s": counted("abi", "mgpuMemHostRegister", calls=10, ns=5_000)},
    ),
    (
        "The library asks the driver often",
        {"s": counted("hip", "hipStreamQuery", calls=100, ns=5_000)},
        {"s": counted("hip", "hipStreamQuery", calls=100, ns=4_900)},
    ),
    (
        "1 call failed",
        {"s": recorded.statistics(failed=[FAILED])},
        {"s": recorded.statistics(failed=[])},
    ),
    (
        "1 process did not end by exit",
        {"s": recorded.statistics(process=recorded.process(ended="unfinished"))},
        {"s": recorded.statistics(process=recorded.process())},
    ),
    (
        "60 % of the time the program waits for the GPU",
        {"s": counted("hip", "hipStreamSynchronize", calls=1, ns=30_000)},
        {"s": counted("hip", "hipStreamSynchronize", calls=1, ns=25_000)},
    ),
]


@pytest.mark.parametrize(("title", "proof", "nearly"), FINDINGS)
def test_advice_needs_evidence(
    title: str, proof: dict[str, Any], nearly: dict[str, Any], tmp_path: Path
) -> None:
    assert title in titles(tmp_path, **proof)
    assert titles(tmp_path, **nearly) == []


@pytest.mark.parametrize(
    "times",
    [
        counted("abi", "mgpuMemHostRegisterMemRef", calls=10, ns=10_000),
        counted("hip", "hipStreamQuery", calls=100, ns=5_000),
        counted("hip", "hipStreamSynchronize", calls=1, ns=30_000),
    ],
)
def test_the_emulated_device_gives_no_advice_about_time(times: dict, tmp_path: Path) -> None:
    assert titles(tmp_path, s=times) != []
    device = {"name": "softgpu gfx90a (emulated)", "hip": "5.2"}
    assert titles(tmp_path, s={**times, "device": device}) == []


def test_advice_on_memory_that_waits_names_what_mlir_can_do(tmp_path: Path) -> None:
    reasons = dict.fromkeys(("first_use", "size", "limit", "other_code"), 0)
    (found,) = advice(read(tmp_path, s=recorded.statistics(made={**reasons, "waits": 100})))
    assert found.evidence.startswith("100 blocks came from the driver")
    assert "`gpu.dealloc`" in found.step
    assert advice(read(tmp_path, s=recorded.statistics(made={**reasons, "waits": 9}))) == []


def test_no_cache_advice_for_stock_runs(tmp_path: Path) -> None:
    private = recorded.module(driver_loads=100, why="writable globals")
    whole = recorded.stock(modules=[private])
    whole["hip"]["hipStreamQuery"] = {"calls": 100, "ns": 5_000_000}
    assert titles(tmp_path, s=whole) == ["No cache was in use"]
