"""printf and failed checks in kernels, through the hostcall service of AMD's HIP."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from bench import lower
from tests.child import environment, library
from tests.programs import Outcome, execute

PROGRAMS = Path(__file__).resolve().parent / "programs"
BLOCKS, THREADS = 3, 70
WIDE = ["100% 1 -2 3.5 1e-300 ff 1234567890123456789 1 -2 1 -2", "0123456789" * 10 + " the end"]


def lanes() -> list[str]:
    """What each work-item prints; the order among waves is not given."""
    return [
        f"block {item // THREADS} item {item} scaled {-3 * item} quarter {0.25 * (-3 * item):.2f}"
        for item in range(BLOCKS * THREADS)
    ]


def run(program: Path, directory: Path, llvm: int = 22, **changes: str) -> Outcome:
    """Lowers a program ahead of time and runs it on the emulated device."""
    chip = changes.get("MGPU_RT_SOFTGPU", lower.DEFAULT_CHIP)
    helper = lower.print_library()
    executable = lower.link(
        [lower.lower(program, llvm=llvm, chip=chip)],
        libraries=[library(), helper],
        rpath=[library().parent, helper.parent],
        out=directory / program.stem,
    )
    return execute([str(executable)], environment("softgpu", **changes))


def good(outcome: Outcome) -> None:
    """Every line was printed once, and the kernel did its work."""
    assert (outcome.signal, outcome.stderr) == (0, "")
    *printed, result = outcome.stdout.splitlines()
    assert sorted(printed) == sorted(lanes() + WIDE)
    assert result.split() == [str(-3 * item) for item in range(BLOCKS * THREADS)]


@pytest.mark.parametrize(
    ("llvm", "chip"), [(22, "gfx90a"), (19, "gfx90a"), (22, "gfx906"), (22, "gfx908")]
)
def test_printf(llvm: int, chip: str, tmp_path: Path) -> None:
    """From all lanes of several waves and workgroups."""
    good(run(PROGRAMS / "printf.mlir", tmp_path, llvm, MGPU_RT_SOFTGPU=chip))


def test_printf_when_one_thread_runs_all_workgroups(tmp_path: Path) -> None:
    """A wave that waits for the host lets the others run."""
    good(run(PROGRAMS / "printf.mlir", tmp_path, MGPU_RT_SOFTGPU_THREADS="1"))


def edited(name: str, directory: Path, old: str, new: str) -> Path:
    """A program with something else in the place of `old`."""
    text = (PROGRAMS / name).read_text()
    assert old in text
    program = directory / name
    program.write_text(text.replace(old, new))
    return program


def test_printf_from_two_streams(tmp_path: Path) -> None:
    """On one queue of the device: with two, HIP 5.2.3 hears the newer one only."""
    program = edited("printf.mlir", tmp_path, "func.call @one_stream", "func.call @two_streams")
    good(run(program, tmp_path, GPU_MAX_HW_QUEUES="1"))


def test_a_failed_check_ends_the_program(tmp_path: Path) -> None:
    """Its message comes out, although abort() drops what stdio holds, and then the place."""
    outcome = run(PROGRAMS / "abort.mlir", tmp_path)
    assert outcome.signal == signal.SIGABRT
    assert outcome.stdout == "item 42 is out of bounds\n"
    assert "softgpu: kernel check (gfx90a), workgroup (0,0,0), wave 0" in outcome.stderr
    assert "called trap" in outcome.stderr


def test_hip_crashes_without_the_attributes(tmp_path: Path) -> None:
    """HIP 5.2.3 takes a kernel that may want the device's default queue for one that enqueues
    kernels by itself, and reads a queue that is not there."""
    attributes = 'passthrough = ["amdgpu-no-default-queue", "amdgpu-no-completion-action"]'
    plain = edited("printf.mlir", tmp_path, attributes, "")
    assert run(plain, tmp_path).signal == signal.SIGSEGV


def test_cf_assert_is_not_lowered_by_llvm_22(tmp_path: Path) -> None:
    """It puts the message outside of the gpu.module: the README says what to write instead."""
    program = tmp_path / "assert.mlir"
    text = (PROGRAMS / "abort.mlir").read_text()
    begin, end = text.index("scf.if"), text.index("gpu.return")
    asserted = 'cf.assert %bad, "out of bounds"\n      '
    program.write_text(text[:begin] + asserted + text[end:])
    with pytest.raises(lower.LoweringFailed, match="must reference a global"):
        lower.code_objects(program)
