"""Plays random programs over the memory cache, on every backend, and compares the results with a
model on the host.

The stub delays each stream differently, so a missing wait leads to a wrong number.
"""

from __future__ import annotations

import os

import pytest

from tests.support import memory_model
from tests.support.child import BUILD, Mgpu, environment, in_child, run_child
from tests.support.suites import in_check

BODIES = str(BUILD / "hipstub" / "kernels.so")
DELAYS = "300,0,2000,50,800,10,1500,100,400"  # microseconds: the null stream, then the others

STRICT = {"MGPU_RT_SYNC": "strict"}
LAZY = {"MGPU_RT_SYNC": "lazy", "MGPU_RT_EXCLUSIVE": "on"}
TIGHT = {"MGPU_RT_MEMORY_LIMIT": "1M", "MGPU_RT_STREAM_LIMIT": "2"}
ASKING = {"MGPU_RT_EXCLUSIVE": "off"}
REACHING = {"HIPSTUB_PAGEABLE": "1", "MGPU_RT_EXCLUSIVE": "on"}
OFF = {"MGPU_RT_CACHE": "off"}

STUB = [(mode, seed) for mode in (STRICT, LAZY, TIGHT, ASKING, REACHING, OFF) for seed in range(4)]
DEVICE = [(mode, seed) for mode in (STRICT, LAZY, TIGHT) for seed in range(2)]


def play(backend: str, mode: dict[str, str], seed: int, threads: int, steps: int) -> None:
    sizes = {"SEED": str(seed), "THREADS": str(threads), "STEPS": str(steps)}
    named = {f"MEMORY_{name}": value for name, value in sizes.items()}
    python = {"MGPU_RT_MANAGER": "off"} if seed % 2 else {}
    stub = {"HIPSTUB_ASYNC": DELAYS, "HIPSTUB_KERNELS": BODIES} if backend == "stub" else {}
    env = environment(backend, **stub, **mode, **named, **python)
    run_child(__name__, "_program", env)


@in_child()
def _program(mgpu: Mgpu) -> None:
    seed, threads, steps = (int(os.environ[f"MEMORY_{n}"]) for n in ("SEED", "THREADS", "STEPS"))
    checked = memory_model.run(mgpu, seed, threads, streams=8 // threads, steps=steps)
    assert checked > steps * threads // 20
    text = mgpu.stderr()
    assert "failed" not in text, text
    mgpu.lib.mgpu_rt_empty_cache()
    held = mgpu.stats()["memory"].get("0", {"allocated": 0, "reserved": 0})
    assert (held["allocated"], held["reserved"]) == (0, 0)
    if mgpu.on_stub:
        assert mgpu.stub.hipstub_misuse() == 0
        assert mgpu.stub.hipstub_live(b"bytes") == 0


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(("mode", "seed"), in_check(STUB, lambda mode, seed: seed > 0))
def test_random_allocations_on_the_stub_follow_the_model(
    mode: dict[str, str], seed: int, threads: int
) -> None:
    play("stub", mode, seed, threads, 400 // threads)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(("mode", "seed"), in_check(DEVICE, lambda mode, seed: seed > 0))
def test_random_allocations_on_softgpu_follow_the_model(
    mode: dict[str, str], seed: int, threads: int
) -> None:
    play("softgpu", mode, seed, threads, 800 // threads)


@pytest.mark.gpu
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(("mode", "seed"), [(mode, s) for mode, _ in DEVICE for s in range(4)])
def test_random_allocations_on_cuda_follow_the_model(
    mode: dict[str, str], seed: int, threads: int
) -> None:
    play("cuda", mode, seed, threads, 4000 // threads)
