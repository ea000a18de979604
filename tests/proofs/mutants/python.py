"""Copies mgpu_rt and the tests into a separate checkout, and removes one proof from the copy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.proofs.mutants.table import MARK
from tests.support.child import BUILD, ROOT
from tests.support.variants import NAME

#: folders that the separate checkout shares with the repository, because these folders contain no
#: proofs
SHARED = ("bench", "csrc", "docs", "examples", "pyproject.toml", "Makefile")


def left_out(text: str, proof: str) -> str:
    """Returns a source in which the text in the proof's mark replaces the proof's line."""
    lines = text.splitlines()
    (at,) = (at for at, line in enumerate(lines) if (mark := MARK.match(line)) and mark[1] == proof)
    mark = MARK.match(lines[at])
    assert mark
    while MARK.match(lines[at]):
        at += 1
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    lines[at] = indent + (mark[2] or "pass")
    return "\n".join(lines) + "\n"


@contextmanager
def python_without(proof: str, file: str) -> Iterator[Path]:
    """Yields the library of a checkout in which the file lacks the proof; tests run in this
    checkout."""
    home = BUILD / "variants" / f"without-{proof}"
    shutil.rmtree(home, ignore_errors=True)
    (home / "build").mkdir(parents=True)
    for name in SHARED:
        (home / name).symlink_to(ROOT / name)
    for path in BUILD.iterdir():
        if path.name != "lib":
            (home / "build" / path.name).symlink_to(path)
    # The copy has compiled modules, too, but none that another process is just writing. A compiled
    # module records the time and the size of its source, so Python compiles the changed file again.
    # Python renames the new module into place, so the module of this checkout stays as it is.
    skip = shutil.ignore_patterns("*.pyc.*")
    for name in ("mgpu_rt", "tests", "build/lib"):
        shutil.copytree(ROOT / name, home / name, copy_function=os.link, symlinks=True, ignore=skip)
    path = home / file
    text = left_out(path.read_text(encoding="utf-8"), proof)
    path.unlink()  # the file also belongs to this checkout
    path.write_text(text, encoding="utf-8")
    try:
        yield home / "build" / "lib" / NAME
    finally:
        shutil.rmtree(home)
