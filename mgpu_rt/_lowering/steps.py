"""The steps of a lowering: each tool reads the output of the tool before it."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from mgpu_rt._lowering import toolchain
from mgpu_rt._lowering.toolchain import LoweringFailed


@dataclass(frozen=True)
class Step:
    """A tool that filters its stdin to its stdout, or an edit by this package."""

    command: Sequence[Path | str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)  # beside this process's
    rocm: int = 0  # the release whose linker it finds at ROCM_PATH, with AMD's device libraries
    edit: Callable[[bytes], bytes] | None = None
    words: str = ""  # what the edit does, for script()


def run(steps: Sequence[Step], content: bytes) -> bytes:
    """Runs the steps on a program; returns the last step's output. Raises LoweringFailed."""
    for number, step in enumerate(steps):
        try:
            content = step.edit(content) if step.edit else _run(step, content)
        except LoweringFailed as failed:
            failed.reads_source = number == 0
            raise
    return content


def _run(step: Step, content: bytes) -> bytes:
    if not step.rocm:
        return toolchain.run(step.command, content, {**os.environ, **step.variables})
    with _rocm(step.rocm) as directory:
        variables = {**step.variables, "ROCM_PATH": str(directory)}
        return toolchain.run(step.command, content, {**os.environ, **variables})


def _rocm_parts(llvm: int) -> dict[str, Path]:
    """Returns the files that mlir-opt expects in ROCM_PATH; a key is a path relative to
    ROCM_PATH."""
    return {
        "llvm/bin/ld.lld": toolchain.tool("ld.lld", llvm).resolve(),
        "amdgcn": toolchain.device_libraries(),
    }


@contextmanager
def _rocm(llvm: int) -> Iterator[Path]:
    """Creates a temporary directory with the parts of ROCm that mlir-opt expects."""
    with tempfile.TemporaryDirectory() as scratch:
        for place, part in _rocm_parts(llvm).items():
            link = Path(scratch, place)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(part)
        yield Path(scratch)


def script(steps: Sequence[Step], source: str, out: str) -> str:
    """Returns the steps as a shell script that reads ``source`` and writes ``out``; "-" stands for
    stdin or stdout. A comment takes the place of each edit. The script ends at the first step that
    fails: no pipe joins the steps, because a shell ignores the failures before the last "|"."""
    lines = ["set -e", "scratch=$(mktemp -d)", "trap 'rm -r \"$scratch\"' EXIT"]
    rocm = next((step.rocm for step in steps if step.rocm), 0)
    if rocm:
        lines += ['export ROCM_PATH="$scratch"', 'mkdir -p "$scratch/llvm/bin"']
        for place, part in _rocm_parts(rocm).items():
            lines.append(f'ln -s {shlex.quote(str(part))} "$scratch/{place}"')
    tools = [step for step in steps if not step.edit]
    between = [f'"$scratch/{number}"' for number in range(1, len(tools))]
    files = iter(pairwise([shlex.quote(source), *between, shlex.quote(out)]))
    for step in steps:
        if step.edit:
            lines.append(f"# mgpu-rt itself: {step.words}")
            continue
        words = [f"{name}={shlex.quote(value)}" for name, value in step.variables.items()]
        words.append(shlex.join(map(str, step.command)))
        words += [
            f"{sign} {file}" for sign, file in zip("<>", next(files), strict=True) if file != "-"
        ]
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"
