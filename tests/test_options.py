"""What the environment may say, and in which programs it is not listened to."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.child import STUB, Mgpu, environment, in_child, library
from tests.compiled import LIB, RUNTIME, STREAM_PROGRAM, compile_c

PROBE = LIB / "mgpu-rt-probe"


def _probe(directory: Path, **changes: str) -> str:
    """Runs the smallest program; what it wrote to stderr."""
    result = subprocess.run(
        [PROBE],
        cwd=directory,
        env=environment(LD_LIBRARY_PATH=str(LIB), **changes),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stderr


@pytest.mark.parametrize("variable", ["MGPU_RT_STATS", "MGPU_RT_TRACE"])
@pytest.mark.parametrize("value", ["", "0", "off"])
def test_no_results_are_written_where_they_are_off(
    variable: str, value: str, tmp_path: Path
) -> None:
    assert _probe(tmp_path, **{variable: value}) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["1", "on"])
def test_table_of_statistics(value: str, tmp_path: Path) -> None:
    assert "mgpuStreamCreate" in _probe(tmp_path, MGPU_RT_STATS=value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["1", "on"])
def test_a_trace_needs_a_path(value: str, tmp_path: Path) -> None:
    said = _probe(tmp_path, MGPU_RT_TRACE=value)
    assert said == f"mgpu_rt: MGPU_RT_TRACE='{value}' is not a path: no trace is written\n"
    assert list(tmp_path.iterdir()) == []


def test_a_file_may_have_any_name(tmp_path: Path) -> None:
    _probe(tmp_path, MGPU_RT_STATS="./0", MGPU_RT_TRACE="./off")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "off"]


@pytest.mark.parametrize(
    ("value", "speaks"),
    [("", False), ("0", False), ("off", False), ("1", True), ("on", True), ("2", True)],
)
def test_verbose(value: str, speaks: bool, tmp_path: Path) -> None:
    said = _probe(tmp_path, MGPU_RT_VERBOSE=value)
    assert ("mgpu_rt: HIP: " in said) == speaks
    assert ("VERBOSE='2' is neither on nor off: on is used" in said) == (value == "2")


@pytest.mark.parametrize("value", ["1e300", "1e18", "99999999999G", "nan", "inf", "-1", "1KK"])
def test_limits_that_no_machine_has(value: str, tmp_path: Path) -> None:
    said = _probe(tmp_path, MGPU_RT_MEMORY_LIMIT=value)
    assert f"MGPU_RT_MEMORY_LIMIT='{value}' is neither a number of bytes" in said


@pytest.mark.parametrize("value", ["0", "0.25", "0x10", "1.5G", "17179869184", " 5"])
def test_limits_that_make_sense(value: str, tmp_path: Path) -> None:
    assert _probe(tmp_path, MGPU_RT_MEMORY_LIMIT=value) == ""


# ---- programs with rights that their caller lacks ------------------------------------------------

NOBODY = 65534


@contextmanager
def _open_directory() -> Iterator[Path]:
    """One that another user can look into; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="mgpu-rt-test-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / "out").mkdir()
        (directory / "out").chmod(0o777)  # whatever it is written by
        yield directory


def _marking_library(out: Path, mark: Path) -> Path:
    """A library that leaves a file when it is opened."""
    out.parent.mkdir(parents=True, exist_ok=True)
    source = f"""
        #include <fcntl.h>
        __attribute__((constructor)) static void mark(void) {{
            (void)!open("{mark}", O_CREAT | O_WRONLY, 0666);
        }}"""
    return compile_c(out, source, "-shared", "-fPIC")


def _variables(directory: Path) -> dict[str, str]:
    """Each of the variables that name code or files, with something that leaves a file."""
    out = directory / "out"
    _marking_library(directory / "rocm/lib/libamdhip64.so.5", out / "ROCM_PATH")
    _marking_library(directory / "hip/lib/libamdhip64.so.5", out / "HIP_PATH")
    named = _marking_library(directory / "named.so", out / "MGPU_RT_HIP")
    python = directory / "python"
    python.write_text(f"#!/bin/sh\n: > {out}/MGPU_RT_PYTHON\n")
    python.chmod(0o755)
    return {
        "ROCM_PATH": str(directory / "rocm"),
        "HIP_PATH": str(directory / "hip"),
        "MGPU_RT_HIP": str(named),
        "MGPU_RT_PYTHON": str(python),
        "MGPU_RT_STATS": str(out / "MGPU_RT_STATS"),
        "MGPU_RT_TRACE": str(out / "MGPU_RT_TRACE"),
        "MGPU_RT_POLICY": str(out / "MGPU_RT_POLICY"),
    }


def _left_by(program: Path, out: Path, variables: dict[str, str]) -> set[str]:
    """The files that a run of a program by another user leaves."""
    env = {"PATH": os.environ["PATH"], **variables}
    result = subprocess.run(
        [program], env=env, user=NOBODY, group=NOBODY, capture_output=True, text=True, timeout=60
    )
    assert result.stdout == "done\n"
    left = {path.name for path in out.iterdir()}
    for name in left:
        (out / name).unlink()
    return left


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a set-uid program")
@in_child(policies=("python",))
def test_a_set_uid_program_takes_no_code_and_no_paths(_: Mgpu) -> None:
    with _open_directory() as directory:
        shutil.copy(library(), directory / RUNTIME)
        flags = (str(directory / RUNTIME), f"-Wl,-rpath,{directory}")
        plain = compile_c(directory / "plain", STREAM_PROGRAM, *flags)
        owned = Path(shutil.copy(plain, directory / "owned"))
        owned.chmod(0o4755)
        variables, out = _variables(directory), directory / "out"
        assert _left_by(owned, out, variables) == set()
        off = {"MGPU_RT_PYTHON": "off"}
        for name in ("MGPU_RT_HIP", "ROCM_PATH", "HIP_PATH"):
            alone = {name: variables[name], **off}
            assert _left_by(plain, out, alone) == {name}
            assert _left_by(owned, out, alone) == set()
        over_stub = variables | {"MGPU_RT_HIP": str(STUB)}
        assert _left_by(plain, out, over_stub) >= {
            "MGPU_RT_PYTHON",
            "MGPU_RT_STATS",
            "MGPU_RT_TRACE",
        }
        assert _left_by(owned, out, over_stub) == set()
