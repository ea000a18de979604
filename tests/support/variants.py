"""The library compiled another way, or with a line changed, for tests that run others with it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.child import ROOT
from tests.support.folders import folder
from tests.support.patience import HANG

NAME = "libmlir_rocm_runtime.so"
#: What is not part of the library.
ELSEWHERE = ("softgpu", "cuhip", "forward", "packaging", "__pycache__")


@dataclass(frozen=True)
class Change:
    """In a file of a checkout, this text, which it holds once, becomes that one."""

    file: str
    old: str
    new: str

    def make_in(self, home: Path) -> None:
        path = home / self.file
        text = path.read_text()
        assert text.count(self.old) == 1, f"{self.file} holds it once: {self.old}"
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True)
class Guard:
    """What is changed in which file, and the test that must then fail."""

    file: str
    guard: str
    without: str
    test: str


def make(home: Path, flags: tuple[str, ...]) -> Path:
    """Makes the library of the checkout `home`, as csrc/runtime/build.mk does but for flags."""
    library = home / "build" / "lib" / NAME
    command = ["make", "-s", "-j2", "-f", "csrc/runtime/build.mk", "LTO=", "LDFLAGS="]
    made = str(library.relative_to(home))
    subprocess.run(
        [*command, f"CFLAGS={' '.join(flags)}", made], cwd=home, check=True, timeout=HANG
    )
    return library


@functools.cache
def checkout(flags: tuple[str, ...]) -> Path:
    """The sources in a checkout of their own, compiled: what changes later is compiled anew."""
    home = folder("variants") / ("unchanged" + "".join(flags).replace("/", "_"))
    for name in ("csrc", "mgpu_rt"):
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns(*ELSEWHERE))
    make(home, flags)
    (home / "build" / "lib" / "mgpu_rt.python").write_text(sys.executable + "\n")
    return home


def build(name: str, *changes: Change, flags: tuple[str, ...] = ("-O1",)) -> Path:
    """The library in a checkout of its own, whose files are this one's with the changes."""
    home = folder("variants") / name
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(checkout(flags), home)
    for change in changes:
        change.make_in(home)
    return make(home, flags)


def run_tests(library: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Runs tests (pytest's names for them) with a library."""
    env = {**os.environ, "MGPU_RT_TEST_LIBRARY": str(library), "MGPU_RT_TEST_HANG": "12"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=HANG)
