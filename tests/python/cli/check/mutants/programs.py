"""Faults in the programs and models of bench/."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import ROOT
from mgpu_rt._cli import softgpu
from tests.python.cli import seeded
from tests.python.cli.check.mutants.form import Edit, Mutant, changed, left_out, moved_up
from tests.support.sources import SOURCES


@dataclass(frozen=True)
class ProgramMutant(Mutant):
    """A fault in a program. The program is shortened to two iterations."""

    def original(self) -> str:
        return (
            super()
            .original()
            .replace("%iterations = arith.constant 1000", "%iterations = arith.constant 2")
        )


@dataclass(frozen=True)
class ModelMutant(Mutant):
    """A fault in a model. The model is shortened to one pass."""

    def original(self) -> str:
        return seeded.source(self.source)

    def command(self, folder: Path) -> list[object]:
        name = re.sub(r"\W+", "-", f"check {self.name}")
        built = seeded.executable(name, self.text(), self.source, lines=True)
        return ["sh", "-c", 'echo 1 | "$0"', built]

    def environment(self) -> dict[str, str]:
        return {"BENCH_WAIT": f"{softgpu.hip({})},hipDeviceSynchronize"}


def _of(
    program: str, what: str, kind: str, edit: Callable[..., Edit], names: Sequence[str], line: str
) -> Mutant:
    path = SOURCES[program]
    old, new = edit(path.read_text(), *names)
    return ProgramMutant(str(path.relative_to(ROOT)), what, kind, old, new, line)


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
    edit = left_out(text, found[1])
    return ModelMutant(model, "fill left out", "uninitialised", *edit, _result(text))


def _fill_left_out(model: str, filled: str) -> Mutant:
    text = seeded.source(model)
    found = re.search(rf"  linalg.fill .* outs\(%{filled} : .*\n", text)
    assert found
    return ModelMutant(model, "fill left out", "uninitialised", found[0], "\n", _result(text))


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
