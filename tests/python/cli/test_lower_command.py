"""Tests the installed command `mgpu-rt lower`: the output, and the messages of failures."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mgpu_rt._lowering import toolchain
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


def undefined(content: bytes) -> set[str]:
    """Returns the names of the runtime's functions that an object file does not define."""
    symbols = ELFFile(io.BytesIO(content)).get_section_by_name(".symtab").iter_symbols()
    return {s.name for s in symbols if s.name.startswith("mgpu") and s["st_shndx"] == "SHN_UNDEF"}


# ---- output ------------------------------------------------------------------------------------


@pytest.mark.check
@pytest.mark.parametrize("llvm", [22, 19, 15])
def test_an_object_file_is_written(tmp_path: Path, llvm: int) -> None:
    out = tmp_path / "x.o"
    result = lower(FORUM, "-o", out, "--llvm", llvm)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    with out.open("rb") as file:
        assert ELFFile(file)["e_type"] == "ET_REL"
    assert "mgpuLaunchKernel" in undefined(out.read_bytes())


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


@pytest.mark.check
def test_emit_mlir_is_the_llvm_dialect(tmp_path: Path) -> None:
    result = lower(FORUM, "-o", "-", "--emit", "mlir")
    assert b"llvm.func @main" in result.stdout
    assert b"gpu.binary" in result.stdout


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
    words = ("--chip", "sm_90", "--emit", "image", "--image", "isa", "-o", "-")
    ptx = lower("-", *words, stdin=KERNEL.format("k").encode()).stdout
    assert b".target sm_90" in ptx and b"\0" not in ptx


@pytest.mark.check
@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (
            KERNEL.format("b") + KERNEL.format("a"),
            (),
            "the program has 2 images (gpu.module a, b): --emit image writes one, so keep one "
            "gpu.module, and no target in it",
        ),
        (
            KERNEL.format('k [#rocdl.target<chip = "gfx942">]'),
            (),
            "the program has 2 images (gpu.module k): --emit image writes one, so keep one "
            "gpu.module, and no target in it",
        ),
        (
            "func.func @main() { return }",
            (),
            "the program has no kernel: --emit image writes the image of kernels",
        ),
        (KERNEL.format("k"), ("--llvm", 15), "--emit image is for LLVM 19 and later"),
        (
            KERNEL.format("k"),
            ("--graph", "main"),
            "--graph is for objects, executables and libraries of LLVM 19 and later",
        ),
    ],
)
def test_a_program_without_a_single_image_is_refused(
    tmp_path: Path, text: str, words: tuple[object, ...], said: str
) -> None:
    out = tmp_path / "x.hsaco"
    told = complaint("-", "-o", out, "--emit", "image", *words, stdin=text.encode())
    assert told == f"mgpu-rt: {said}\n"
    assert not out.exists()


#: Programs that need passes of MLIR's first, and what the command says of them.
PREPARED = {
    "linalg.matmul (line 3) becomes kernels": """
func.func @main(%a: memref<4x8xf32>, %b: memref<8x4xf32>, %c: memref<4x4xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x4xf32>) outs(%c : memref<4x4xf32>)
  return
}
""",
    "gpu.alloc without async (line 3) gets tokens": """
func.func @main(%n: index) {
  %device = gpu.alloc (%n) : memref<?xf32>
  gpu.launch blocks(%a, %b, %c) in (%x = %n, %y = %n, %z = %n)
             threads(%d, %e, %f) in (%i = %n, %j = %n, %k = %n) {
    gpu.terminator
  }
  gpu.dealloc %device : memref<?xf32>
  return
}
""",
}


@pytest.mark.check
@pytest.mark.parametrize("said", PREPARED)
@pytest.mark.parametrize("llvm", [22, 19])
def test_passes_that_a_program_needs_run_first(said: str, llvm: int) -> None:
    made = lower("-", "-o", "-", "--llvm", llvm, stdin=PREPARED[said].encode())
    assert (made.returncode, made.stderr.decode()) == (0, f"mgpu-rt: {said}\n")
    assert "mgpuLaunchKernel" in undefined(made.stdout)
    without = lower("-", "-o", "-", "--passes", "none", stdin=PREPARED[said].encode())
    assert without.returncode == 2


