"""Builds mgpu_rt/_selftest/bundle.tar.xz, which `mgpu-rt selftest` reads.

    python -m tests.proofs.programs.bundle

The bundle contains lowered programs, with host code from LLVM 22, 19 and 15. The
bundle also contains the kernels of these programs for every chip, and sequences from the tests'
random driver. Other programs of the bundle give wrong results if the library lacks one of the
proofs in proofs.md. git contains the bundle, because builders of the wheel have no LLVM;
test_bundle.py compares the bundle with the sources.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mgpu_rt._lowering import pipelines, toolchain
from mgpu_rt._selftest import bundle
from mgpu_rt._selftest.bundle import ROOM, marker
from mgpu_rt._selftest.sequences import Case
from tests.proofs.programs import groups, images
from tests.support import forum, lower, programs
from tests.support.folders import write_whole
from tests.support.sources import SOURCES

#: The iterations of each program's loop; None: the program has no loop.
PROGRAMS: dict[str, int | None] = {
    "forum": 20,
    "many": 2,
    "churn": 20,
    "layers": 10,
    "samename": 20,
    "globals": 20,
    "loopargs": 20,
    "overlap": 20,
    "events": None,
    "vecadd": None,
}
#: The programs whose host code LLVM 15 also lowers for the bundle.
BY_15 = ("forum", "loopargs", "globals", "samename")

AMD = (
    *("gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx90c"),
    *("gfx942", "gfx950", "gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    *(f"gfx103{number}" for number in range(7)),
    *("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"),
    *("gfx1200", "gfx1201", "gfx1250", "gfx1251"),
)
#: The chip for which the PTX is compiled. Every later NVIDIA GPU also accepts this PTX.
NVIDIA = (bundle.PTX,)
CHIPS = (*AMD, *NVIDIA)

_IMAGE = re.compile(r'@(\w+)((?:\(|[^\n]*?bin = ))"\\7FELF(?:[^"\\]|\\.)*"')
_LENGTH = re.compile(r"array<\d{4,} x i8>")


# ---- host code ----


def _with_rooms(dialect: str, program: str, modules: list[str]) -> str:
    """Returns the program in the LLVM dialect, with a placeholder in place of each image."""

    def module(symbol: str) -> str:
        return next(name for name in modules if symbol in (name, f"{name}_gpubin_cst"))

    def room(match: re.Match[str]) -> str:
        mark = marker(program, module(match[1])).decode()
        return f'@{match[1]}{match[2]}"{mark}' + r"\00" * (ROOM - len(mark)) + '"'

    found, count = _IMAGE.subn(room, dialect)
    assert count == len(modules), (program, count)
    # In LLVM 15's dialect, each use of an image also states the image's length. Only images have
    # lengths of four digits or more.
    return _LENGTH.sub(f"array<{ROOM} x i8>", found)


def _host_object(program: str, llvm: int, folder: Path) -> Path:
    """Returns the program's object file, which exports only NAME_main."""
    source = SOURCES[program]
    modules = list(lower.code_objects(source))
    dialect = lower.lower_to_llvm_dialect(source, llvm, iterations=PROGRAMS[program])
    text = _with_rooms(dialect.read_text(), program, modules)
    made = folder / f"{program}.o"
    made.write_bytes(lower.compile_dialect(text.encode(), llvm))
    name = f"{program}_main"
    words = ("objcopy", f"--redefine-sym=main={name}", f"--keep-global-symbol={name}", str(made))
    subprocess.run(words, check=True)
    return made


