"""The demonstration prints only digits that the measurement supports, and explains the rows of its
table."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import demo
from bench.show.estimate import DIGITS, Estimate, each

times = st.floats(min_value=1, max_value=1e8)
samples = st.lists(times, min_size=3, max_size=5)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (3570.4, 120, "3,600 µs"),
        (3570.4, 0.2, "3,570 µs"),
        (21.734, 1.2, "22 µs"),
        (21.734, 0.03, "21.7 µs"),
        (15, 9, "20 µs"),
        (9.996, 0.001, "10.0 µs"),
        (0.0217, 0, "0.0217 µs"),
        (1.2, 1.3, "under 3 µs"),
        (-1.9, 0.4, "under 0.4 µs"),
        (-20, 31, "under 40 µs"),
        (0, 0, "nothing measurable"),
    ],
)
def test_estimates_show_only_meaningful_digits(value: float, error: float, words: str) -> None:
    assert Estimate(value, error).text("µs") == words


@given(samples, samples, st.integers(2, 100_000))
def test_estimates_are_never_negative_and_never_too_exact(
    one: list[float], many: list[float], count: int
) -> None:
    words = each(one, many, count).text("µs")
    assert "-" not in words
    digits = re.sub(r"[^0-9]", "", words)
    if "." not in words:
        digits = digits.rstrip("0")
    assert len(digits.lstrip("0")) <= DIGITS


def test_one_disturbed_run_does_not_move_the_estimate() -> None:
    """A single disturbed run changes only the error of the estimate, and not the estimated
    value."""
    quiet = each([100, 101, 102], [1100, 1101, 1102], 11)
    disturbed = each([100, 101, 902], [1100, 1101, 1102], 11)
    assert quiet.value == disturbed.value == 100
    assert quiet.text("µs") == "100 µs"
    assert disturbed.text("µs") == "100 µs"
    assert each([100, 101, 5000], [1100, 1101, 1102], 11).text("µs") == "under 400 µs"


def outcome(launch: Estimate, **driver: int) -> demo.Outcome:
    return demo.Outcome(launch, demo.Counts("", driver))


def test_the_summary_has_a_line_for_each_llvm() -> None:
    before = outcome(Estimate(3570, 120), hipStreamCreate=1000, hipModuleLoadData=1000)
    after = outcome(Estimate(21.7, 1.2), hipStreamCreate=1, hipModuleLoadData=1)
    preloaded = outcome(Estimate(-1.9, 7.5), hipStreamCreate=1, hipModuleLoadData=1)
    text = demo.summary({19: dict(zip(demo.SIDES, (before, after, preloaded), strict=True))})
    head, line, *explanation, note = text.splitlines()
    assert head.split("  ")[0] == "a launch, in other runs"
    assert explanation == [*demo.EXPLANATION]
    assert re.split("  +", line) == [
        "LLVM 19", "3,600 µs", "22 µs", "under 8 µs", "1,000, then 1", "1,000, then 1",
    ]  # fmt: skip
    assert all(len(each) <= 100 for each in text.splitlines())
    assert note == '"under": the time is too short for this measurement, and may be far less'


def test_the_plain_runtime_is_explained() -> None:
    (line,) = (li for li in demo.INTRODUCTION.splitlines() if li.startswith("plain runtime: "))
    assert "LLVM's own" in line
    assert "MGPU_RT_CACHE=off" in line


def test_a_broken_promise_fails_the_demo() -> None:
    kept = {"hipModuleLaunchKernel": demo.LAUNCHES, "hipStreamSynchronize": demo.LAUNCHES}
    demo.check(22, kept)
    with pytest.raises(demo.Failed, match="2 calls of hipStreamCreate, not 0 to 1"):
        demo.check(22, {**kept, "hipStreamCreate": 2})
