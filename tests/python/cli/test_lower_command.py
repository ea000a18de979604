"""Tests the installed command `mgpu-rt lower`: the output, and the messages of failures."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mgpu_rt._lowering import steps, toolchain
from tests.support.command import COMMAND, command, invoke
from tests.support.compiled import LIB, compile_c
from tests.support.lower import with_iterations
from tests.support.patience import HANG
from tests.support.sources import SOURCES

FORUM = SOURCES["forum"]


def lower(*arguments: object, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [COMMAND, "lower", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env={**os.environ, **env},
        timeout=HANG,
    )


def complaint(*arguments: object, stdin: bytes = b"", **env: str) -> str:
    """Runs a command that must fail with status 2 and without a traceback; returns the command's
    message."""
    result = lower(*arguments, stdin=stdin, **env)
    said = result.stderr.decode()
    assert (result.returncode, result.stdout) == (2, b""), said
    assert "Traceback" not in said
    return said


# ---- output ------------------------------------------------------------------------------------


@pytest.mark.check
def test_stdin_lowers_to_stdout(tmp_path: Path) -> None:
    out = tmp_path / "x.o"
    assert lower(FORUM, "-o", out).returncode == 0
    result = lower("-", "-o", "-", stdin=FORUM.read_bytes())
    assert (result.returncode, result.stdout) == (0, out.read_bytes())


@pytest.mark.check
def test_an_executable_runs(tmp_path: Path) -> None:
    """The executable finds the library without environment variables."""
    out, program = tmp_path / "x", tmp_path / "-x.mlir"  # cc must not take -x.o for an option
    program.write_text(with_iterations(FORUM.read_text(), 3))
    result = lower(program, "-o", out, "--emit", "executable")
    assert result.returncode == 0, result.stderr
    result = command("run", "--device", "softgpu", "--stats", "--", out)
    assert " 3 mgpuLaunchKernel\n" in result.stderr
    linked = subprocess.run(["ldd", out], capture_output=True, text=True).stdout
    assert f"=> {LIB}/libmlir_rocm_runtime.so" in linked


#: A program with a loop that launches two kernels per iteration; after the loop the program prints
#: a number.
LAUNCHES = """
module {
  func.func private @printF32(f32)
  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 10 : index
    %number = arith.constant 2.5 : f32
    scf.for %i = %zero to %iterations step %one {
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
                 threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
        gpu.terminator
      }
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
                 threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
        gpu.terminator
      }
      scf.for %j = %zero to %one step %one {
      }
    }
    func.call @printF32(%number) : (f32) -> ()
    return
  }
}
"""
#: A program that calls a function which no library of LLVM has.
UNHEARD_OF = LAUNCHES.replace("@printF32", "@unheard_of")


def run(program: Path) -> subprocess.CompletedProcess[str]:
    return command("run", "--device", "softgpu", "--stats", "--", program, MGPU_RT_HIP="")


@pytest.mark.check
@pytest.mark.parametrize("llvm", [22, 19])
def test_kernels_in_a_launch_are_outlined(tmp_path: Path, llvm: int) -> None:
    """The command links LLVM's libraries that the program calls."""
    out = tmp_path / "x"
    words = ("--llvm", llvm, "--emit", "executable")
    result = lower("-", "-o", out, *words, stdin=with_iterations(LAUNCHES, 3).encode())
    assert result.returncode == 0, result.stderr
    done = run(out)
    assert done.stdout == "2.5"
    assert " 6 mgpuLaunchKernel\n" in done.stderr


