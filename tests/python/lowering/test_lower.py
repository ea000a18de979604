"""The lowering of programs: the cache, the output, and the messages of a failure."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mgpu_rt._lowering import cache, entry, object_files, pipelines, steps, toolchain
from tests.support import forum, lower
from tests.support.command import command
from tests.support.sources import SOURCES
from tests.support.stand_ins import stand_in
from tests.support.suites import in_check

FORUM = SOURCES["forum"]
KERNEL = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @nothing() kernel { gpu.return }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    %iterations = arith.constant 12 : index
    gpu.launch_func @kernels::@nothing
        blocks in (%one, %one, %one) threads in (%iterations, %one, %one)
    return
  }
}
"""

# ---- the cache -----------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a program that no other test lowers, and a separate folder for the cache."""
    monkeypatch.setattr(cache, "OBJECTS", tmp_path / "objects")
    path = tmp_path / "small.mlir"
    path.write_text(KERNEL)
    return path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records the names of the tools that lowering runs."""
    tools: list[str] = []
    run = toolchain.run

    def noting(command, *rest):
        tools.append(Path(command[0]).name)
        return run(command, *rest)

    monkeypatch.setattr(toolchain, "run", noting)
    return tools


def test_a_second_request_runs_no_tool(program: Path, made: list[str]) -> None:
    first = lower.lower(program, llvm=22)
    assert made == ["mlir-opt", "mlir-translate", "llc"]
    assert lower.lower(program, llvm=22) == first
    assert len(made) == 3


@pytest.mark.check
@pytest.mark.parametrize(
    "change", [{"iterations": 13}, {"chip": "gfx906"}, {"opt_level": 0}, {"llvm": 19}]
)
def test_every_option_is_part_of_the_key(program: Path, change: dict) -> None:
    options = {"llvm": 22}
    first = lower.lower_to_llvm_dialect(program, **options)
    other = lower.lower_to_llvm_dialect(program, **(options | change))
    assert other != first
    if "llvm" in change:  # the fault shows when the dialect is translated: the calls of a launch
        first, other = (lower.lower(program, **o) for o in (options, options | change))
    assert other.read_bytes() != first.read_bytes()


def test_recipe_and_tools_are_part_of_the_key(
    program: Path, made: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = {lower.lower_to_llvm_dialect(program, 22)}
    monkeypatch.setattr(pipelines, "RECIPE", pipelines.RECIPE + 1)
    paths.add(lower.lower_to_llvm_dialect(program, 22))
    newer = tmp_path / "mlir-opt"
    newer.symlink_to(toolchain.tool("mlir-opt", 22))
    real = toolchain.tool
    monkeypatch.setattr(
        toolchain, "tool", lambda name, llvm: newer if name == "mlir-opt" else real(name, llvm)
    )
    paths.add(lower.lower_to_llvm_dialect(program, 22))
    assert len(paths) == 3
    assert len(made) == 3


def test_the_forums_passes_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = forum.pipeline()
    monkeypatch.setattr(forum, "_PASSES", forum._PASSES[1:])
    assert forum.pipeline() != before


@pytest.mark.parametrize("options", [{"chip": "gfx90a"}, {"opt_level": 0}])
def test_the_forums_command_takes_no_options(program: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="has no options"):
        lower.lower(program, llvm=forum.LLVM, **options)


def test_a_failure_keeps_nothing(program: Path) -> None:
    program.write_text(KERNEL.replace("gpu.return", "gpu.nonsense"))
    with pytest.raises(
        toolchain.LoweringFailed, match=r"exit 1 from: .*mlir-opt.*\n.*gpu\.nonsense"
    ):
        lower.lower(program, llvm=22)
    assert not cache.OBJECTS.exists()


# ---- the number of iterations --------------------------------------------------------------------


def test_iterations_are_replaced_where_they_stand_once() -> None:
    text = FORUM.read_text()
    assert lower.with_iterations(text, None) == text
    old, new = (f"%iterations = arith.constant {number}" for number in (1000, 7))
    assert old in text and lower.with_iterations(text, 7) == text.replace(old, new)
    for times in (0, 2):
        with pytest.raises(ValueError, match=f"defines %iterations {times} times"):
            lower.with_iterations("%iterations = arith.constant 5 : index\n" * times, 7)


# ---- tools ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "package"), [("mlir-opt", "mlir-99-tools"), ("llc", "llvm-99")])
def test_a_missing_tool_is_named_with_its_package(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message shows an apt-get command only where there is an apt-get."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(toolchain.ToolchainMissing, match=f"install what Debian calls {package}"):
        toolchain.tool(name, 99)
    with pytest.raises(toolchain.ToolchainMissing, match="cc is missing: install what Debian"):
        lower.link([], libraries=[], out=tmp_path / "program")
    (tmp_path / "apt-get").touch(mode=0o755)
    advice = f": apt-get install {package}, or put it in PATH; https://apt.llvm.org has releases"
    with pytest.raises(toolchain.ToolchainMissing, match=advice):
        toolchain.tool(name, 99)


def test_a_tool_is_found_by_its_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On systems other than Debian, a tool's name contains no release number; an example is llc."""
    assert stand_in(tmp_path, monkeypatch, "mlir-opt-99") == toolchain.tool("mlir-opt", 99)
    says = "#!/bin/sh\necho '  LLVM version 99.1.0'\n"
    assert stand_in(tmp_path, monkeypatch, "llc", text=says) == toolchain.tool("llc", 99)
    with pytest.raises(toolchain.ToolchainMissing):
        toolchain.tool("llc", 98)


