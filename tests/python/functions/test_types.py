"""Types of functions, parsed from MLIR's text."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mgpu_rt._functions import sidecar, types
from mgpu_rt._functions.types import MemRefType, Other, Scalar
from mgpu_rt._lowering import toolchain
from mgpu_rt._lowering.text import function_types
from tests.python.functions import HOST


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("i32", Scalar("i32")),
        ("index", Scalar("index")),
        ("memref<4x?xf32>", MemRefType("memref<4x?xf32>", "f32", (4, None))),
        ("memref<f64>", MemRefType("memref<f64>", "f64", ())),
        ("memref<2xi1, 1>", MemRefType("memref<2xi1, 1>", "i1", (2,))),
        (
            "memref<?x4xf32, strided<[?, 1], offset: ?>>",
            MemRefType(
                "memref<?x4xf32, strided<[?, 1], offset: ?>>", "f32", (None, 4), (None, 1), None
            ),
        ),
        (
            "memref<4xf32, strided<[2]>, #gpu.address_space<global>>",
            MemRefType(
                "memref<4xf32, strided<[2]>, #gpu.address_space<global>>", "f32", (4,), (2,)
            ),
        ),
        (
            "memref<8xcomplex<f32>>",
            MemRefType("memref<8xcomplex<f32>>", "complex<f32>", (8,)),
        ),
    ],
)
def test_types_are_read(text: str, wanted: object) -> None:
    assert types.one(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "vector<4xf32>",
        "tensor<?xf32>",
        "complex<f32>",
        "f8E4M3FN",
        "memref<4xvector<2xf32>>",
        "memref<*xbf16>",
        "memref<4xf32, affine_map<(d0) -> (d0 + 1)>>",
        "memref<2x2xf32, strided<[1]>>",
        "(i32) -> i32",
        "!llvm.ptr",
    ],
)
def test_others_keep_their_text(text: str) -> None:
    assert types.one(text) == Other(text)


@pytest.mark.parametrize(
    ("text", "arguments", "results"),
    [
        ("() -> ()", 0, 0),
        (" (i32)->f32 ", 1, 1),
        ("(memref<?x4xf32, strided<[?, 1], offset: ?>>, f32) -> (memref<4xf32>, index)", 2, 2),
        ("((i32) -> i32, (f32, f32) -> ()) -> ()", 2, 0),
        ("(i32) -> (memref<2xf32>)", 1, 1),
    ],
)
def test_functions_are_read(text: str, arguments: int, results: int) -> None:
    found = types.function(text)
    assert (len(found.arguments), len(found.results)) == (arguments, results)
    assert types.function(str(found)) == found


@pytest.mark.parametrize(
    "text", ["", "f64", "(f64", "f64 -> f64", "(f64) f64", "(f64) ->", "()x -> i1"]
)
def test_other_texts_are_no_functions(text: str) -> None:
    with pytest.raises(ValueError, match="is not a type of a function"):
        types.function(text)


def test_the_functions_of_a_program_are_found() -> None:
    """The result contains no functions of nested modules, and no functions that are only
    declared."""
    found = function_types(HOST.read_text())
    assert function_types(HOST.read_text(), 19) == found
    assert found["sum"] == "(memref<?x?xf32, strided<[?, ?], offset: ?>>) -> f32"
    assert found['an odd "name"'] == "() -> i64"
    assert "elsewhere" not in found and "hidden" not in found


def test_types_survive_the_linker(tmp_path: Path) -> None:
    """The library is linked from two objects and stripped. Names contain quotes and characters
    outside ASCII."""
    functions = (
        {"a": "() -> i1", 'q"\\uote\n': "() -> ()"},
        {"naïve": "(i32) -> i32", "b": "() -> ()"},
    )
    objects = []
    for number, each in enumerate(functions):
        compiled = tmp_path / f"{number}.o"
        ir = sidecar.append_to(f"define void @f{number}() {{ ret void }}\n", each)
        command = [toolchain.tool("llc", 22), "-filetype=obj", "-relocation-model=pic", "-o", "-"]
        compiled.write_bytes(toolchain.run(command, ir.encode()))
        objects.append(compiled)
    library = tmp_path / "both.so"
    flags = ("-shared", "-s", "-Wl,--gc-sections", "-o")
    subprocess.run([toolchain.compiler(), *objects, *flags, library], check=True)
    assert sidecar.read(library) == {**functions[0], **functions[1]}


def test_a_file_without_types_has_none(tmp_path: Path) -> None:
    assert sidecar.read(toolchain.compiler()) == {}
    damaged = tmp_path / "damaged.o"
    command = ["cc", "-c", "-x", "assembler", "-", "-o", damaged]
    for content in ("no JSON", "[]", '{\\"functions\\":1}'):
        section = f'.section {sidecar.SECTION},"",@progbits\n.ascii "{content}"\n'
        subprocess.run(command, input=section.encode(), check=True)
        with pytest.raises(ValueError, match=r"the function types in .* cannot be read"):
            sidecar.read(damaged)
    text = tmp_path / "text"
    text.write_text("no library")
    with pytest.raises(ValueError, match="is not an ELF file"):
        sidecar.read(text)
