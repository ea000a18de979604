"""Checks that the emulated device's compiler library caches results, and returns a cached result
only for an equal request.

A new or changed file in the cache shows that AMD's compiler has run.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.support.patience import HANG

from .conftest import Run

NAME = "libamd_comgr.so.2"
BINARY, LOG = 6, 5
HEADER = struct.Struct("<4Q")  # of softgpu/src/comgr/store.c
WORD = struct.Struct("<Q")
REQUEST = {
    "source": "kernel void fill(global int *p) { p[0] = VALUE; }",
    "options": ["-O3", "-DVALUE=7"],
    "action": 2,  # source to LLVM's binary
    "isa": "amdgcn-amd-amdhsa--gfx90a",
    "logging": True,
    "times": 1,
}
OFF = {"MGPU_RT_SOFTGPU": "gfx90a,compiler_cache=off"}

#: HIP 5.2.3 and 5.7.1 need libamd_comgr.so.2, so the tests always run for these two releases.
pytestmark = pytest.mark.skipif(
    not (softgpu.hip({}).parent / NAME).exists(),
    reason="this HIP uses another version of libamd_comgr",
)


def environment(cache: Path, **changes: str) -> dict[str, str]:
    base = {k: v for k, v in os.environ.items() if not k.startswith(("AMD_COMGR_", "MGPU_RT_"))}
    return {**softgpu.environment(base), "XDG_CACHE_HOME": str(cache), **changes}


def start(env: Mapping[str, str], **changes: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "softgpu.tests.device.compile"]
    asked = json.dumps({**REQUEST, **changes})
    return subprocess.Popen([*command, asked], env=env, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> list:
    out, _ = process.communicate(timeout=HANG)
    assert process.returncode == 0
    return json.loads(out)


def compiled(cache: Path, variables: Mapping[str, str] | None = None, **changes: object) -> list:
    """Returns a compilation's status and objects."""
    return answer(start(environment(cache, **(variables or {})), **changes))[0]


def shape(answered: list) -> list:
    """Returns the parts of a result that are equal in all compilations of a request. For a binary,
    the parts contain only the length, because the bytes include the name of a random folder."""
    status, objects = answered
    return [status, [(kind, name, len(content)) for kind, name, content in objects]]


def files(cache: Path) -> dict[Path, int]:
    """Returns the cached files with their inode numbers; a file that was written again has a new
    inode number."""
    return {path: path.stat().st_ino for path in cache.glob("mgpu_rt/softgpu/*")}


def checksum(total: int, data: bytes) -> int:
    for at in range(0, len(data), 8):
        total ^= int.from_bytes(data[at : at + 8], "little")
        total = total * 0x9E3779B97F4A7C15 % 2**64
        total ^= total >> 32
    return total ^ len(data)


def forge(path: Path, old: bytes, new: bytes) -> None:
    """Changes a cached result and its checksum, so that a process that uses the cache gets a result
    different from AMD's."""
    whole = path.read_bytes()
    magic, request, result, _ = HEADER.unpack_from(whole)
    asked, given = whole[HEADER.size : HEADER.size + request], whole[-result:]
    assert given.count(old) >= 1 and len(old) == len(new)
    given = given.replace(old, new)
    total = checksum(checksum(magic, asked), given)
    path.write_bytes(HEADER.pack(magic, request, result, total) + asked + given)


@pytest.mark.check
def test_a_kept_result_equals_that_of_amd(tmp_path: Path) -> None:
    """Checks that a cached result has AMD's objects, kinds, names and order, including an empty
    log."""
    amd = compiled(tmp_path, OFF)
    assert amd[0] == 0
    assert [kind for kind, *_ in amd[1]] == [LOG, BINARY]
    assert files(tmp_path) == {}
    first = compiled(tmp_path)
    assert shape(first) == shape(amd)
    kept = files(tmp_path)
    assert len(kept) == 1
    assert compiled(tmp_path) == first
    assert files(tmp_path) == kept
    forge(*kept, b"fill", b"FILL")
    assert b"FILL".hex() in compiled(tmp_path)[1][1][2]
    assert b"FILL".hex() not in compiled(tmp_path, OFF)[1][1][2]


@pytest.mark.check
@pytest.mark.parametrize(
    "changes",
    [
        {"source": REQUEST["source"].replace("p[0]", "p[1]")},
        {"options": ["-O3", "-DVALUE=8"]},
        {"options": ["-O3", "-DVALUE=7", "-O0"]},
        {"isa": "amdgcn-amd-amdhsa--gfx906"},
        {"logging": False},
    ],
    ids=["source", "option", "options", "isa", "logging"],
)
def test_another_request_misses(changes: dict, tmp_path: Path) -> None:
    first = compiled(tmp_path)
    other = compiled(tmp_path, **changes)
    assert len(files(tmp_path)) == 2
    assert shape(other) == shape(compiled(tmp_path, OFF, **changes))
    assert compiled(tmp_path, **changes) == other != first == compiled(tmp_path)
    assert len(files(tmp_path)) == 2


