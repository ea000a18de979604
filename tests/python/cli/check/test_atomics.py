"""`mgpu-rt check` keeps each wave's plain and atomic accesses apart, and those of each launch. An
atomic access hides no plain access of its wave, and a plain access hides no atomic one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from tests.python.cli.check.mutants.form import THREADS
from tests.python.cli.check.test_check import check
from tests.python.runtime.hooked import program
from tests.support.folders import folder
from tests.support.suites import in_check

#: The accesses to one integer. The text after `//` names an access in a report's line.
ACCESSES = {
    "store": "llvm.store %five, %p : i32, {t} // store",
    "load": "llvm.load %p : {t} -> i32 // load",
    "add": "llvm.atomicrmw add %p, %one {s} monotonic : {t}, i32 // add",
    "ticket": "llvm.atomicrmw add %p, %one {s} monotonic : {t}, i32 // ticket",
    "swap": "llvm.atomicrmw xchg %p, %seven {s} monotonic : {t}, i32 // swap",
    "look": "llvm.load %p atomic {s} monotonic {{alignment = 4}} : {t} -> i32 // look",
}
#: The accesses whose results the kernel stores. An atomic access without a result is another
#: instruction.
RESULTS = {"load", "ticket", "swap", "look"}
GLOBAL, WORKGROUP = "!llvm.ptr<1>", "!llvm.ptr<3>"
CELLS = 1024  # integers of the program's allocation; the last 256 are for results
CONSTANTS = f"""
      %one = arith.constant 1 : i32
      %five = arith.constant 5 : i32
      %seven = arith.constant 7 : i32
      %wide = arith.constant 64 : index
      %four = arith.constant 4 : index
      %results0 = arith.constant {CELLS - 256} : index
      %results1 = arith.constant {CELLS - 128} : index
      %i = gpu.global_id x
      %i0 = arith.addi %i, %results0 : index
      %i1 = arith.addi %i, %results1 : index"""


SCOPES = ("agent", "workgroup", "")  # "": the system
#: The places of the two sides: two waves that access global or workgroup memory, two workgroups, or
#: launches on two streams.
PLACES = ("global", "workgroup", "groups", "streams")
#: Whether the side `own` comes first or last.
ORDERS = ("last", "first")


@dataclass(frozen=True)
class Sides:
    """One side makes the accesses `own`, and the other side makes the access `other`. The access
    `racing`, one of `own`, races with `other`. Without a plain access `racing` is empty."""

    own: tuple[str, ...]
    other: str
    racing: str = ""

    @property
    def name(self) -> str:
        return "_".join((*self.own, self.other))


#: `add` and `ticket` race with plain accesses. `swap` and `look` do not, because a compiler may use
#: one instruction for an atomic store and for a plain store.
RACES = (
    Sides(("store", "add"), "add", "store"),
    Sides(("add", "store"), "add", "store"),
    Sides(("load", "ticket"), "add", "load"),
    Sides(("add", "load"), "add", "load"),
    Sides(("store", "ticket"), "ticket", "store"),
    Sides(("load", "add"), "ticket", "load"),
    Sides(("store", "swap"), "add", "store"),
    Sides(("load", "swap"), "add", "load"),
    Sides(("load", "look"), "add", "load"),
    Sides(("add", "swap"), "store", "add"),
    Sides(("add", "swap"), "load", "add"),
    Sides(("store", "swap"), "load", "store"),
    Sides(("add", "store"), "store", "add"),
    Sides(("load", "store"), "store", "load"),
)
ATOMIC = ("add", "ticket", "swap", "look")
ATOMICS = tuple(Sides((own,), other) for own, other in combinations_with_replacement(ATOMIC, 2))

Case = tuple[Sides, str, str]
CASES = tuple(product((*RACES, *ATOMICS), PLACES, ORDERS))


def racing(case: Case, scope: str) -> set[str]:
    """Returns the accesses of `own` of which check names at least one. An atomic load of workgroup
    memory, or with workgroup scope, has the instruction of a plain load, so check reports a race
    with a sum. Other accesses have one instruction for all scopes, so check reports no scope that
    is too narrow."""
    sides, place, _ = case
    found = {sides.racing} - {""}
    if "workgroup" in (place, scope):
        if sides.other in ("add", "ticket"):
            found |= {"look"} & {*sides.own}
        elif sides.other == "look":
            found |= {"add", "ticket"} & {*sides.own}
    return found


def _kernel(case: Case) -> str:
    sides, place, order = case
    return f"{sides.name}_{place}_{order}"


# ---- the program ----


def _accesses(names: tuple[str, ...], pointer: str, scope: str) -> str:
    text = ""
    for n, name in enumerate(names):
        syncscope = f'syncscope("{scope}")' if scope else ""
        access = ACCESSES[name].format(t=pointer, s=syncscope)
        text += f"%r{n} = {access}\n" if name != "store" else f"{access}\n"
        if name in RESULTS:
            text += f"memref.store %r{n}, %out[%i{n}] : memref<?xi32>\n"
    return text


def _two_sides(case: Case, scope: str) -> str:
    """Returns a kernel for two waves. The first 64 work-items are one side."""
    sides_of, place, order = case
    pointer = WORKGROUP if place == "workgroup" else GLOBAL
    sides = [_accesses(names, pointer, scope) for names in (sides_of.own, (sides_of.other,))]
    if order == "first":
        sides.reverse()
    if place == "workgroup":
        memory, integer = "%tile : memref<4xi32, #workgroup>", "i32"
    else:
        memory, integer = "%out : memref<?xi32>", "i64"
    return f"""
    gpu.func @{_kernel(case)}(%out: memref<?xi32>, %n: index)
        workgroup(%tile: memref<4xi32, #workgroup>) kernel {{{CONSTANTS}
      %begin = memref.extract_aligned_pointer_as_index {memory} -> index
      %offset = arith.muli %n, %four : index
      %at = arith.addi %begin, %offset : index
      %address = arith.index_cast %at : index to {integer}
      %p = llvm.inttoptr %address : {integer} to {pointer}
      %is_first = arith.cmpi ult, %i, %wide : index
      scf.if %is_first {{
        {sides[0]}
      }}
      %is_second = arith.cmpi uge, %i, %wide : index
      scf.if %is_second {{
        {sides[1]}
      }}
      gpu.return
    }}"""


def _one_access(name: str, scope: str) -> str:
    """Returns a kernel of one wave."""
    return f"""
    gpu.func @{name}(%out: memref<?xi32>, %n: index) kernel {{{CONSTANTS}
      %begin = memref.extract_aligned_pointer_as_index %out : memref<?xi32> -> index
      %offset = arith.muli %n, %four : index
      %at = arith.addi %begin, %offset : index
      %address = arith.index_cast %at : index to i64
      %p = llvm.inttoptr %address : i64 to {GLOBAL}
      {_accesses((name,), GLOBAL, scope)}
      gpu.return
    }}"""


def _launch(kernel: str, token: str, before: str, cell: int, blocks: str, threads: str) -> str:
    return f"""
    %{token}n = arith.constant {cell} : index
    %{token} = gpu.launch_func async [%{before}] @kernels::@{kernel}
        blocks in ({blocks}, %one, %one) threads in ({threads}, %one, %one)
        args(%out : memref<?xi32>, %{token}n : index)"""


def _launches(number: int, case: Case) -> str:
    """Returns the launches of a case, and a wait for them."""
    sides, place, order = case
    a, b, cell = f"a{number}", f"b{number}", 0 if place == "workgroup" else number
    text = f"\n    %{a} = gpu.wait async"
    if place == "groups":
        text += _launch(_kernel(case), f"{a}x", a, cell, "%two", "%wave")
    elif place != "streams":
        text += _launch(_kernel(case), f"{a}x", a, cell, "%one", "%waves")
    if place != "streams":
        return text + f"\n    gpu.wait [%{a}x]"
    own, before = "", a
    for n, name in enumerate(sides.own):
        own += _launch(name, f"{a}x{n}", before, cell, "%one", "%wave")
        before = f"{a}x{n}"
    other = f"\n    %{b} = gpu.wait async"
    other += _launch(sides.other, f"{b}x", b, cell, "%one", "%wave")
    first, last = (other, own) if order == "first" else (own, other)
    return f"{text}{first}{last}\n    gpu.wait [%{before}, %{b}x]"


def _text(scope: str) -> str:
    """Returns a program with all cases."""
    kernels = [_two_sides(case, scope) for case in CASES if case[1] != "streams"]
    kernels += [_one_access(name, scope) for name in ACCESSES]
    launches = [_launches(number, case) for number, case in enumerate(CASES)]
    return f"""#workgroup = #gpu.address_space<workgroup>