@pytest.mark.check
def test_chip_chooses_the_target() -> None:
    for chip, name in (("gfx906", b"gfx906"), ("gfx90a", b"gfx90a")):
        assert b"amdgcn-amd-amdhsa--" + name in lower(FORUM, "-o", "-", "--chip", chip).stdout
    ptx = lower(FORUM, "-o", "-", "--chip", "sm_90", "--image", "isa").stdout
    assert b".target sm_90" in ptx
    assert "mgpuModuleLoadJIT" in undefined(ptx)


# ---- messages ----


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "x.mlir"
    way_out = "name a program in MLIR, or - for stdin"
    said = f"mgpu-rt: '{missing}' cannot be read: No such file or directory; {way_out}\n"
    assert complaint(missing, "-o", tmp_path / "x.o") == said
    said = f"mgpu-rt: '{tmp_path}' cannot be read: Is a directory; {way_out}\n"
    assert complaint(tmp_path, "-o", tmp_path / "x.o") == said
    missing.touch()
    said = f"mgpu-rt: '{missing}' is empty: {way_out}\n"
    assert complaint(missing, "-o", tmp_path / "x.o") == said
    missing.write_bytes(b"ML\xefR")
    assert "is not text in UTF-8: mlir-opt turns" in complaint(missing, "-o", tmp_path / "x.o")


@pytest.mark.check
def test_an_unwritable_file_is_named(tmp_path: Path) -> None:
    out = tmp_path / "none" / "x.o"
    why = "No such file or directory; name another place"
    assert complaint(FORUM, "-o", out) == f"mgpu-rt: '{out}' cannot be written: {why}\n"


def test_an_error_of_mlirs_is_shown(tmp_path: Path) -> None:
    text = FORUM.read_text().replace("gpu.return", "gpu.nonsense").encode()
    said = complaint("-", "-o", tmp_path / "x.o", stdin=text)
    assert said.startswith("<stdin>:5:7: error: custom op 'gpu.nonsense' is unknown\n")
    tool = toolchain.tool("mlir-opt", 22)
    assert said.splitlines()[-1] == f"mgpu-rt: '-' was not lowered: {tool} failed"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.check
def test_an_error_names_the_programs_file(tmp_path: Path) -> None:
    """Errors of all tools name the lines of the user's file."""
    program = tmp_path / "mine.mlir"
    out = ("-o", tmp_path / "x")
    program.write_text(FORUM.read_text().replace("gpu.return", "gpu.nonsense"))
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
    program.write_text(UNHEARD_OF)
    said = complaint(program, *out, "--emit", "executable")
    assert "program.o: in function `main'" in said and "/program.o" not in said


def test_a_pass_that_would_not_help_is_not_named(tmp_path: Path) -> None:
    """The program contains a math operation and an operation of an unregistered dialect."""
    text = '%x = arith.constant 1.0 : f32\n%y = math.exp %x : f32\n"no.such"() : () -> ()\n'
    said = complaint("-", "-o", tmp_path / "x", stdin=text.encode())
    assert "unregistered dialect" in said and "math" not in said.splitlines()[-1]


@pytest.mark.check
def test_an_error_of_the_linkers_is_shown(tmp_path: Path) -> None:
    text = FORUM.read_text().replace("func.func @main", "func.func @other").encode()
    said = complaint("-", "-o", tmp_path / "x", "--emit", "executable", stdin=text)
    assert "undefined reference to `main'" in said
    assert list(tmp_path.iterdir()) == []


