"""Tests mgpu_rt.lower, and calls of the runtime's functions with integers as pointers."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import numpy
import pytest

import mgpu_rt
from mgpu_rt._lowering import cache, object_files
from tests.python.cli.advice.programs import PROGRAMS
from tests.python.functions import HOST
from tests.support.child import Mgpu, in_child
from tests.support.command import COMMAND

EMPTY = "func.func @nothing() { return }"  # one line of text is a program, too


@pytest.mark.check
def test_a_program_is_lowered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "OBJECTS", tmp_path)
    first = mgpu_rt.lower(EMPTY)
    monkeypatch.setattr(object_files, "host_object", None)  # would fail
    assert mgpu_rt.lower(EMPTY) == mgpu_rt.lower(EMPTY.encode()) == first
    monkeypatch.undo()
    monkeypatch.setattr(cache, "OBJECTS", tmp_path)
    source = tmp_path / "-x.mlir"  # the linker must not take -x.o for an option
    source.write_text(EMPTY)
    others = [
        mgpu_rt.lower(source),
        mgpu_rt.lower(EMPTY, chip="gfx942"),
        mgpu_rt.lower(EMPTY, llvm=19),
    ]
    assert len({first, *others}) == 4
    assert all(list(mgpu_rt.Library(path)) == ["nothing"] for path in (first, *others))


def test_functions_may_have_names_of_attributes() -> None:
    text = "\n".join(
        f"func.func @{name}() -> i64 {{ %x = arith.constant 3 : i64 return %x : i64 }}"
        for name in ("path", "forward")
    )
    functions = mgpu_rt.Library(mgpu_rt.lower(text))
    assert functions["path"]() == functions.forward() == 3
    assert [name for name, count in Counter(dir(functions)).items() if count > 1] == []


def test_a_refusal_names_the_file_and_shows_no_whole_kernel(tmp_path: Path) -> None:
    source = tmp_path / "small.mlir"
    source.write_text(PROGRAMS["small.mlir"])
    with pytest.raises(RuntimeError, match=r"small\.mlir:\d+:\d+: error: ") as refused:
        mgpu_rt.lower(source)
    said = str(refused.value)
    assert "use f16 or bf16" in said.splitlines()[-1]
    assert "<stdin>" not in said and len(said.splitlines()) < 9


def test_a_program_that_cannot_be_lowered_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="use of undeclared SSA value"):
        mgpu_rt.lower("func.func @f() -> i32 {\n return %x : i32\n}\n")
    with pytest.raises(RuntimeError, match="undefined reference to `nobody'"):
        mgpu_rt.lower(
            "func.func private @nobody()\nfunc.func @f() { call @nobody() : () -> () return }\n"
        )
    with pytest.raises(FileNotFoundError):
        mgpu_rt.lower(tmp_path / "none.mlir")
    with pytest.raises(ValueError, match=r"--link none\.o: there is no such file"):
        mgpu_rt.lower(EMPTY, link=["none.o"])


@pytest.mark.check
def test_the_command_makes_such_a_library(tmp_path: Path) -> None:
    out = tmp_path / "host.so"
    subprocess.run(map(str, [COMMAND, "lower", "--emit", "library", HOST, "-o", out]), check=True)
    functions = mgpu_rt.Library(out)
    assert functions.double(numpy.arange(3, dtype="f4")).tolist() == [0, 2, 4]


@in_child(policies=("builtin",), backends=("softgpu",))
def test_numbers_serve_as_pointers(mgpu: Mgpu) -> None:
    runtime = mgpu_rt.load()
    given, result = numpy.arange(8, dtype="f4"), numpy.zeros(8, "f4")
    stream = runtime.mgpuStreamCreate()
    memory = runtime.mgpuMemAlloc(32, stream, False)
    runtime.mgpuMemcpy(memory, given.ctypes.data, 32, stream)
    runtime.mgpuMemcpy(result.ctypes.data, numpy.uint64(memory), numpy.int64(32), stream)
    runtime.mgpuStreamSynchronize(stream)
    assert (result == given).all()
    runtime.mgpuMemFree(memory, 0)
    runtime.mgpuStreamDestroy(stream)
    for wrong in ((1.5,), ("text",), (object(),), (None,), (), (1, 2)):
        with pytest.raises(TypeError):
            runtime.mgpuStreamDestroy(*wrong)
    for wrong in (-1, 1 << 64):
        with pytest.raises(OverflowError):
            runtime.mgpuStreamDestroy(wrong)
    assert mgpu.stderr() == ""
