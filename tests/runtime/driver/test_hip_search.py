"""Tests the search for HIP: its places, its order, and libraries that cannot be used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mgpu_rt import _hip_search
from tests.support.child import STUB, environment
from tests.support.compiled import RUNTIME, compile_c, stream_program
from tests.support.patience import run_process


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
    for name in ("MGPU_RT_HIP", "ROCM_PATH"):
        if name not in changes:
            clean.pop(name, None)
    return clean


def found(below: Path, **changes: str) -> list[tuple[str, str]]:
    """Returns the places and names of libraries below a folder."""
    return [
        (origin, os.path.relpath(path, below))
        for path, origin in _hip_search.find(bare(**changes)).items()
        if path.startswith(str(below))
    ]


def test_the_users_choice_comes_before_a_newer_release(tmp_path: Path) -> None:
    """The search knows HIP's names from version 5 on, and the name without a version. If a file has
    several names, the search lists the file once."""
    lay(tmp_path / "rocm" / "lib", "libamdhip64.so.6", "libamdhip64.so.6.4.3")
    (tmp_path / "rocm" / "lib" / "libamdhip64.so").symlink_to("libamdhip64.so.6")
    lay(tmp_path / "search", "libamdhip64.so.7")
    lay(tmp_path / "search", "libamdhip64.so.8")
    assert found(tmp_path, ROCM_PATH=f"{tmp_path}/rocm", LD_LIBRARY_PATH=f"{tmp_path}/search") == [
        ("ROCM_PATH", "rocm/lib/libamdhip64.so.6"),
        ("the loader's paths", "search/libamdhip64.so.8"),
        ("the loader's paths", "search/libamdhip64.so.7"),
    ]


def serves(program: Path, **changes: str) -> str:
    """Returns the path of the HIP library that serves a program."""
    paths = os.pathsep.join([str(Path(_hip_search.probe()).parent), changes.pop("search", "")])
    env = bare(LD_LIBRARY_PATH=paths.rstrip(os.pathsep), **changes)
    env = {**env, "MGPU_RT_VERBOSE": "1", "MGPU_RT_MANAGER": "off", "HIPSTUB_MODE": "record"}
    result = run_process([program], env)
    assert result.stdout == "done\n"
    assert "two HIP libraries" not in result.stderr
    path = re.search(r"HIP: (\S+), devices: 1;", result.stderr)
    assert path, result.stderr
    return path[1]


def test_the_command_finds_the_hip_that_serves(tmp_path: Path) -> None:
    """The package and the library search the same places in the same order."""
    program = stream_program(tmp_path, RUNTIME)
    lay(tmp_path / "old", "libamdhip64.so.5")
    lay(tmp_path / "search", "libamdhip64.so")
    lay(tmp_path / "rocm" / "lib", "libamdhip64.so.7")
    search = f"{tmp_path}/old:{tmp_path}/search"
    for changes in ({}, {"ROCM_PATH": f"{tmp_path}/rocm"}):
        listed = _hip_search.find(bare(LD_LIBRARY_PATH=search, **changes))
        assert serves(program, search=search, **changes) == next(iter(listed))


def test_rocms_folder_is_found(tmp_path: Path) -> None:
    """The library finds HIP in /opt/rocm. The test has its own mount namespace, in which this
    machine's HIP libraries are empty files."""
    lay(tmp_path / "opt" / "rocm" / "lib", "libamdhip64.so.7")
    program = stream_program(tmp_path, RUNTIME)
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    here = [os.path.realpath(path) for path in _hip_search.find(bare())]
    script = (
        'mount --bind "$1" /opt && program=$2 && shift 2 && '
        'for hip; do mount --bind /dev/null "$hip"; done && exec "$program"'
    )
    words = ["unshare", "--mount", *as_root, "sh", "-c", script, "sh", tmp_path / "opt", program]
    folder = str(Path(_hip_search.probe()).parent)
    env = bare(LD_LIBRARY_PATH=folder, MGPU_RT_VERBOSE="1", MGPU_RT_MANAGER="off")
    result = subprocess.run([*words, *here], env=env, capture_output=True, text=True)
    if "unshare" in result.stderr or "mount:" in result.stderr:
        pytest.skip(f"no mount namespace here: {result.stderr.strip()}")
    assert "HIP: /opt/rocm/lib/libamdhip64.so.7, " in result.stderr


