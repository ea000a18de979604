"""Lowers programs to shared libraries for Python, and caches the libraries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mgpu_rt import _layout
from mgpu_rt._lowering import cache, object_files, pipelines, preparation, toolchain


def lower(
    source: str | bytes | os.PathLike[str],
    *,
    chip: str | None = None,
    llvm: int = 22,
    image: str | None = None,
    link: Sequence[str] = (),
    graph: Sequence[str] = (),
    first: str = "",
) -> Path:
    """Lowers an MLIR program, given as a file or as text, to a shared library, and returns the
    library's path.

        library = mgpu_rt.Library(mgpu_rt.lower("model.mlir", chip="gfx942"))

    The options are those of `mgpu-rt lower --emit library`; `first` are passes that run before all
    others. Also links the LLVM libraries that the program calls. Caches the returned file under a
    key of the program's text, the options and the tools, so lowering the program again costs
    milliseconds. Do not change the returned file.

    Raises RuntimeError if a tool is missing or refuses the program, ValueError or OSError if
    `source` is no program.
    """
    text, name = _read(source)
    stem = Path(name).stem if name != "-" else "program"
    pipeline = preparation.prepared(text, pipelines.pipeline(llvm, chip, image=image, first=first))
    key = (pipelines.RECIPE, text, "library", pipeline, tuple(link), tuple(graph))
    if _layout.INSTALLED:  # several installations share a user's folder
        key += (str(object_files.RUNTIME),)

    def make() -> bytes:
        compiled = object_files.host_object(text, pipeline, graph, typed=True)
        return object_files.link({"program.o": compiled}, llvm, link, shared=True)

    try:
        return cache.kept(
            stem, ".so", key, lambda: [*object_files.tools(pipeline), toolchain.compiler()], make
        )
    except toolchain.LoweringFailed as failed:
        said, why = preparation.complaint(failed, name), preparation.advice(failed.complaint)
        if toolchain.is_unknown_chip(failed):
            why = pipelines.unknown_chip(pipeline)
        raise failed.with_message(said, why) from None


def _read(source: str | bytes | os.PathLike[str]) -> tuple[str, str]:
    """Returns the text of a program, and its file, or "-" for a text. A string with a newline or a
    brace is the text itself; any other string is a path."""
    if isinstance(source, bytes):
        source = source.decode()
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return source, "-"
    return Path(source).read_text(), os.fspath(source)
