"""The library compiled another way, or with a line changed, for tests that run others with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt import __version__
from tests.child import BUILD, ROOT

FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-g", "-fPIC", "-fvisibility=hidden")
NAME = "libmlir_rocm_runtime.so"


@dataclass(frozen=True)
class Change:
    """In a file below the repository, this text becomes that one."""

    file: str
    old: str
    new: str

    def applied(self) -> str:
        text = (ROOT / self.file).read_text()
        assert text.count(self.old) == 1, f"{self.file} holds it once: {self.old}"
        return text.replace(self.old, self.new)


def _compile(sources: list[Path], objects: Path, flags: tuple[str, ...]) -> None:
    objects.mkdir(parents=True, exist_ok=True)
    includes = [f"-I{ROOT / 'csrc' / 'include'}", f"-I{ROOT / 'csrc' / 'runtime'}"]
    version = f'-DMGPU_RT_VERSION="{__version__}"'
    command = ["cc", "-c", *FLAGS, *flags, version, *includes, *map(str, sources)]
    subprocess.run(command, cwd=objects, check=True, timeout=300)


def _objects(flags: tuple[str, ...]) -> Path:
    """The library's objects, compiled with these flags once for each state of its sources."""
    sources = sorted((ROOT / "csrc" / "runtime").rglob("*.c"))
    objects = BUILD / "variants" / ("objects" + "".join(flags).replace("/", "_"))
    newest = max(path.stat().st_mtime for path in (ROOT / "csrc").rglob("*.[ch]"))
    stamp = objects / "stamp"
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        shutil.rmtree(objects, ignore_errors=True)
        _compile(sources, objects, flags)
        stamp.touch()
    return objects


def build(name: str, *changes: Change, flags: tuple[str, ...] = ("-O1",)) -> Path:
    """The library in a checkout of its own, whose package is this one's with the changes."""
    home = BUILD / "variants" / name
    shutil.rmtree(home, ignore_errors=True)
    objects, lib = home / "objects", home / "build" / "lib"
    shutil.copytree(_objects(flags), objects)
    lib.mkdir(parents=True)
    shutil.copytree(ROOT / "mgpu_rt", home / "mgpu_rt")
    (lib / "mgpu_rt.python").write_text(sys.executable + "\n")
    for change in changes:
        file = home / change.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(change.applied())
        if file.suffix == ".c":
            _compile([file], objects, flags)
    exports = home / "exports.map"
    exports.write_text("{ global: mgpu*; local: *; };\n")
    link = [f"-Wl,--version-script={exports}", "-Wl,-z,nodelete,-z,now", "-lpthread", "-ldl"]
    command = ["cc", "-shared", *flags, *map(str, objects.glob("*.o")), *link]
    subprocess.run([*command, "-o", str(lib / NAME)], check=True)
    return lib / NAME


def run_tests(library: Path, *tests: str, seconds: int = 100) -> subprocess.CompletedProcess[str]:
    """Runs tests (pytest's names for them) with a library."""
    env = {**os.environ, "MGPU_RT_TEST_LIBRARY": str(library), "MGPU_RT_TEST_TIMEOUT": "12"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=seconds
    )
