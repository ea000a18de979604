"""Describes recorded launches: writes and reads the JSON of a launch's folder. The origin of a file
that is read is untrusted, so each value is checked."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mgpu_rt import __version__
from mgpu_rt._text import shown
from mgpu_rt.runtime._folder import LAUNCH

FORMAT = 3


class Damaged(ValueError):
    """Raised if a recording cannot be replayed. The exception's text is the reason."""


@dataclass(frozen=True)
class Block:
    """A block of device memory. `before` and `after` are the hashes of the block's content before
    and after the launch. `asked` is the number of bytes that the program requested, or None if the
    number is unknown or equals `size`."""

    address: int
    size: int  # bytes
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
    """A recorded launch. `image` is the hash of the image. `shared` is the size of dynamic memory
    in bytes. `folders` contain the files that are named by hashes."""

    kernel: str
    label: str
    image: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
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
        _checked(found, {"format": (lambda v: v == FORMAT, f"{FORMAT} for this mgpu_rt")})
        values = _checked(found, _LAUNCH)
        blocks = tuple(Block(**_checked(block, _BLOCK)) for block in values["blocks"])
        given = tuple(_argument(each, blocks) for each in values["arguments"])
    except (Damaged, RecursionError, ValueError) as error:
        why = error if isinstance(error, Damaged) else shown(str(error))
        raise Damaged(f"'{folder}' is no launch: {why}") from None
    values |= {key: tuple(values[key]) for key in ("grid", "block", "not_recorded")}
    return RecordedLaunch(**{**values, "blocks": blocks, "arguments": given}, folders=(folder,))


# ---- the fields: which values are good, and what a value has to be ----

_Field = tuple[Callable[[Any], bool], str]


def _number(bits: int, least: int = 0) -> _Field:
    right = f"a number from {least} to 2^{bits} - 1"
    return lambda v: type(v) is int and least <= v < 1 << bits, right


def _list(good: Callable[[Any], bool], right: str) -> _Field:
    return lambda v: isinstance(v, list) and all(map(good, v)), right


def _is_name(value: Any) -> bool:
    """Returns True for a name that C functions accept. Surrogates represent bytes that are not
    UTF-8."""
    try:
        return isinstance(value, str) and b"\0" not in value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False


def _digits(pattern: str) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, str) and re.fullmatch(pattern, v) is not None


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 < value < 1 << 32


_NAME = (_is_name, "a name")
_HASH = (_digits("[0-9a-f]{64}"), "a SHA-256 as 64 hex digits")
_ANY = _list(lambda _: True, "a list")
_SIZES = (lambda v: _ANY[0](v) and len(v) == 3 and all(map(_is_size, v)), "three sizes from 1 up")

_BLOCK: dict[str, _Field] = {
    "address": _number(64),
    "size": _number(47, 1),
    "before": _HASH,
    "after": _HASH,
    "asked": (lambda v: v is None or _number(47, 1)[0](v), "null or a number of bytes"),
}
_ARGUMENT: dict[str, _Field] = {
    "content": (_digits("([0-9a-f]{2})*"), "hex digits, two for each byte"),
    "block": (lambda v: v is None or _number(32)[0](v), "null or the number of a block"),
    "offset": _number(47),
}
_LAUNCH: dict[str, _Field] = {
    "kernel": _NAME,
    "label": _NAME,
    "image": _HASH,
    "grid": _SIZES,
    "block": _SIZES,
    "shared": _number(31),
    "arguments": _ANY,
    "blocks": _ANY,
    "not_recorded": _list(lambda v: isinstance(v, str), "a list of sentences"),
    "number": _number(64, 1),
}


def _checked(found: Any, fields: Mapping[str, _Field]) -> dict[str, Any]:
    """Returns the values of these fields. Raises Damaged, which says what a value has to be."""
    for key, (good, right) in fields.items():
        if not isinstance(found, dict) or key not in found:
            raise Damaged(f"'{key}' is missing")
        if not good(found[key]):
            raise Damaged(f"'{key}' is {shown(repr(found[key]))}, and has to be {right}")
    block = {key: found[key] for key in fields}
    if (block.get("asked") or 0) > block.get("size", 0):
        raise Damaged(f"'asked' is more than the block's {block['size']} bytes")
    return block


def _argument(found: Any, blocks: tuple[Block, ...]) -> Argument:
    values = _checked(found, _ARGUMENT)
    argument = Argument(**{**values, "content": bytes.fromhex(values["content"])})
    if argument.block is not None:
        if argument.block >= len(blocks):
            many = f"one of its {len(blocks)} blocks of memory"
            raise Damaged(f"'block' is {argument.block}, and has to be {many}")
        if argument.offset >= (size := blocks[argument.block].size):
            within = f"within the block's {size} bytes"
            raise Damaged(f"'offset' is {argument.offset}, and has to be {within}")
    return argument
