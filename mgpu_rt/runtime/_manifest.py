"""Reads and writes a recording's manifest, which has a line of JSON for each launch. The file's
origin is untrusted."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mgpu_rt import __version__, _files
from mgpu_rt._text import shown

FORMAT = 2

#: How many bits the ABI and HIP allow for a grid or block size, for a dynamic memory size, and for
#: an address.
_SIZE, _SHARED, _ADDRESS = 32, 31, 64
_ROOM = 47  # width of the largest block's size

_HASH = re.compile("[0-9a-f]{64}")
_HEX = re.compile("([0-9a-f]{2})*")


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
    in bytes."""

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


def line_of(launch: RecordedLaunch) -> bytes:
    """Returns a launch's line in the manifest, without the newline."""
    head = {"format": FORMAT, "mgpu_rt": __version__}
    return json.dumps(head | asdict(launch), default=bytes.hex).encode()


def read(path: Path) -> list[RecordedLaunch]:
    """Reads the launches of a manifest. Ignores a last line without a newline, because such a line
    is incomplete. Raises OSError or Damaged."""
    *lines, _ = _files.read(path).split(b"\n")
    launches = []
    for number, line in enumerate(lines, 1):
        try:
            launches.append(_launch_of(_parsed(line)))
        except Damaged as error:
            raise Damaged(f"'{path}': line {number} is no launch: {error}") from None
    return launches


def _parsed(line: bytes) -> Any:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Damaged(shown(str(error))) from None
    if _value(found, "format") != FORMAT:
        raise _wrong("format", found["format"], f"{FORMAT} for this mgpu_rt")
    return found


# ---- one launch: each value is checked before it is used ----


def _launch_of(found: Any) -> RecordedLaunch:
    """Raises Damaged with the first fault found."""
    blocks = tuple(_block(block) for block in _list(found, "blocks"))
    return RecordedLaunch(
        kernel=_name(found, "kernel"),
        label=_name(found, "label"),
        image=_hash(found, "image"),
        grid=_three(found, "grid"),
        block=_three(found, "block"),
        shared=_number(found, "shared", _SHARED),
        arguments=tuple(_argument(argument, blocks) for argument in _list(found, "arguments")),
        blocks=blocks,
        not_recorded=tuple(map(_sentence, _list(found, "not_recorded"))),
        number=_number(found, "number", _ADDRESS, 1),
    )


def _block(found: Any) -> Block:
    address, size = _number(found, "address", _ADDRESS), _number(found, "size", _ROOM, 1)
    asked = None if found.get("asked") is None else _number(found, "asked", _ROOM, 1)
    if asked is not None and asked > size:
        raise _wrong("asked", asked, f"at most the block's {size} bytes")
    return Block(
        address=address,
        size=size,
        asked=asked,
        before=_hash(found, "before"),
        after=_hash(found, "after"),
    )


def _argument(found: Any, blocks: tuple[Block, ...]) -> Argument:
    content = _value(found, "content")
    if not isinstance(content, str) or not _HEX.fullmatch(content):
        raise _wrong("content", content, "hex digits, two for each byte")
    if _value(found, "block") is None:
        return Argument(bytes.fromhex(content))
    block, offset = _number(found, "block", _SIZE), _number(found, "offset", _ROOM)
    if block >= len(blocks):
        raise _wrong("block", block, f"one of its {len(blocks)} blocks of memory")
    if offset >= blocks[block].size:
        raise _wrong("offset", offset, f"within the block's {blocks[block].size} bytes")
    return Argument(bytes.fromhex(content), block, offset)


def _value(found: Any, key: str) -> Any:
    if not isinstance(found, dict) or key not in found:
        raise Damaged(f"'{key}' is missing")
    return found[key]


def _list(found: Any, key: str) -> list[Any]:
    value = _value(found, key)
    if not isinstance(value, list):
        raise _wrong(key, value, "a list")
    return value


def _number(found: Any, key: str, bits: int, least: int = 0) -> int:
    value = _value(found, key)
    if type(value) is not int or not least <= value < 1 << bits:
        raise _wrong(key, value, f"a number from {least} to 2^{bits} - 1")
    return value


def _three(found: Any, key: str) -> tuple[int, int, int]:
    value = _list(found, key)
    if len(value) != 3 or not all(type(s) is int and 0 < s < 1 << _SIZE for s in value):
        raise _wrong(key, value, f"three sizes from 1 to 2^{_SIZE} - 1")
    return value[0], value[1], value[2]


def _hash(found: Any, key: str) -> str:
    value = _value(found, key)
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise _wrong(key, value, "a SHA-256 as 64 hex digits")
    return value


def _name(found: Any, key: str) -> str:
    """Returns a name as text for C functions. Surrogates represent bytes that are not UTF-8."""
    value = _value(found, key)
    try:
        good = isinstance(value, str) and b"\0" not in value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        good = False
    if not good:
        raise _wrong(key, value, "a name")
    return value


def _sentence(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong("not_recorded", value, "a list of sentences")
    return value


def _wrong(key: str, value: Any, right: str) -> Damaged:
    return Damaged(f"'{key}' is {shown(repr(value))}, and has to be {right}")
