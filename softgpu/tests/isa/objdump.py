"""Compares the decoder with llvm-objdump on equal bytes."""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .corpus import run, text_of
from .device import ROOT, library

DECODER = ROOT / "build/softgpu/isa-decode"
INSTRUCTION = re.compile(r"^\t(.*?)\s*// ([0-9A-F]+):", re.M)
NOTHING = re.compile(r"^\.long|^<unknown>|/\*Invalid")
SLOT = 4  # words from one encoding of a list to the next
S_NOP = 0xBF800000


@dataclass
class Comparison:
    """Counts instructions by mnemonic, and lists the differences."""

    seen: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, where: str, ours: str, theirs: str) -> None:
        if ours != theirs:
            self.differences.append(f"{where}: ours {ours!r}, llvm-objdump {theirs!r}")
        elif ours:
            self.seen[ours.split()[0]] += 1

    def update(self, other: Comparison) -> None:
        self.seen.update(other.seen)
        self.differences += other.differences

    @property
    def count(self) -> int:
        return sum(self.seen.values())


def decoded(target: str, words: Path) -> dict[int, str]:
    """Maps offsets to the text that the interpreter's decoder prints; the text is empty if the
    bytes are not an instruction."""
    library()  # builds the tool, too
    lines = run(DECODER, target, words).splitlines()
    return {int(at, 16): text for at, text in (line.split("\t", 1) for line in lines)}


def disassembled(target: str, image: Path) -> dict[int, str]:
    """Maps offsets to the text that llvm-objdump prints; offsets are relative to the first
    instruction."""
    listing = run("llvm-objdump-22", "-d", "-z", f"--mcpu={target}", image)
    found = [(int(at, 16), text) for text, at in INSTRUCTION.findall(listing)]
    first = found[0][0] if found else 0
    return {at - first: "" if NOTHING.search(text) else text for at, text in found}


def compare(name: str, target: str, image: bytes) -> Comparison:
    """Compares every instruction of an object file."""
    with tempfile.TemporaryDirectory() as folder:
        elf, words = Path(folder) / "x.o", Path(folder) / "x.bin"
        elf.write_bytes(image)
        words.write_bytes(text_of(image))
        ours, theirs = decoded(target, words), disassembled(target, elf)
    result = Comparison()
    for at in sorted(ours.keys() | theirs.keys()):
        result.add(f"{name} {target} +{at:#x}", ours.get(at, ""), theirs.get(at, ""))
    return result


def object_of(target: str, words: bytes) -> bytes:
    """Returns an object file with these bytes as its text section."""
    with tempfile.TemporaryDirectory() as folder:
        raw, obj = Path(folder) / "x.bin", Path(folder) / "x.o"
        raw.write_bytes(words)
        subprocess.run(
            [
                *("llvm-mc-22", "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}"),
                *("-filetype=obj", "-o", obj),
            ],
            input=f'.incbin "{raw}"',
            text=True,
            check=True,
        )
        return obj.read_bytes()


def compare_encodings(target: str, encodings: Iterable[tuple[str, list[int]]]) -> Comparison:
    """Compares single instructions, each in its own slot, so that an invalid instruction does not
    shift the instructions that follow."""
    named = list(encodings)
    padded = [(words + SLOT * [S_NOP])[:SLOT] for _, words in named]
    image = b"".join(struct.pack(f"<{SLOT}I", *words) for words in padded)
    with tempfile.TemporaryDirectory() as folder:
        elf, raw = Path(folder) / "x.o", Path(folder) / "x.bin"
        elf.write_bytes(object_of(target, image))
        raw.write_bytes(image)
        ours, theirs = decoded(target, raw), disassembled(target, elf)
    result = Comparison()
    for n, (name, words) in enumerate(named):
        at = 4 * SLOT * n
        shown = " ".join(f"{word:08x}" for word in words)
        result.add(f"{name} {target} {shown}", ours.get(at, ""), theirs.get(at, ""))
    return result
