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
from tests.support.child import ROOT, STUB, environment
from tests.support.command import COMMAND, command
from tests.support.hoisted import RELEASES, dialect, hoist
from tests.support.patience import run_process
from tests.support.programs import STOCK
from tests.support.stand_ins import stand_in

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


def test_missing_tools_are_named(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, llvm: int) -> Path:
        raise tools.ToolchainMissing(f"{name}-{llvm}", f"mlir-{llvm}-tools")

    monkeypatch.setattr(tools, "tool", missing)
    monkeypatch.setenv("PATH", "/nowhere")
    for release in ((), ("--llvm", "22")):
        result = CliRunner().invoke(main, ["hoist", *release, str(program)])
        assert result.exit_code == 2
        assert result.stderr.startswith("mgpu-rt: mlir-opt-22 is missing: install ")


NAMES = ("mlir-opt", "mlir-translate")


def test_tools_without_a_number_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, *NAMES)
    assert tools.find(None) == tools.Tools(tmp_path / "mlir-opt", tmp_path / "mlir-translate")
    monkeypatch.setenv("PATH", "/nowhere")
    assert tools.find(None) == tools.find(22)


#: For each tool that fails: its text, and words of the command's message. The second tool is of
#: another release: the line number in its message is not a line of the user's file.
FAILING = (
    ("#!/bin/sh\nexit 1\n", "mlir-translate fails: it printed nothing"),
    (
        '#!/bin/sh\n[ "$1" = --mlir-to-llvmir ] || '
        '{ echo "x:7:1: error: no such thing" >&2; exit 1; }\n',
        "mlir-translate cannot read the rewritten program: no such thing",
    ),
    ("\x7fELF", "mlir-translate cannot be run: Exec format error"),
)


@pytest.mark.parametrize(("text", "words"), FAILING)
def test_a_tool_that_fails_is_named(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, *NAMES, text=text)
    result = CliRunner().invoke(main, ["hoist", "-"], input="module {}")
    assert result.exit_code == 2
    assert result.stderr.startswith("mgpu-rt: stdin: ") and words in result.stderr