@pytest.mark.check
@pytest.mark.parametrize("words", [(), ("--llvm", 19, "-g")])
def test_a_dry_run_prints_commands_that_make_the_program(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    """A shell that runs the commands makes an executable that behaves like the command's own."""
    program, out = tmp_path / "-a program.mlir", tmp_path / "it's mine"
    program.write_text(with_iterations(LAUNCHES, 3))
    shown = lower(program, "-o", out, "--emit", "executable", *words, "--dry-run")
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert list(tmp_path.iterdir()) == [program]
    assert b"mgpu-rt itself: adds the types of the functions" in shown.stdout
    pasted = shown.stdout + b"false\ntest -z $ROCM_PATH"  # the shell goes on as before
    subprocess.run(["sh"], input=pasted, check=True, timeout=HANG)
    done = run(out)
    assert done.stdout == "2.5"
    assert " 6 mgpuLaunchKernel\n" in done.stderr


@pytest.mark.parametrize("failing", [None, 0, 1, 2])
def test_a_dry_runs_script_ends_at_a_step_that_fails(tmp_path: Path, failing: int | None) -> None:
    chain = [steps.Step(("cat",), {"A": "1"}) for _ in range(3)]
    if failing is not None:
        chain[failing] = steps.Step(("false",))
    chain.insert(1, steps.Step(edit=bytes.upper, words="writes capitals"))
    source, out, scratch = (tmp_path / name for name in ("it's mine", "-x", "scratch"))
    source.write_text("said")
    scratch.mkdir()
    script = steps.script(chain, str(source), str(out)) + "echo linked\n"
    env = {**os.environ, "TMPDIR": str(scratch)}
    done = subprocess.run(["sh"], input=script, env=env, capture_output=True, text=True)
    expected = (0, "linked\n") if failing is None else (1, "")
    assert (done.returncode, done.stdout) == expected, done.stderr
    assert failing is not None or out.read_text() == "said"
    assert not list(scratch.iterdir())


@pytest.mark.check
def test_objects_and_libraries_are_linked(tmp_path: Path) -> None:
    """The user passes libraries as paths. At run time, the program finds the shared library."""
    source = '#include <stdio.h>\nvoid printF32(float f) { printf("%.1f!", f); }\n'
    shared = compile_c(tmp_path / "libprints.so", source, "-shared", "-fPIC")
    plain = compile_c(tmp_path / "prints.o", source, "-c", "-fPIC")
    for link in (shared, plain):
        out = tmp_path / "x"
        words = ("--emit", "executable", "--link", link)
        result = lower("-", "-o", out, *words, stdin=LAUNCHES.encode())
        assert result.returncode == 0, result.stderr
        assert run(out).stdout == "2.5!"


KERNEL = "gpu.module @{} {{ gpu.func @empty() kernel {{ gpu.return }} }}\n"


@pytest.mark.check
@pytest.mark.parametrize("words", [(), ("--llvm", 19), ("-g",), ("--chip", "gfx906")])
def test_emit_image_is_the_only_modules_code_object(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    out = tmp_path / "x.hsaco"
    text = KERNEL.format('"my kernels"')
    assert lower("-", "-o", out, "--emit", "image", *words, stdin=text.encode()).returncode == 0
    done = invoke("inspect", "--no-device", str(out))
    chip = words[1] if "--chip" in words else "gfx90a"
    assert f"an AMDGPU code object of version 4 for {chip}" in done.stdout
    with out.open("rb") as file:
        assert ELFFile(file).has_dwarf_info() == ("-g" in words)


@pytest.mark.check
def test_emit_image_is_ptx_without_a_zero() -> None:
    """Without ptxas in PATH, NVIDIA's device code is PTX."""
    words = ("--chip", "sm_90", "--emit", "image", "-o", "-")
    ptx = lower("-", *words, stdin=KERNEL.format("k").encode(), PATH="/nowhere").stdout
    assert b".target sm_90" in ptx and b"\0" not in ptx


# ---- messages ----


@pytest.mark.check
def test_an_error_names_the_programs_file(tmp_path: Path) -> None:
    """Errors of all tools name the lines of the user's file."""
    program = tmp_path / "mine.mlir"
    out = ("-o", tmp_path / "x")
    text = FORUM.read_text().replace("gpu.return", "gpu.nonsense")
    assert complaint("-", *out, stdin=text.encode()).startswith("<stdin>:5:7: error: custom op")
    program.write_text(text)
    assert complaint(program, *out).startswith(f"{program}:5:7: error: custom op 'gpu.nonsense'")
    program.write_text(LAUNCHES.replace("    return\n", '"memref.cast"() : () -> ()\nreturn\n'))
    number = program.read_text().splitlines().index('"memref.cast"() : () -> ()') + 1
    assert complaint(program, *out).startswith(f"{program}:{number}:1: error: ")
    left = (
        "%a = memref.alloc() : memref<f32>\nlinalg.fill ins(%number : f32) outs(%a : memref<f32>)"
    )
    program.write_text(LAUNCHES.replace("return\n", f"{left}\nreturn\n"))
    said = complaint(program, *out, "--passes", "none")
    assert f"{program}, lowered:" in said and "<stdin>" not in said
    assert f"; the lines above are of the lowered text, not of '{program}'" in said
    program.write_text("func.func @main() {\n  gpu.nonsense\n  return\n}\n")
    ran = command("run", "--device", "softgpu", program).stderr
    assert f"{program}:2:3: error: custom op" in ran and "lowered text" not in ran
    program.write_text(UNHEARD_OF)
    said = complaint(program, *out, "--emit", "executable")
    assert "program.o: in function `main'" in said and "/program.o" not in said
    assert list(tmp_path.iterdir()) == [program]


def test_a_pass_that_would_not_help_is_not_named(tmp_path: Path) -> None:
    """The program contains a math operation and an operation of an unregistered dialect."""
    text = '%x = arith.constant 1.0 : f32\n%y = math.exp %x : f32\n"no.such"() : () -> ()\n'
    said = complaint("-", "-o", tmp_path / "x", stdin=text.encode())
    assert "unregistered dialect" in said and "math" not in said.splitlines()[-1]


@pytest.mark.check
def test_a_program_that_is_not_lowered_wholly_is_refused_in_the_dialect_too(
    tmp_path: Path,
) -> None:
    """mlir-opt ends with status 0 even if some operations have not been lowered."""
    text = LAUNCHES.replace(
        "    return\n",
        "    %a = gpu.alloc () : memref<4xf32>\n    gpu.dealloc %a : memref<4xf32>\n    return\n",
    )
    out = tmp_path / "x.mlir"
    words = ("--emit", "mlir", "--passes", "none")
    complaint("-", "-o", out, *words, stdin=text.encode())
    assert not out.exists()


def test_missing_tools_are_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One message names all missing tools, and says how to install them."""

    def tool(name: str, llvm: int) -> Path:
        raise toolchain.ToolchainMissing(f"{name}-{llvm}", f"package-of-{name}")

    monkeypatch.setattr(toolchain, "tool", tool)
    result = invoke("lower", str(FORUM), "-o", str(tmp_path / "x.o"), "--llvm", "19")
    assert result.exit_code == 2
    assert "mlir-opt-19, " in result.stderr
    assert "mlir-translate-19, llc-19; apt-get install package-of-mlir-opt " in result.stderr
    assert "https://apt.llvm.org has releases that Debian lacks; `mgpu-rt " in result.stderr


def test_missing_device_libraries_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = (tmp_path / "amdgcn", tmp_path / "rocm")
    monkeypatch.setattr(toolchain, "DEVICE_LIBRARIES", nowhere)
    result = invoke("lower", str(FORUM), "-o", str(tmp_path / "x.o"))
    assert result.exit_code == 2
    said = f"mgpu-rt: {nowhere[0]} is missing: apt-get install rocm-device-libs, "
    assert result.stderr == f"{said}or install ROCm, which has them in {nowhere[1]}\n"
