"""The names of proofs in the source do not change any byte of the compiled library."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.child import BUILD
from tests.support.variants import checkout, make

pytestmark = pytest.mark.check  # builds the library twice

FLAGS = ("-O1", "-g0", "-w")
MACRO = re.compile(r"\b(PROOF|DOUBT|PROOF_STEP|PROOF_VALUE|CHECK)\(")


def arguments(text: str) -> tuple[list[str], str]:
    """Takes the text after a macro's opening bracket. Returns the macro's arguments, and the text
    after the macro."""
    found, depth, begin = [], 0, 0
    for at, sign in enumerate(text):
        if depth == 0 and sign in ",)":
            found.append(text[begin:at])
            begin = at + 1
            if sign == ")":
                return found, text[begin:]
        depth += (sign in "([{") - (sign in ")]}")
    raise AssertionError(f"no end: {text[:80]}")


def plain(text: str) -> str:
    """Returns a source from which the names of proofs and the assertions are removed."""
    while found := MACRO.search(text):
        (_, *rest), after = arguments(text[found.end() :])
        inner = rest[0] if found[1] == "PROOF_VALUE" else ",".join(rest)
        if found[1] == "CHECK":
            inner = ""
        elif found[1] != "PROOF_STEP":
            inner = f"({inner})"
        text = text[: found.start()] + inner + after
    return text


def objects(home: Path) -> dict[str, bytes]:
    folder = home / "build" / "runtime"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.o")}


def test_proofs_cost_no_byte() -> None:
    home = BUILD / "variants" / "without-names"
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(checkout(FLAGS) / "csrc", home / "csrc")
    shutil.copytree(checkout(FLAGS) / "mgpu_rt", home / "mgpu_rt")
    named = 0
    for path in (home / "csrc" / "runtime").rglob("*.[ch]"):
        text = path.read_text()
        if path.name not in ("proof.h", "check.h") and MACRO.search(text):
            path.write_text(plain(text))
            named += 1
    make(home, FLAGS)
    assert named > 5
    assert objects(home) == objects(checkout(FLAGS))
