"""Describes recorded launches: writes and reads the JSON of a launch's folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from mgpu_rt import __version__
from mgpu_rt._images import model
from mgpu_rt._recordings.folder import LAUNCH
from mgpu_rt._text import shown

FORMAT = 5


class Damaged(ValueError):
    """Raised if a recording cannot be replayed. The exception's text is the reason."""


@dataclass(frozen=True)
class Block:
    """A block of device memory. `before` and `after` are the hashes of the block's content before
    and after the launch. `asked` is the number of bytes that the program requested, or None if the
    number is unknown or equals `size`."""

    address: int
    size: int
    before: str
    after: str
    asked: int | None = None


@dataclass(frozen=True)
class Argument:
    """A recorded argument: a value, or an address at `offset` in a block."""

    content: bytes
    block: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class RecordedLaunch:
    """A recorded launch. `module` is the gpu.module, "" if its name is not known; several
    gpu.modules of one image have "+" between them. `image` is the hash of the image. `shared` is
    the size of dynamic memory in bytes. `folder` contains the files that are named by hashes."""

    module: str
    kernel: str
    label: str
    image: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[Argument, ...]
    blocks: tuple[Block, ...]
    number: int = 1  # count among this kernel's launches
    folder: Path = field(default=Path(), compare=False)

    def content(self, name: str) -> bytes:
        """Returns the content with this hash. Raises Damaged if the file's hash has changed."""
        content = (self.folder / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != name:
            raise Damaged(f"'{self.folder}': {name} is not what was recorded")
        return content

    def unrecorded(self, parameters: Sequence[model.Argument]) -> Iterator[str]:
        """Names the memory of each argument that is a pointer, according to the image, and whose
        memory was not found."""
        pairs = zip(self.arguments, parameters, strict=True)
        for number, (argument, parameter) in enumerate(pairs):
            if parameter.is_pointer and argument.block is None and any(argument.content):
                address = int.from_bytes(argument.content, "little")
                yield f"what argument {number} points to, {address:#x}: no device memory of HIP's"

    def as_json(self) -> bytes:
        """Returns the description that `read` reads."""
        known = {name: value for name, value in asdict(self).items() if name != "folder"}
        head = {"format": FORMAT, "mgpu_rt": __version__}
        return json.dumps({**head, **known}, default=bytes.hex).encode()


def read(folder: Path) -> RecordedLaunch:
    """Reads a launch's folder. Raises OSError, or Damaged with the first fault found."""
    try:
        found = json.loads((folder / LAUNCH).read_bytes())
        if found["format"] != FORMAT:
            raise Damaged(f"its format is not {FORMAT}, which this mgpu_rt reads")
        blocks = tuple(Block(**block) for block in found["blocks"])
        if any((block.asked or 0) > block.size for block in blocks):
            raise Damaged("a block has fewer bytes than the program asked for")
        values = {each.name: found[each.name] for each in fields(RecordedLaunch)[:-1]}
        tuples = {name: tuple(values[name]) for name in ("grid", "block")}
        given = tuple(_argument(each, blocks) for each in found["arguments"])
        made = {"blocks": blocks, "arguments": given, "folder": folder}
        return RecordedLaunch(**{**values, **tuples, **made})
    except (LookupError, TypeError, RecursionError, ValueError) as error:
        why = str(error) if isinstance(error, Damaged) else repr(error)
        raise Damaged(f"'{folder}' is no launch: {shown(why)}") from None


def _argument(found: dict[str, Any], blocks: tuple[Block, ...]) -> Argument:
    argument = Argument(**{**found, "content": bytes.fromhex(found["content"])})
    block = argument.block
    if block is not None and not argument.offset < blocks[block].size:
        raise Damaged(f"argument {shown(repr(found))} points outside the blocks of memory")
    return argument
