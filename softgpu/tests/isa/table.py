"""Generates the table of instructions: softgpu/records/COVERAGE.md.

- python -m softgpu.tests.isa.table: writes the table
- python -m softgpu.tests.isa.table --corpus: first counts the corpus again, in ten minutes
"""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from bench import records

from . import checked
from .device import ROOT, TARGETS
from .encodings import Row, rows

TABLE = ROOT / "softgpu/records/COVERAGE.md"
COUNTS = records.DEVICE / "corpus.json"
TITLES = {
    "sop1": "SOP1: scalar, one source",
    "sop2": "SOP2: scalar, two sources",
    "sopk": "SOPK: scalar with a constant",
    "sopc": "SOPC: scalar compares",
    "sopp": "SOPP: branches, barriers, hints",
    "smem": "SMEM: scalar memory",
    "vop1": "VOP1: vector, one source",
    "vop2": "VOP2: vector, two sources",
    "vopc": "VOPC: vector compares",
    "vop3": "VOP3: vector, three sources",
    "vop3p": "VOP3P: packed vectors",
    "mfma": "MAI: matrices",
    "ds": "DS: workgroup memory",
    "flat": "FLAT",
    "global": "GLOBAL",
    "scratch": "SCRATCH",
    "mubuf": "MUBUF: buffers",
    "mimg": "MIMG: images",
}
HEAD = """# Instructions

Made by `python -m softgpu.tests.isa.table`; a test keeps this page up to date. The numbers count
opcodes:

- **decoded**, and spelled as `llvm-objdump` spells them, for random operands
- **executed**; all others cause a fault that names the instruction
- **checked against** AMD's pseudocode, exact arithmetic of the project's own, NumPy through whole
  kernels (`softgpu/tests/kernels`), or by a test of the opcode's name. A test fails if an executed
  opcode has no check. Operands are random, with the special values of each type, execution masks,
  VCC and SCC
- **in the corpus**: in the kernels of the tests, or in AMD's device libraries 5.2.3
"""


def mnemonic(text: str) -> str:
    """Returns the mnemonic without the suffix that names the encoding, such as _e32."""
    for suffix in ("_e32", "_e64", "_sdwa", "_dpp"):
        text = text.removesuffix(suffix)
    return text


def count_corpus() -> dict[str, object]:
    """Counts the instructions of the corpus. Exits with an error if the decoder and llvm-objdump
    differ."""
    from . import corpus
    from .objdump import compare

    seen: Counter[str] = Counter()
    per_target: Counter[str] = Counter()
    for target in TARGETS:
        for name, image in whole_corpus(target):
            result = compare(name, target, image)
            if result.differences:
                raise SystemExit("\n".join(result.differences[:20]))
            seen.update(mnemonic(text) for text in result.seen.elements())
            per_target[target] += result.count
            print(target, name, result.count, flush=True)
    return {
        "libraries": list(corpus.LIBRARIES),
        "instructions": dict(per_target),
        "seen": dict(sorted(seen.items())),
    }


def whole_corpus(target: str) -> Iterator[tuple[str, bytes]]:
    from . import corpus

    for opt in corpus.LEVELS:
        yield from ((f"{name} -O{opt}", image) for name, image in corpus.programs(target, opt))
        yield from ((f"{name} -O{opt}", image) for name, image in corpus.kernels(target, opt))
    for name in corpus.LIBRARIES:
        for opt in corpus.LIBRARY_LEVELS:
            yield f"{name} -O{opt}", corpus.kept_library(name, target, opt)


@cache
def counts() -> dict[str, dict[str, int]]:
    return records.load(COUNTS)


def line(title: str, family: Sequence[Row]) -> str:
    executed = [row for row in family if checked.executed(row)]
    oracles = Counter(by for row in executed for by in [checked.oracles(row)[0]])
    pseudocode, exact, numpy = (oracles.pop(by, 0) for by in ("pseudocode", "exact", "NumPy"))
    seen = sum(row.name in counts()["seen"] for row in family)
    numbers = (len(family), len(executed), pseudocode, exact, numpy, oracles.total(), seen)
    return f"| {title} | {' | '.join(map(str, numbers))} |"


def text() -> str:
    all_rows = rows()
    executed = {row.name for row in all_rows if checked.executed(row)}
    names = {row.name for row in all_rows}
    seen = counts()["instructions"]
    parts = [
        HEAD,
        "| family | decoded | executed | pseudocode | exact | NumPy | a test | in the corpus |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for family, title in TITLES.items():
        parts.append(line(title, [row for row in all_rows if row.family == family]))
    parts += [
        f"\nThe corpus has {sum(seen.values()):,} instructions "
        f"({', '.join(f'{target} {count:,}' for target, count in seen.items())}).",
        "\nThese opcodes fault:\n",
        *textwrap.wrap(
            " ".join(sorted(names - executed)), 100, initial_indent="    ", subsequent_indent="    "
        ),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    if "--corpus" in sys.argv:
        records.save(count_corpus(), COUNTS)
    TABLE.write_text(text())
