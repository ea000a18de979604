"""`mgpu-rt doctor --install` installs a HIP for one user, and this HIP uses the machine's own C
library."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mgpu_rt import _debian, _older_libc, _releases
from tests.support.child import ROOT
from tests.support.command import invoke
from tests.support.compiled import compile_c
from tests.support.patience import HANG

#: An imaginary C library that is newer than every real C library. Only the linker reads the
#: imaginary library.
NEWER_LIBC = "long __isoc23_strtol(void) { return 0; } int strlen(void) { return 0; } int %s;"
VERSIONS = "GLIBC_2.2.5 { strlen; }; GLIBC_2.99 { __isoc23_strtol; novelty; } GLIBC_2.2.5;"

LIBRARY = """
extern long parse(const char *, char **, int) __asm__("__isoc23_strtol");
extern unsigned long strlen(const char *);
long both(const char *text) { return parse(text, 0, 10) * 10 + strlen(text); }
%s
"""


def linked(folder: Path, more: str = "") -> Path:
    """Returns a library that is linked with an imaginary newer C library."""
    (folder / "versions").write_text(VERSIONS)
    libc = compile_c(
        *(folder / "libc.so.6", NEWER_LIBC % "novelty", "-shared", "-fPIC", "-nostdlib", "-w"),
        *("-fno-builtin", "-Wl,-soname=libc.so.6", f"-Wl,--version-script={folder}/versions"),
    )
    flags = ("-shared", "-fPIC", "-nostdlib", "-fno-builtin", "-w", str(libc))
    return compile_c(folder / "library.so", LIBRARY % more, *flags)


def test_a_library_of_a_newer_system_is_fitted_to_this_one(tmp_path: Path) -> None:
    library = linked(tmp_path)
    with pytest.raises(OSError, match=r"GLIBC_2\.99' not found"):
        ctypes.CDLL(str(library))
    _older_libc.fit(library)
    fitted = library.read_bytes()
    assert ctypes.CDLL(str(library)).both(b"42") == 422
    _older_libc.fit(library)
    assert library.read_bytes() == fitted


def test_a_function_that_no_older_system_has_is_named(tmp_path: Path) -> None:
    library = linked(tmp_path, "extern int novelty; int get(void) { return novelty; }")
    with pytest.raises(
        _older_libc.LibraryTooOld, match=r"library\.so needs novelty of GLIBC_2\.99"
    ):
        _older_libc.fit(library)


def unpack(release: _releases.Release, root: Path) -> None:
    """Creates a release that consists of one library and the C library."""
    folder = root / "usr/lib/x86_64-linux-gnu"
    folder.mkdir(parents=True)
    (folder / "libc.so.6").touch()
    (folder / f"{release.library}.1").write_text("HIP")
    (folder / release.library).symlink_to(f"{release.library}.1")


def test_a_release_is_installed_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_releases.Release, "unpack", unpack)
    here = {"XDG_DATA_HOME": str(tmp_path)}
    place = tmp_path / "mgpu_rt" / "hip-7.2.4"
    for _ in range(2):
        done = invoke("doctor", "--install", "7.2", **here)
        assert (done.exit_code, done.stdout) == (0, f"{place}/libamdhip64.so.7\n")
        assert (place / "libamdhip64.so.7").read_text() == "HIP"
        assert not (place / "libc.so.6").exists()

    def fail(release: _releases.Release, root: Path) -> None:
        unpack(release, root)
        raise _debian.PackagesMissing("apt-get update: no network")

    monkeypatch.setattr(_releases.Release, "unpack", fail)
    done = invoke("doctor", "--install", "5.7.1", **here)
    assert done.exit_code == 2
    said = f"HIP 5.7.1 was not installed in {place.parent}: apt-get update: no network"
    assert said in done.stderr
    assert [path.name for path in place.parent.iterdir()] == ["hip-7.2.4"]


#: Maps each failure of apt-get or dpkg-deb to the program's output and the line that the user sees.
FAILURES = {
    "no network": (
        "E: Failed to fetch http://a/InRelease  Temporary failure resolving 'a'\n"
        "E: Some index files failed to download.\n",
        "E: Failed to fetch http://a/InRelease  Temporary failure resolving 'a'",
    ),
    "wrong checksum": (
        "E: Failed to fetch http://a/a.deb  Hash Sum mismatch\n   Hashes of expected file:\n",
        "E: Failed to fetch http://a/a.deb  Hash Sum mismatch",
    ),
    "full disk": (
        "tar: ./usr: Cannot write: No space left on device\ndpkg-deb: error: tar failed\n",
        "no space is left on the disk",
    ),
    "little space": (
        "E: You don't have enough free space in /home/a/archives/.\n",
        "no space is left on the disk",
    ),
    "silence": ("", "it printed nothing"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_one_line_and_leaves_nothing(
    failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, shown = FAILURES[failure]
    (tmp_path / "bin").mkdir()
    for tool in ("apt-get", "dpkg-deb"):
        (tmp_path / "bin" / tool).write_text(f"#!/bin/sh\ncat >&2 <<'EOF'\n{said}EOF\nexit 100\n")
        (tmp_path / "bin" / tool).chmod(0o755)
    monkeypatch.setattr(_debian, "_mirror", lambda: "http://a/debian")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    done = invoke("doctor", "--install", "7.2", XDG_DATA_HOME=str(tmp_path / "data"))
    assert done.exit_code == 2
    assert done.stderr.splitlines()[1:] == [
        f"mgpu-rt: HIP 7.2.4 was not installed in {tmp_path}/data/mgpu_rt: apt-get update: {shown}"
    ]
    assert list((tmp_path / "data/mgpu_rt").iterdir()) == []


#: Installs a release. Prints a line before it waits for another process, and a line when it begins
#: to unpack.
INSTALL = """
import fcntl, os, sys
from mgpu_rt import _releases
from tests.devices.rocm.test_install import unpack
def slow(release, root):
    print("begins", flush=True)
    sys.stdin.readline()
    unpack(release, root)
