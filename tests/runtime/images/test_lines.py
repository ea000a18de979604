"""Line tables: the source lines that they name, and files without line tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgpu_rt._images import elf, lines
from mgpu_rt._lowering import pipelines, steps
from mgpu_rt._lowering.text import device_images
from tests.support import lower
from tests.support.child import ROOT
from tests.support.command import assert_sentence, command

STEPS = ROOT / "examples" / "steps.mlir"


def device_image(name: str, **options: object) -> bytes:
    """Returns the image of examples/steps.mlir, lowered under another file name."""
    pipeline = pipelines.pipeline(22, lines=name, **options)
    text = steps.run(pipeline.steps(), STEPS.read_bytes()).decode()
    return device_images(text)["kernels"]


@pytest.mark.parametrize(
    "name", ["steps.mlir", "a folder/st&|eps.mlir", 'qu"ote\\x.mlir', "/a/b.mlir"]
)
def test_a_kernel_begins_at_its_line(name: str) -> None:
    image = device_image(name)
    line = 1 + next(
        n for n, text in enumerate(STEPS.read_text().splitlines()) if "gpu.func" in text
    )
    begin = next(each.value for each in elf.read(image).symbols if each.name == "increment")
    assert lines.read(image).at(begin) == f"{name}:{line}"
    assert lines.read(image).at(0) == ""


def test_the_place_before_an_address_is_of_its_sequence() -> None:
    table = lines.Lines([(0, "a:1"), (8, ""), (16, None), (24, "")])
    found = [(table.at(address), table.before(address)) for address in (0, 9, 17, 25)]
    assert found == [("a:1", "a:1"), ("", "a:1"), ("", ""), ("", "")]


def test_line_tables_leave_the_machine_code_as_it_is() -> None:
    def code(image: bytes) -> bytes:
        found = elf.read(image)
        text = next(section for section in found.sections if section.name == ".text")
        return image[text.offset : text.offset + text.size]

    assert code(device_image("steps.mlir")) == code(lower.code_object(STEPS))


def test_files_without_a_table_have_no_lines(tmp_path: Path) -> None:
    image = device_image("steps.mlir")
    for content in (b"", b"no ELF", lower.code_object(STEPS), image[: len(image) // 2]):
        assert lines.read(content).rows == []
    damaged = image.replace(b"steps.mlir", b"\xff" * 10)
    assert lines.read(damaged).rows == []


def test_lower_says_where_there_are_no_line_tables() -> None:
    done = command("lower", "-g", "--chip", "sm_90", STEPS, "-o", "/dev/null")
    assert_sentence(done.returncode, done.stderr, "line tables (-g) are for AMD's GPUs")
