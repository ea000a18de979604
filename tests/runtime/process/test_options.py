"""Tests values of environment variables, and programs that ignore these variables."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mgpu_rt._cli import options
from tests.runtime.shared.test_known_limits import distinct
from tests.support.child import (
    PYTHON_IN_CHECK,
    STUB,
    Mgpu,
    environment,
    in_cases,
    in_child,
    library,
)
from tests.support.compiled import LIB, RUNTIME, compile_c
from tests.support.images import code_object
from tests.support.patience import HANG

PROBE = LIB / "mgpu-rt-probe"
MIB = 1 << 20


def _probe(directory: Path, **changes: str) -> str:
    """Runs the smallest program; returns its stderr."""
    result = subprocess.run(
        [PROBE],
        cwd=directory,
        env=environment(**{"LD_LIBRARY_PATH": str(library().parent), **changes}),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stderr


#: Maps a variable and its values to words that the library prints, and to the files that it
#: writes. One of the values may be empty.
TAKEN = {
    ("MGPU_RT_STATS", " 0 off"): ("", set()),
    ("MGPU_RT_STATS", "1 on"): ("mgpuStreamCreate", set()),
    ("MGPU_RT_STATS", "./0"): ("", {"0"}),
    ("MGPU_RT_TRACE", " 0 off"): ("", set()),
    ("MGPU_RT_TRACE", "./off"): ("", {"off"}),
    ("MGPU_RT_VERBOSE", " 0 off"): ("", set()),
    ("MGPU_RT_VERBOSE", "1 on"): ("mgpu_rt: HIP: ", set()),
    ("MGPU_RT_MEMORY_LIMIT", "0 0.25 0x10 1.5G 17179869184"): ("", set()),
    ("MGPU_RT_MODULE_LIMIT", "0 4096 1.5M"): ("", set()),
    ("MGPU_RT_CACHE", "on 1 off 0 memory"): ("", set()),
    ("MGPU_RT_CACHE", "modules,functions,streams,memory,registrations,staging"): ("", set()),
}


@pytest.mark.parametrize(("variable", "values"), TAKEN)
def test_values_that_are_taken(variable: str, values: str, tmp_path: Path) -> None:
    words, files = TAKEN[variable, values]
    for value in values.split(" "):
        said = _probe(tmp_path, **{variable: value})
        assert words in said and bool(said) == bool(words)
    assert {path.name for path in tmp_path.iterdir()} == files


def test_early_lines_need_no_certain_word() -> None:
    """A program that imports mgpu* functions opens HIP before its first call. The library prints
    lines about this HIP, too."""
    said = []
    for word in ("1", "on"):
        env = environment("softgpu", MGPU_RT_VERBOSE=word, MGPU_RT_TEST_SYMBOLS="own")
        said.append(subprocess.run([PROBE], env=env, capture_output=True, text=True).stderr)
    assert said[0].startswith("mgpu_rt: HIP's compiler ")
    assert said[0] == said[1]


# ---- values that the library refuses ----

#: Maps each variable to values that the library refuses, and to what it uses instead.
REFUSED = {
    "MGPU_RT_CACHE": ("strems modules,events modules, , on,off all", "on"),
    "MGPU_RT_DEVICE": ("first", "HIP's default device"),
    "MGPU_RT_EXCLUSIVE": ("yes", "auto"),
    "MGPU_RT_MANAGER": ("delay=soon", "no delay"),
    "MGPU_RT_MEMORY_LIMIT": ("1e300 1e18 99999999999G nan inf -1 1KK 3.5", "0.25"),
    "MGPU_RT_MODULE_LIMIT": ("1e300 1e18 99999999999G nan inf -1 1KK many 0.5 1.5", "256M"),
    "MGPU_RT_STREAM_LIMIT": ("-1 abc", "32"),
    "MGPU_RT_SYNC": ("sometimes", "strict"),
    "MGPU_RT_TRACE": ("1 on", ""),
    "MGPU_RT_VERBOSE": ("2", "on"),
}


@pytest.mark.parametrize("variable", REFUSED)
def test_a_refused_value_is_named_with_what_is_used_instead(variable: str, tmp_path: Path) -> None:
    values, used = REFUSED[variable]
    for value in values.split():
        said = _probe(tmp_path, **{"MGPU_RT_MANAGER": "off", variable: value}).splitlines()
        assert said[0].startswith(f"mgpu_rt: {variable}='{value.removeprefix('delay=')}' is n")
        assert said[0].endswith(f": {used} is used" if used else ": no trace is written")
        assert len(said) == 1 or variable == "MGPU_RT_VERBOSE"
    assert list(tmp_path.iterdir()) == []


# ---- what a limit means ----


def _frees(mgpu: Mgpu) -> int:
    """Frees a block of nearly all memory; returns how many blocks HIP has freed."""
    mgpu.MemFree(mgpu.MemAlloc(48 * MIB, mgpu.null, False), mgpu.null)
    return mgpu.count("hipFree")


@in_child(HIPSTUB_MEMORY=str(64 * MIB), MGPU_RT_MEMORY_LIMIT="1")
def test_a_limit_of_1_is_all_memory(mgpu: Mgpu) -> None:
    assert _frees(mgpu) == 0


@in_child(HIPSTUB_MEMORY=str(64 * MIB), MGPU_RT_MEMORY_LIMIT="2")
def test_a_limit_of_2_is_two_bytes(mgpu: Mgpu) -> None:
    assert _frees(mgpu) == 1


def test_the_options_tell_a_fraction_from_bytes() -> None:
    said = {option.variable: option.meaning for option in options.options()}
    assert "up to 1 a fraction" in said["MGPU_RT_MEMORY_LIMIT"]
    assert "from 2 on bytes" in said["MGPU_RT_MEMORY_LIMIT"]


@in_child(MGPU_RT_MODULE_LIMIT="0")
def test_modules_leave_when_another_image_is_loaded(mgpu: Mgpu) -> None:
    """A limit of 0 keeps the last module, so a program of one image still hits."""
    for image in [distinct(0), distinct(0), distinct(1)]:
        mgpu.ModuleUnload(mgpu.load(mgpu.image(image)))
    assert mgpu.count("hipModuleLoadData") == 2
    assert mgpu.count("hipModuleUnload") == 1
    said = {option.variable: option.meaning for option in options.options()}
    assert "when another image is loaded" in said["MGPU_RT_MODULE_LIMIT"]


# ---- which caches are on -------------------------------------------------------------------------

NAMES = ("modules", "functions", "streams", "memory", "registrations", "staging")
WITH_A_WORD = {"registrations"}  # tests/runtime/memory/test_registered.py has them
KERNEL = "test_func"
#: Maps each cache to a function of HIP. In three rounds the library calls the function once with
#: the cache, and three times without the cache.
SAVED = {
    "modules": "hipModuleLoadData",
    "functions": "hipModuleGetFunction",
    "streams": "hipStreamCreate",
    "memory": "hipMalloc",
}


def _three_rounds(mgpu: Mgpu) -> None:
    """Makes every call that a cache can answer, in three rounds; each round copies from and to
    pageable memory."""
    image, host = mgpu.image(code_object("forum")), mgpu.image(bytes(4096))
    for _ in range(3):
        stream, module = mgpu.StreamCreate(), mgpu.load(image)
        event, block = mgpu.EventCreate(), mgpu.MemAlloc(4096, stream, False)
        mgpu.launch(mgpu.function(module, KERNEL), stream)
        mgpu.EventRecord(event, stream)
        mgpu.StreamSynchronize(stream)
        mgpu.Memcpy(block, host, 4096, stream)
        mgpu.Memcpy(host, block, 4096, stream)
        mgpu.StreamSynchronize(stream)
        mgpu.MemFree(block, stream)
        mgpu.EventDestroy(event)
        mgpu.ModuleUnload(module)
        mgpu.StreamDestroy(stream)
    assert mgpu.stub.hipstub_misuse() == 0


def _once(mgpu: Mgpu) -> set[str]:
    """Returns the caches that avoided calls to HIP in the second and the third round."""
    calls = mgpu.counts(*SAVED.values())
    assert set(calls.values()) <= {1, 3}, calls
    on = {cache for cache, function in SAVED.items() if calls[function] == 1}
    return on | ({"staging"} if mgpu.count("hipHostMalloc") else set())


#: Maps values of MGPU_RT_CACHE to the caches that avoid calls. The function cache finds functions
#: by their module, and the library stages no copies if it does not cache streams.
ON = {
    "on": set(NAMES) - WITH_A_WORD,
    "modules,streams": {"modules", "streams"},
    "functions,memory": {"memory"},
    "modules,functions,streams,memory": set(NAMES) - WITH_A_WORD - {"staging"},
    "modules,memory,staging": {"modules", "memory"},
}


@in_cases({value: {"MGPU_RT_CACHE": value} for value in ON}, MGPU_RT_EXCLUSIVE="on")
def test_only_named_caches_are_on(mgpu: Mgpu, value: str) -> None:
    """A line says if a named cache has no effect."""
    _three_rounds(mgpu)
    assert _once(mgpu) == ON[value]
    idle = set() if value == "on" else {*value.split(",")} - ON[value]
    told = f"mgpu_rt: MGPU_RT_CACHE='{value}' names a cache that has no effect: "
    assert mgpu.stderr().startswith(told) if idle else mgpu.stderr() == ""


@in_child(policies=("builtin",), MGPU_RT_CACHE="modules")
def test_without_the_cache_of_functions_a_mistake_is_reported(mgpu: Mgpu) -> None:
    module = mgpu.load(mgpu.image(code_object("forum")))
    assert not mgpu.function(module, "other")
    assert "has no kernel 'other': `mgpu-rt inspect" in mgpu.stderr()
    mgpu.ModuleUnload(module)
    assert not mgpu.function(module, KERNEL)
    assert "after mgpuModuleUnload" in mgpu.stderr()


# ---- programs with rights that their caller lacks ------------------------------------------------

NOBODY = 65534


@contextmanager
def _open_directory() -> Iterator[Path]:
    """A folder that another user can read; pytest's own folders are closed to other users."""
    with tempfile.TemporaryDirectory(prefix="mgpu-rt-test-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / "out").mkdir()
        (directory / "out").chmod(0o777)  # any user may write there
        yield directory


def _marking_library(out: Path, mark: Path) -> Path:
    """A library that writes a file when it is opened."""
    out.parent.mkdir(parents=True, exist_ok=True)
    source = f"""
        #include <fcntl.h>
        __attribute__((constructor)) static void mark(void) {{
            (void)!open("{mark}", O_CREAT | O_WRONLY, 0666);
        }}"""
    return compile_c(out, source, "-shared", "-fPIC")


def _marking_python(path: Path, mark: Path) -> Path:
    """An interpreter that writes a file when it runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n: > {mark}\n")
    path.chmod(0o755)
    return path


def _variables(directory: Path) -> dict[str, str]:
    """Returns each variable that names code or files, with a value. A library that obeyed the
    variable would write a file."""
    out = directory / "out"
    _marking_library(directory / "rocm/lib/libamdhip64.so.5", out / "ROCM_PATH")
    python = _marking_python(directory / "python", out / "MGPU_RT_MANAGER")
    return {
        "ROCM_PATH": str(directory / "rocm"),
        "MGPU_RT_HIP": str(_marking_library(directory / "named.so", out / "MGPU_RT_HIP")),
        "MGPU_RT_MANAGER": f"{python},delay=0",
        "MGPU_RT_STATS": str(out / "MGPU_RT_STATS"),
        "MGPU_RT_TRACE": str(out / "MGPU_RT_TRACE"),
    }


#: Uses a stream; ends when the file that the first argument names exists, or after a while.
PATIENT_PROGRAM = """
#include "program.h"
int main(int argc, char **argv) {
    mgpuStreamDestroy(mgpuStreamCreate());
    for (int left = argc > 2 ? atoi(argv[2]) : 0; left > 0 && access(argv[1], F_OK) != 0; left--)
        usleep(10000);
    return 3;
}
"""


def _left_by(program: Path, out: Path, patience: float, awaited: str, **env: str) -> set[str]:
    """Runs the program as another user, until the file `awaited` exists or the patience ends.
    Returns the names of all files that the run has written."""
    env = {"PATH": os.environ["PATH"], "MGPU_RT_MANAGER": "delay=0", **env}
    command = [program, out / awaited, str(round(patience * 100))]
    result = subprocess.run(command, env=env, user=NOBODY, group=NOBODY, timeout=HANG)
    assert result.returncode == 3
    left = {path.name for path in out.iterdir()}
    for name in left:
        (out / name).unlink()
    return left


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a set-uid program")
@in_child(policies=PYTHON_IN_CHECK[:1])
def test_a_set_uid_program_takes_no_code_and_no_paths(_: Mgpu) -> None:
    with _open_directory() as directory:
        shutil.copy(library(), directory / RUNTIME)
        flags = (str(directory / RUNTIME), f"-Wl,-rpath,{directory}")
        plain = compile_c(directory / "plain", PATIENT_PROGRAM, *flags)
        owned = Path(shutil.copy(plain, directory / "owned"))
        owned.chmod(0o4755)
        variables, out = _variables(directory), directory / "out"
        assert _left_by(owned, out, 0.5, "MGPU_RT_MANAGER", **variables) == set()
        stub = {"MGPU_RT_HIP": str(STUB)}
        off = {"MGPU_RT_MANAGER": "off"}
        for name, value in variables.items():
            needs = off if name.endswith(("HIP", "PATH")) else stub
            alone = {**needs, name: value}
            patience = 0 if name in ("MGPU_RT_STATS", "MGPU_RT_TRACE") else HANG  # at exit
            assert name in _left_by(plain, out, patience, name, **alone), name
            assert _left_by(owned, out, 0.2, name, **alone) == set(), name
