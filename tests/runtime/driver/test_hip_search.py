"""Tests the search for HIP: the file must exist, and the newest version comes first."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mgpu_rt import _hip_search
from tests.support.child import STUB, environment
from tests.support.compiled import RUNTIME, compile_c, stream_program
from tests.support.patience import HANG


def lay(folder: Path, name: str, real: str = "") -> Path:
    """Puts a HIP library into a folder. If `real` is given, the name is a link to the file
    `real`."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(STUB, folder / (real or name))
    if real:
        (folder / name).symlink_to(real)
    return folder / name


def bare(**changes: str) -> dict[str, str]:
    """Returns an environment that names no HIP."""
    clean = environment(**changes)
    for name in ("MGPU_RT_HIP", "ROCM_PATH", "HIP_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"):
        if name not in changes:
            clean.pop(name, None)
    return clean


def found(below: Path, **changes: str) -> list[tuple[str, str]]:
    """Returns the places and names of libraries below a folder."""
    return [
        (hip.origin, os.path.relpath(hip.path, below))
        for hip in _hip_search.find(bare(**changes))
        if hip.path.startswith(str(below))
    ]


def test_any_version_number_is_found(tmp_path: Path) -> None:
    """The folders contain only names with a version, as in ROCm's wheels. A version may be unknown,
    and one folder is lib64."""
    lay(tmp_path / "lib", "libamdhip64.so.8")
    lay(tmp_path / "lib", "libamdhip64.so.11")
    lay(tmp_path / "lib64", "libamdhip64.so.9")
    names = [name for _, name in found(tmp_path, ROCM_PATH=str(tmp_path))]
    assert names == ["lib/libamdhip64.so.11", "lib64/libamdhip64.so.9", "lib/libamdhip64.so.8"]


def test_the_names_behind_links_decide(tmp_path: Path) -> None:
    """If a file has several names, the search lists the file once."""
    lay(tmp_path / "a" / "lib", "libamdhip64.so.7", "libamdhip64.so.7.2.70204")
    lay(tmp_path / "b" / "lib", "libamdhip64.so.7", "libamdhip64.so.7.10.1")
    search = f"{tmp_path}/a/lib:{tmp_path}/b/lib"
    names = [name for _, name in found(tmp_path, LD_LIBRARY_PATH=search)]
    assert [Path(tmp_path, name).resolve().name for name in names] == [
        "libamdhip64.so.7.10.1",
        "libamdhip64.so.7.2.70204",
    ]


def test_the_users_choice_comes_before_a_newer_release(tmp_path: Path) -> None:
    for number, folder in enumerate(("rocm", "hip", "search", "conda"), 5):
        lay(tmp_path / folder / "lib", f"libamdhip64.so.{number}")
    packages = tmp_path / "venv" / "lib" / "python3.13" / "site-packages"
    lay(packages / "_rocm_sdk_core" / "lib", "libamdhip64.so.20")
    assert found(
        tmp_path,
        ROCM_PATH=f"{tmp_path}/rocm",
        HIP_PATH=f"{tmp_path}/hip",
        LD_LIBRARY_PATH=f"{tmp_path}/search/lib",
        CONDA_PREFIX=f"{tmp_path}/conda",
        VIRTUAL_ENV=f"{tmp_path}/venv",
    ) == [
        ("ROCM_PATH", "rocm/lib/libamdhip64.so.5"),
        ("HIP_PATH", "hip/lib/libamdhip64.so.6"),
        ("LD_LIBRARY_PATH", "search/lib/libamdhip64.so.7"),
        (
            "ROCm's Python packages",
            "venv/lib/python3.13/site-packages/_rocm_sdk_core/lib/libamdhip64.so.20",
        ),
        ("CONDA_PREFIX", "conda/lib/libamdhip64.so.8"),
    ]