def test_a_tool_that_cannot_be_run_is_named(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool was built for another machine or is truncated. The command prints no traceback."""
    broken = stand_in(tmp_path, monkeypatch, "mlir-opt", text="\x7fELF")
    with pytest.raises(toolchain.ToolchainMissing):
        toolchain.tool("mlir-opt", 99)
    monkeypatch.setattr(toolchain, "tool", lambda name, llvm: broken)
    with pytest.raises(toolchain.LoweringFailed, match="cannot be run: Exec format error"):
        lower.lower(program, llvm=22)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"llvm": 16}, "no recipe for LLVM 16"),
        ({"llvm": 22, "chip": "gfx90a", "image": "isa"}, "no recipe for an image"),
        ({"llvm": 22, "chip": "sm_90", "image": "exe"}, "no recipe for an image"),
    ],
)
def test_a_target_without_a_recipe_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        lower.lower(FORUM, **options)


# ---- output --------------------------------------------------------------------------------------


def test_code_objects_have_the_names_of_their_modules() -> None:
    assert list(lower.code_objects(SOURCES["samename"])) == ["first", "second"]
    many = SOURCES["many"]
    images = lower.code_objects(many)
    assert list(images) == [f"part{i}" for i in range(5)]
    assert lower.code_object(many, module="part3") == images["part3"]
    with pytest.raises(ValueError, match=r"many\.mlir holds the modules \['part0', .*: name one"):
        lower.code_object(many)
    with pytest.raises(KeyError):
        lower.code_object(many, module="part9")


@pytest.mark.parametrize(
    ("llvm", "steps"),
    [
        (20, ["mlir-opt-22", "mlir-opt-20", "mlir-translate-20", "llc-20"]),
        (21, ["mlir-opt-22", "mlir-opt-21", "mlir-translate-21", "llc-21"]),
        (23, ["mlir-opt-23", "mlir-translate-23", "llc-23"]),
    ],
)
def test_other_releases_lower_where_their_tools_are(
    llvm: int, steps: list[str], program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scripts with the names of the tools of LLVM 20, 21 and 23 run LLVM 22's tools. For LLVM 19,
    20 and 21, the lowering generates device code with LLVM 22."""
    noted = tmp_path / "noted"
    for name in ("mlir-opt", "mlir-translate", "llc", "ld.lld"):
        for release in (llvm, 22):
            stand_in = tmp_path / f"{name}-{release}"
            real = toolchain.tool(name, 22)
            stand_in.write_text(f'#!/bin/sh\necho {stand_in.name} >> {noted}\nexec {real} "$@"\n')
            stand_in.chmod(0o755)
    real_tool = toolchain.tool
    monkeypatch.setattr(
        toolchain,
        "tool",
        lambda name, release: (
            tmp_path / f"{name}-{release}"
            if name.startswith("mlir-") or name == "llc"
            else real_tool(name, 22)
        ),
    )
    content = lower.lower(program, llvm=llvm).read_bytes()
    assert content.startswith(b"\x7fELF") and b"nothing" in content
    assert noted.read_text().split() == steps
    pipeline = pipelines.pipeline(llvm)
    assert ("ld.lld", pipeline.device_llvm) in object_files.needs(pipeline)


# ---- for NVIDIA's GPUs ---------------------------------------------------------------------------


@pytest.mark.parametrize("llvm", [22, 19])
def test_ptx_is_made_for_nvidia_and_ends_with_a_0(llvm: int) -> None:
    """Each image ends with a 0 byte, because the driver reads PTX up to a 0 byte."""
    host = lower.lower(FORUM, llvm=llvm, chip="sm_90", image="isa").read_bytes()
    ptx = lower.code_object(FORUM, "sm_90", image="isa").rstrip(b"\0")
    assert b".target sm_90" in ptx and b".visible .entry test_func()" in ptx
    assert host[host.index(ptx) + len(ptx)] == 0
    assert b"mgpuModuleLoadJIT" in host


EXPONENTIAL = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @exponential(%data: memref<1xf32>) kernel {
      %zero = arith.constant 0 : index
      %old = memref.load %data[%zero] : memref<1xf32>
      %new = math.exp %old : f32
      memref.store %new, %data[%zero] : memref<1xf32>
      gpu.return
    }
  }
}
"""


def test_nvidias_device_library_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVIDIA's device library in CUDA's folder contains the exponential functions; no environment
    variable contains the folder's path."""
    if not any(Path(home, "nvvm", "libdevice").exists() for home in pipelines.CUDA_HOMES):
        pytest.skip("no CUDA toolkit here")
    for variable in pipelines.CUDA_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    program = tmp_path / "exponential.mlir"
    program.write_text(EXPONENTIAL)
    assert b"__nv_expf" not in lower.code_object(program, "sm_90", image="isa")


