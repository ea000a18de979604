"""Generates the table of instructions: softgpu/records/COVERAGE.md.

- python -m softgpu.tests.isa.table: writes the table
- python -m softgpu.tests.isa.table --corpus: first counts the corpus again, in ten minutes
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
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

Made by `python -m softgpu.tests.isa.table`; a test keeps it up to date. One line an opcode:

- **decoded** for these targets, and spelled as `llvm-objdump` spells it, for random operands
- **executed**, or a **fault** that names the instruction
- **checked against** AMD's pseudocode; exact arithmetic of the project's own; NumPy through whole
  kernels (`softgpu/tests/kernels`); or by a test that is named. Random operands with the special
  values of each type, execution masks, VCC and SCC
- **corpus**: how often the kernels of the tests and AMD's device libraries 5.2.3 contain the
  opcode

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


def line(row: Row) -> str:
    targets = "all" if len(row.targets) == len(TARGETS) else ", ".join(row.targets)
    executed = checked.executed(row)
    by = ", ".join(checked.oracles(row)) if executed else ""
    seen = counts()["seen"].get(row.name, 0)
    return f"| `{row.name}` | {targets} | {'yes' if executed else 'fault'} | {by} | {seen or ''} |"


def text() -> str:
    all_rows = rows()
    names = {row.name for row in all_rows}
    executed = {row.name for row in all_rows if checked.executed(row)}
    by_pseudocode = {
        n for row in all_rows for n in [row.name] if "pseudocode" in checked.oracles(row)
    }
    seen = set(counts()["seen"])
    total = sum(counts()["instructions"].values())
    parts = [
        HEAD,
        f"{len(names)} opcodes are decoded, {len(executed)} executed, {len(by_pseudocode)} of them "
        f"checked against the pseudocode. The corpus has {total:,} instructions of {len(seen)} "
        f"opcodes ({', '.join(f'{t} {n:,}' for t, n in counts()['instructions'].items())}); "
        f"{len(seen & executed)} of these are executed. These opcodes of the corpus fault: "
        f"{', '.join(f'`{n}`' for n in sorted(seen - executed))}.\n",
    ]
    for family, title in TITLES.items():
        parts.append(f"\n## {title}\n\n| opcode | decoded | executed | checked against | corpus |")
        parts.append("|---|---|---|---|---:|")
        parts += [line(row) for row in all_rows if row.family == family]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    if "--corpus" in sys.argv:
        records.save(count_corpus(), COUNTS)
    TABLE.write_text(text())
