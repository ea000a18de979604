"""Calls of HIP by other code: foreign.c calls each function that changes nothing, and then one that
may change HIP's objects."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.child import ROOT

SOURCE = Path(__file__).with_name("foreign.c").read_text()
HARMLESS, OTHERS = (
    re.findall(r"CALL\((hip\w+), ", SOURCE.partition(f"#define {name}(")[2].partition("\n\n")[0])
    for name in ("HARMLESS", "OTHERS")
)


def listed() -> list[str]:
    """Returns the functions that the library takes for harmless."""
    text = (ROOT / "csrc" / "runtime" / "driver" / "witness.c").read_text()
    return re.findall(r'\{"(hip\w+)", HARMLESS', text)
