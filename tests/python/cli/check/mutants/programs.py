"""Faults in the programs and models of bench/."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tests.python.cli import seeded
from tests.python.cli.check.mutants.form import Edit, Mutant, changed, left_out, moved_up, replaced
from tests.support.sources import SOURCES


def _of(
    program: str, what: str, kind: str, edit: Callable[..., Edit], names: Sequence[str], line: str
) -> Mutant:
    """Returns a faulty program, shortened to two iterations."""
    text = SOURCES[program].read_text()
    text = replaced(text, edit(text, *names))
    text = text.replace("%iterations = arith.constant 1000", "%iterations = arith.constant 2")
    return Mutant(program, what, kind, text, line)


def _of_model(model: str, edit: Edit, text: str) -> Mutant:
    faulty = replaced(text, edit)
    line = _result(text)
    return Mutant(model, "fill left out", "uninitialised", faulty, line, model=model)


def _one_more(program: str, line: str) -> Mutant:
    return _of(program, "index shifted", "out-of-bounds", changed, ("inside", "ult", "ule"), line)


def _size_cut(program: str, token: str, line: str) -> Mutant:
    edit = (token, r"\(%\w+\)", "(%threads)")
    return _of(program, "size cut", "out-of-bounds", changed, edit, line)


def _left_out(program: str, token: str, line: str) -> Mutant:
    return _of(program, "fill left out", "uninitialised", left_out, (token,), line)


def _copy_left_out(model: str, copied: str) -> Mutant:
    """Returns a faulty model: the given weights are not copied to the device."""
    text = seeded.source(model)
    found = re.search(rf"%(\w+) = gpu.memcpy async \[%\w+\] %{copied}, ", text)
    assert found
    return _of_model(model, left_out(text, found[1]), text)


def _fill_left_out(model: str, filled: str) -> Mutant:
    text = seeded.source(model)
    found = re.search(rf"  linalg.fill .* outs\(%{filled} : .*\n", text)
    assert found
    return _of_model(model, (found[0], "\n"), text)


def _result(text: str) -> str:
    """Returns the operands of the operation that copies a model's result to the host."""
    found = re.findall(r"gpu.memcpy async \[%\w+\] (%host_\w+, %\w+) :", text)
    return next(each for each in found if each.startswith("%host_t"))


SAMPLE = (
    _one_more("vecadd", "%a[%i]"),
    _one_more("churn", "%data[%i]"),
    _one_more("layers", "%from[%i]"),
    _size_cut("vecadd", "t3", "%c[%i]"),
    _size_cut("layers", "b_there", "%to[%i]"),
    _left_out("vecadd", "t5", "%hc, %dc"),
    _left_out("churn", "copied", "%host, %device"),
    _left_out("layers", "copied", "%host, %d"),
    _of("churn", "free moved up", "use-after-free", moved_up, ("freed", "back"), "%host, %device"),
    _copy_left_out("mlp", "w0"),
    _fill_left_out("mlp", "t1"),
)
#: All faults; those of models that are not in the sample are for `make nightly`.
MUTANTS = (
    *SAMPLE,
    *(_copy_left_out("mlp", weights) for weights in ("w2", "w3", "in")),
    _fill_left_out("mlp", "t7"),
)
