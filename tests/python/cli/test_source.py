"""The commands run, check, compare and diff lower a program in MLIR for the device."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu, source
from mgpu_rt._lowering import cache, entry
from tests.support import command as commands
from tests.support.child import ROOT
from tests.support.command import NO_FAULT, assert_sentence, invoke

EXAMPLES = ROOT / "examples"
SOFT = ("--device", "softgpu")


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs mgpu-rt over AMD's HIP."""
    return commands.command(*arguments, MGPU_RT_HIP=str(softgpu.hip({})))


RETURNS = """
func.func @seven() -> i32 {
  %r = arith.constant 7 : i32
  return %r : i32
}
func.func @many() -> i32 {
  %r = arith.constant 300 : i32
  return %r : i32
}
func.func @tenth() -> f32 {
  %r = arith.constant 0.1 : f32
  return %r : f32
}
func.func @read() -> i64 {
  %r = arith.constant 3 : i64
  return %r : i64
}
func.func @"a \\22name\\22 of %d"() -> i64 {
  %r = func.call @read() : () -> i64
  return %r : i64
}
func.func @large() -> i64 {
  %r = arith.constant 5000000000 : i64
  return %r : i64
}
func.func @fails() {
  %false = arith.constant false
  cf.assert %false, "not so"
  return
}
func.func @main(%a: i32) {
  return
}
"""


def test_a_program_in_mlir_is_run() -> None:
    """The first command of README: it lowers, links and runs."""
    done = command("run", *SOFT, "--entry", "sum", EXAMPLES / "reduction.mlir")
    told = "mgpu-rt: gpu.alloc without async (line 44) and 3 more get tokens\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "32640\n", told)