@pytest.mark.check
def test_another_library_misses(tmp_path: Path) -> None:
    """Checks that the cache has no result for the same library at a different path. The cache
    identifies a library by path, size and time."""
    here = tmp_path / "other" / NAME
    here.parent.mkdir()
    here.symlink_to(softgpu.hip({}).parent / NAME)
    search = f"{softgpu.driver().parent}:{here.parent}"
    first, other = compiled(tmp_path), compiled(tmp_path, {"LD_LIBRARY_PATH": search})
    assert first != other
    assert shape(first) == shape(other)
    assert len(files(tmp_path)) == 2


@pytest.mark.check
@pytest.mark.parametrize(
    "changes",
    [
        {"source": '#include "file.h"\n' + REQUEST["source"]},
        {"source": REQUEST["source"] + "constant char when[] = __TIME__;"},
        {"options": ["-O3", "-DVALUE=7", "-I/tmp"]},
        {"folder": "/tmp"},
        {"source": "no OpenCL"},
    ],
    ids=["include", "time", "option", "folder", "error"],
)
def test_a_result_with_other_inputs_is_not_kept(changes: dict, tmp_path: Path) -> None:
    """Checks that the cache stores no result that depends on inputs outside the request, and no
    failed compilation."""
    status, objects = compiled(tmp_path, **changes)
    assert files(tmp_path) == {}
    assert status == compiled(tmp_path, OFF, **changes)[0]
    assert [kind for kind, *_ in objects][:1] == [LOG]


@pytest.mark.check
def test_settings_of_amd_are_obeyed(tmp_path: Path) -> None:
    compiled(tmp_path, {"AMD_COMGR_EMIT_VERBOSE_LOGS": "1"})
    assert files(tmp_path) == {}


@pytest.mark.check
def test_a_damaged_file_is_compiled_anew(tmp_path: Path) -> None:
    expected = shape(compiled(tmp_path))
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    flipped = [0, 9, 30, 40, len(whole) - 1]
    damaged = [whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :] for at in flipped]
    damaged += [b"", whole[:20], whole[:-1], whole + b"\0"]
    for text in damaged:
        path.unlink()
        path.write_bytes(text)
        kept = files(tmp_path)
        anew, again = answer(start(environment(tmp_path), times=2))
        assert shape(anew) == expected
        assert path.read_bytes() != text
        assert files(tmp_path).keys() == kept.keys()
        assert again == anew


@pytest.mark.check
def test_a_file_of_another_request_is_not_taken(tmp_path: Path) -> None:
    """Stores the result of a first request under the name of a second request, with the checksum
    that fits the second request. Only the first request's bytes in the file reveal the mistake."""
    first = compiled(tmp_path)
    (path,) = files(tmp_path)
    options = ["-O3", "-DVALUE=8"]
    compiled(tmp_path, options=options)
    (new,) = set(files(tmp_path)) - {path}
    magic, request, result, _ = HEADER.unpack_from(whole := path.read_bytes())
    asked = new.read_bytes()[HEADER.size : HEADER.size + request]
    total = checksum(checksum(magic, asked), whole[-result:])
    new.write_bytes(HEADER.pack(magic, request, result, total) + whole[HEADER.size :])
    other = compiled(tmp_path, options=options)
    assert other != first
    assert new.read_bytes() != path.read_bytes()
    assert compiled(tmp_path, options=options) == other


@pytest.mark.check
def test_an_unwritable_folder_changes_no_result(tmp_path: Path) -> None:
    expected = shape(compiled(tmp_path, OFF))
    (tmp_path / "file").touch()
    for cache in (tmp_path / "file", Path("/proc/nowhere"), Path("relative")):
        assert shape(compiled(cache)) == expected
    assert not Path("relative").exists()


@pytest.mark.check
def test_concurrent_processes_share_one_cache(tmp_path: Path) -> None:
    """Runs concurrent processes, each of which compiles several times."""
    running = [start(environment(tmp_path), times=3) for _ in range(3)]
    answers = [each for process in running for each in answer(process)]
    assert all(shape(each) == shape(answers[0]) for each in answers)
    assert compiled(tmp_path) in answers
    (path,) = files(tmp_path)
    assert re.fullmatch("[0-9a-f]{16}", path.name)


@pytest.mark.check
def test_hip_starts_from_kept_results(run: Run, tmp_path: Path) -> None:
    """Checks that each of HIP's four compilation steps has a cached file."""
    variables = {"XDG_CACHE_HOME": str(tmp_path)}
    assert run("launch", "params", variables=variables).returncode == 0
    kept = files(tmp_path)
    assert len(kept) == 4
    assert run("memory", "memsets", variables=variables).returncode == 0
    assert files(tmp_path) == kept
    assert run("launch", "params", chip="gfx906", variables=variables).returncode == 0
    assert len(files(tmp_path)) > len(kept)