module attributes {{gpu.container_module}} {{
  gpu.module @kernels {{{"".join(kernels)}
  }}
  func.func @main() -> i32 {{
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %wave = arith.constant 64 : index
    %waves = arith.constant 128 : index
    %count = arith.constant {CELLS} : index
    %nothing = arith.constant 0 : i32
    %t0 = gpu.wait async
    %out, %t1 = gpu.alloc async [%t0] (%count) : memref<?xi32>
    %t2 = gpu.memset async [%t1] %out, %nothing : memref<?xi32>, i32
    gpu.wait [%t2]{"".join(launches)}
    %t3 = gpu.wait async
    %t4 = gpu.dealloc async [%t3] %out : memref<?xi32>
    gpu.wait [%t4]
    return %nothing : i32
  }}
}}
"""


# ---- the reports ----


def reports(scope: str) -> dict[int, list[set[str]]]:
    """Maps the number of each case to check's reports on it: the names of the two accesses."""
    source = folder("atomics") / f"{scope or 'system'}.mlir"
    text = _text(scope)
    source.write_text(text)
    out = source.with_suffix(".json")
    done = check("--json", out, "--", program(source, lines=True), **THREADS)
    assert out.exists(), done.stderr
    found: list[dict[str, Any]] = json.loads(out.read_text())["reports"]
    lines, named = text.splitlines(), {}
    numbers = {_kernel(case): number for number, case in enumerate(CASES)}
    for report in found:
        sides = [int(side["line"].split(":")[1]) for side in (report, report["other"])]
        accesses = {lines[side - 1].rpartition("// ")[2] for side in sides}
        if report["kind"] == "stream-race":
            number = (report["address"] - report["allocation"]["address"]) // 4
        else:
            number = numbers[report["kernel"]]
        named.setdefault(number, []).append(accesses)
    return named


@pytest.mark.parametrize("scope", in_check(SCOPES, lambda scope: scope != SCOPES[0]))
def test_no_access_hides_another(scope: str) -> None:
    found = reports(scope)
    for number, case in enumerate(CASES):
        seen = found.get(number, [])
        if expected := racing(case, scope):
            other = case[0].other
            assert any({own, other} in seen for own in expected), (_kernel(case), seen)
        else:
            assert seen == [], _kernel(case)
