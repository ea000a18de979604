"""The policy among the examples runs in a program."""

from __future__ import annotations

from tests.python.launches import EXAMPLES
from tests.support.child import Mgpu, in_child
from tests.support.patience import wait_until


@in_child(policies=("python",), MGPU_RT_POLICY="policy:KeepLarge", PYTHONPATH=str(EXAMPLES))
def test_the_example_is_a_policy(mgpu: Mgpu) -> None:
    """The example keeps one of two idle streams."""
    for stream in [mgpu.StreamCreate(), mgpu.StreamCreate()]:
        mgpu.StreamDestroy(stream)
    assert wait_until(lambda: mgpu.count("hipStreamDestroy") == 1)
    assert "failed" not in mgpu.stderr()
