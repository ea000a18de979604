"""The command `mgpu-rt hoist`: files and streams, its messages, invalid input."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from mgpu_rt._cli.main import main
from mgpu_rt._hoist import tools
from mgpu_rt._images import sharing
from tests.support.child import ROOT, STUB, environment
from tests.support.command import COMMAND, command, invoke
from tests.support.hoisted import RELEASES, dialect, hoist
from tests.support.patience import run_process
from tests.support.programs import STOCK

pytestmark = pytest.mark.check  # each case is compiled

PAGE = (ROOT / "docs" / "jit.md").read_text(encoding="utf-8")
PAGE = PAGE[PAGE.index("## Hoisting without the library") :]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_bytes(dialect("forum", 22, 1000))
    return path


@pytest.mark.parametrize("llvm", RELEASES)
def test_a_file_is_hoisted_into_another(tmp_path: Path, llvm: int) -> None:
    given, out = tmp_path / "in.mlir", tmp_path / "out.mlir"
    given.write_bytes(dialect("overlap", llvm, 7))
    done = command("hoist", "--llvm", llvm, given, "-o", out)
    hoisted = hoist(dialect("overlap", llvm, 7), llvm)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [f"mgpu-rt: {sentence}" for sentence in hoisted.said]
    assert out.read_bytes() == hoisted.program


def test_stdin_is_hoisted_to_stdout(program: Path) -> None:
    done = subprocess.run(
        [COMMAND, "hoist", "--llvm", "22", "-"], input=program.read_bytes(), capture_output=True
    )
    assert done.returncode == 0
    assert done.stdout == hoist(program.read_bytes(), 22).program


def test_a_file_is_hoisted_in_place(program: Path) -> None:
    given = program.read_bytes()
    assert command("hoist", "--llvm", 22, program, "-o", program).returncode == 0
    assert program.read_bytes() == hoist(given, 22).program


#: The code blocks of the page. The blocks contain commands, the output of the commands, and
#: commands for LLVM IR.
COMMANDS, SAID, FOR_IR = (
    re.sub("^    ", "", block, flags=re.MULTILINE)
    for block in re.findall(r"(?:^    .*\n)+", PAGE, re.MULTILINE)
)


def shell(commands: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Runs the shell commands of a code block; programs run with stock and the stub of HIP."""
    env = environment(
        RUNTIME=str(STOCK.parent),
        PATH=f"{COMMAND.parent}:{os.environ['PATH']}",
        LD_LIBRARY_PATH=str(STUB.parent),
        HIPSTUB_LOG=str(directory / "log"),
    )
    words = ["sh", "-ec", commands]
    return run_process(words, env, cwd=directory)


def test_the_pages_example_runs(program: Path) -> None:
    """The commands on the page print the output that the page shows."""
    done = shell(COMMANDS, program.parent)
    assert (done.returncode, done.stderr) == (0, SAID)
    shell("./program", program.parent)
    counts = json.loads(program.with_name("log").read_text())["counts"]
    assert counts["hipModuleLaunchKernel"] == 1000
    for once in ("hipModuleLoadData", "hipModuleGetFunction", "hipStreamCreate"):
        assert counts[once] == 1


def test_the_pages_example_for_llvm_ir_runs(program: Path) -> None:
    shell("mlir-translate-22 --mlir-to-llvmir program.mlir -o program.ll", program.parent)
    done = shell(FOR_IR, program.parent)
    assert (done.returncode, done.stderr) == (0, SAID)
    assert "@mgpu_rt_hoisted_stream_take()" in program.with_name("hoisted.ll").read_text()


# ---- bad input -----------------------------------------------------------------------------------

LAUNCH = """
module attributes {gpu.container_module} {
  gpu.module @kernels { gpu.func @nothing() kernel { gpu.return } }
  llvm.func @main() {
    %0 = llvm.mlir.constant(1 : index) : i64
    gpu.launch_func @kernels::@nothing blocks in (%0, %0, %0) threads in (%0, %0, %0) : i64
    llvm.return
  }
}
"""
CAST = "llvm.func @f(%a: i64) {\n  %b = builtin.unrealized_conversion_cast %a : i64 to index\n"
CAST += "  llvm.return\n}"
UNLOWERED = "is not of the LLVM dialect: lower all dialects by mgpu-rt lower --emit mlir"
BAD = [
    ("hello", "line 1: mlir-translate does not take it: custom op 'hello' is unknown"),
    ("func.func @f() { return }", f"line 1: func.func {UNLOWERED}"),
    (
        "llvm.func @f() {\n  %0 = arith.constant 1 : i64\n  llvm.return\n}",
        f"line 2: arith.constant {UNLOWERED}",
    ),
    (CAST, f"line 2: builtin.unrealized_conversion_cast {UNLOWERED}"),
    (LAUNCH, "line 6: the kernel has no gpu.binary: run mlir-opt's gpu-module-to-binary"),
    ("llvm.func @f(%a: !llvm.ptr<i8>)", "line 1: mlir-translate does not take it: "),
]


