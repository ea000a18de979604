"""The names of proofs in the source do not change any word that the compiler reads."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.child import ROOT
from tests.support.patience import HANG

pytestmark = pytest.mark.check  # preprocesses the library twice

FLAGS = "-E -P -w"
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
    """Returns a source without the names of proofs and without the assertions. The text beside a
    name is in brackets, as in the macro."""
    while found := MACRO.search(text):
        (_, *rest), after = arguments(text[found.end() :])
        inner = rest[0] if found[1] == "PROOF_VALUE" else ",".join(rest)
        if found[1] == "CHECK":
            inner = "(void)0"
        elif found[1] != "PROOF_STEP":
            inner = f"({inner.strip()})"
        text = text[: found.start()] + inner + after
    return text


def preprocessed(home: Path) -> dict[str, list[str]]:
    """Returns the words of each source of the library, after the preprocessor, with the options of
    csrc/runtime/build.mk."""
    sources = [path.relative_to(home / "csrc") for path in (home / "csrc/runtime").rglob("*.c")]
    objects = [str(Path("build") / path.with_suffix(".o")) for path in sources]
    command = ["make", "-s", "-j2", "-f", "csrc/runtime/build.mk", "LTO=", f"CFLAGS={FLAGS}"]
    subprocess.run([*command, *objects], cwd=home, check=True, timeout=HANG)
    return {name: re.findall(r"\w+|\S", (home / name).read_text()) for name in objects}


def test_names_of_proofs_change_no_word(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for home in (before, after):
        for folder in ("csrc", "mgpu_rt"):
            shutil.copytree(ROOT / folder, home / folder)
    named = 0
    for path in (after / "csrc" / "runtime").rglob("*.[ch]"):
        text = path.read_text()
        if path.name not in ("proof.h", "check.h") and MACRO.search(text):
            path.write_text(plain(text))
            named += 1
    assert named > 5
    assert preprocessed(before) == preprocessed(after)