def host_library(llvm: int) -> bytes:
    """Links the programs of one LLVM release into a library that needs only the loader."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made = [_host_object(name, llvm, folder) for name in bundle_programs(llvm)]
        out = folder / "programs.so"
        words = [toolchain.compiler(), "-shared", "-nostdlib", "-s", "-Wl,--hash-style=both"]
        words += ["-Wl,-z,max-page-size=4096", "-Wl,--build-id=none", "-Wl,-z,noexecstack"]
        toolchain.run([*words, *made, "-o", out])
        return out.read_bytes()


def bundle_programs(llvm: int) -> list[str]:
    return [name for name in PROGRAMS if llvm != forum.LLVM or name in BY_15]


# ---- kernels ----


def kernels(chip: str) -> dict[str, bytes]:
    """Returns the images for a chip, by their names in the bundle."""
    image = "isa" if chip.startswith("sm_") else None
    made = {}
    for program in PROGRAMS:
        content = lower.code_objects(SOURCES[program], chip, image=image)
        made.update({f"kernels/{chip}/{program}.{name}": one for name, one in content.items()})
    folder = images.write(chip, image=image)
    for name in images.NAMES:
        made[f"kernels/{chip}/{name}"] = (folder / name).read_bytes()
    assert all(len(content) < ROOM for content in made.values()), chip
    return made


# ---- sequences ----

#: The steps of the player that the wheel contains; the tests' player has more.
STEPS = {
    name
    for path in (images.ROOT / "csrc" / "selftest" / "player").glob("*.c")
    for name in re.findall(r'\{"(\w+)", play_', path.read_text(encoding="utf-8"))
}


def playable(content: bytes) -> bytes:
    """Returns a case without the programs that need steps of the tests' player. The case then also
    lacks the counts of the stub of HIP. Returns nothing if no program is left."""
    case = Case.read(content).only(lambda line, _: line.split()[1] != "misuse")
    kept = [n for n, body in case.lines.items() if all(x.split()[1] in STEPS for x in body)]
    parts = ("threads", "lines", "expected")
    left = {part: {n: getattr(case, part)[n] for n in kept} for part in parts}
    text = json.dumps(dataclasses.asdict(dataclasses.replace(case, **left)), separators=(",", ":"))
    return text.encode() if kept else b""


def sequences(drawn: Path | None, old: bundle.Bundle | None) -> dict[str, bytes]:
    """Returns the random sequences in the folder `drawn`; without a folder, the sequences of the
    old bundle."""
    if drawn:
        made = {f"sequences/{path.name}": path.read_bytes() for path in sorted(drawn.glob("*"))}
    else:
        kept = ("sequences/calm-", "sequences/harsh-")
        members = old.members.items() if old else ()
        made = {name: content for name, content in members if name.startswith(kept)}
    return {name: one for name, content in made.items() if (one := playable(content))}


def proofs() -> dict[str, bytes]:
    """Returns the programs of tests/proofs/programs; those that reset a device are separate."""
    made = {}
    for group in groups():
        text = json.dumps(dataclasses.asdict(group.case()), separators=(",", ":"))
        made[f"sequences/{group.check}.json"] = text.encode()
    return made


# ---- the whole ----


def inputs() -> str:
    """Returns a hash of all inputs of the programs and kernels."""
    state = hashlib.sha256(repr((pipelines.RECIPE, PROGRAMS, BY_15, CHIPS, ROOM)).encode())
    for program in PROGRAMS:
        state.update(SOURCES[program].read_bytes())
    for chip in (AMD[0], bundle.PTX):
        for name in images.NAMES:
            state.update(images.module(name, 2000, 4, chip).encode())
    return state.hexdigest()


def _compiled() -> Iterator[tuple[str, bytes]]:
    """Builds the members that need LLVM, and returns these members. A build takes minutes."""
    for llvm in programs.RELEASES:
        yield bundle.library_name(llvm), host_library(llvm)
    with ThreadPoolExecutor(2) as pool:
        every: dict[str, bytes] = {}
        for found in pool.map(kernels, CHIPS):
            every.update(found)
    # The archive is smallest if the kernels are sorted by chip.
    yield from sorted(every.items(), key=lambda item: (item[0].split("/")[2], item[0]))


def contents(old: bundle.Bundle | None, drawn: Path | None) -> Iterator[tuple[str, bytes]]:
    """Returns all members of the bundle, by name. If an old bundle was made from equal inputs, the
    members that need LLVM are copied from the old bundle."""
    manifest = {
        "inputs": inputs(),
        "programs": {str(llvm): bundle_programs(llvm) for llvm in programs.RELEASES},
        "chips": list(CHIPS),
    }
    yield "manifest.json", json.dumps(manifest, indent=1).encode()
    if old is not None and old.manifest == manifest:
        for name, content in old.members.items():
            if name.startswith(("programs/", "kernels/")):
                yield name, content
    else:
        yield from _compiled()
    yield from sequences(drawn, old).items()
    yield from proofs().items()


def pack(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Writes an archive that contains only names and contents."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", format=tarfile.USTAR_FORMAT, preset=9) as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="tests.proofs.programs.bundle", description="make the bundle"
    )
    parser.add_argument("--all", action="store_true", help="compile what is there, too")
    parser.add_argument("--sequences", type=Path, help="a folder of tests.python.selftest.draw")
    options = parser.parse_args()
    old = bundle.read() if bundle.PATH.exists() else None
    if old and options.all:
        old = dataclasses.replace(old, manifest={})
    packed = pack(contents(old, options.sequences))
    write_whole(bundle.PATH, packed)
    print(f"{bundle.PATH}: {len(packed):,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
