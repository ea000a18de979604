"""MLIR's string literals."""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)


def unescape(text: str) -> bytes:
    """Returns the bytes of a literal. A backslash precedes two hexadecimal digits, or one character
    that stands for itself."""

    def replace(match: re.Match[bytes]) -> bytes:
        code = match.group(1)
        return bytes([int(code, 16)]) if len(code) == 2 else code

    return _ESCAPE.sub(replace, text.encode())
