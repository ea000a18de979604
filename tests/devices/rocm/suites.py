"""The suites of existing tests that run on each release."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    name: str
    words: str  # what the suite tests
    arguments: tuple[str, ...]  # pytest's arguments
    newest_abi: bool = False  # also runs with the newest code objects that the release loads
    chip: str = ""  # a chip other than gfx90a, for releases that support the chip


_ON_DEVICE = ("-k", "softgpu")

SUITES = (
    Suite(
        "programs",
        "programs, lowered by MLIR and linked or preloaded",
        (*_ON_DEVICE, "tests/runtime/programs/test_programs.py"),
        newest_abi=True,
    ),
    Suite(
        "programs",
        "",
        ("-k", "softgpu and not 15-", "tests/runtime/programs/test_programs.py"),
        newest_abi=True,
        chip="gfx942",
    ),
    Suite(
        "bad input",
        "handles, images and sizes that are wrong",
        (*_ON_DEVICE, "tests/runtime/abi/test_bad_input.py"),
    ),
    Suite(
        "memory",
        "blocks, copies, shared memory",
        (
            *_ON_DEVICE,
            "tests/runtime/memory/test_memory.py",
            "tests/runtime/memory/test_copies.py",
            "tests/runtime/memory/test_forkjoin.py",
        ),
    ),
    Suite("graphs", "graphs of the library's, and captures", (*_ON_DEVICE, "tests/runtime/graphs")),
    Suite(
        "random",
        "random sequences of calls",
        (*_ON_DEVICE, "tests/proofs/random/test_random_driver.py"),
    ),
    Suite(
        "last error",
        "the thread's last error after each call, against stock",
        (*_ON_DEVICE, "tests/runtime/driver/test_last_error.py"),
    ),
    Suite(
        "device",
        "HIP itself on the emulated device",
        ("softgpu/tests/device", "tests/runtime/programs/test_printf.py"),
    ),
    Suite(
        "kernels",
        "whole kernels against NumPy",
        ("softgpu/tests/kernels",),
    ),
    Suite("kernels", "", ("-k", "gfx942", "softgpu/tests/kernels"), chip="gfx942"),
    Suite(
        "progress",
        "no call waits where stock's returns",
        (*_ON_DEVICE, "tests/runtime/progress"),
    ),
    Suite("release", "what is new since 5.2.3", ("tests/devices/rocm/test_release.py",)),
    Suite(
        "selftest",
        "`mgpu-rt selftest`",
        ("-m", "", "-k", "not gfx942", "tests/devices/rocm/test_selftest.py"),
    ),
    Suite(
        "selftest",
        "",
        ("-m", "", "-k", "gfx942", "tests/devices/rocm/test_selftest.py"),
        chip="gfx942",
    ),
    Suite(
        "mlir-runner",
        "programs just in time, by mlir-runner",
        ("tests/runtime/programs/test_jit.py",),
    ),
)
