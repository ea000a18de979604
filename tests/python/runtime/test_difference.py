"""The package compares a replay's memory with the recorded memory, and finds every difference that
exceeds the tolerance."""

from __future__ import annotations

import math
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest

from mgpu_rt._recordings import replay
from mgpu_rt._recordings.difference import Allowed, Difference, differences
from mgpu_rt.runtime import Recording
from tests.python.runtime.hooked import changed

NAN, INF, F32_MAX = math.nan, math.inf, (2 - 2**-23) * 2.0**127


def compared(form: str, now: list[Any], then: list[Any], tolerance: Any, dtype: str | None):
    """Returns None if the contents are equal. Otherwise returns the position of the first
    difference, the number of differences, and the largest error."""
    contents = [struct.pack(f"<{len(values)}{form}", *values) for values in (now, then)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = differences(0, *contents, Allowed(tolerance, 0, dtype))
    return (found[0].first, found[0].count, found[0].largest) if found else None


@pytest.mark.parametrize(
    ("form", "dtype", "now", "then", "tolerance", "expected"),
    [
        ("q", "i64", [2**53, 2**53], [2**53, 2**53 + 1], 0, (1, 1, 1)),
        ("q", "i64", [2**63 - 1], [2**63 - 2], 0.9, (0, 1, 1)),
        ("q", "i64", [2**53], [2**53 + 1], 1, (0, 1, 1)),
        ("q", "i64", [-(2**63)], [2**63 - 1], 1e18, (0, 1, 2**64 - 1)),
        ("b", "i8", [-128, 3, 5], [127, 3, 4], 1, (0, 2, 255)),
        ("h", "i16", [7], [-8], 14, (0, 1, 15)),
        ("i", "i32", [2**31 - 1], [-(2**31)], 2**32 - 2, (0, 1, 2**32 - 1)),
        ("f", "f32", [1.0, 2.0], [1.0, 2.5], 0.4, (1, 1, 0.5)),
        ("f", "f32", [1.0, 2.0], [1.0, 2.5], 0.5, None),
        ("f", "f32", [0.0], [-0.0], 0, None),
        ("e", "f16", [1.0], [1.5], 0.25, (0, 1, 0.5)),
        ("d", "f64", [1.0], [1.0 + 2**-52], 0, (0, 1, 2**-52)),
        ("d", "f64", [INF, INF, NAN], [INF, -INF, NAN], 1e300, (1, 1, INF)),
        ("H", "bf16", [0x3F80], [0x3FC0], 0.25, (0, 1, 0.5)),  # 1.0 and 1.5
        ("H", "bf16", [0x3F80], [0x3FC0], 0.5, None),
        ("H", "bf16", [0x7FC0], [0x7FC1], 0, None),  # NaNs
        # integers, which are denormal or NaN as floats
        ("i", "f32", [1, 2, 3], [1, 0, 6], 1.0, (1, 2, 3 * 2**-149)),
        ("q", "f64", [1], [2], 1.0, (0, 1, 2**-1074)),
        ("H", "bf16", [1], [2], 1.0, (0, 1, 2**-133)),
        ("h", "f16", [1], [2], 1.0, (0, 1, 2**-24)),
        ("f", "f32", [2**-149, 1.0], [0.0, 1.5], 0.5, None),
        ("f", None, [1.0], [2.0], None, (2, 2, None)),
    ],
)
def test_numbers_are_compared(
    form: str,
    dtype: str | None,
    now: list[Any],
    then: list[Any],
    tolerance: float | None,
    expected: object,
) -> None:
    assert compared(form, now, then, tolerance, dtype) == expected
    assert (compared(form, then, now, tolerance, dtype) is None) == (expected is None)


def test_negative_integers_differ_as_floats() -> None:
    contents = [struct.pack("<i", number) for number in (-1, -77)]
    (found,) = differences(0, *contents, Allowed(1.0, 0, "f32"))
    assert "they are denormal or NaN: name the type of integers" in str(found)


def test_a_nan_on_one_side_differs_from_every_number() -> None:
    first, count, largest = compared("f", [NAN, 1.0, NAN], [1.0, NAN, NAN], 1e30, "f32") or ()
    assert (first, count, math.isnan(largest)) == (0, 2, True)


@pytest.mark.parametrize(
    ("now", "then", "allowed", "expected"),
    [
        ([1, 2, 3, 4], [1, 2, 3.5, 5], Allowed(None, 0, "f32"), (2, 2, ("3.0", "3.5"))),
        ([1, 1, 1, 1], [1, 1, 1, 1 + 2**-22], Allowed(None, 2, "f32"), None),
        ([1, 1, 1, 1], [1, 1, 1, 1 + 2**-22], Allowed(None, 1, "f32"), (1, 3, None)),
        ([0, 1, 1, 1], [-0.0, 1, 1, 1], Allowed(None, 0, "f32"), (1, 0, ("0.0", "-0.0"))),
        ([-1e-45, 1, 1, 1], [1e-45, 1, 1, 1], Allowed(None, 2, "f32"), None),
        ([1, 1, 1, 1], [NAN, 1, 1, 1], Allowed(9, 9, "f32"), (1, 0, None)),
        ([1, INF, 1, 1], [1, F32_MAX, 1, 1], Allowed(None, 9, "f32"), (1, 1, None)),
        ([1, F32_MAX, 1, 1], [1, -F32_MAX, 1, 1], Allowed(None, 9, "f32"), (1, 1, None)),
        ([1, INF, 1, 1], [1, -INF, 1, 1], Allowed(None, 9, "f32"), (1, 1, None)),
    ],
)
def test_elements_may_differ_in_their_last_places(
    now: list[float],
    then: list[float],
    allowed: Allowed,
    expected: tuple[int, int, tuple[str, str] | None] | None,
) -> None:
    contents = [struct.pack("<4f", *values) for values in (now, then)]
    found = differences(0, *contents, allowed)
    assert [(each.count, each.first) for each in found] == ([expected[:2]] if expected else [])
    assert not expected or expected[2] in (None, found[0].values)


@pytest.mark.parametrize("size", [1, 4, 9, 11])
def test_the_bytes_behind_the_last_element_are_compared(size: int) -> None:
    then = bytes(size)
    now = then[:-1] + b"\1"
    assert differences(3, then, then, Allowed(1e30, 0, "f64")) == []
    (found,) = differences(3, now, then, Allowed(1e30, 0, "f64"))
    assert found == Difference(3, size - 1, 1)
    assert str(found) == f"memory block 3: 1 bytes differ, the first is byte {size - 1}"


class Fickle:
    """A device whose launches produce different content each time."""

    def __init__(self, *_given: object, contents: tuple[bytes, ...] = ()) -> None:
        self._contents = iter(contents)

    def once(self) -> float:
        self.now = next(self._contents)
        return 1e-6

    def content(self, _at: int) -> bytes:
        return self.now


def test_each_iteration_is_compared(recorded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording(recorded)
    right = recording.launches[0].content(recording.launches[0].blocks[0].after)
    wrong = right[:-1] + b"\1"
    device = Fickle(contents=(right, right, wrong, bytes(len(right))))
    monkeypatch.setattr(replay, "_Replay", lambda *_: device)
    replayed = recording.replay(iterations=4)
    assert not replayed.same
    assert str(replayed).splitlines() == [
        "halve: DIFFERS in iteration 3, median 1.0 µs, best 1.0 µs, of 4",
        f"memory block 0: 1 bytes differ, the first is byte {len(right) - 1}",
    ]


def test_a_block_has_the_bytes_that_the_program_requested(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mgpu-rt check` finds accesses to the bytes behind them, which no replay compares."""
    copy = changed(recorded, tmp_path / "copy", lambda launch: launch["blocks"][0].update(asked=9))
    recording, given = Recording(copy), []
    right = recording.launches[0].content(recording.launches[0].blocks[0].after)

    def device(_launch: object, _code: object, before: list[bytes]) -> Fickle:
        given.extend(before)
        return Fickle(contents=(right[:9],))

    monkeypatch.setattr(replay, "_Replay", device)
    assert recording.replay().same
    assert [len(content) for content in given] == [9]
