"""The suites of existing tests that run on each release."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    name: str
    arguments: tuple[str, ...]  # pytest's arguments
    newest_abi: bool = False  # also runs with the newest code objects that the release loads
    chip: str = ""  # a chip other than gfx90a, for releases that support the chip


_ON_DEVICE = ("-k", "softgpu")

SUITES = (
    Suite("programs", (*_ON_DEVICE, "tests/runtime/programs/test_programs.py"), newest_abi=True),
    Suite(
        "programs",
        ("-k", "softgpu and not 15-", "tests/runtime/programs/test_programs.py"),
        newest_abi=True,
        chip="gfx942",
    ),
    Suite("bad input", (*_ON_DEVICE, "tests/runtime/abi/test_bad_input.py")),
    Suite(
        "memory",
        (
            *_ON_DEVICE,
            "tests/runtime/memory/test_memory.py",
            "tests/runtime/memory/test_copies.py",
            "tests/runtime/memory/test_forkjoin.py",
        ),
    ),
    Suite("graphs", (*_ON_DEVICE, "tests/runtime/graphs")),
    Suite("random", (*_ON_DEVICE, "tests/proofs/random/test_random_driver.py")),
    Suite("last error", (*_ON_DEVICE, "tests/runtime/driver/test_last_error.py")),
    Suite("device", ("softgpu/tests/device", "tests/runtime/programs/test_printf.py")),
    Suite("kernels", ("softgpu/tests/kernels",)),
    Suite("kernels", ("-k", "gfx942", "softgpu/tests/kernels"), chip="gfx942"),
    Suite("progress", (*_ON_DEVICE, "tests/runtime/progress")),
    Suite("release", ("tests/devices/rocm/test_release.py", "tests/devices/rocm/test_reports.py")),
    Suite("selftest", ("-m", "", "-k", "not gfx942", "tests/devices/rocm/test_selftest.py")),
    Suite(
        "selftest", ("-m", "", "-k", "gfx942", "tests/devices/rocm/test_selftest.py"), chip="gfx942"
    ),
    Suite("mlir-runner", ("tests/runtime/programs/test_jit.py",)),
)
