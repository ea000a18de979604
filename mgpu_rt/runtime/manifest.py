"""The manifest of recorded launches: its format, and the check of what anybody may have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mgpu_rt import files

FORMAT = 1


class Damaged(ValueError):
    """Why a recording cannot be replayed."""


def read(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(files.read(path))
        if manifest["format"] != FORMAT or not isinstance(manifest["launches"], list):
            raise Damaged(f"'{path}' is of format {manifest['format']}, and this reads {FORMAT}")
    except Damaged:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged(f"'{path}' is no recording's manifest: {error}") from None
    return manifest


def check(launch: dict[str, Any]) -> None:
    """Anybody may have written it. Raises what Python raises for a value of another type."""
    texts = [launch["kernel"], launch["image"], *(b[k] for b in launch["blocks"] for k in _BLOBS)]
    sizes = [*launch["grid"], *launch["block"], launch["shared"]]
    offsets = [argument.get("offset", 0) for argument in launch["arguments"]]
    for argument in launch["arguments"]:
        bytes.fromhex(argument["bytes"])
        _ = launch["blocks"][argument.get("block", -1)] if "block" in argument else None
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a name is no text")
    for numbers, bits in ((sizes, 32), (offsets, 64)):
        if not all(type(number) is int and 0 <= number < 1 << bits for number in numbers):
            raise TypeError(f"a size is no number of {bits} bits")


_BLOBS = ("before", "after")
