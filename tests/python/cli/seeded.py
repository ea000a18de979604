"""Models with one fault each, and the verdict that `mgpu-rt diff` must report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bench.models import program
from bench.models.program import WAITS
from bench.models.zoo import MODELS
from bench.setup import build, models
from tests.support import lower
from tests.support.folders import folder

KERNEL, INPUTS = "the cause is the kernel (its inputs are equal)", "the cause is its inputs"

#: Elements whose index in the third dimension is 15 keep the old value.
_ONE_LESS = """%at = linalg.index 2 : index
%end = arith.constant 15 : index
%inside = arith.cmpi ult, %at, %end : index
%result = arith.select %inside, %a, %old : f32
linalg.yield %result"""

_INVERSE = """%one = arith.constant 1.0 : f32
%inverse = arith.divf %one, %b : f32
%result = arith.mulf %a, %inverse : f32"""

_HALF = """%power = math.exp %scaled : f32
%half = arith.truncf %power : f32 to f16
%result = arith.extf %half : f16 to f32"""

_EXP, _SHARE = "%result = math.exp %scaled : f32", "%result = arith.divf %a, %b : f32"


@dataclass(frozen=True)
class Seed:
    """A fault in one operation of a model; MLIR compiles each operation to one kernel. Operations
    are numbered from 1. MLIR passes constants as kernel arguments, so `mgpu-rt diff` reports a
    wrong constant as a wrong input."""

    name: str
    model: str
    operation: int
    old: str
    new: str
    verdict: str = KERNEL

    def source(self) -> str:
        """Returns the model's text with the fault."""
        text = source(self.model)
        heads = [
            found.start() for found in re.finditer(r"^ *linalg\.(?!yield)", text, re.MULTILINE)
        ]
        begin, end = heads[self.operation - 1], (*heads, len(text))[self.operation]
        if text[begin:end].lstrip().startswith("linalg.fill"):  # its constant is the line before
            begin = text.rindex("\n", 0, begin - 1)
        changed = text[begin:end].replace(self.old, self.new, 1)
        assert changed != text[begin:end], text[begin:end]
        return text[:begin] + changed + text[end:]


SEEDS = (
    Seed("a wrong constant", "mlp", 4, "0.0", "0.01", INPUTS),
    Seed("another operation", "mlp", 11, "arith.addf", "arith.subf"),
    Seed("a wrong initial value", "mlp", 1, "0.000000e+00", "1.000000e-03", INPUTS),
    Seed("the other extreme", "mlp", 4, "arith.maximumf", "arith.minimumf"),
    Seed("an off-by-one in the 17th kernel", "block", 17, "linalg.yield %a", _ONE_LESS),
    Seed("half a float", "block", 22, _EXP, _HALF),
    Seed("another rounding", "block", 25, _SHARE, _INVERSE),
    Seed("a wrong epsilon", "block", 37, "1.000000e-05", "1.000000e-04", INPUTS),
    Seed("another sign", "block", 44, "arith.addf %a, %b", "arith.subf %a, %b"),
)


def source(model: str) -> str:
    """Returns the text of a model in MLIR."""
    return program.source(_model(model), WAITS)


def _model(name: str) -> models.Model:
    return next(model for model in MODELS if model.name == name)


def executable(name: str, text: str, model: str, llvm: int = 22, *, lines: bool = False) -> Path:
    """Compiles a model's text into a program, which reads its number of passes from stdin."""
    out = folder("seeded") / f"{name.replace(' ', '-')}-{llvm}"
    out.with_suffix(".mlir").write_text(text)
    compiled = lower.lower(out.with_suffix(".mlir"), llvm=llvm, first=WAITS.passes, lines=lines)
    expected = f'-DEXPECTED_FILE="{models._expected(_model(model))}"'
    build.link(compiled, out, [expected, models.FRAME[0]])
    return out
