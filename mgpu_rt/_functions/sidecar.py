"""Writes and reads the types of a lowered program's functions. `mgpu-rt lower` writes the types
into a section of the program's object file.

The loader does not load the section with the program. The section contains one line of JSON for
each program. Linkers join sections with equal names, so a library of several objects contains the
types of all its functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

SECTION = ".mgpu_rt.functions"


def encode(functions: Mapping[str, str]) -> bytes:
    """Returns the content of the section: the text of each function's type."""
    return json.dumps({"functions": dict(functions)}, separators=(",", ":")).encode() + b"\n"


def append_to(ir: str, functions: Mapping[str, str]) -> str:
    escaped = encode(functions).decode().replace("\\", "\\\\").replace('"', '\\"')
    lines = (f'.section {SECTION},"",@progbits', f'.ascii "{escaped[:-1]}\\n"', ".text")
    return ir + "".join(f'\nmodule asm "{_quoted(line)}"' for line in lines) + "\n"


def _quoted(line: str) -> str:
    return re.sub(r'[\\"]', lambda match: f"\\{ord(match[0]):02X}", line)


def read(path: Path) -> dict[str, str]:
    """Returns the types of a library's functions by the functions' names. The result is empty if
    the library contains no types.

    Raises ValueError if the file is no ELF file, OSError if the file cannot be read.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        try:
            section = ELFFile(file).get_section_by_name(SECTION)
            content = section.data() if section else b""
        except ELFError as error:
            raise ValueError(f"'{path}' is not an ELF file ({error})") from None
    functions: dict[str, str] = {}
    try:
        for line in content.replace(b"\0", b"").splitlines():
            functions.update(json.loads(line)["functions"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"the function types in '{path}' cannot be read: lower the program again"
        ) from None
    return functions
