"""Builds the library with other flags, or without a proof. Some tests use such a library to run
other tests."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.child import BUILD, ROOT
from tests.support.folders import locked
from tests.support.patience import HANG, run_process

NAME, SPARSE = "libmlir_rocm_runtime.so", "libmgpu_rt_sparse.so"
#: Flags for code that is compiled often.
PLAIN = ("-O0", "-w")
#: Folders that are not part of the library.
ELSEWHERE = ("cuhip", "forward", "packaging", "__pycache__")


@functools.cache
def checkout(flags: tuple[str, ...]) -> Path:
    """Compiles the sources in a separate checkout, and compiles the sources again after they have
    changed.

    All workers share the checkout that the first worker made.
    """
    home = BUILD / "variants" / ("unchanged" + "".join(flags).replace("/", "_"))
    with locked(home):
        state = hashlib.sha256(repr((flags, sys.executable)).encode())
        for path in sorted(_sources()):
            state.update(f"{path}".encode() + path.read_bytes())
        made = home / "made"
        if not made.exists() or made.read_text() != state.hexdigest():
            shutil.rmtree(home, ignore_errors=True)
            for path in _sources():
                copy = home / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)
            command = ["make", "-s", "-j2", "-f", "csrc/runtime/build.mk", "LTO=", "LDFLAGS="]
            command += [f"CFLAGS={' '.join(flags)}", f"build/lib/{NAME}"]
            subprocess.run(command, cwd=home, check=True, timeout=HANG)
            (home / "build" / "lib" / "mgpu_rt.python").write_text(sys.executable + "\n")
            made.write_text(state.hexdigest())
    return home


def _sources() -> Iterator[Path]:
    """Returns the files of this checkout from which the library is built."""
    for folder in ("csrc", "mgpu_rt"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and not set(ELSEWHERE) & set(path.relative_to(ROOT).parts):
                yield path


#: A library with all proofs contains this name in place of the name of a proof. The number of bytes
#: is that of csrc/runtime/proof.h.
NONE, NAME_BYTES = "no_proof_is_left_out", 64


def control() -> Path:
    """Builds the library with all proofs, and with the flags that `without` uses."""
    return checkout((*PLAIN, f"-DWITHOUT={NONE}")) / "build" / "lib" / NAME


def _leave_out(proof: str, file: Path, copy: Path) -> None:
    """Copies a library or program that has all proofs, and leaves one of them out of the copy."""
    none, name = (text.encode().ljust(NAME_BYTES, b"\0") for text in (NONE, proof))
    content = file.read_bytes()
    assert len(name) == NAME_BYTES and content.count(none) == 1, (proof, file)
    copy.write_bytes(content.replace(none, name))
    copy.chmod(0o755)


@contextmanager
def without(proof: str) -> Iterator[Path]:
    """Makes the library without one proof, in a separate checkout."""
    home = BUILD / "variants" / f"without-{proof}"
    shutil.rmtree(home, ignore_errors=True)
    made = home / "build" / "lib"
    made.mkdir(parents=True)
    for path in control().parent.iterdir():
        if path.name in (NAME, SPARSE):
            _leave_out(proof, path, made / path.name)
        else:
            os.link(path, made / path.name)
    (home / "mgpu_rt").symlink_to(control().parents[2] / "mgpu_rt")
    yield made / NAME
    shutil.rmtree(home)


@functools.cache
def explorer() -> Path:
    """Builds the explorer of interleavings with all proofs."""
    made = BUILD / "interleavings" / "explore"
    command = ["make", "-s", "-j2", "-f", "tests/proofs/interleavings/build.mk"]
    with locked(made.parent):
        subprocess.run([*command, str(made.relative_to(ROOT))], cwd=ROOT, check=True, timeout=HANG)
    return made


@contextmanager
def explorer_without(proof: str) -> Iterator[Path]:
    """Makes the explorer of interleavings without one proof."""
    copy = explorer().with_name(f"explore-without-{proof}")
    _leave_out(proof, explorer(), copy)
    yield copy
    copy.unlink()


def run_tests(library: Path, *tests: str, home: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs tests (by pytest's names) of a checkout with a given library."""
    env = {**os.environ, "MGPU_RT_TEST_LIBRARY": str(library), "MGPU_RT_TEST_HANG": "12"}
    unused = ("cacheprovider", "hypothesispytest", "xdist", "xdist.looponfail")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", ""]
    command += [*(word for name in unused for word in ("-p", f"no:{name}")), *tests]
    return run_process(command, env, cwd=home)
