"""Runs a program on softgpu with a release's HIP, libraries and loader."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt._cli import softgpu
from tests.devices.rocm import packages
from tests.devices.rocm.releases import Release

#: Returns the folder of libraries that programs need but a release lacks, such as libpython.
_MACHINE = ("/usr/lib/x86_64-linux-gnu", "/usr/lib")
#: status lines that DTIF's loader writes to stderr
_CHATTER = (
    "Load libdtif.so ",
    "Load all DTIF ",
    "DtifCreate ",
    "DtifDestroy ",
    "Unload libdtif.so ",
)
_LEAKS = "Warning: Resource leak detected by SharedSignalPool"


@dataclass(frozen=True)
class Surroundings:
    """An unpacked release."""

    release: Release
    root: Path

    @property
    def hip(self) -> Path:
        return packages.libraries(self.root)[0] / self.release.library

    @property
    def names(self) -> Path:
        """Returns a folder that contains a link to the release's HIP for each name by which
        programs load HIP."""
        folder = self.root / "names"
        folder.mkdir(exist_ok=True)
        for name in ("libamdhip64.so", *(f"libamdhip64.so.{major}" for major in (5, 6, 7))):
            link = folder / name
            with contextlib.suppress(FileExistsError):
                link.symlink_to(os.path.relpath(self.hip, folder))  # the tree may be copied
        return folder

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Returns the environment of a child process. Popen removes LD_LIBRARY_PATH later, because
        prefix() passes these folders to the loader."""
        result = dict(os.environ if base is None else base)
        result["MGPU_RT_HIP"] = str(self.hip)
        result.setdefault("MGPU_RT_SOFTGPU", self.release.chips[0])
        if self.release.seam == "libdtif.so":
            result["HSA_ENABLE_DTIF"] = "1"
            # HIP's memory pools would need virtual memory management, which softgpu lacks.
            result["DEBUG_HIP_MEM_POOL_VMHEAP"] = "0"
        return result

    def prefix(self, search: str = "") -> list[str]:
        """Returns the words that must precede a program on the command line. `search` is the
        content of LD_LIBRARY_PATH."""
        own = [str(softgpu.BUILD / "softgpu"), str(self.names)]
        own += map(str, packages.libraries(self.root))
        asked = [path for path in search.split(":") if path and path not in own]
        path = ":".join([own[0], *asked, *own[1:], *_MACHINE])
        return [str(packages.loader(self.root)), "--library-path", path]

    def command(self, words: Sequence[str], search: str = "") -> list[str]:
        """Returns the command that starts a program through the release's loader."""
        ours = {"tests.support.child": "tests.devices.rocm.child"}
        words = [ours.get(str(word), str(word)) for word in words]
        runs = "mgpu_rt" in words or Path(words[0]).name == "mgpu-rt"
        if runs and "--" in words:  # the program follows --
            at = words.index("--") + 1
            return [*words[:at], *self.prefix(search), *words[at:]]
        with open(words[0], "rb") as program:
            start = program.readline()
        if start.startswith(b"#!"):
            words = [*start[2:].decode().split(), *words]
        return [*self.prefix(search), *words]


def surroundings(release: Release) -> Surroundings:
    """Returns a release; downloads a missing release. Raises PackagesMissing."""
    return Surroundings(release, packages.fetch(release))


def without_chatter(stderr: str) -> str:
    """Returns a program's stderr without ROCr's messages about DTIF."""
    lines = stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith((*_CHATTER, _LEAKS)))


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """Replaces subprocess.Popen (see plugin.py), and starts programs on the release."""

    here: Surroundings

    def __init__(self, args: object, *more: object, **options: object) -> None:
        env = options.get("env")
        if isinstance(env, Mapping) and env.get("MGPU_RT_HIP") == str(self.here.hip):
            words = [args] if isinstance(args, (str, Path)) else args
            args = self.here.command(words, env.get("LD_LIBRARY_PATH", ""))  # type: ignore
            options["env"] = {k: v for k, v in env.items() if k != "LD_LIBRARY_PATH"}
        super().__init__(args, *more, **options)  # type: ignore[call-overload]

    def communicate(self, *arguments: object, **options: object) -> tuple[object, object]:
        out, err = super().communicate(*arguments, **options)  # type: ignore[arg-type]
        return out, without_chatter(err) if isinstance(err, str) else err
