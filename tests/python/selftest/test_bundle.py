"""The bundle equals the result of building the sources, and is small."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mgpu_rt._selftest import bundle
from mgpu_rt._selftest.sequences import Case
from tests.proofs.programs import bundle as maker

AGAIN = "run `python -m tests.proofs.programs.bundle`, and commit what it makes"
LARGEST = 400_000  # bytes in the wheel; compiled files for it add 60,000


@pytest.fixture(scope="module")
def read() -> bundle.Bundle:
    return bundle.read()


def test_programs_and_kernels_are_made_from_the_sources_as_they_are(read: bundle.Bundle) -> None:
    assert read.manifest["inputs"] == maker.inputs(), AGAIN


@pytest.mark.check
def test_sources_give_what_the_bundle_holds(read: bundle.Bundle) -> None:
    for chip in ("gfx90a", bundle.PTX):
        assert maker.kernels(chip) == {
            f"kernels/{chip}/{name}": content for name, content in read.kernels(chip).items()
        }, AGAIN
    for llvm in read.programs:
        name = bundle.library_name(llvm)
        assert maker.host_library(int(llvm)) == read.members[name], AGAIN


@pytest.mark.check
def test_the_bundle_has_the_programs_of_the_proofs(read: bundle.Bundle) -> None:
    """The bundle contains each program once, under the name of its group."""
    made = maker.proofs()
    assert made == {name: read.members.get(name) for name in made}, AGAIN
    held = {*read.sequences("proofs"), *read.sequences("resets")}
    assert held == {name.removeprefix("sequences/").removesuffix(".json") for name in made}
    for kind in ("proofs", "resets"):
        for content in read.sequences(kind).values():
            assert Case.read(content).plays("reset") == (kind == "resets")


def test_the_bundle_is_small() -> None:
    assert bundle.PATH.stat().st_size < LARGEST


def test_every_chip_has_every_kernel(read: bundle.Bundle) -> None:
    assert read.chips == list(maker.CHIPS)
    names = read.kernels("gfx90a").keys()
    assert all(read.kernels(chip).keys() == names for chip in read.chips)


def laid_out(read: bundle.Bundle, folder: Path) -> dict[str, bytes]:
    """Unpacks the bundle with fake images, and returns the fake images. Each fake image contains
    its own name, and has its sections at offset 0."""
    named = {
        name: f"image of {name}".encode().ljust(40) + bytes(8) + bytes(256).replace(b"\0", b".")
        for name in read.kernels("gfx90a")
    }
    members = {f"kernels/gfx90a/{name}": content for name, content in named.items()}
    dataclasses.replace(read, members={**read.members, **members}).lay_out("gfx90a", folder)
    return named


def test_each_programs_room_is_filled_with_its_image(read: bundle.Bundle, tmp_path: Path) -> None:
    images = laid_out(read, tmp_path)
    for llvm, programs in read.programs.items():
        library = (tmp_path / bundle.library_name(llvm)).read_bytes()
        assert b"mgpu_rt selftest image of" not in library
        for name, content in images.items():
            of = name.partition(".")[0]
            assert library.count(content + b"\0") == (of in programs and "." in name), (llvm, name)


def test_calm_sequences_reset_no_device(read: bundle.Bundle) -> None:
    calm, harsh = (
        [Case.read(content) for content in read.sequences(kind).values()]
        for kind in ("calm", "harsh")
    )
    assert sum(len(case.lines) for case in calm) >= 300
    assert not any(" reset" in line for case in calm for line in case.text().splitlines())
    assert any(" reset" in line for case in harsh for line in case.text().splitlines())