@pytest.mark.check
@pytest.mark.parametrize("llvm", [22, 19])
@pytest.mark.parametrize(
    ("program", "entry", "last"),
    [
        (EXAMPLES / "matmul.mlir", "main", " [960,   960,"),
        (EXAMPLES / "linalg.mlir", "main", " [18,   18,   18,   18]]"),
        (EXAMPLES / "pipeline.mlir", "halves", "5376"),
        (EXAMPLES / "reduction.mlir", "sum", "32640"),
    ],
)
def test_examples_run_and_are_right(program: Path, entry: str, last: str, llvm: int) -> None:
    done = command("run", *SOFT, "--llvm", llvm, "--entry", entry, program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(last)
    checked = command("check", "--llvm", llvm, "--entry", entry, program)
    assert checked.returncode == 0, checked.stderr
    assert "mgpu-rt: found no fault" in checked.stderr


#: Kernels that compute on a narrow float, by the float, and f(0.5).
NARROW = """func.func @main() -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant 0.5 : FLOAT
  %host = memref.alloc() : memref<1xFLOAT>
  %gpu = gpu.alloc () : memref<1xFLOAT>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    linalg.fill ins(%half : FLOAT) outs(%gpu : memref<1xFLOAT>)
    %v = memref.load %gpu[%tx] : memref<1xFLOAT>
    %r = math.FUNCTION %v : FLOAT
    memref.store %r, %gpu[%tx] : memref<1xFLOAT>
    gpu.terminator
  }
  gpu.memcpy %host, %gpu : memref<1xFLOAT>, memref<1xFLOAT>
  %x = memref.load %host[%c0] : memref<1xFLOAT>
  %wide = arith.extf %x : FLOAT to f32
  return %wide : f32
}
"""


@pytest.mark.check
@pytest.mark.parametrize("llvm", [22, 19])
@pytest.mark.parametrize(
    ("kind", "function", "result"),
    [("bf16", "exp", "1.6484375"), ("bf16", "log", "-0.69140625"), ("f16", "sin", "0.479492188")],
)
def test_narrow_floats_are_computed_in_f32(
    kind: str, function: str, result: str, llvm: int, tmp_path: Path
) -> None:
    program = tmp_path / "narrow.mlir"
    program.write_text(NARROW.replace("FLOAT", kind).replace("FUNCTION", function))
    done = command("run", *SOFT, "--llvm", llvm, program)
    assert (done.returncode, done.stdout) == (0, f"{result}\n"), done.stderr


#: Operations of linalg on the GPU's memory, of which two have a parallel loop.
SERIAL = """#each = affine_map<(i) -> (i)>
#first = affine_map<(i) -> (0)>
#sum = {indexing_maps = [#each, #first], iterator_types = ["reduction"]}
func.func @main() -> i64 {
  %three = arith.constant 3 : i64
  %c0 = arith.constant 0 : index
  %a = gpu.alloc () : memref<10xi64>
  %s = gpu.alloc () : memref<i64>
  %one = gpu.alloc () : memref<1xi64>
  linalg.fill ins(%three : i64) outs(%a : memref<10xi64>)
  linalg.fill ins(%three : i64) outs(%s : memref<i64>)
  linalg.dot ins(%a, %a : memref<10xi64>, memref<10xi64>) outs(%s : memref<i64>)
  linalg.reduce { arith.addi } ins(%a : memref<10xi64>) outs(%s : memref<i64>) dimensions = [0]
  linalg.fill ins(%three : i64) outs(%one : memref<1xi64>)
  linalg.generic #sum ins(%a : memref<10xi64>) outs(%one : memref<1xi64>) {
  ^bb0(%x: i64, %all: i64):
    %is_large = arith.cmpi sgt, %x, %three : i64
    %y = scf.if %is_large -> i64 {
      scf.yield %x : i64
    } else {
      scf.yield %three : i64
    }
    %t = arith.addi %y, %all : i64
    linalg.yield %t : i64
  }
  %h = memref.alloc() : memref<i64>
  %h1 = memref.alloc() : memref<1xi64>
  gpu.memcpy %h, %s : memref<i64>, memref<i64>
  gpu.memcpy %h1, %one : memref<1xi64>, memref<1xi64>
  %r = memref.load %h[] : memref<i64>
  %r1 = memref.load %h1[%c0] : memref<1xi64>
  %sum = arith.addi %r, %r1 : i64
  return %sum : i64
}
"""


@pytest.mark.parametrize("llvm", [22, pytest.param(19, marks=pytest.mark.check)])
def test_linalg_without_a_parallel_loop_becomes_kernels(llvm: int, tmp_path: Path) -> None:
    program = tmp_path / "serial.mlir"
    program.write_text(SERIAL)
    done = command("run", *SOFT, "--stats", "--llvm", llvm, program)
    assert (done.returncode, done.stdout) == (0, f"{3 + 90 + 30 + 3 + 30}\n"), done.stderr
    assert " 6 mgpuLaunchKernel\n" in done.stderr


@pytest.mark.check
def test_tasks_on_threads_run() -> None:
    """MLIR's async dialect: LLVM's opt splits its coroutines."""
    done = command("check", Path(__file__).parent / "check" / "awaited.mlir")
    assert (done.returncode, done.stderr.splitlines()[-1] + "\n") == (0, NO_FAULT), done.stderr
    assert "[14,  14,  14,  14]" in done.stdout


@pytest.mark.check
def test_compare_and_diff_take_programs_in_mlir(tmp_path: Path) -> None:
    done = command("compare", *SOFT, EXAMPLES / "steps.mlir")
    assert done.returncode == 0, done.stderr
    assert any(line.split()[:3] == ["hipMalloc", "1000", "1"] for line in done.stdout.splitlines())
    other = tmp_path / "other.mlir"
    other.write_text((EXAMPLES / "linalg.mlir").read_text().replace("1.5", "2.5"))
    done = command("diff", *SOFT, EXAMPLES / "linalg.mlir", other)
    assert done.returncode == 1, done.stderr
    assert "is the first that differs" in done.stdout
    devices = ("--device", "gfx90a,gfx906")
    done = command("diff", *devices, EXAMPLES / "linalg.mlir")
    assert done.returncode == 0, done.stderr


@pytest.mark.check
@pytest.mark.parametrize(
    ("entry", "status", "printed"),
    [
        ("seven", 7, ""),
        ("tenth", 0, "0.100000001\n"),
        ("large", 0, "5000000000\n"),
        ("read", 0, "3\n"),  # also a function of the C library
        ('a "name" of %d', 0, "3\n"),
    ],
)
def test_the_entrys_result_is_the_status_or_is_printed(
    tmp_path: Path, entry: str, status: int, printed: str
) -> None:
    program = tmp_path / "-x.mlir"  # cc must not take the name for an option
    program.write_text(RETURNS)
    done = command("run", *SOFT, "--entry", entry, program)
    assert (done.returncode, done.stdout) == (status, printed)


def test_the_text_of_a_failed_assert_is_printed_before_the_abort(tmp_path: Path) -> None:
    program = tmp_path / "returns.mlir"
    program.write_text(RETURNS)
    done = command("run", *SOFT, "--entry", "fails", program)
    assert (done.returncode, done.stdout) == (-signal.SIGABRT, "not so\n")


def test_a_result_that_no_status_holds_is_told(tmp_path: Path) -> None:
    program = tmp_path / "returns.mlir"
    program.write_text(RETURNS)
    done = command("run", *SOFT, "--entry", "many", program)
    told = "mgpu-rt: the result is 300, and an exit status has 8 bits: return i64 to print it\n"
    assert (done.returncode, done.stderr) == (300 - 256, told)


@pytest.mark.check
def test_a_second_run_lowers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "OBJECTS", tmp_path / "objects")
    program = str(EXAMPLES / "linalg.mlir")
    first = source.command([program], "softgpu")
    made = Path(*first).stat().st_mtime_ns
    assert source.command([program], "softgpu") == first
    assert Path(*first).stat().st_mtime_ns == made
    assert source.command([program], "gfx906") != first
    assert source.command([program], "softgpu", lines=True) != first


def test_a_cache_from_which_nothing_runs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "OBJECTS", tmp_path)
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, *_: "returns" not in str(path) and access(path, *_)
    )
    monkeypatch.setattr(entry, "_build", lambda *_: b"")
    (tmp_path / "returns.mlir").write_text(RETURNS)
    done = invoke("run", *SOFT, str(tmp_path / "returns.mlir"))
    assert_sentence(done.exit_code, done.stderr, "is mounted with noexec: set XDG_CACHE_HOME to a")
