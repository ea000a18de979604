"""The demonstration reads the tables of `mgpu-rt compare`, and fails if a promise is broken."""

from __future__ import annotations

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
hipModuleLaunchKernel          1000   1000    424.114   8.023    53
hipStreamSynchronize           1000   1000    424.114   8.023    53
total                          7000   2004   3778.417  22.242    170
"""


def test_another_output_is_reported() -> None:
    with pytest.raises(demo.Failed, match="printed no table"):
        demo.check(22, "nothing\n")


def test_a_broken_promise_fails_the_demo() -> None:
    demo.check(22, TEXT)
    with pytest.raises(demo.Failed, match="2 calls of hipStreamCreate, not 0 to 1"):
        demo.check(22, TEXT.replace("1000      1    426", "1000      2    426"))
