"""Lowers programs in files, and caches the results (build/objects)."""

from __future__ import annotations

import shutil
from pathlib import Path

from mgpu_rt._lowering import cache, device_images, object_files, pipelines, preparation
from mgpu_rt._lowering.iterations import with_iterations


def lower(
    program: Path,
    *,
    llvm: int,
    out: Path | None = None,
    chip: str | None = None,
    iterations: int | None = None,
    opt_level: int = 2,
    image: str | None = None,
    first: str = "",
    lines: bool = False,
) -> Path:
    """Lowers a program to a position-independent host object file and returns its path.

    ``lines`` adds line tables, which contain the name of the program's file. The module
    `pipelines` describes ``chip``, ``image`` and ``first``. If ``out`` is given, copies the object
    file to this path. If ``out`` is None, returns the path of the cached file, which the caller
    must not change. Raises ToolchainMissing, LoweringFailed, ValueError.
    """
    text = with_iterations(program.read_text(), iterations)
    name = program.name if lines else ""
    pipeline = pipelines.pipeline(
        llvm, chip, image=image, opt_level=opt_level, first=first, lines=name
    )
    pipeline = preparation.prepared(text, pipeline)
    kept = cache.kept(
        program.stem,
        ".o",
        (pipelines.RECIPE, text, "object", pipeline),
        lambda: object_files.tools(pipeline),
        lambda: object_files.host_object(text, pipeline),
    )
    if out is None:
        return kept
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(kept, out)
    return out


def lower_to_llvm_dialect(
    program: Path,
    llvm: int,
    *,
    chip: str | None = None,
    iterations: int | None = None,
    opt_level: int = 2,
    image: str | None = None,
) -> Path:
    """Returns the program in the LLVM dialect, which ``toolchain.runner(llvm)`` accepts. Raises the
    exceptions of lower()."""
    text = with_iterations(program.read_text(), iterations)
    pipeline = pipelines.pipeline(llvm, chip, image=image, opt_level=opt_level)
    pipeline = preparation.prepared(text, pipeline)
    return cache.kept(
        program.stem,
        ".llvm.mlir",
        (pipelines.RECIPE, text, "dialect", pipeline),
        pipeline.tools,
        lambda: pipeline.llvm_dialect(text),
    )


def code_objects(
    program: Path,
    chip: str | None = None,
    *,
    opt_level: int = 2,
    first: str = "",
    image: str | None = None,
) -> dict[str, bytes]:
    """Returns the device images that LLVM 22 compiles from a program, by the name of the
    gpu.module. Raises the exceptions of lower()."""
    text = program.read_text()
    pipeline = pipelines.pipeline(22, chip, image=image, opt_level=opt_level, first=first)
    pipeline = preparation.prepared(text, pipeline)
    kept = cache.kept(
        program.stem,
        ".device.mlir",
        (pipelines.RECIPE, text, "device", pipeline),
        pipeline.tools,
        lambda: pipeline.device_part(text),
    )
    return device_images.device_images(kept.read_text())


def code_object(
    program: Path,
    chip: str | None = None,
    *,
    opt_level: int = 2,
    module: str | None = None,
    image: str | None = None,
) -> bytes:
    """Returns one device image of a program: the only image, or the image of the named
    gpu.module."""
    images = code_objects(program, chip, opt_level=opt_level, image=image)
    if module is not None:
        return images[module]
    if len(images) != 1:
        raise ValueError(f"{program.name} holds the modules {sorted(images)}: name one")
    return next(iter(images.values()))
