"""Checks the generated table. Tests must check each opcode that the table marks as executed, and
every other opcode must cause a fault."""

from __future__ import annotations

import random

import pytest

from . import checked, table
from .device import TARGETS, Fault, on_targets
from .encodings import ENCODERS, Fields, Row, rows
from .single import Batch, random_waves
from .test_instructions import seeded

pytestmark = pytest.mark.check


def test_table_is_up_to_date() -> None:
    assert table.TABLE.read_text() == table.text(), "run python -m softgpu.tests.isa.table"


def test_everything_executed_is_checked() -> None:
    missing = {row.name for row in rows() if checked.executed(row) and not checked.oracles(row)}
    assert not missing


def test_lists_name_opcodes_that_exist() -> None:
    names = {row.name for row in rows() if checked.executed(row)}
    listed = {name for some in checked.BY_TEST.values() for name in some}
    assert not listed - names


@on_targets(*TARGETS)
def test_opcodes_that_are_not_executed_fault_and_are_named(target: str) -> None:
    faulting = [r for r in rows() if target in r.targets and not checked.executed(r)]
    batch = Batch(target)
    fields = Fields(random.Random(target), target)
    for row in faulting:
        batch.add(row.name, ".long " + ", ".join(map(hex, small(row, fields))))
    code = batch.load()
    silent = []
    for row in faulting:
        try:
            code.run(row.name, random_waves(seeded(row.name), ["b32"], 1))
            silent.append(row.name)
        except Fault as fault:
            assert "instruction not implemented" in str(fault), row.name
            assert row.name in str(fault)
    assert not silent


def small(row: Row, fields: Fields) -> list[int]:
    return ENCODERS[row.family][0](row, fields)