@pytest.mark.parametrize("llvm", RELEASES)
@pytest.mark.parametrize(("text", "sentence"), BAD)
def test_a_file_that_is_no_program_is_refused(
    text: str, sentence: str, llvm: int, tmp_path: Path
) -> None:
    given, out = tmp_path / "in.mlir", tmp_path / "out.mlir"
    given.write_text(text)
    result = invoke("hoist", "--llvm", str(llvm), str(given), "-o", str(out))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"mgpu-rt: {given}: {sentence}")
    assert result.stderr.count("\n") == 1
    assert not out.exists()


def test_missing_files_are_named(program: Path, tmp_path: Path) -> None:
    missing, folder, empty = tmp_path / "missing.mlir", tmp_path, tmp_path / "empty.mlir"
    empty.touch()
    way_out = "name a program in the LLVM dialect, or - for stdin"
    for given, out, sentence in (
        (missing, "-", f"'{missing}' cannot be read: No such file or directory; {way_out}"),
        (empty, "-", f"'{empty}' is empty: {way_out}"),
        (folder, "-", f"'{folder}' cannot be read: Is a directory; {way_out}"),
        (
            program,
            missing / "x",
            f"'{missing / 'x'}' cannot be written: No such file or directory; name another place",
        ),
        (program, folder, f"'{folder}' cannot be written: Is a directory; name another place"),
    ):
        result = invoke("hoist", "--llvm", "22", str(given), "-o", str(out))
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == f"mgpu-rt: {sentence}\n"


def test_missing_tools_are_named(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, llvm: int) -> Path:
        raise tools.ToolchainMissing(f"{name}-{llvm}", f"mlir-{llvm}-tools")

    monkeypatch.setattr(tools, "tool", missing)
    monkeypatch.setenv("PATH", "/nowhere")
    for release in ((), ("--llvm", "22")):
        result = CliRunner().invoke(main, ["hoist", *release, str(program)])
        assert result.exit_code == 2
        assert result.stderr.startswith("mgpu-rt: mlir-opt-22 is missing: install ")


def test_tools_without_a_number_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mlir-opt", "mlir-translate"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tools.find(None) == tools.Tools(tmp_path / "mlir-opt", tmp_path / "mlir-translate")
    monkeypatch.setenv("PATH", "/nowhere")
    assert tools.find(None) == tools.find(22)


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("#!/bin/sh\nexit 1\n", "it printed nothing"),
        ("\x7fELF", "{}/mlir-translate cannot be run: Exec format error"),
    ],
)
def test_a_tool_that_fails_silently_is_named(
    tool: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mlir-opt", "mlir-translate"):
        (tmp_path / name).write_text(tool)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    result = CliRunner().invoke(main, ["hoist", "-"], input="module {}")
    assert result.exit_code == 2
    sentence = words.format(tmp_path)
    assert result.stderr == f"mgpu-rt: stdin: mlir-translate fails: {sentence}\n"


def test_tools_of_different_releases_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of a tool contains a line number that is not a line of the user's file."""
    error = "echo 'x:7:1: error: no such thing' >&2; exit 1"
    script = f'#!/bin/sh\n[ "$1" = --mlir-to-llvmir ] || {{ {error}; }}\n'
    for name in ("mlir-opt", "mlir-translate"):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    result = CliRunner().invoke(main, ["hoist", "-"], input="module {}")
    assert result.exit_code == 2
    said = "mgpu-rt: stdin: mlir-translate cannot read the rewritten program: no such thing\n"
    assert result.stderr == said


def test_a_missing_compiled_part_is_named(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sharing.why_not_shared.cache_clear()
    monkeypatch.setattr(sharing._hip_search, "probe", lambda: "/nowhere/mgpu-rt-probe")
    program.write_bytes(dialect("forum", 19, 1000))
    result = CliRunner().invoke(main, ["hoist", "--llvm", "19", str(program)])
    sharing.why_not_shared.cache_clear()
    assert result.exit_code == 2
    assert "/nowhere/mgpu-rt-probe cannot be run" in result.stderr
    assert "run `make` to build it" in result.stderr