def test_the_newest_that_works_serves(tmp_path: Path) -> None:
    """The search skips a library that cannot be opened, and closes and skips a library that lacks a
    function."""
    lib = tmp_path / "lib"
    good = lay(lib, "libamdhip64.so.6")
    (lib / "libamdhip64.so.8").write_text("no library")
    compile_c(lib / "libamdhip64.so.7", "int hipInit(int f) { return f; }", "-shared", "-fPIC")
    assert serves(stream_program(tmp_path, RUNTIME), ROCM_PATH=str(tmp_path)) == str(good)


def test_each_unusable_hip_is_named_with_its_fault(tmp_path: Path) -> None:
    program = stream_program(tmp_path, RUNTIME)
    hip = tmp_path / "libamdhip64.so.8"
    compile_c(hip, "int hipInit(int f) { return f; }", "-shared", "-fPIC")
    env = bare(LD_LIBRARY_PATH=str(Path(_hip_search.probe()).parent))
    env = {**env, "MGPU_RT_HIP": str(hip), "MGPU_RT_MANAGER": "off"}
    result = run_process([program], env)
    assert f"MGPU_RT_HIP names {hip}; {hip}: it has no function hip" in result.stderr


def test_two_hips_in_one_process_are_named(tmp_path: Path) -> None:
    """The process has loaded one HIP library, but MGPU_RT_HIP names a different library."""
    program = stream_program(tmp_path, RUNTIME)
    mine = lay(tmp_path, "libamdhip64.so.6")
    env = bare(LD_LIBRARY_PATH=str(Path(_hip_search.probe()).parent), LD_PRELOAD=str(mine))
    env = {**env, "MGPU_RT_MANAGER": "off", "HIPSTUB_MODE": "record"}
    result = run_process([program], env)
    assert (result.stdout, result.stderr) == ("done\n", "")
    env["MGPU_RT_HIP"] = str(STUB)
    result = run_process([program], env)
    assert f"two HIP libraries: the program uses {mine}, " in result.stderr
    assert f" and mgpu_rt uses {STUB}. " in result.stderr


#: A library that opens HIP in a namespace of its own and shares the handle, as rocMLIR's does.
SHARING = """
#include "program.h"
static int is_ready;
__attribute__((constructor)) static void begin(void) { is_ready = 1; }
void *mlirRocmSystemDetectGetHipHandle(void) {
    static void *handle;
    const char *path = getenv("SHARED");
    if (!is_ready)
        abort();
    if (!handle && path)
        handle = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    return handle;
}
"""


@pytest.mark.parametrize("shared", ["a HIP", "nothing", "a library without HIP's functions"])
def test_a_hip_that_another_library_shares_serves_first(tmp_path: Path, shared: str) -> None:
    """Such a HIP is in another namespace, where a walk through the mapped libraries does not see
    it. Two HIPs do not know each other's objects."""
    sharing = compile_c(tmp_path / "sharing.so", SHARING, "-shared", "-fPIC", "-ldl")
    hip = lay(tmp_path / "shared", "libamdhip64.so.6")
    empty = compile_c(tmp_path / "empty.so", "int hipInit(int f) { return f; }", "-shared", "-fPIC")
    other = lay(tmp_path / "lib", "libamdhip64.so.8")
    paths = {"a HIP": str(hip), "nothing": "", "a library without HIP's functions": str(empty)}
    changes = {"SHARED": paths[shared]} if paths[shared] else {}
    program = stream_program(tmp_path, RUNTIME)
    found = serves(program, ROCM_PATH=str(tmp_path), LD_PRELOAD=str(sharing), **changes)
    assert found == str(hip if shared == "a HIP" else other)
