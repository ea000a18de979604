"""A kernel runs in blocks of its compiled size, even if a launch requests another size. A launch of
Python's and a replay with another size get an error message with the compiled size."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest

from mgpu_rt._images.model import KernelDescription
from mgpu_rt.runtime import Image
from tests.devices.gpu import CHIP
from tests.python.runtime.hooked import hip, program, replay
from tests.runtime.images import corpus
from tests.support import lower
from tests.support.command import assert_sentence, command

EXACT = Path(__file__).with_name("exact.mlir")


def described(content: bytes) -> KernelDescription:
    """Returns the description of the kernel `fill` in an image."""
    return Image(content).kernels["fill"]


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
def test_a_kernels_description_names_the_compiled_size(directive: bytes, words: str | None) -> None:
    content = ptx(directive) if directive else lower.code_object(EXACT, corpus.AMD)
    kernel = described(content)
    assert not kernel.limit_on((64, 1, 1))
    assert (words or "") in (said := kernel.limit_on((65, 1, 1)))
    assert bool(said) == bool(words)


def test_cubins_say_it_too() -> None:
    if not shutil.which("ptxas"):
        pytest.skip("no ptxas (nvidia-cuda-toolkit)")
    most = lower.code_object(EXACT, CHIP, image="bin")
    sizes = b"\x40\0\0\0\1\0\0\0\1\0\0\0"
    exact = most.replace(b"\4\5\x0c\0" + sizes, b"\4\x10\x0c\0" + sizes)  # .reqntid's attribute
    for content, words in ((most, MOST), (exact, ONLY)):
        kernel = described(content)
        assert kernel.arguments
        assert words in kernel.limit_on((8, 9, 1))


@pytest.mark.check
def test_a_replay_names_the_compiled_size(tmp_path: Path) -> None:
    out = tmp_path / "recording"
    words = ("run", "--device", "softgpu", "--record", out, "--", program(EXACT))
    assert "recorded launch 1 of fill" in command(*words, **hip()).stderr
    assert replay(out, "--block", "64x1").stdout.startswith("fill: same\n")
    done = replay(out, "--block", "8x8")
    assert_sentence(
        done.returncode, done.stderr, f"the block is (8, 8, 1): kernel 'fill' was compiled {ONLY}"
    )
    assert done.stdout == ""
