"""Describes recorded launches: writes and reads the JSON of a launch's folder. The origin of a file
that is read is untrusted, so each value is checked."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mgpu_rt import __version__, _fields
from mgpu_rt._text import shown
from mgpu_rt.runtime._folder import LAUNCH

FORMAT = 3

# The types of fields, which `read` checks (_TYPES).
Name = Hash = str
Bytes = Shared = int
Sizes = tuple[int, int, int]


class Damaged(ValueError):
    """Raised if a recording cannot be replayed. The exception's text is the reason."""


@dataclass(frozen=True)
class Block:
    """A block of device memory. `before` and `after` are the hashes of the block's content before
    and after the launch. `asked` is the number of bytes that the program requested, or None if the
    number is unknown or equals `size`."""

    address: int
    size: Bytes
    before: Hash
    after: Hash
    asked: Bytes | None = None


@dataclass(frozen=True)
class Argument:
    """A recorded argument: a value, or an address at `offset` in a block."""

    content: bytes
    block: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class RecordedLaunch:
    """A recorded launch. `image` is the hash of the image. `shared` is the size of dynamic memory
    in bytes. `folders` contain the files that are named by hashes."""

    kernel: Name
    label: Name
    image: Hash
    grid: Sizes
    block: Sizes
    shared: Shared
    arguments: tuple[Argument, ...]
    blocks: tuple[Block, ...]
    not_recorded: tuple[str, ...] = ()
    number: int = 1  # count among this kernel's launches
    folders: tuple[Path, ...] = field(default=(), compare=False)

    def content(self, name: str) -> bytes:
        """Returns the content with this hash. Raises Damaged if the file's hash has changed."""
        paths = [folder / name for folder in self.folders]
        path = next((path for path in paths if path.exists()), paths[0])
        content = _read(path)
        if hashlib.sha256(content).hexdigest() != name:
            raise Damaged(f"'{path.parent}': {name} is not what was recorded")
        return content

    def as_json(self) -> bytes:
        """Returns the description that `read` reads."""
        known = {name: value for name, value in asdict(self).items() if name != "folders"}
        head = {"format": FORMAT, "mgpu_rt": __version__}
        return json.dumps({**head, **known}, default=bytes.hex).encode()


def _read(path: Path) -> bytes:
    """Reads a regular file. Raises OSError for any other file, which may have no end."""
    if not path.is_file():
        os.stat(path)
        raise OSError(errno.EINVAL, "this is not a regular file", str(path))
    return path.read_bytes()


def read(folder: Path) -> RecordedLaunch:
    """Reads a launch's folder. Raises OSError, or Damaged with the first fault found."""
    try:
        found = json.loads(_read(folder / LAUNCH))
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise Damaged(f"its format is not {FORMAT}, which this mgpu_rt reads")
        blocks = tuple(_fields.read(Block, block, _TYPES) for block in found["blocks"])
        if any((block.asked or 0) > block.size for block in blocks):
            raise Damaged("a block has fewer bytes than the program asked for")
        given = tuple(_argument(each, blocks) for each in found["arguments"])
        made = {"blocks": blocks, "arguments": given, "folders": (folder,)}
        launch = _fields.read(RecordedLaunch, found, _TYPES, **made)
    except (KeyError, TypeError, RecursionError, ValueError) as error:
        raise Damaged(f"'{folder}' is no launch: {shown(str(error))}") from None
    tuples = {"grid": tuple(launch.grid), "block": tuple(launch.block)}
    return replace(launch, **tuples, not_recorded=tuple(launch.not_recorded))


# ---- the types of the fields ----


def _is_name(value: Any) -> bool:
    """Returns True for a name that C functions accept. Surrogates represent bytes that are not
    UTF-8."""
    try:
        return isinstance(value, str) and b"\0" not in value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False


def _matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _number(bits: int, least: int = 0) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value < 1 << bits


def _list(good: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(good, value))


_TYPES: _fields.Types = {
    "Name": _is_name,
    "Hash": _matches("[0-9a-f]{64}"),
    "Sizes": lambda value: _list(_number(32, 1))(value) and len(value) == 3,
    "Bytes": _number(47, 1),
    "Shared": _number(31),
    "int": _number(64),
    "bytes": _matches("([0-9a-f]{2})*"),
    "tuple[str, ...]": _list(lambda value: isinstance(value, str)),
}


def _argument(found: Any, blocks: tuple[Block, ...]) -> Argument:
    argument = _fields.read(Argument, found, _TYPES)
    block = argument.block
    if block is not None and not (block < len(blocks) and argument.offset < blocks[block].size):
        raise Damaged(f"argument {shown(repr(found))} points outside the blocks of memory")
    return replace(argument, content=bytes.fromhex(str(argument.content)))
