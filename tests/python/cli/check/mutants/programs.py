"""Faults in the programs and models of bench/."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bench import ROOT
from mgpu_rt._cli import softgpu
from tests.python.cli import seeded
from tests.python.cli.check.mutants.form import Mutant
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


def _of(program: str, what: str, kind: str, old: str, new: str, line: str) -> Mutant:
    return ProgramMutant(str(SOURCES[program].relative_to(ROOT)), what, kind, old, new, line)


def _one_more(program: str, line: str) -> Mutant:
    old, new = "arith.cmpi ult, %i, %count", "arith.cmpi ule, %i, %count"
    return _of(program, "index shifted", "out-of-bounds", old, new, line)


def _copy_left_out(model: str, copied: str) -> Mutant:
    """Returns a faulty model: the given weights are not copied to the device."""
    text = seeded.source(model)
    found = re.search(
        rf"  (%\w+) = gpu.memcpy async (\[%\w+\]) %{copied}, .*\n  gpu.wait \[\1\]\n", text
    )
    assert found
    new = f"  gpu.wait {found[2]}\n"
    return ModelMutant(model, "fill left out", "uninitialised", found[0], new, _result(text))


def _fill_left_out(model: str, filled: str) -> Mutant:
    text = seeded.source(model)
    found = re.search(rf"  linalg.fill .* outs\(%{filled} : .*\n", text)
    assert found
    return ModelMutant(model, "fill left out", "uninitialised", found[0], "\n", _result(text))


def _result(text: str) -> str:
    """Returns the operands of the operation that copies a model's result to the host."""
    found = re.findall(r"gpu.memcpy async \[%\w+\] (%host_\w+, %\w+) :", text)
    return next(each for each in found if each.startswith("%host_t"))


_VECADD_COPY = """%t5 = gpu.memcpy async [%t4] %db, %hb : memref<?xf32>, memref<?xf32>
    %t6 = gpu.memset async [%t5]"""
_CHURN_COPY = """\
%copied = gpu.memcpy async [%allocated] %device, %host : memref<?xf32>, memref<?xf32>
    %launched = gpu.launch_func async [%copied]"""
_CHURN_BACK = """%back = gpu.memcpy async [%launched] %host, %device : memref<?xf32>, memref<?xf32>
    %freed = gpu.dealloc async [%back] %device : memref<?xf32>
    gpu.wait [%freed]"""
_CHURN_FREED = """%freed = gpu.dealloc async [%launched] %device : memref<?xf32>
    %back = gpu.memcpy async [%freed] %host, %device : memref<?xf32>, memref<?xf32>
    gpu.wait [%back]"""
_LAYERS_COPY = """%copied = gpu.memcpy async [%a_there] %a, %host : memref<?xf32>, memref<?xf32>
    %b, %b_there = gpu.alloc async [%copied]"""

SAMPLE = (
    _one_more("vecadd", "%a[%i]"),
    _one_more("churn", "%data[%i]"),
    _one_more("layers", "%from[%i]"),
    _of("vecadd", "size cut", "out-of-bounds", "[%t2] (%count)", "[%t2] (%threads)", "%c[%i]"),
    _of("layers", "size cut", "out-of-bounds", "(%wide)", "(%threads)", "%to[%i]"),
    _of(
        "vecadd", "fill left out", "uninitialised", _VECADD_COPY,
        "%t6 = gpu.memset async [%t4]", "%hc, %dc",
    ),
    _of(
        "churn", "fill left out", "uninitialised", _CHURN_COPY,
        "%launched = gpu.launch_func async [%allocated]", "%host, %device",
    ),
    _of(
        "layers", "fill left out", "uninitialised", _LAYERS_COPY,
        "%b, %b_there = gpu.alloc async [%a_there]", "%host, %d",
    ),
    _of("churn", "free moved up", "use-after-free", _CHURN_BACK, _CHURN_FREED, "%host, %device"),
    _copy_left_out("mlp", "w0"),
    _fill_left_out("mlp", "t1"),
)  # fmt: skip
#: All faults; those of models that are not in the sample are for `make nightly`.
MUTANTS = (
    *SAMPLE,
    *(_copy_left_out("mlp", weights) for weights in ("w2", "w3", "in")),
    _fill_left_out("mlp", "t7"),
)
