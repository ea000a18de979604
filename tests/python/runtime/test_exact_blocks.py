"""A kernel runs in blocks of its compiled size, even if a launch requests another size. A hook that
sets another block size gets an error message with the compiled size."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest

from mgpu_rt.runtime import Image, Launch, Runtime
from tests.devices.gpu import CHIP
from tests.python.runtime.hooked import hip, program, replay
from tests.runtime.images import corpus
from tests.support import lower
from tests.support.command import assert_sentence, command

EXACT = Path(__file__).with_name("exact.mlir")


def launch_of(content: bytes) -> Launch:
    """Returns a launch of the kernel `fill` with blocks of 64 threads."""
    from mgpu_rt._runtime import ffi

    runtime, kept = Runtime(), ffi.new("char[]", content)  # a 0 ends the text
    runtime._loaded(1, Image.at(int(ffi.cast("uintptr_t", kept))))
    runtime._found(2, 1, "fill")
    return Launch(runtime, 2, (1, 1, 1), (64, 1, 1), 0, 0, 0)


def called(runtime: Runtime, function: int, block: tuple[int, int, int]) -> Launch:
    """Returns a launch that the program calls."""
    launch = Launch.__new__(Launch)
    launch.runtime, launch._c.function = runtime, function
    launch._c.grid, launch._c.block = (1, 1, 1), block
    return launch


@functools.cache
def ptx(directive: bytes) -> bytes:
    """Returns the PTX that NVVM writes, in which `directive` replaces the directive for the block's
    size."""
    return lower.code_object(EXACT, CHIP, image="isa").replace(b".maxntid 64, 1, 1", directive)


ONLY, MOST = (
    "for blocks of 64 x 1 x 1 threads, and runs with no",
    "for blocks of at most 64 threads",
)


@pytest.mark.parametrize(
    ("directive", "words"),
    [
        (b"", ONLY),
        (b".maxntid 64, 1, 1", MOST),
        (b".maxntid 16,4", MOST),
        (b".reqntid 64", ONLY),
        (b".minnctapersm 2\n.reqntid 64, 1, 1\n.maxnreg 32", ONLY),
        (b".maxntid 0", None),
        (b"// .reqntid", None),
    ],
)
def test_a_hook_cannot_change_the_compiled_size(directive: bytes, words: str | None) -> None:
    launch = launch_of(ptx(directive) if directive else lower.code_object(EXACT, corpus.AMD))
    launch.block = launch.block
    if words is None:
        launch.block = (65, 1, 1)
        return
    with pytest.raises(ValueError, match=rf"with block = \(65, 1, 1\): kernel fill was.*{words}"):
        launch.block = (65, 1, 1)
    assert launch.block == (64, 1, 1)


def test_a_hook_cannot_launch_a_kernel_that_was_compiled_for_another_size() -> None:
    """HIP checks a launch that the program makes; the package checks a launch only if a hook
    changes or creates it."""
    known = launch_of(lower.code_object(EXACT, corpus.AMD)).runtime
    other, fill = 3, 2
    launch = called(known, other, (8, 8, 1))
    words = r"a launch with block = \(8, 8, 1\): kernel fill was.*"
    with pytest.raises(ValueError, match=words + ONLY):
        launch.function = fill
    assert launch.function == other
    launch.block = (64, 1, 1)
    launch.function = fill
    assert launch.kernel.name == "fill"
    asked = called(known, fill, (8, 8, 1))
    asked.function = fill
    assert asked.block == (8, 8, 1)


def test_a_launch_that_a_hook_makes_is_checked_too() -> None:
    launch = launch_of(lower.code_object(EXACT, corpus.AMD))
    known = launch.runtime, launch.function, launch.grid
    with pytest.raises(ValueError, match=rf"with block = \(8, 8, 1\): kernel fill was.*{ONLY}"):
        Launch(*known, (8, 8, 1), 0, 0, 0)
    with pytest.raises(ValueError, match=r"launch.grid = .*give three sizes below 2\*\*32"):
        Launch(*known[:2], (1 << 32, 1, 1), launch.block, 0, 0, 0)
    with pytest.raises(OverflowError):
        Launch(*known, launch.block, 1 << 31, 0, 0)
    assert called(*known[:2], (8, 8, 1)).block == (8, 8, 1)  # HIP judges the program's


def test_cubins_say_it_too() -> None:
    if not shutil.which("ptxas"):
        pytest.skip("no ptxas (nvidia-cuda-toolkit)")
    most = lower.code_object(EXACT, CHIP, image="bin")
    sizes = b"\x40\0\0\0\1\0\0\0\1\0\0\0"
    exact = most.replace(b"\4\5\x0c\0" + sizes, b"\4\x10\x0c\0" + sizes)  # .reqntid's attribute
    for content, words in ((most, MOST), (exact, ONLY)):
        launch = launch_of(content)
        assert launch.kernel.arguments
        with pytest.raises(ValueError, match=words):
            launch.block = (8, 9, 1)


@pytest.mark.check
def test_a_replay_names_the_compiled_size(tmp_path: Path) -> None:
    out = tmp_path / "recording"
    words = ("run", "--device", "softgpu", "--record", out, "--", program(EXACT))
    assert "recorded launch 1 of fill" in command(*words, **hip()).stderr
    assert replay(out, "--block", "64x1").stdout.startswith("fill: same, ")
    done = replay(out, "--block", "8x8")
    assert_sentence(
        done.returncode, done.stderr, f"the block is (8, 8, 1): kernel 'fill' was compiled {ONLY}"
    )
    assert done.stdout == ""
