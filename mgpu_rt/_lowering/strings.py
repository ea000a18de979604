"""MLIR's string literals."""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)


def unescape(text: str) -> bytes:
    """Returns the bytes of a literal: two hexadecimal digits or one character may be escaped."""

    def replace(match: re.Match[bytes]) -> bytes:
        code = match.group(1)
        return bytes([int(code, 16)]) if len(code) == 2 else code

    return _ESCAPE.sub(replace, text.encode())
