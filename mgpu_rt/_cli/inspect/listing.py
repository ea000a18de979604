"""Formats a file's content as text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence

from mgpu_rt._images import kernel_names
from mgpu_rt._images.find import Contents
from mgpu_rt._images.model import PTX, ImageDescription, KernelDescription, with_article
from mgpu_rt._text import NONE, columns, printable

Rows = Sequence[tuple[str, str]]


def lines(path: str, contents: Contents, answers: Sequence[Rows], unasked: str) -> Iterator[str]:
    """Yields the lines for people. `answers` are HIP's rows for each image, and `unasked` is the
    reason if no HIP was asked. Names come from the file, and may contain terminal control codes."""
    for line in _lines(path, contents, answers):
        yield printable(line)
    if unasked:
        yield ""
        yield printable(f"HIP was not asked: {unasked}")


def _lines(path: str, contents: Contents, answers: Sequence[Rows]) -> Iterator[str]:
    count = len(contents.images)
    itself = not contents.images[0].where
    if not itself:
        yield f"{path}: {contents.kind}, {count} image{'s' if count > 1 else ''}"
    known = kernel_names.shown(contents.images)
    for image, said in zip(contents.images, answers, strict=True):
        yield from () if itself else ("",)
        yield f"{path if itself else image.where}: {_title(image)}"
        yield from _image(image, said, known)


def _image(
    image: ImageDescription, said: Rows, known: Mapping[tuple[str, str], str]
) -> Iterator[str]:
    yield from _table([("cache", _cache(image)), *_facts(image), *said], 2)
    for kernel in image.kernels:
        yield from _kernel(kernel, known[image.module, kernel.name])
    for entry in image.entries:
        yield f"  entry {entry.entry or f'at {entry.offset:#x}'}: {_title(entry)}"
        if facts := _facts(entry):
            yield from _table(facts, 4)
        for kernel in entry.kernels:
            shown = known[image.module, kernel.name]
            yield from (f"  {line}" for line in _kernel(kernel, shown))


def _title(image: ImageDescription) -> str:
    version = f" of version {image.version}" if image.version else ""
    if image.kind == PTX and image.version:
        version = f", version {image.version}"
    target = f" for {image.target}" if image.target else ""
    return f"{with_article(image.kind)}{version}{target}, {_bytes(len(image.content))}"


def _bytes(count: int | None) -> str:
    return f"{count:,} bytes" if count is not None else f"{NONE} bytes"


def _cache(image: ImageDescription) -> str:
    if image.private:
        return f"each load gets a module of its own: {image.private}"
    return "loads of these bytes share one module"


def _facts(image: ImageDescription) -> list[tuple[str, str]]:
    rows = []
    if image.features:
        rows.append(("features", ", ".join(f"{k} {v}" for k, v in image.features.items())))
    if image.globals:
        named = (f"{variable.name} ({_bytes(variable.size)})" for variable in image.globals)
        rows.append(("writable", ", ".join(named)))
    if image.settable:
        rows.append(("constant", f"{', '.join(image.settable)}: the host can set it by name"))
    if image.undefined:
        rows.append(("undefined", ", ".join(image.undefined)))
    if image.unread:
        rows.append(("not read", image.unread))
    return rows


def _threads(kernel: KernelDescription) -> str:
    required = kernel.required_workgroup_size
    size = f", exactly {' x '.join(map(str, required))}" if required else ""
    return f"at most {_number(kernel.max_flat_workgroup_size)} a block{size}"


def _resources(kernel: KernelDescription) -> list[tuple[str, str]]:
    return [
        ("threads", f"{_threads(kernel)}; wavefronts of {_number(kernel.wavefront)}"),
        (
            "registers",
            f"{_number(kernel.sgprs)} SGPRs, {_number(kernel.vgprs)} VGPRs, "
            f"{_number(kernel.agprs)} AGPRs; spilled: {_number(kernel.spilled_sgprs)} SGPRs, "
            f"{_number(kernel.spilled_vgprs)} VGPRs",
        ),
        (
            "memory",
            f"{_bytes(kernel.workgroup_memory)} of workgroup memory, "
            f"{_bytes(kernel.scratch)} of scratch a thread",
        ),
    ]


def _kernel(kernel: KernelDescription, name: str) -> Iterator[str]:
    yield f"  kernel {name}"
    if kernel.argument_bytes is None and kernel.max_flat_workgroup_size is None:
        return
    resources = [("threads", _threads(kernel))] if kernel.max_flat_workgroup_size else []
    if kernel.vgprs is not None or kernel.wavefront is not None:
        resources = _resources(kernel)
    yield from _table([*resources, ("arguments", _bytes(kernel.argument_bytes))], 4)
    if kernel.arguments:
        table = [("number", "offset", "size", "kind")]
        for number, a in enumerate(kernel.arguments):
            kind = " ".join(filter(None, (a.kind or NONE, a.name)))
            table.append((str(number), _number(a.offset), _number(a.size), kind))
        yield from _table(table, 6)


def _number(value: int | None) -> str:
    return NONE if value is None else str(value)


def _table(rows: Sequence[tuple[str, ...]], indent: int) -> Iterator[str]:
    room = shutil.get_terminal_size().columns - indent
    for block in columns([tuple(map(printable, row)) for row in rows], room):
        yield from (" " * indent + line for line in block.splitlines())