def test_the_program_is_not_written_over(tmp_path: Path) -> None:
    program, link = tmp_path / "program.mlir", tmp_path / "link"
    program.write_text(FORUM.read_text())
    link.symlink_to(program)
    assert complaint(program, "-o", link) == (
        f"mgpu-rt: -o {link} is the program itself: name another file\n"
    )
    assert program.read_text() == FORUM.read_text()


@pytest.mark.check
@pytest.mark.parametrize(
    ("chip", "llvm"), [("gfx9999", 22), ("gfx9999", 15), ("gfx90", 22), ("MI300X", 22)]
)
def test_an_unknown_chip_is_named(tmp_path: Path, chip: str, llvm: int) -> None:
    said = complaint(FORUM, "-o", tmp_path / "x.o", "--chip", chip, "--llvm", llvm)
    assert said.startswith(f"mgpu-rt: --chip {chip}: LLVM {llvm} knows no such GPU: give the name ")
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.check
def test_an_unresolved_function_names_link(tmp_path: Path) -> None:
    out = tmp_path / "x"
    said = complaint("-", "-o", out, "--emit", "executable", stdin=UNHEARD_OF.encode())
    assert said.endswith("; name a file or library that defines unheard_of with --link\n")
    said = complaint(FORUM, "-o", out, "--emit", "executable", "--link", "none.o")
    assert said == "mgpu-rt: --link none.o: there is no such file\n"
    assert "--link is for --emit executable" in complaint(FORUM, "-o", out, "--link", "m")


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


ROUNDED_UP = """
func.func @main(%n: index) {
  %size = arith.constant 64 : index
  %groups = arith.ceildivui %n, %size : index
  gpu.launch blocks(%a, %b, %c) in (%x = %groups, %y = %groups, %z = %groups)
             threads(%d, %e, %f) in (%i = %size, %j = %size, %k = %size) {
    gpu.terminator
  }
  return
}
"""


@pytest.mark.check
@pytest.mark.parametrize("llvm", [22, 19])
def test_a_grid_is_rounded_up(tmp_path: Path, llvm: int) -> None:
    out = tmp_path / "x.o"
    done = lower("-", "-o", out, "--llvm", llvm, stdin=ROUNDED_UP.encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert out.stat().st_size


def test_a_release_without_a_pipeline_is_refused(tmp_path: Path) -> None:
    said = complaint(FORUM, "-o", tmp_path / "x.o", "--llvm", 18)
    assert said == "mgpu-rt: no recipe for LLVM 18: name 15, or 19 to 23\n"


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (22, "complete here: --llvm 22"),
        (None, "no other is complete"),
    ],
)
def test_missing_tools_are_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: int | None, said: str
) -> None:
    """One message names all missing tools, and says how to install them and what works without
    them."""
    real = toolchain.tool

    def tool(name: str, llvm: int) -> Path:
        if llvm != there:
            raise toolchain.ToolchainMissing(f"{name}-{llvm}", f"package-of-{name}")
        return real(name, llvm)

    monkeypatch.setattr(toolchain, "tool", tool)
    result = invoke("lower", str(FORUM), "-o", str(tmp_path / "x.o"), "--llvm", "19")
    assert result.exit_code == 2
    assert "mlir-opt-19, " in result.stderr
    assert "mlir-translate-19, llc-19; apt-get install package-of-mlir-opt " in result.stderr
    assert result.stderr.endswith(f"or put them in PATH; {said}\n")


def test_missing_device_libraries_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = (tmp_path / "amdgcn", tmp_path / "rocm")
    monkeypatch.setattr(toolchain, "DEVICE_LIBRARIES", nowhere)
    result = invoke("lower", str(FORUM), "-o", str(tmp_path / "x.o"))
    assert result.exit_code == 2
    said = f"mgpu-rt: {nowhere[0]} is missing: apt-get install rocm-device-libs, "
    assert result.stderr == f"{said}or install ROCm, which has them in {nowhere[1]}\n"


def test_out_is_required(tmp_path: Path) -> None:
    assert "Missing option '-o'" in complaint(FORUM)
