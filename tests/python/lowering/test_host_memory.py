"""Linalg runs where its memrefs' memory is, which functions, branches and loops may pass on."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgpu_rt._lowering.preparation import HOST_LOOPS, KERNELS, preparation
from tests.support import lower

#: Host functions in which a memref takes a way to `linalg.fill`; %way becomes the memory's origin.
WAYS = {
    "a function returns it": "%x = call @make(%n) : (index) -> memref<?xf32>\n",
    "a chain of calls": "%x = call @chain(%n) : (index) -> memref<?xf32>\n",
    "one of two results": "%r:2 = call @two(%n) : (index) -> (f32, memref<?xf32>)\n"
    "%x = memref.cast %r#1 : memref<?xf32> to memref<?xf32>\n",
    "scf.if": "%x = scf.if %c -> (memref<?xf32>) {\n"
    "  %a = func.call @make(%n) : (index) -> memref<?xf32>\n"
    "  scf.yield %a : memref<?xf32>\n} else {\n  %b = %alloc : memref<?xf32>\n"
    "  scf.yield %b : memref<?xf32>\n}\n",
    "iter_args": "%a = %alloc : memref<?xf32>\n%b = %alloc : memref<?xf32>\n"
    "%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b)"
    " -> (memref<?xf32>, memref<?xf32>) {\n"
    "  linalg.fill ins(%z : f32) outs(%p : memref<?xf32>)\n"
    "  scf.yield %q, %p : memref<?xf32>, memref<?xf32>\n}\n"
    "%x = memref.cast %r#0 : memref<?xf32> to memref<?xf32>\n",
    "scf.while": "%a = %alloc : memref<?xf32>\n"
    "%x = scf.while (%p = %a) : (memref<?xf32>) -> memref<?xf32> {\n"
    "  scf.condition(%c) %p : memref<?xf32>\n} do {\n^bb0(%q: memref<?xf32>):\n"
    "  linalg.fill ins(%z : f32) outs(%q : memref<?xf32>)\n  scf.yield %q : memref<?xf32>\n}\n",
    "select": "%a = %alloc : memref<?xf32>\n%b = %alloc : memref<?xf32>\n"
    "%x = arith.select %c, %a, %b : memref<?xf32>\n",
    "blocks": "%a = %alloc : memref<?xf32>\ncf.br ^bb1(%a : memref<?xf32>)\n"
    "^bb1(%x: memref<?xf32>):\n",
    "views": "%a = call @make(%n) : (index) -> memref<?xf32>\n"
    "%s = memref.subview %a[0] [%n] [1] : memref<?xf32> to memref<?xf32, strided<[1]>>\n"
    "%t = memref.cast %s : memref<?xf32, strided<[1]>> to memref<?xf32, strided<[1], offset: ?>>\n"
    "%x = memref.reinterpret_cast %t to offset: [0], sizes: [%n], strides: [1]"
    " : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32>\n",
}
WAY = """\
func.func private @make(%size: index) -> memref<?xf32> {
  %made = %alloc : memref<?xf32>
  return %made : memref<?xf32>
}
func.func private @chain(%size: index) -> memref<?xf32> {
  %made = call @make(%size) : (index) -> memref<?xf32>
  return %made : memref<?xf32>
}
func.func private @two(%size: index) -> (f32, memref<?xf32>) {
  %other = %other : memref<?xf32>
  %number = memref.load %other[%size] : memref<?xf32>
  %made = call @chain(%size) : (index) -> memref<?xf32>
  return %number, %made : f32, memref<?xf32>
}
func.func @main() {
  %z = arith.constant 0.0 : f32
  %c = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %way  linalg.fill ins(%z : f32) outs(%x : memref<?xf32>)
  return
}
"""
ALLOCATIONS = {True: "memref.alloc(%size)", False: "gpu.alloc (%size)"}


def _way(way: str, on_host: bool) -> str:
    text = WAY.replace("%way", WAYS[way]).replace("%other :", f"{ALLOCATIONS[not on_host]} :")
    text = text.replace("%alloc", ALLOCATIONS[on_host])
    before, main, body = text.partition("@main")
    return before + main + body.replace("%size", "%n")


@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_memref_keeps_its_memory_on_the_way(way: str, on_host: bool) -> None:
    passes = preparation(_way(way, on_host)).first
    assert (HOST_LOOPS in passes, KERNELS in passes) == (on_host, not on_host)


@pytest.mark.check
@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_mlir_lowers_each_way(tmp_path: Path, way: str, on_host: bool) -> None:
    program = tmp_path / "program.mlir"
    program.write_text(_way(way, on_host))
    lower.lower(program, llvm=22)
