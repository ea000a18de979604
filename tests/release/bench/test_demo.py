"""The demonstration reads the tables of `mgpu-rt compare`, and fails if a promise is broken."""

from __future__ import annotations

import re

import pytest

from bench import demo

TEXT = """\
before: stock's behaviour (MGPU_RT_CACHE=off)

calls of the program   calls before  after  ms before   after  ratio
mgpuStreamDestroy              1000   1000   1386.010   0.242   5727
total                          7000   7000   3570.916  21.746    159

calls of the driver    calls before  after  ms before   after  ratio
hipStreamDestroy               1000      –   1385.327       –      –
hipModuleLoadData              1000      1    824.696   6.085    136
hipStreamCreate                1000      1    426.341   0.491    868
total                          7000   2004   3778.417  22.242    170
"""


def test_the_summary_has_a_line_for_each_llvm() -> None:
    head, line = demo.summary({19: demo.parsed(TEXT)}).splitlines()
    assert head.split("  ")[0] == "a launch, all its calls"
    assert re.split("  +", line) == [
        "LLVM 19", "3,571 µs", "21.7 µs", "1,000, then 1", "1,000, then 1",
    ]  # fmt: skip
    assert demo.parsed(TEXT).driver["hipStreamDestroy"] == (1000, 0)


def test_another_output_is_reported() -> None:
    with pytest.raises(demo.Failed, match="printed no totals"):
        demo.parsed("nothing\n")


def test_a_broken_promise_fails_the_demo() -> None:
    kept = dict.fromkeys(("hipModuleLaunchKernel", "hipStreamSynchronize"), (1000, demo.LAUNCHES))
    demo.check(22, kept)
    with pytest.raises(demo.Failed, match="2 calls of hipStreamCreate, not 0 to 1"):
        demo.check(22, {**kept, "hipStreamCreate": (1000, 2)})
