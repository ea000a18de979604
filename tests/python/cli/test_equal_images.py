"""Images of equal bytes count as one image: its kernels' names have the gpu.modules of all."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from mgpu_rt._images import kernel_names
from tests.support import command as commands

SOFT = ("--device", "softgpu")

#: Two kernels of equal bytes, and a third.
FILLS = """
func.func @main() -> f32 {
  %v = arith.constant 2.0 : f32
  %c1 = arith.constant 1 : index
  %d = gpu.alloc () : memref<4xf32>
  %e = gpu.alloc () : memref<4xf32>
  %f = gpu.alloc () : memref<4xf32>
  linalg.fill ins(%v : f32) outs(%d : memref<4xf32>)
  linalg.fill ins(%v : f32) outs(%e : memref<4xf32>)
  linalg.exp ins(%d : memref<4xf32>) outs(%f : memref<4xf32>)
  %h = memref.alloc() : memref<4xf32>
  gpu.memcpy %h, %e : memref<4xf32>, memref<4xf32>
  %x = memref.load %h[%c1] : memref<4xf32>
  return %x : f32
}
"""
BOTH = "main_kernel+main_kernel_0::main_kernel"
OTHER = "main_kernel_1::main_kernel"


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs mgpu-rt over AMD's HIP."""
    return commands.command(*arguments, MGPU_RT_HIP=str(softgpu.hip({})))


@pytest.fixture
def fills(tmp_path: Path) -> Path:
    program = tmp_path / "fills.mlir"
    program.write_text(FILLS)
    return program


def test_statistics_and_compare_name_both_modules(fills: Path, tmp_path: Path) -> None:
    stats = tmp_path / "stats.json"
    assert command("run", *SOFT, "--stats-json", stats, fills).returncode == 0
    kernels = json.loads(stats.read_text())["kernels"]
    assert {name: row["launches"] for name, row in kernels.items()} == {BOTH: 2, OTHER: 1}
    shown = command("compare", *SOFT, fills).stdout
    rows = [line.split()[:3] for line in shown.splitlines() if "::" in line]
    assert sorted(rows) == [[BOTH, "2", "2"], [OTHER, "1", "1"]]


@pytest.mark.check
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("main_kernel::*", [BOTH, BOTH]),
        ("main_kernel_0::*", [BOTH, BOTH]),
        (BOTH, [BOTH, BOTH]),
        ("main_kernel_1::*", [OTHER]),
    ],
)
def test_a_pattern_may_name_either_module(fills: Path, pattern: str, expected: list[str]) -> None:
    shown = command("run", *SOFT, "--hook", "trace", "--kernel", pattern, fills).stderr
    assert [line.partition("<")[0] for line in shown.splitlines() if "<" in line] == expected


@pytest.mark.check
def test_a_launch_of_either_is_recorded_and_replayed(fills: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    words = ("--record", folder, "--kernel", "main_kernel_0::*")
    done = command("run", *SOFT, *words, fills)
    assert f"recorded launch 1 of {BOTH}, " in done.stderr
    equal, other = (tmp_path / name for name in ("equal.o", "other.o"))
    assert command("lower", "--chip", "gfx90a", fills, "-o", equal).returncode == 0
    done = command("replay", *SOFT, "--image", equal, folder)
    assert (done.returncode, done.stdout.startswith(f"{BOTH}: ")) == (0, True), done.stderr
    changed = tmp_path / "changed.mlir"
    absolute = "linalg.abs ins(%d : memref<4xf32>) outs(%e"
    changed.write_text(FILLS.replace("linalg.fill ins(%v : f32) outs(%e", absolute))
    assert command("lower", "--chip", "gfx90a", changed, "-o", other).returncode == 0
    done = command("replay", *SOFT, "--image", other, folder)
    assert done.returncode == 2
    names = "main_kernel::main_kernel, main_kernel_0::main_kernel"
    assert f"has different images for {names}, which were equal" in done.stderr


def test_the_name_of_many_modules_has_the_first_two() -> None:
    assert kernel_names.joined(()) == ""
    assert kernel_names.joined(("a",)) == "a"
    assert kernel_names.joined(("a", "b", "c")) == "a+b+c"
    assert kernel_names.joined(("a", "b", "c", "d")) == "a+b+2 more"
