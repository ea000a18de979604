"""Damaged recordings: one line names the fault, and no launch is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mgpu_rt._cli.replay import make
from mgpu_rt.runtime import Recording
from tests.python.runtime.hooked import changed, write_launches

HASH = 64 * "0"
BLOCK = {"address": 4096, "size": 64, "before": HASH, "after": HASH, "asked": None}
LAUNCH = {
    "format": 5,
    "number": 1,
    "kernel": "k",
    "module": "",
    "label": "k",
    "image": HASH,
    "grid": [1, 1, 1],
    "block": [1, 1, 1],
    "shared": 0,
    "arguments": [{"content": "00", "block": None, "offset": 0}],
    "blocks": [BLOCK],
}
INSIDE = {"content": "", "block": 0, "offset": 0}
WITHOUT = {key: value for key, value in LAUNCH.items() if key != "grid"}


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (5, "TypeError("),
        (b"\xff\n", ""),
        (b"[" * 100_000 + b"\n", ""),
        (b"", ""),
        ({**LAUNCH, "format": 3}, "its format is not 5"),
        (WITHOUT, "KeyError('grid')"),
        ({**LAUNCH, "block": 5}, "TypeError("),
        ({**LAUNCH, "blocks": [5]}, "TypeError("),
        ({**LAUNCH, "arguments": 5}, "TypeError("),
        ({**LAUNCH, "arguments": [{**INSIDE, "content": "0"}]}, "ValueError("),
        ({**LAUNCH, "arguments": [{**INSIDE, "block": 1}]}, "IndexError("),
        ({**LAUNCH, "arguments": [{**INSIDE, "offset": 64}]}, "points outside the blocks of"),
        ({**LAUNCH, "blocks": [{**BLOCK, "asked": 65}]}, "fewer bytes than the program asked"),
    ],
)
def test_a_damaged_launch_is_named(
    launch: object, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_launches(tmp_path, [LAUNCH, launch])
    assert_refused(tmp_path, f"'{tmp_path}/91' is no launch: ", words, capfd)


def assert_refused(
    folder: Path, begin: str, words: str, capfd: pytest.CaptureFixture[str], **options: Any
) -> None:
    """Asserts that the output is one short line of printable letters."""
    assert make(str(folder), launch=1, **options) == 2
    said = capfd.readouterr()
    (line,) = said.err.splitlines()
    assert line.startswith(f"mgpu-rt: {begin}")
    assert words in line
    assert line.isprintable()
    assert len(line) < 600
    assert said.out == ""


def test_a_whole_launch_is_taken(tmp_path: Path) -> None:
    write_launches(tmp_path, [LAUNCH])
    (launch,) = Recording(tmp_path).launches
    assert (launch.kernel, launch.blocks[0].size) == ("k", 64)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda launch: launch["arguments"].pop(),
            "kernel 'halve' takes arguments of [8, 8, 8, 8, ",
        ),
        (lambda launch: launch["arguments"].clear(), "8] bytes, but the recording has []"),
        (
            lambda launch: launch["arguments"].append({"content": "", "block": None, "offset": 0}),
            ", 0]",
        ),
        (
            lambda launch: launch["arguments"][4].update(content="00"),
            "has [8, 8, 8, 8, 1]",
        ),
        (
            lambda launch: launch["arguments"][4].update(block=0, offset=0),
            "no pointer as argument 4",
        ),
        (
            lambda launch: launch["arguments"][1].update(block=None),
            "for kernel 'halve' the recording lacks what argument 1 points to, 0x",
        ),
        (lambda launch: launch.update(kernel="spo\x1bil"), r"has no kernel 'spo\u001bil': it has "),
        (lambda launch: launch["blocks"][0].update(size=9), "a block of 9 bytes has 256 before"),
        (
            lambda launch: launch["blocks"][0].update(after=launch["image"]),
            "a block of 256 bytes has 256 before the launch and ",
        ),
        (lambda launch: launch["blocks"][0].update(after=HASH), "No such file or directory"),
    ],
)
def test_arguments_that_do_not_fit_are_named(
    change: Callable[[dict[str, Any]], object],
    words: str,
    recorded: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """If arguments were missing, HIP would read past the end of the given arguments."""
    folder = changed(recorded, tmp_path / "copy", change)
    assert_refused(folder, "", words, capfd)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"grid": [0]}, "the grid is [0], but must be one to three sizes from 1 up"),
        ({"block": []}, "but must be one to three sizes"),
        ({"block": [1 << 32]}, "but must be one to three sizes"),
        ({"iterations": 0}, "the number of iterations is 0, but must be"),
        ({"tolerance": float("nan")}, "the tolerance is nan, but must be"),
        ({"dtype": "f33"}, "'f33' is not a type of numbers"),
        ({"tolerance": 1e-5}, "name it by --dtype (in Python dtype=), as one of f16, bf16, f32, "),
        ({"tolerance": 0}, "the tolerance is for numbers of one type: "),
        ({"ulps": 1}, "ulps are for numbers of one type: "),
        ({"ulps": 2, "dtype": "i32"}, "ulps are for floats, but the type is i32: omit ulps"),
    ],
)
def test_an_option_that_cannot_be_is_named(
    options: dict[str, Any], words: str, recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert_refused(recorded, "", words, capfd, **options)
