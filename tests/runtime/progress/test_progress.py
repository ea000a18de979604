"""Tests that no mgpu function waits where stock's function returns.

A kernel waits for the host. While the kernel waits, progress.c calls every mgpu function in several
situations. The program runs first as stock (MGPU_RT_CACHE=off), and then with the caches in each
mode. If stock's call returns, the library's call must return too. The call must not delay the work
of another stream. If stock is too slow, its call counts as one that waits. So a slow machine makes
no test fail.
"""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

from tests.support import lower
from tests.support.child import ROOT, environment
from tests.support.folders import folder
from tests.support.known import program
from tests.support.patience import HANG

HERE = Path(__file__).parent
SITUATIONS = (
    "held",
    "null_is_named",
    "foreign",
    "null_is_busy",
    "external",
    "capture",
    "was_short",
    "short",
)
LAZY = {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_SYNC": "lazy"}
LIMITS = {
    "MGPU_RT_MODULE_LIMIT": "1",
    "MGPU_RT_STREAM_LIMIT": "1",
    "MGPU_RT_MEMORY_LIMIT": "1",
}
MODES: dict[str, dict[str, str]] = {
    "default": {},
    "exclusive": {"MGPU_RT_EXCLUSIVE": "on"},
    "lazy": {"MGPU_RT_SYNC": "lazy"},
    "exclusive-lazy": LAZY,
    "limits": LIMITS,
    "exclusive-limits": {"MGPU_RT_EXCLUSIVE": "on", **LIMITS},
    "reports": {"HIPSTUB_TELLS": "1"},
    "exclusive-reports": {"HIPSTUB_TELLS": "1", "MGPU_RT_EXCLUSIVE": "on"},
}
ON_DEVICE = ("default", "exclusive-lazy", "limits")
CASES = [
    *(pytest.param("stub", mode, id=f"stub-{mode}") for mode in MODES),
    *(
        pytest.param("softgpu", mode, id=f"softgpu-{mode}", marks=pytest.mark.check)
        for mode in ON_DEVICE
    ),
]
#: milliseconds until a call of stock counts as one that waits
PATIENCE = {"stub": 40, "softgpu": 100}
#: On the emulated device the waiting kernel takes processor time.
PLAYED = {"stub": SITUATIONS, "softgpu": ("held", "foreign", "capture", "short")}

#: With MGPU_RT_EXCLUSIVE=on, an unregister waits for all streams, also on HIP 5.2.3, whose own
#: function does not wait for streams that ignore the null stream.
REGISTERED = {
    "foreign:MemHostUnregister",
    "foreign:MemHostUnregisterMemRef",
}

#: Functions that need hipSPARSE, cuSPARSE or NVIDIA's driver.
ELSEWHERE = re.compile(r"Sp|Dn|Coo|Csr|Csc|Bsr|SDDMM|TensorMap")


def _environment(backend: str, **changes: str) -> dict[str, str]:
    """Gives each stream its own queue of the GPU, because HIP otherwise runs the streams of a queue
    one after the other."""
    queues = {"HIPSTUB_ASYNC": "0", "GPU_MAX_HW_QUEUES": "32"}
    memory = {"HIPSTUB_MEMORY": str(64 << 20), "MGPU_RT_SOFTGPU": "memory=64M"}
    return environment(backend, MGPU_RT_MANAGER="off", **queues, **memory, **changes)


@functools.cache
def _made() -> tuple[Path, Path]:
    made = folder("progress")
    image = made / "kernels.co"
    image.write_bytes(lower.code_object(HERE / "kernels.mlir", "gfx90a"))
    flags = ("-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{HERE}")
    return program(made, (HERE / "progress.c").read_text(), *flags), image


def _play(backend: str, patience: int, known: set[str], **changes: str) -> dict[str, str]:
    """Returns what each call does, by situation and call. Calls in `known` may wait."""
    path, image = _made()
    env = _environment(backend, **changes)
    situations = ",".join(PLAYED[backend])
    command = [str(word) for word in (path, image, situations, patience, *sorted(known))]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=5 * HANG)
    lines = done.stdout.splitlines()
    assert lines and lines[-1] == "done", done.stdout[-500:] + done.stderr[-2000:]
    played: dict[str, str] = {}
    for call, does in (line.split() for line in lines[:-1]):
        if played.get(call, "returns") == "returns":
            played[call] = does
    return played


def _waiting(played: dict[str, str]) -> set[str]:
    return {call for call, does in played.items() if does != "returns"}


@functools.cache
def _stock(backend: str) -> dict[str, str]:
    return _play(backend, PATIENCE[backend], set(), MGPU_RT_CACHE="off")


@pytest.mark.parametrize(("backend", "mode"), CASES)
def test_no_call_waits_that_stock_lets_run(backend: str, mode: str) -> None:
    stock = _waiting(_stock(backend))
    may_wait = stock | (REGISTERED if "exclusive" in mode else set())
    ours = _play(backend, 1000 * HANG, may_wait, **MODES[mode])
    assert ours.keys() == _stock(backend).keys()
    assert _waiting(ours) - may_wait == set()


def test_the_kernel_waits() -> None:
    """Without this test, a kernel that ends at once would prove nothing."""
    waits = _waiting(_stock("stub"))
    for situation in SITUATIONS:
        call = "MemHostUnregister" if situation == "short" else "MemFree"  # no memory, no free
        assert f"{situation}:{call}" in waits


def test_every_function_is_called_in_every_situation() -> None:
    text = (ROOT / "csrc" / "abi.def").read_text(encoding="utf-8")
    functions = set(re.findall(r"^MGPU_(?:FN\([^,]+, |VOID\()mgpu(\w+),", text, re.MULTILINE))
    wanted = {name for name in functions if not ELSEWHERE.search(name)}
    assert len(wanted) > 30
    called = {tuple(call.partition("_new")[0].split(":")) for call in _stock("stub")}
    for situation in SITUATIONS:
        names = {call.partition("_")[0] for of, call in called if of == situation}
        assert wanted - names == set()