def test_form_of_the_image_follows_the_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, str] = {}
    monkeypatch.setattr(shutil, "which", found.get)
    assert pipelines._form("sm_90", None) == "isa"
    assert pipelines._form("gfx90a", None) == "bin"
    found["ptxas"] = "/usr/bin/ptxas"
    assert pipelines._form("sm_90", None) == "bin"
    del found["ptxas"]
    with pytest.raises(toolchain.ToolchainMissing, match="ptxas is missing"):
        pipelines.Pipeline(22, "sm_90", "bin").tools()


def test_carried_objects_serve_without_tools(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine with MLIR has built the object files; the machine of the test has only copies of
    the files."""
    made = lower.lower(program, llvm=22)

    def missing(name: str, llvm: int) -> Path:
        raise toolchain.ToolchainMissing(name, f"llvm-{llvm}")

    monkeypatch.setattr(toolchain, "tool", missing)
    assert lower.lower(program, llvm=22) == made
    with pytest.raises(toolchain.ToolchainMissing):
        lower.lower(program, llvm=22, iterations=13)


@pytest.mark.check
def test_operations_of_amdgpu_are_lowered() -> None:
    kernel = KERNEL.replace("gpu.return", "amdgpu.lds_barrier\n      gpu.return")
    assert kernel != KERNEL
    assert steps.run(pipelines.pipeline(22).device_steps(), kernel.encode())


def test_a_cached_result_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a part of an executable, after a loss of power, crashes each later run."""
    synced = []
    monkeypatch.setattr(cache, "OBJECTS", tmp_path / "objects")
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file)))
    made = cache.kept("program", "", "key", list, lambda: b"content")
    assert [(one.st_ino, one.st_size) for one in synced] == [(made.stat().st_ino, 7)]


def test_an_executable_can_be_executed_as_soon_as_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that lowers the program may execute the file before this one goes on."""
    monkeypatch.setattr(cache, "OBJECTS", tmp_path / "objects")
    monkeypatch.setattr(entry, "_build", lambda *_: b"#!/bin/sh\nexit 7\n")
    rename, statuses = Path.replace, []

    def renamed(source: Path, target: Path) -> Path:
        result = rename(source, target)
        statuses.append(subprocess.run([result]).returncode)
        return result

    monkeypatch.setattr(Path, "replace", renamed)
    program = "func.func @main() {\n  return\n}\n"
    made, _ = entry.executable("program", program, pipelines.pipeline(22))
    assert (statuses, made.stat().st_mode & 0o777) == ([7], 0o755)


LOOP = """
func.func @main() {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %launches = arith.constant 200000 : index
  %number = arith.constant 7 : i64
  %data = gpu.alloc host_shared () : memref<1xi64>
  scf.for %i = %zero to %launches step %one {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
               threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
      gpu.terminator
    }
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
               threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
      memref.store %number, %data[%zero] : memref<1xi64>
      gpu.terminator
    }
  }
  return
}
"""


@pytest.mark.parametrize("llvm", in_check([22, 19], lambda llvm: llvm == 22))
def test_a_loop_of_many_launches_keeps_its_stack(llvm: int, tmp_path: Path) -> None:
    """MLIR takes stack for the arguments of each launch: here 25 MB, and a stack has 8 MB."""
    program = tmp_path / "loop.mlir"
    program.write_text(LOOP)
    done = command("run", "--device", "hip", "--llvm", llvm, program)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("chip", "features"),
    [
        ("gfx90a", ""),
        ("gfx90a:xnack+", "+xnack"),
        ("gfx90a:sramecc+:xnack-", "+sramecc,-xnack"),
    ],
)
def test_a_chip_may_be_written_as_hip_writes_it(chip: str, features: str) -> None:
    made = pipelines.pipeline(22, chip)
    assert (made.chip, made.features) == ("gfx90a", features)


@pytest.mark.parametrize("chip", ["gfx90a:xnack", "sm_90:xnack+"])
def test_a_wrong_feature_is_refused(chip: str) -> None:
    with pytest.raises(ValueError, match="feature"):
        pipelines.pipeline(22, chip)
