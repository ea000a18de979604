"""Kernels that print, and failed checks in kernels, through the hostcall service of AMD's HIP."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from softgpu.tests.device.conftest import PROGRAMS
from tests.support import lower
from tests.support.child import POLICIES, Mgpu, environment, in_child, library
from tests.support.printing import print_library
from tests.support.programs import Outcome, execute
from tests.support.sources import SOURCES
from tests.support.suites import in_check

PRINTF = PROGRAMS / "printf.mlir"
VECADD = SOURCES["vecadd"]
BLOCKS, THREADS = 3, 70
WIDE = ["100% 1 -2 3.5 1e-300 ff 1234567890123456789 1 -2 1 -2", "0123456789" * 10 + " the end"]


def lanes() -> list[str]:
    """Returns the line that each work-item prints; lines of different waves may come in any
    order."""
    return [
        f"block {item // THREADS} item {item} scaled {-3 * item} quarter {0.25 * (-3 * item):.2f}"
        for item in range(BLOCKS * THREADS)
    ]


def run(
    program: Path, directory: Path, llvm: int = 22, opt_level: int = 2, **changes: str
) -> Outcome:
    """Lowers a program ahead of time and runs it on the emulated device."""
    (chip,) = softgpu.targets(changes)
    helper = print_library()
    executable = lower.link(
        [lower.lower(program, llvm=llvm, chip=chip, opt_level=opt_level)],
        libraries=[library(), helper],
        rpath=[library().parent, helper.parent],
        out=directory / program.stem,
    )
    return execute([str(executable)], environment("softgpu", **changes))


def good(outcome: Outcome) -> None:
    """Checks that every line was printed once, and that the kernel computed its results."""
    assert (outcome.signal, outcome.stderr) == (0, "")
    *printed, result = outcome.stdout.splitlines()
    assert sorted(printed) == sorted(lanes() + WIDE)
    assert result.split() == [str(-3 * item) for item in range(BLOCKS * THREADS)]


@pytest.mark.parametrize(
    ("llvm", "chip"),
    in_check(
        [(22, "gfx90a"), (19, "gfx90a"), (22, "gfx906"), (22, "gfx908")],
        lambda llvm, chip: (llvm, chip) != (22, "gfx90a"),
    ),
)
def test_printf_prints_from_all_lanes(llvm: int, chip: str, tmp_path: Path) -> None:
    """The kernel has several waves and workgroups."""
    good(run(PRINTF, tmp_path, llvm, MGPU_RT_SOFTGPU=chip))


def test_printf_works_when_one_thread_runs_all_workgroups(tmp_path: Path) -> None:
    """Waves that wait for the host do not block other waves."""
    good(run(PRINTF, tmp_path, MGPU_RT_SOFTGPU="gfx90a,threads=1"))


def edited(name: str, directory: Path, old: str, new: str) -> Path:
    """Returns a program with other text in place of `old`."""
    text = (PROGRAMS / name).read_text()
    assert old in text
    program = directory / name
    program.write_text(text.replace(old, new))
    return program


def test_printf_works_from_two_streams(tmp_path: Path) -> None:
    """The test uses a single queue of the device: with two queues, HIP 5.2.3 serves only the newer
    queue."""
    program = edited("printf.mlir", tmp_path, "func.call @one_stream", "func.call @two_streams")
    good(run(program, tmp_path, GPU_MAX_HW_QUEUES="1"))


def test_a_failed_check_ends_the_program(tmp_path: Path) -> None:
    """HIP prints the kernel's message before the emulated device ends the program, although abort()
    drops stdio's buffers."""
    outcome = run(PROGRAMS / "abort.mlir", tmp_path)
    assert outcome.signal == signal.SIGABRT
    assert outcome.stdout == "item 42 is out of bounds\n"
    assert "softgpu: kernel check (gfx90a), workgroup (0,0,0), wave 0" in outcome.stderr
    assert "called trap" in outcome.stderr


@pytest.mark.parametrize("policy", POLICIES)
def test_kernels_run_without_optimisation(policy: str, tmp_path: Path) -> None:
    """Without optimisation, LLVM gives a kernel a hidden argument for OpenCL's default queue."""
    python = {"MGPU_RT_MANAGER": "off"} if policy == "builtin" else {}
    outcome = run(VECADD, tmp_path, opt_level=0, **python)
    assert (outcome.signal, outcome.stderr) == (0, "")
    assert outcome.stdout.split() == ["3.75"] * 1000


@pytest.mark.parametrize("llvm", [22, 19])
def test_no_image_requests_a_queue(llvm: int) -> None:
    """The edit leaves the length of the image as it is."""
    program = lower.lower(PRINTF, llvm=llvm, chip="gfx90a", opt_level=0).read_bytes()
    assert b"hidden_none" in program
    assert b"hidden_default_queue" not in program
    assert b"hidden_completion_action" not in program


@in_child(backends=("stub",))
def test_hip_judges_damaged_notes(mgpu: Mgpu) -> None:
    """Lengths in the notes may have any value."""
    image = lower.code_object(VECADD, opt_level=0)
    begin = image.index(b"AMDGPU\0") - 12
    bytes_of = random.Random(4)
    for _ in range(300):
        damaged = bytearray(image)
        for _ in range(bytes_of.randint(1, 4)):
            place = bytes_of.choice([bytes_of.randint(0, 63), begin + bytes_of.randint(0, 900)])
            damaged[place] = bytes_of.choice([0, 1, 0x7F, 0xFF, bytes_of.randrange(256)])
        mgpu.load(mgpu.image(bytes(damaged)))
    assert mgpu.load(mgpu.image(image))