def test_releases_in_opt_are_found(tmp_path: Path) -> None:
    """The search finds releases in /opt/rocm-*, and in ROCm 10's /opt/rocm/core-*. The test has its
    own mount namespace."""
    opt = tmp_path / "opt"
    lay(opt / "rocm-6.4.3" / "lib", "libamdhip64.so.6")
    lay(opt / "rocm" / "core-10.0.0" / "lib", "libamdhip64.so.8")
    lay(opt / "rocm" / "core-10.0.0" / "lib", "libamdhip64.so.7")
    lay(opt / "rocm" / "lib", "libamdhip64.so.7")
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    script = 'mount --bind "$1" /opt && exec "$2" --hip'
    command = ["unshare", "--mount", *as_root, "sh", "-c", script, "sh", opt, _hip_search.probe()]
    result = subprocess.run(command, env=bare(), capture_output=True, text=True)
    if "unshare" in result.stderr or "mount" in result.stderr:
        pytest.skip(f"no mount namespace here: {result.stderr.strip()}")
    lines = [line.split("\t") for line in result.stdout.splitlines() if "\t/opt" in line]
    assert lines == [
        ["/opt/rocm/core-*", "/opt/rocm/core-10.0.0/lib/libamdhip64.so.8"],
        ["/opt/rocm/core-*", "/opt/rocm/core-10.0.0/lib/libamdhip64.so.7"],
        ["/opt/rocm", "/opt/rocm/lib/libamdhip64.so.7"],
        ["/opt/rocm-*", "/opt/rocm-6.4.3/lib/libamdhip64.so.6"],
    ]


def test_the_newest_that_works_serves(tmp_path: Path) -> None:
    """The search skips a library that cannot be opened, and closes and skips a library that lacks a
    function."""
    program = stream_program(tmp_path, RUNTIME)
    lib = tmp_path / "lib"
    good = lay(lib, "libamdhip64.so.6")
    (lib / "libamdhip64.so.9").write_text("no library")
    compile_c(lib / "libamdhip64.so.8", "int hipInit(int f) { return f; }", "-shared", "-fPIC")
    env = bare(ROCM_PATH=str(tmp_path), LD_LIBRARY_PATH=str(Path(_hip_search.probe()).parent))
    env = {**env, "MGPU_RT_VERBOSE": "1", "MGPU_RT_MANAGER": "off", "HIPSTUB_MODE": "record"}
    result = subprocess.run([program], env=env, capture_output=True, text=True, timeout=HANG)
    assert result.stdout == "done\n"
    assert f"mgpu_rt: HIP: {good}, devices: 1;" in result.stderr
    assert "two HIP libraries" not in result.stderr


def test_each_unusable_hip_is_named_with_its_fault(tmp_path: Path) -> None:
    program = stream_program(tmp_path, RUNTIME)
    hip = tmp_path / "libamdhip64.so.8"
    compile_c(hip, "int hipInit(int f) { return f; }", "-shared", "-fPIC")
    env = bare(LD_LIBRARY_PATH=str(Path(_hip_search.probe()).parent))
    env = {**env, "MGPU_RT_HIP": str(hip), "MGPU_RT_MANAGER": "off"}
    result = subprocess.run([program], env=env, capture_output=True, text=True, timeout=HANG)
    assert f"MGPU_RT_HIP names {hip} (it has no function hip" in result.stderr


def test_two_hips_in_one_process_are_named(tmp_path: Path) -> None:
    """The process has loaded one HIP library, but MGPU_RT_HIP names a different library."""
    program = stream_program(tmp_path, RUNTIME)
    mine = lay(tmp_path, "libamdhip64.so.6")
    env = bare(LD_LIBRARY_PATH=str(Path(_hip_search.probe()).parent), LD_PRELOAD=str(mine))
    env = {**env, "MGPU_RT_MANAGER": "off", "HIPSTUB_MODE": "record"}
    result = subprocess.run([program], env=env, capture_output=True, text=True, timeout=HANG)
    assert (result.stdout, result.stderr) == ("done\n", "")
    env["MGPU_RT_HIP"] = str(STUB)
    result = subprocess.run([program], env=env, capture_output=True, text=True, timeout=HANG)
    assert f"two HIP libraries: the program uses {mine}, " in result.stderr
    assert f" and mgpu_rt uses {STUB}. " in result.stderr
