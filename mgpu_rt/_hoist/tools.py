"""Reads, validates and prints programs with MLIR's own tools."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt._lowering.toolchain import LoweringFailed, ToolchainMissing, run, tool

OLDEST, NEWEST, TESTED = 19, 24, 22

_ERROR = re.compile(r"^[^:\n]*:(?P<line>\d+):\d+: error: (?P<message>.*)$", re.MULTILINE)
#: mlir-translate's message for an operation without a translation.
_UNKNOWN = re.compile(r"(?:for op: |for operation: |custom op ')(?P<name>\w+\.[\w.]+)")
_NO_BINARY = "find the binary holding the kernel"


class Refused(RuntimeError):
    """Raised if the program cannot be hoisted; one sentence says why."""


@dataclass(frozen=True)
class Tools:
    """One release's mlir-opt and mlir-translate."""

    opt: Path
    translate: Path

    def explicit(self, program: bytes) -> str:
        """Returns the program in MLIR's generic form; calls of the runtime replace each launch.

        MLIR writes a launch's loads and look-ups only into LLVM IR. The method therefore translates
        the program to LLVM IR, and back to the LLVM dialect. Raises Refused.
        """
        try:
            ir = run([self.translate, "--mlir-to-llvmir"], program)
        except LoweringFailed as failed:
            raise Refused(_sentence(_complaint(failed), self.translate.name)) from None
        dialect = _must([self.translate, "--import-llvm"], ir)
        printed = ["--mlir-print-op-generic", "--mlir-print-local-scope"]
        text = _must([self.opt, *printed], dialect).decode()
        # proof: program_names_its_target, else `return text`
        return _with_own_target(text, ir.decode(errors="replace"))

    def validated(self, program: str) -> bytes:
        """Returns the program in its usual form, after validation. Raises Refused."""
        return _must([self.opt], program.encode())


def find(llvm: int | None) -> Tools:
    """Returns the tools of a release. If `llvm` is None, prefers tools on PATH without a number in
    their names. If PATH lacks such tools, returns the tools of the newest installed release.

    Raises ToolchainMissing.
    """
    if llvm is not None:
        return Tools(tool("mlir-opt", llvm), tool("mlir-translate", llvm))
    opt, translate = shutil.which("mlir-opt"), shutil.which("mlir-translate")
    if opt and translate:
        return Tools(Path(opt), Path(translate))
    for release in range(NEWEST, OLDEST - 1, -1):
        try:
            return find(release)
        except ToolchainMissing:
            continue
    return find(TESTED)


def _with_own_target(text: str, ir: str) -> str:
    """Returns the module with the program's data layout and target.

    The import from LLVM IR adds default attributes to the module; MLIR's runners cannot read the
    attributes' dialect.
    """
    if "\nmodule asm " in ir:
        return text
    named = {"llvm.data_layout": "datalayout", "llvm.target_triple": "triple"}
    own = [
        f"{attribute} = {found[1]}"
        for attribute, name in named.items()
        if (found := re.search(rf'^target {name} = (".*")$', ir, re.MULTILINE))
    ]
    body = text[: text.rindex("\n})")]
    return f"{body}\n}}) {{{', '.join(own)}}} : () -> ()\n"


def _complaint(failed: LoweringFailed) -> str:
    return failed.complaint or "it printed nothing"


def _must(command: list[str | Path], given: bytes) -> bytes:
    """Runs a tool on generated text. Error messages omit line numbers, because the user has never
    seen the generated text."""
    try:
        return run(command, given)
    except LoweringFailed as failed:
        complaint = _complaint(failed)
        error = _ERROR.search(complaint)
        first = error["message"] if error else complaint.splitlines()[0]
        name = Path(command[0]).name
        raise Refused(f"{name} cannot read the rewritten program: {first}") from None


def _sentence(complaint: str, tool_name: str) -> str:
    error = _ERROR.search(complaint)
    if error is None:
        return f"{tool_name} fails: {complaint.splitlines()[0]}"
    position, message = f"line {error['line']}", error["message"].strip()
    if _NO_BINARY in message:
        return f"{position}: the kernel has no gpu.binary: run mlir-opt's gpu-module-to-binary"
    unknown = _UNKNOWN.search(message)
    if unknown is None:
        return f"{position}: {tool_name} does not take it: {message}"
    lowered = "lower all dialects by mgpu-rt lower --emit mlir"
    return f"{position}: {unknown['name']} is not of the LLVM dialect: {lowered}"
