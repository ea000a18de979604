"""Generates the table of instructions, softgpu/records/COVERAGE.md:
python -m softgpu.tests.isa.table"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from . import checked
from .device import ROOT
from .encodings import Row, rows

TABLE = ROOT / "softgpu/records/COVERAGE.md"
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
- **checked against** AMD's pseudocode, exact arithmetic of the project's own, or by a test of the
  opcode's name. A test fails if an executed opcode has no check. Operands are random, with the
  special values of each type, execution masks, VCC and SCC
"""


def line(title: str, family: Sequence[Row]) -> str:
    executed = [row for row in family if checked.executed(row)]
    oracles = Counter(by for row in executed for by in [checked.oracles(row)[0]])
    pseudocode, exact = (oracles.pop(by, 0) for by in ("pseudocode", "exact"))
    numbers = (len(family), len(executed), pseudocode, exact, oracles.total())
    return f"| {title} | {' | '.join(map(str, numbers))} |"


def text() -> str:
    all_rows = rows()
    executed = {row.name for row in all_rows if checked.executed(row)}
    names = {row.name for row in all_rows}
    parts = [
        HEAD,
        "| family | decoded | executed | pseudocode | exact | a test |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for family, title in TITLES.items():
        parts.append(line(title, [row for row in all_rows if row.family == family]))
    parts += [
        "\nThese opcodes fault:\n",
        *textwrap.wrap(
            " ".join(sorted(names - executed)), 100, initial_indent="    ", subsequent_indent="    "
        ),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    TABLE.write_text(text())
