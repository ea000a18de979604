"""Generates random programs from a seed: function bodies that use all arithmetic types.

Each program is lowered for the device and for the host processor, and must produce equal bits on
both. MLIR leaves some results undefined or variable, so a program contains:

* no shift by the width or more, no division by zero, no quotient that overflows;
* no conversion of a float to an integer that overflows: the program clamps such operands;
* no sign or payload of a NaN: a number replaces NaN before bits are inspected (LLVM would drop a
  selection of one certain NaN);
* no constant zero of a float: LLVM 22.1.8 loses its sign on this target, as in floor(0.0 - x);
* no f16 zero made of f32: a product and its conversion become one instruction, which adds +0;
* no -0.0 in a vector of two f16, where LLVM loses the sign too;
* no mathematical function that is not rounded exactly, and no f16 fma, which a processor without
  this instruction computes in f32.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

INTEGERS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}
FLOATS = {"f16": 16, "f32": 32, "f64": 64}
SCALARS = [*INTEGERS, *FLOATS, "i1"]
VECTORS = {
    "vector<2xf16>": ("f16", 2),
    "vector<2xi16>": ("i16", 2),
    "vector<4xi8>": ("i8", 4),
    "vector<2xf32>": ("f32", 2),
    "vector<2xi32>": ("i32", 2),
    "vector<2xf64>": ("f64", 2),
}
_VECTOR_CONVERSIONS = [
    *(("vector<2xf16>", f"vector<2x{wide}>", "extf") for wide in ("f32", "f64")),
    *((f"vector<2x{wide}>", "vector<2xf16>", "truncf") for wide in ("f32", "f64")),
    ("vector<2xf64>", "vector<2xf32>", "truncf"),
    *(("vector<2xi16>", "vector<2xi32>", operation) for operation in ("extsi", "extui")),
    *(("vector<2xi16>", "vector<2xf16>", operation) for operation in ("sitofp", "uitofp")),
    *(("vector<2xi32>", "vector<2xf32>", operation) for operation in ("sitofp", "uitofp")),
    ("vector<2xi32>", "vector<2xf64>", "sitofp"),
    ("vector<2xi32>", "vector<2xi16>", "trunci"),
]
#: Values that are equal for all work-items: a branch on such a value is uniform in the wave.
UNIFORMS = {"%u32": "i32", "%u64": "i64", "%uf": "f32"}
ITEMS = 256
OWN = 8  # elements of each work-item's private array

_ONE_BIT = ["andi", "ori", "xori"]
_WHOLE = ["addi", "subi", "muli", "maxsi", "maxui", "minsi", "minui", *_ONE_BIT]
_FLOATING = ["addf", "subf", "mulf", "divf", "minimumf", "maximumf"]
_ROUNDINGS = ["floor", "ceil", "trunc", "roundeven", "absf", "sqrt"]
_ORDERINGS = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
_FLOAT_ORDERINGS = ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "une", "uno"]


@dataclass(frozen=True)
class RandomProgram:
    """A body that computes %acc_i8 ... %acc_i64 from %i, the inputs and the uniform values."""

    seed: int
    body: str


def generate(seed: int, operations: int) -> RandomProgram:
    writer = _Writer(seed)
    writer.start()
    while writer.operations < operations:
        writer.statement(depth=0)
    writer.finish()
    return RandomProgram(seed, "\n".join(writer.lines))


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.scopes: list[dict[str, list[str]]] = [{}]
        self.count = 0
        self.operations = 0

    # ---- values ----------------------------------------------------------------------------------

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, kind: str, text: str) -> str:
        """Writes one line that defines a value of a type; later lines may use the value."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        self.see(kind, name)
        return name

    def see(self, kind: str, name: str) -> None:
        self.scopes[-1].setdefault(kind, []).append(name)

    def pick(self, kind: str) -> str:
        """Returns a visible value of the type, preferably a recent one, or a constant."""
        known = [name for scope in self.scopes for name in scope.get(kind, [])]
        if not known or (kind not in VECTORS and self.random.random() < 0.1):
            return self.vector(kind) if kind in VECTORS else self.constant(kind)
        return known[-self.random.randint(1, min(len(known), 6))]

    def constant(self, kind: str) -> str:
        if kind == "i1":
            return self.emit(kind, f"arith.constant {self.random.choice(['true', 'false'])}")
        if kind in FLOATS:
            value = self.random.choice(["1.0", "-2.5", "0.1", "1024.0", "3.0e-5"])
            return self.emit(kind, f"arith.constant {value} : {kind}")
        bits = INTEGERS[kind]
        chosen = [
            0,
            1,
            -1,
            2 ** (bits - 1) - 1,
            -(2 ** (bits - 1)),
            self.random.getrandbits(bits - 1),
        ]
        return self.emit(kind, f"arith.constant {self.random.choice(chosen)} : {kind}")

    def number(self, kind: str, value: int) -> str:
        return self.emit(kind, f"arith.constant {value} : {kind}")

    def vector(self, kind: str) -> str:
        element, count = VECTORS[kind]
        parts = ", ".join(self.pick(element) for _ in range(count))
        return self.emit(kind, f"vector.from_elements {parts} : {kind}")

    def settled(self, kind: str, value: str) -> str:
        """Returns a value that equals `value`, or the number 12.5 if `value` is NaN."""
        number = self.emit(kind, f"arith.constant 12.5 : {kind}")
        is_nan = self.emit("i1", f"arith.cmpf uno, {value}, {value} : {kind}")
        return self.emit(kind, f"arith.select {is_nan}, {number}, {value} : {kind}")

    # ---- statements ------------------------------------------------------------------------------

    def statement(self, depth: int) -> None:
        self.operations += 1
        simple = [
            *[self.whole] * 5, *[self.floating] * 4, self.division, self.shift, self.bits,
            *[self.comparison] * 2, self.choice, *[self.conversion] * 3, self.fused, self.rounding,
            *[self.on_vectors] * 2, self.vector_choice, self.vector_conversion,
            self.gather, self.own_memory, self.wide_product,
        ]  # fmt: skip
        nested = [self.branch, self.loop, self.search, self.switch] if depth < 2 else []
        if nested and self.random.random() < 0.1:
            self.random.choice(nested)(depth + 1)
        else:
            self.random.choice(simple)()

    def whole(self) -> None:
        kind = self.random.choice([*INTEGERS, "i32", "i64", "i1"])
        operation = self.random.choice(_ONE_BIT if kind == "i1" else _WHOLE)
        self.emit(kind, f"arith.{operation} {self.pick(kind)}, {self.pick(kind)} : {kind}")

    def division(self) -> None:
        """Divides by a nonzero number; signed division never divides the smallest integer."""
        kind = self.random.choice([*INTEGERS])
        operation = self.random.choice(["divsi", "remsi", "divui", "remui"])
        one = self.number(kind, 1)
        divisor = self.emit(kind, f"arith.ori {self.pick(kind)}, {one} : {kind}")
        dividend = self.pick(kind)
        if operation.endswith("si"):
            dividend = self.emit(kind, f"arith.shrsi {dividend}, {one} : {kind}")
        self.emit(kind, f"arith.{operation} {dividend}, {divisor} : {kind}")

    def shift(self) -> None:
        kind = self.random.choice([*INTEGERS])
        operation = self.random.choice(["shli", "shrsi", "shrui"])
        mask = self.number(kind, INTEGERS[kind] - 1)
        by = self.emit(kind, f"arith.andi {self.pick(kind)}, {mask} : {kind}")
        self.emit(kind, f"arith.{operation} {self.pick(kind)}, {by} : {kind}")

    def bits(self) -> None:
        kind = self.random.choice([*INTEGERS])
        operation = self.random.choice(["ctpop", "ctlz", "cttz", "absi"])
        self.emit(kind, f"math.{operation} {self.pick(kind)} : {kind}")

    def wide_product(self) -> None:
        kind, sign = self.random.choice([*INTEGERS]), self.random.choice("su")
        operands = f"{self.pick(kind)}, {self.pick(kind)}"
        name = self.name()
        self.lines.append(f"{name}:2 = arith.mul{sign}i_extended {operands} : {kind}")
        self.see(kind, f"{name}#0")
        self.see(kind, f"{name}#1")

    def floating(self) -> None:
        kind = self.random.choice([*FLOATS, "f32"])
        operation = self.random.choice(_FLOATING)
        self.emit(kind, f"arith.{operation} {self.pick(kind)}, {self.pick(kind)} : {kind}")

    def fused(self) -> None:
        kind = self.random.choice(["f32", "f64"])
        operands = ", ".join(self.pick(kind) for _ in range(3))
        self.emit(kind, f"math.fma {operands} : {kind}")

    def rounding(self) -> None:
        kind = self.random.choice([*FLOATS])
        operation = self.random.choice([*_ROUNDINGS, "copysign", "negf"])
        if operation == "copysign":
            sign = self.settled(kind, self.pick(kind))
            self.emit(kind, f"math.copysign {self.pick(kind)}, {sign} : {kind}")
        elif operation == "negf":
            self.emit(kind, f"arith.negf {self.pick(kind)} : {kind}")
        else:
            self.emit(kind, f"math.{operation} {self.pick(kind)} : {kind}")

    def comparison(self) -> None:
        kind = self.random.choice([*INTEGERS, *FLOATS])
        a, b = self.pick(kind), self.pick(kind)
        if kind in FLOATS:
            order = self.random.choice(_FLOAT_ORDERINGS)
            self.emit("i1", f"arith.cmpf {order}, {a}, {b} : {kind}")
        else:
            order = self.random.choice(_ORDERINGS)
            self.emit("i1", f"arith.cmpi {order}, {a}, {b} : {kind}")

    def choice(self) -> None:
        kind = self.random.choice([*SCALARS, *VECTORS])
        a, b = self.pick(kind), self.pick(kind)
        self.emit(kind, f"arith.select {self.pick('i1')}, {a}, {b} : {kind}")

    def conversion(self) -> None:
        source, target = self.random.sample(SCALARS, 2)
        value = self.pick(source)
        if source in FLOATS and target in FLOATS:
            operation = "extf" if FLOATS[source] < FLOATS[target] else "truncf"
        elif source in FLOATS:
            self.to_integer(source, target, value)
            return
        elif target in FLOATS:
            same = INTEGERS.get(source) == FLOATS[target]
            operation = self.random.choice(["sitofp", "uitofp", *["bitcast"] * (2 * same)])
        elif INTEGERS.get(source, 1) < INTEGERS.get(target, 1):
            operation = self.random.choice(["extsi", "extui"])
        else:
            operation = "trunci"
        result = self.emit(target, f"arith.{operation} {value} : {source} to {target}")
        if (source, target) == ("f32", "f16"):
            self.without_zero(target, result)

    def without_zero(self, kind: str, value: str) -> None:
        """Writes lines that copy `value` and replace each zero by 0.5."""
        dense, bits = ("dense<0.5>", kind.replace("f16", "i1")) if kind in VECTORS else ("0.5", "")
        kept, zero, half, which = (self.name() for _ in range(4))
        self.lines += [
            f"{half} = arith.constant {dense} : {kind}",
            f"{zero} = arith.subf {half}, {half} : {kind}",
            f"{which} = arith.cmpf oeq, {value}, {zero} : {kind}",
            f"{kept} = arith.select {which}, {half}, {value} : {bits and bits + ', '}{kind}",
        ]
        self.scopes[-1][kind][-1] = kept

    def to_integer(self, source: str, target: str, value: str) -> None:
        value = self.settled(source, value)
        if INTEGERS.get(target) == FLOATS[source] and self.random.random() < 0.5:
            self.emit(target, f"arith.bitcast {value} : {source} to {target}")
            return
        if target == "i1":
            target = "i8"
        signed = self.random.random() < 0.5
        low = self.emit(source, f"arith.constant {'-100.0' if signed else '0.5'} : {source}")
        high = self.emit(source, f"arith.constant 100.0 : {source}")
        above = self.emit(source, f"arith.maximumf {value}, {low} : {source}")
        clamped = self.emit(source, f"arith.minimumf {above}, {high} : {source}")
        operation = "fptosi" if signed else "fptoui"
        self.emit(target, f"arith.{operation} {clamped} : {source} to {target}")

    def on_vectors(self) -> None:
        kind = self.random.choice([*VECTORS])
        element, count = VECTORS[kind]
        if self.random.random() < 0.3:
            at = self.random.randrange(count)
            self.emit(element, f"vector.extract {self.pick(kind)}[{at}] : {element} from {kind}")
            return
        if element in ("f32", "f64") and self.random.random() < 0.2:
            operands = ", ".join(self.pick(kind) for _ in range(3))
            self.emit(kind, f"math.fma {operands} : {kind}")
            return
        operations = _FLOATING if element in FLOATS else _WHOLE
        operation = self.random.choice(operations)
        self.emit(kind, f"arith.{operation} {self.pick(kind)}, {self.pick(kind)} : {kind}")

    def vector_choice(self) -> None:
        """Writes a vector select, whose condition compares two vectors element by element."""
        kind = self.random.choice([*VECTORS])
        element, count = VECTORS[kind]
        a, b = self.pick(kind), self.pick(kind)
        if element in FLOATS:
            order = self.random.choice(_FLOAT_ORDERINGS)
            test = f"arith.cmpf {order}, {a}, {b} : {kind}"
        else:
            test = f"arith.cmpi {self.random.choice(_ORDERINGS)}, {a}, {b} : {kind}"
        which = self.name()
        self.lines.append(f"{which} = {test}")
        types = f"vector<{count}xi1>, {kind}"
        self.emit(kind, f"arith.select {which}, {self.pick(kind)}, {self.pick(kind)} : {types}")

    def vector_conversion(self) -> None:
        source, target, operation = self.random.choice(_VECTOR_CONVERSIONS)
        value = self.pick(source)
        result = self.emit(target, f"arith.{operation} {value} : {source} to {target}")
        if (source, target) == ("vector<2xf32>", "vector<2xf16>"):
            self.without_zero(target, result)

    # ---- memory ----------------------------------------------------------------------------------

    def place(self, size: int) -> str:
        mask = self.number("i32", size - 1)
        at = self.emit("i32", f"arith.andi {self.pick('i32')}, {mask} : i32")
        index = self.name()
        self.lines.append(f"{index} = arith.index_cast {at} : i32 to index")
        return index

    def gather(self) -> None:
        kind = self.random.choice([*INTEGERS, *FLOATS])
        at = self.place(ITEMS)
        self.emit(kind, f"memref.load %in_{kind}[{at}] : memref<?x{kind}>")

    def own_memory(self) -> None:
        kind = self.random.choice(["i32", "i64"])
        at = self.place(OWN)
        memory = f"memref<{OWN}x{kind}#PRIVATE#>"
        if self.random.random() < 0.5:
            self.lines.append(f"memref.store {self.pick(kind)}, %own_{kind}[{at}] : {memory}")
        else:
            self.emit(kind, f"memref.load %own_{kind}[{at}] : {memory}")

    # ---- control ---------------------------------------------------------------------------------

    def body(self, depth: int, kinds: list[str], seen: Sequence[tuple[str, str]] = ()) -> None:
        """Writes the lines of a region. The last line yields one value of each type in `kinds`."""
        self.region(depth, seen)
        values = ", ".join(self.pick(kind) for kind in kinds)
        self.lines.append(f"scf.yield {values} : {', '.join(kinds)}")
        self.scopes.pop()

    def region(self, depth: int, seen: Sequence[tuple[str, str]]) -> None:
        """Writes statements in a new scope, which stays open."""
        self.scopes.append({})
        for kind, name in seen:
            self.see(kind, name)
        for _ in range(self.random.randint(2, 6)):
            self.statement(depth)

    def kinds(self) -> list[str]:
        return [self.random.choice([*SCALARS, *VECTORS]) for _ in range(self.random.randint(1, 3))]

    def see_results(self, name: str, kinds: list[str]) -> None:
        for number, kind in enumerate(kinds):
            self.see(kind, f"{name}#{number}")

    def branch(self, depth: int) -> None:
        kinds, condition = self.kinds(), self.pick("i1")
        name = self.name()
        self.lines.append(f"{name}:{len(kinds)} = scf.if {condition} -> ({', '.join(kinds)}) {{")
        self.body(depth, kinds)
        self.lines.append("} else {")
        self.body(depth, kinds)
        self.lines.append("}")
        self.see_results(name, kinds)

    def loop(self, depth: int) -> None:
        """Writes a loop of at most four rounds; the number of rounds is constant or differs between
        work-items."""
        kinds = self.kinds()
        start = [self.pick(kind) for kind in kinds]
        if self.random.random() < 0.5:
            rounds = self.place(4)
        else:
            rounds = self.name()
            self.lines.append(f"{rounds} = arith.constant {self.random.randint(1, 4)} : index")
        name, counter = self.name(), self.name()
        carried = [(kind, self.name()) for kind in kinds]
        pairs = zip(carried, start, strict=True)
        arguments = ", ".join(f"{own} = {first}" for (_, own), first in pairs)
        self.lines.append(
            f"{name}:{len(kinds)} = scf.for {counter} = %zero to {rounds} step %one "
            f"iter_args({arguments}) -> ({', '.join(kinds)}) {{"
        )
        self.body(depth, kinds, carried)
        self.lines.append("}")
        self.see_results(name, kinds)

    def search(self, depth: int) -> None:
        """Writes a loop that each work-item leaves when a condition fails, after at most seven
        rounds."""
        kinds = ["i32", *self.kinds()]
        mask = self.number("i32", 7)
        rounds = self.emit("i32", f"arith.andi {self.pick('i32')}, {mask} : i32")
        start = [rounds, *(self.pick(kind) for kind in kinds[1:])]
        name, types = self.name(), ", ".join(kinds)
        before = [(kind, self.name()) for kind in kinds]
        pairs = zip(before, start, strict=True)
        arguments = ", ".join(f"{own} = {first}" for (_, own), first in pairs)
        self.lines.append(
            f"{name}:{len(kinds)} = scf.while ({arguments}) : ({types}) -> ({types}) {{"
        )
        self.region(depth, before)
        left, zero = before[0][1], self.number("i32", 0)
        some = self.emit("i1", f"arith.cmpi sgt, {left}, {zero} : i32")
        more = self.emit("i1", f"arith.andi {some}, {self.pick('i1')} : i1")
        values = ", ".join([left, *(self.pick(kind) for kind in kinds[1:])])
        self.lines.append(f"scf.condition({more}) {values} : {types}")
        self.scopes.pop()
        after = [(kind, self.name()) for kind in kinds]
        arguments = ", ".join(f"{own}: {kind}" for kind, own in after)
        self.lines += ["} do {", f"^bb0({arguments}):"]
        self.region(depth, after)
        one = self.number("i32", 1)
        less = self.emit("i32", f"arith.subi {after[0][1]}, {one} : i32")
        values = ", ".join([less, *(self.pick(kind) for kind in kinds[1:])])
        self.lines += [f"scf.yield {values} : {types}", "}"]
        self.scopes.pop()
        self.see_results(name, kinds)

    def switch(self, depth: int) -> None:
        kinds, at, name = self.kinds(), self.place(4), self.name()
        types = ", ".join(kinds)
        self.lines.append(f"{name}:{len(kinds)} = scf.index_switch {at} -> {types}")
        for case in ("case 0", "case 2", "default"):
            self.lines.append(f"{case} {{")
            self.body(depth, kinds)
            self.lines.append("}")
        self.see_results(name, kinds)

    # ---- the beginning and the end of a program --------------------------------------------------

    def start(self) -> None:
        for kind in [*INTEGERS, *FLOATS]:
            self.emit(kind, f"memref.load %in_{kind}[%i] : memref<?x{kind}>")
        for name, kind in UNIFORMS.items():
            self.see(kind, name)
        self.emit("i1", f"arith.trunci {self.pick('i8')} : i8 to i1")
        for kind in ("i32", "i64"):
            for at in range(OWN):
                index = self.name()
                self.lines.append(f"{index} = arith.constant {at} : index")
                value = self.pick(kind)
                memory = f"memref<{OWN}x{kind}#PRIVATE#>"
                self.lines.append(f"memref.store {value}, %own_{kind}[{index}] : {memory}")

    def finish(self) -> None:
        """Folds every visible value into the accumulator for the value's width."""
        values = {kind: list(names) for kind, names in self.scopes[0].items()}
        totals = {kind: self.number(kind, 7) for kind in INTEGERS}
        for kind, names in values.items():
            for name in names:
                self.fold(totals, kind, name)
        self.lines += [f"memref.store {totals[k]}, %out_{k}[%i] : memref<?x{k}>" for k in INTEGERS]

    def fold(self, totals: dict[str, str], kind: str, name: str) -> None:
        if kind in VECTORS:
            element, count = VECTORS[kind]
            for at in range(count):
                part = self.emit(element, f"vector.extract {name}[{at}] : {element} from {kind}")
                self.fold(totals, element, part)
            return
        if kind == "i1":
            kind, name = "i8", self.emit("i8", f"arith.extui {name} : i1 to i8")
        if kind in FLOATS:
            name, whole = self.settled(kind, name), f"i{FLOATS[kind]}"
            kind, name = whole, self.emit(whole, f"arith.bitcast {name} : {kind} to {whole}")
        factor = self.number(kind, 31)
        product = self.emit(kind, f"arith.muli {totals[kind]}, {factor} : {kind}")
        totals[kind] = self.emit(kind, f"arith.addi {product}, {name} : {kind}")
