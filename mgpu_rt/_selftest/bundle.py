"""The bundle in the wheel: lowered programs, their kernels by chip, saved sequences.

tests/proofs/programs/bundle.py builds the bundle. Each program has separate host code for each LLVM
release, with space for the images; `Bundle.lay_out` inserts a chip's images.
"""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

PATH = Path(__file__).with_name("bundle.tar.xz")

#: The size in bytes of the space for an image in the host code. The space begins with the text that
#: marker() returns.
ROOM = 16384

#: NVIDIA's GPUs from this architecture on can run the bundle's PTX.
PTX = "sm_70"


def marker(program: str, module: str) -> bytes:
    """Returns the text that marks the space for an image in the host code."""
    return f"mgpu_rt selftest image of {program}.{module};".encode()


def library_name(llvm: str | int) -> str:
    """Returns the path of the library that contains an LLVM release's programs. The path is
    relative to the root of the bundle, packed or unpacked."""
    return f"programs/{llvm}.so"


def chip_of(target: str) -> str:
    """Returns the bundle's chip for a device's target, such as "gfx90a:sramecc+:xnack-" or
    "sm_90"."""
    return PTX if target.startswith("sm_") else target.partition(":")[0]


@dataclass(frozen=True)
class Bundle:
    """The bundle's content."""

    members: dict[str, bytes]
    manifest: dict

    @property
    def programs(self) -> dict[str, list[str]]:
        """Returns the programs by LLVM release."""
        return self.manifest["programs"]

    @property
    def chips(self) -> list[str]:
        """Returns the chips for which the bundle has kernels."""
        return self.manifest["chips"]

    def sequences(self, kind: str) -> dict[str, bytes]:
        """Returns the cases of a kind ("calm" or "harsh") by name."""
        return {
            name.removeprefix("sequences/").removesuffix(".json"): content
            for name, content in self.members.items()
            if name.startswith(f"sequences/{kind}-")
        }

    def kernels(self, chip: str) -> dict[str, bytes]:
        """Returns a chip's images by name. A program's image has a name such as "forum.test_func";
        an image of the sequences has a name such as "plain0"."""
        start = f"kernels/{chip}/"
        return {n.removeprefix(start): c for n, c in self.members.items() if n.startswith(start)}

    def lay_out(self, chip: str, folder: Path) -> None:
        """Writes the images of a chip into FOLDER/images, and the libraries of programs."""
        images = self.kernels(chip)
        for name, content in images.items():
            path = folder / "images" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        for name, content in self.members.items():
            if name.endswith(".so"):
                path = folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(_filled(content, images))


def _filled(library: bytes, images: dict[str, bytes]) -> bytes:
    """Returns a copy of the library that contains the images."""
    filled = bytearray(library)
    for name, content in images.items():
        program, dot, module = name.partition(".")
        at = filled.find(marker(program, module)) if dot else -1
        if at < 0:
            continue  # an image of the sequences, or of another library
        if len(content) >= ROOM:
            raise ValueError(f"{name} has {len(content)} bytes; there is room for {ROOM - 1}")
        filled[at : at + ROOM] = content.ljust(ROOM, b"\0")
    return bytes(filled)


def read(path: Path = PATH) -> Bundle:
    """Reads the bundle. Raises OSError, tarfile.TarError or ValueError."""
    members = _members(path)
    return Bundle(members, json.loads(members["manifest.json"]))


def _members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path, "r:xz") as tar:
        found = ((member.name, tar.extractfile(member)) for member in tar)
        return {name: content.read() for name, content in found if content is not None}
