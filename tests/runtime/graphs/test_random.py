"""Random sequences that a graph replays on other inputs give the results of a run without a
graph."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.runtime.graphs import randomly
from tests.support.child import BUILD, ROOT, Mgpu, environment, in_child
from tests.support.patience import HANG

KERNELS = str(BUILD / "hipstub" / "kernels.so")


@in_child(HIPSTUB_KERNELS=KERNELS)
def test_random_graphs_replay_right_on_the_stub(mgpu: Mgpu) -> None:
    """The stub runs a graph's nodes in any order that the edges allow."""
    randomly.run(mgpu, 0, 60, single=True)


@in_child(HIPSTUB_KERNELS=KERNELS, HIPSTUB_ASYNC="5,0,20", MGPU_RT_EXCLUSIVE="on")
def test_random_graphs_replay_right_beside_another_thread(mgpu: Mgpu) -> None:
    randomly.run(mgpu, 1000, 15, single=False)


@in_child(("builtin",), backends=("softgpu",))
def test_random_graphs_replay_right_on_the_emulated_device(mgpu: Mgpu) -> None:
    randomly.run(mgpu, 2000, 10, single=True)


@pytest.mark.gpu
@pytest.mark.parametrize("single", (True, False))
def test_random_graphs_replay_right_on_a_gpu(single: bool) -> None:
    """The test plays 1,000 programs, half of them while another thread works."""
    words = ["--single"] if single else []
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.graphs.randomly", "3000", "500", *words],
        cwd=ROOT,
        env=environment("cuda", MGPU_RT_MANAGER="off"),
        capture_output=True,
        text=True,
        timeout=10 * HANG,
    )
    assert (done.returncode, done.stderr) == (0, "")
