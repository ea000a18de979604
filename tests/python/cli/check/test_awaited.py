"""`mgpu-rt check` finds two faults of LLVM's own lowering, which passes streams in place of events.

If a program waits for the token of an scf.for loop, LLVM 22 passes a stream in place of an event.
Some builds of LLVM recorded no event after a launch in an async.execute (llvm #170833). Debian's
LLVM 22 records this event, so the test removes the event from the lowered program.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mgpu_rt._lowering import toolchain
from tests.python.cli.check.mutants.form import built, reports_of
from tests.python.cli.check.test_check import check
from tests.support.child import library
from tests.support.command import NO_FAULT

pytestmark = pytest.mark.check  # calls mlir-opt three times

SOURCE = Path(__file__).with_name("awaited.mlir")
LOOP = """
func.func @main() -> i32 {
  %zero = arith.constant 0 : i32
  %none = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %host = memref.alloc(%four) : memref<?xi32>
  %begun = gpu.wait async
  %numbers, %made = gpu.alloc async [%begun] (%four) : memref<?xi32>
  %last = scf.for %i = %none to %four step %one iter_args(%token = %made) -> !gpu.async.token {
    %filled = gpu.memset async [%token] %numbers, %zero : memref<?xi32>, i32
    scf.yield %filled : !gpu.async.token
  }
  gpu.wait [%last]
  %other = gpu.wait async
  %freed = gpu.dealloc async [%other] %numbers : memref<?xi32>
  gpu.wait [%freed]
  memref.dealloc %host : memref<?xi32>
  return %zero : i32
}
"""
KERNELS = (
    "gpu.module(convert-gpu-to-rocdl{chipset=gfx90a}),rocdl-attach-target{chip=gfx90a abi=400}"
)
CALLS = ("-gpu-async-region", "-gpu-to-llvm", "-reconcile-unrealized-casts")
CALLS += ("-gpu-module-to-binary",)
HOST = ("-async-to-async-runtime", "-async-runtime-ref-counting", "-convert-async-to-llvm")
HOST += ("-convert-scf-to-cf", "-convert-to-llvm", "-reconcile-unrealized-casts")
EVENT = re.compile(
    r" *(%\w+) = llvm\.call @mgpuEventCreate\(\).*\n"
    r" *llvm\.call @mgpuEventRecord\(\1, (%\w+)\).*\n"
)


def optimise(text: str, folder: Path, *passes: str) -> str:
    """Runs passes on MLIR text; `folder` contains the linker for LLVM."""
    command = [toolchain.tool("mlir-opt", 22), "-", *passes]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, env={"ROCM_PATH": str(folder)}
    )
    assert done.returncode == 0, done.stderr[:2000]
    return done.stdout


def calls(folder: Path) -> str:
    """Returns the program after lowering to runtime calls; async.execute remains in the program."""
    tools = folder / "llvm" / "bin"
    tools.mkdir(parents=True)
    (tools / "ld.lld").symlink_to(str(shutil.which("ld.lld-22")))
    kernels = optimise(SOURCE.read_text(), folder, f"-pass-pipeline=builtin.module({KERNELS})")
    return optimise(kernels, folder, *CALLS)


def without_event(text: str) -> str:
    """Returns the program without the event; the async region yields the stream in place of the
    event."""
    found = EVENT.search(text)
    assert found
    event, stream = found.groups()
    faulty = EVENT.sub("", text).replace(f"async.yield {event} ", f"async.yield {stream} ")
    return re.sub(rf" *llvm\.call @mgpuStreamDestroy\({stream}\).*\n", "", faulty)


def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    lowered = folder / "lowered.mlir"
    lowered.write_text(optimise(text, folder, *HOST))
    helpers = [toolchain.library(name, 22) for name in ("mlir_runner_utils", "mlir_async_runtime")]
    shared = [f"--shared-libs={path}" for path in (library(), *helpers)]
    runner = [toolchain.runner(22), "-O0", lowered, "--entry-point-result=void", *shared]
    return check("--json", folder / "reports", "--", *runner)


def test_an_execute_that_yields_its_event_is_right(tmp_path: Path) -> None:
    done = run(calls(tmp_path), tmp_path)
    assert (done.returncode, done.stderr) == (0, NO_FAULT)
    assert "[14,  14,  14,  14]" in done.stdout


def test_an_execute_that_yields_its_stream_is_found(tmp_path: Path) -> None:
    done = run(without_event(calls(tmp_path)), tmp_path)
    assert done.returncode == 1
    found = json.loads((tmp_path / "reports").read_text())["reports"]
    named = [(report["kind"], report.get("call")) for report in found]
    assert ("stream-as-event", "mgpuEventSynchronize") in named, done.stderr
    assert "170833" in done.stderr


def test_a_wait_on_a_loops_token_is_found(tmp_path: Path) -> None:
    found = reports_of([built(LOOP, tmp_path)], tmp_path)
    assert ("stream-as-event", "mgpuEventSynchronize") in {
        (report["kind"], report.get("call")) for report in found
    }
    line = LOOP.splitlines().index("  gpu.wait [%last]") + 1
    assert f":{line}'" in str(found[0]["place"])