_releases.Release.unpack = slow
def told(file, kind, flock=fcntl.flock):
    try:
        flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        print("waits", flush=True)
        flock(file, kind)
fcntl.flock = told
if "NO_LOCKS" in os.environ:
    fcntl.flock = lambda *_: os.close(-1)
print(_releases.install(_releases.find("7.2")), flush=True)
"""


def start(folder: Path, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", INSTALL],
        env={**os.environ, "XDG_DATA_HOME": str(folder), "PYTHONPATH": str(ROOT), **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_one_of_two_processes_fetches(tmp_path: Path) -> None:
    first = start(tmp_path)
    assert first.stdout and first.stdout.readline() == "begins\n"
    second = start(tmp_path)
    assert second.stdout and second.stdout.readline() == "waits\n"
    assert first.communicate("\n", HANG)[0] == second.communicate("", HANG)[0] != ""
    assert [path.name for path in (tmp_path / "mgpu_rt").iterdir()] == ["hip-7.2.4"]


@pytest.mark.check
def test_without_locks_both_fetch(tmp_path: Path) -> None:
    both = [start(tmp_path, NO_LOCKS="1") for _ in range(2)]
    for one in both:
        assert one.stdout and one.stdout.readline() == "begins\n"
    place = f"{tmp_path}/mgpu_rt/hip-7.2.4/libamdhip64.so.7\n"
    assert [one.communicate("\n", HANG)[0] for one in both] == [place, place]
    assert [path.name for path in (tmp_path / "mgpu_rt").iterdir()] == ["hip-7.2.4"]


@pytest.mark.check
def test_the_next_install_removes_the_folder_of_a_killed_one(tmp_path: Path) -> None:
    killed = start(tmp_path)
    assert killed.stdout and killed.stdout.readline() == "begins\n"
    killed.kill()
    killed.communicate(timeout=HANG)
    assert list((tmp_path / "mgpu_rt").iterdir()) != []
    assert start(tmp_path).communicate("\n", HANG)[0].startswith("begins")
    assert [path.name for path in (tmp_path / "mgpu_rt").iterdir()] == ["hip-7.2.4"]


def test_an_unknown_release_is_refused() -> None:
    for version in ("8", "5.70", ""):
        done = invoke("doctor", "--install", version)
        assert done.exit_code == 2
        assert "name one of 5.7.1, 6.4.3, 7.2.4" in done.stderr
