"""Lowers programs in files, caches the results (build/objects), and links them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mgpu_rt._lowering import cache, object_files, pipelines, preparation, steps, toolchain
from mgpu_rt._lowering.pipelines import Pipeline
from mgpu_rt._lowering.text import device_images
from tests.support import forum


def lower(
    program: Path, *, llvm: int, out: Path | None = None, lines: bool = False, **options: Any
) -> Path:
    """Lowers a program to a position-independent host object file and returns its path.

    ``lines`` adds line tables, which contain the name of the program's file. ``options`` are those
    of `_read`. If ``out`` is given, copies the object file to this path. If ``out`` is None,
    returns the path of the cached file, which the caller must not change. Raises ToolchainMissing,
    LoweringFailed, ValueError.
    """
    text, pipeline = _read(program, llvm, lines=program.name if lines else "", **options)
    kept = _kept(
        program,
        ".o",
        (text, "object", pipeline),
        lambda: object_files.tools(pipeline),
        lambda: object_files.host_object(text, pipeline),
    )
    if out is None:
        return kept
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(kept, out)
    return out


def lower_to_llvm_dialect(program: Path, llvm: int, **options: Any) -> Path:
    """Returns the program in the LLVM dialect, which ``runner(llvm)`` accepts. Raises the
    exceptions of lower()."""
    text, pipeline = _read(program, llvm, **options)
    key = (text, "dialect", pipeline)
    return _kept(program, ".llvm.mlir", key, pipeline.tools, lambda: _ran(pipeline.steps(), text))


def runner(llvm: int) -> Path:
    """Returns MLIR's JIT runner of a release, which LLVM 20 has renamed."""
    return toolchain.tool("mlir-runner" if llvm >= 20 else "mlir-cpu-runner", llvm)


def code_objects(program: Path, chip: str | None = None, **options: Any) -> dict[str, bytes]:
    """Returns the device images that LLVM 22 compiles from a program, by the name of the
    gpu.module. Raises the exceptions of lower()."""
    text, pipeline = _read(program, 22, chip, **options)
    key = (text, "device", pipeline)

    def compiled() -> bytes:
        return _ran(pipeline.device_steps(), text)

    kept = _kept(program, ".device.mlir", key, pipeline.tools, compiled)
    return device_images(kept.read_text())


def code_object(
    program: Path, chip: str | None = None, *, module: str | None = None, **options: Any
) -> bytes:
    """Returns one device image of a program: the only image, or the image of the named
    gpu.module."""
    images = code_objects(program, chip, **options)
    if module is not None:
        return images[module]
    if len(images) != 1:
        raise ValueError(f"{program.name} holds the modules {sorted(images)}: name one")
    return next(iter(images.values()))


def _ran(chain: Sequence[steps.Step], text: str) -> bytes:
    return steps.run(chain, text.encode())


def _read(
    program: Path, llvm: int, chip: str | None = None, *, iterations: int | None = None, **how: Any
) -> tuple[str, Pipeline]:
    """Returns the program's text, with another number of iterations, and its pipeline. ``how`` are
    further arguments of `pipelines.pipeline`."""
    text = with_iterations(program.read_text(), iterations)
    if llvm == forum.LLVM:
        given = {
            name: value for name, value in {**how, "chip": chip}.items() if value not in (None, "")
        }
        if given:
            raise ValueError(f"the forum's command has no options: {given}")
        return text, forum.pipeline()
    return text, preparation.prepared(text, pipelines.pipeline(llvm, chip, **how))


def _kept(
    program: Path,
    suffix: str,
    key: tuple[object, ...],
    tools: Callable[[], Sequence[Path]],
    make: Callable[[], bytes],
) -> Path:
    return cache.kept(program.stem, suffix, (pipelines.RECIPE, *key), tools, make)


_ITERATIONS = re.compile(r"(%iterations\s*=\s*arith\.constant\s+)\d+")


def with_iterations(text: str, iterations: int | None) -> str:
    """Returns the program with `iterations` as the number in ``%iterations = arith.constant``.
    Raises ValueError unless the program defines this constant once."""
    if iterations is None:
        return text
    replaced, count = _ITERATIONS.subn(rf"\g<1>{iterations}", text)
    if count != 1:
        raise ValueError(
            f"the program defines %iterations {count} times instead of once: define one "
            "`%iterations = arith.constant N : index`"
        )
    return replaced


def compile_dialect(dialect: bytes, llvm: int) -> bytes:
    """Returns the object file of a program in the LLVM dialect."""
    return steps.run(object_files.compile_steps(llvm), dialect)


def link(
    objects: Sequence[Path],
    *,
    libraries: Sequence[Path],
    rpath: Sequence[Path] = (),
    out: Path,
) -> Path:
    """Links objects into an executable with the command from link_command(), and returns the
    executable's path. Raises ToolchainMissing, LoweringFailed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    toolchain.run(object_files.link_command(objects, libraries, rpath, (), out))
    return out
