"""Describes recorded launches: writes and reads the JSON of a launch's folder. The origin of a file
that is read is untrusted, so each value is checked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mgpu_rt import __version__, _files
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
        content = _files.read(path)
        if hashlib.sha256(content).hexdigest() != name:
            raise Damaged(f"'{path.parent}': {name} is not what was recorded")
        return content

    def as_json(self) -> bytes:
        """Returns the description that `read` reads."""
        known = {name: value for name, value in asdict(self).items() if name != "folders"}
        return json.dumps(
            {"format": FORMAT, "mgpu_rt": __version__, **known}, default=bytes.hex
        ).encode()


def read(folder: Path) -> RecordedLaunch:
    """Reads a launch's folder. Raises OSError, or Damaged with the first fault found."""
    try:
        return _launch_of(_parsed(_files.read(folder / LAUNCH)), folder)
    except Damaged as error:
        raise Damaged(f"'{folder}' is no launch: {error}") from None


def _parsed(content: bytes) -> Any:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Damaged(shown(str(error))) from None
    return _get(found, "format", lambda v: v == FORMAT, f"{FORMAT} for this mgpu_rt") and found


def _launch_of(found: Any, folder: Path) -> RecordedLaunch:
    blocks = tuple(map(_block, _list(found, "blocks")))
    is_text = [isinstance(words, str) for words in _list(found, "not_recorded")]
    return RecordedLaunch(
        kernel=_get(found, "kernel", _is_name, "a name"),
        label=_get(found, "label", _is_name, "a name"),
        image=_hash(found, "image"),
        grid=_three(found, "grid"),
        block=_three(found, "block"),
        shared=_number(found, "shared", 31),
        arguments=tuple(_argument(argument, blocks) for argument in _list(found, "arguments")),
        blocks=blocks,
        not_recorded=tuple(
            _get(found, "not_recorded", lambda _: all(is_text), "a list of sentences")
        ),
        number=_number(found, "number", 64, 1),
        folders=(folder,),
    )


def _block(found: Any) -> Block:
    address, size = _number(found, "address", 64), _number(found, "size", 47, 1)
    asked = None if found.get("asked") is None else _number(found, "asked", 47, 1)
    if asked is not None:
        _get(found, "asked", lambda _: asked <= size, f"at most the block's {size} bytes")
    return Block(address, size, _hash(found, "before"), _hash(found, "after"), asked)


def _argument(found: Any, blocks: tuple[Block, ...]) -> Argument:
    digits = re.compile("([0-9a-f]{2})*").fullmatch
    right = "hex digits, two for each byte"
    text = _get(found, "content", lambda v: isinstance(v, str) and bool(digits(v)), right)
    content = bytes.fromhex(text)
    if _get(found, "block", lambda _: True, "") is None:
        return Argument(content)
    block, offset = _number(found, "block", 32), _number(found, "offset", 47)
    _get(found, "block", lambda v: v < len(blocks), f"one of its {len(blocks)} blocks of memory")
    size = blocks[block].size
    _get(found, "offset", lambda v: v < size, f"within the block's {size} bytes")
    return Argument(content, block, offset)


def _get(found: Any, key: str, good: Callable[[Any], bool], right: str) -> Any:
    """Returns a value that is `good`. Raises Damaged, which says what the value has to be."""
    if not isinstance(found, dict) or key not in found:
        raise Damaged(f"'{key}' is missing")
    if not good(found[key]):
        raise Damaged(f"'{key}' is {shown(repr(found[key]))}, and has to be {right}")
    return found[key]


def _list(found: Any, key: str) -> list[Any]:
    return _get(found, key, lambda v: isinstance(v, list), "a list")


def _number(found: Any, key: str, bits: int, least: int = 0) -> int:
    right = f"a number from {least} to 2^{bits} - 1"
    return _get(found, key, lambda v: type(v) is int and least <= v < 1 << bits, right)


def _three(found: Any, key: str) -> tuple[int, int, int]:
    def good(value: list[Any]) -> bool:
        return len(value) == 3 and all(type(s) is int and 0 < s < 1 << 32 for s in value)

    _list(found, key)
    x, y, z = _get(found, key, good, "three sizes from 1 to 2^32 - 1")
    return x, y, z


def _hash(found: Any, key: str) -> str:
    digits = re.compile("[0-9a-f]{64}").fullmatch
    right = "a SHA-256 as 64 hex digits"
    return _get(found, key, lambda v: isinstance(v, str) and bool(digits(v)), right)


def _is_name(value: Any) -> bool:
    """Returns True for a name that C functions accept. Surrogates represent bytes that are not
    UTF-8."""
    try:
        return isinstance(value, str) and b"\0" not in value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
