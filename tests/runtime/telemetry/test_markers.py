"""MGPU_RT_TRACE=markers: ranges of rocTX, recorded by a stand-in for the rocTX library."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import mgpu_rt
from tests.python.functions import DEVICE
from tests.support import recordings
from tests.support.child import ROOT, environment
from tests.support.compiled import compile_c
from tests.support.patience import run_process

#: Writes a line when the library is loaded, and a line for each range.
ROCTX = r"""
#include <stdio.h>
#include <stdlib.h>
static void tell(const char *what, const char *text) {
    FILE *file = fopen(getenv("ROCTX_TOLD"), "a");
    fprintf(file, "%s%s\n", what, text);
    fclose(file);
}
__attribute__((constructor)) static void loaded(void) { tell("loaded", ""); }
int roctxRangePushA(const char *text) { tell("begin ", text); return 0; }
int roctxRangePop(void) { tell("end", ""); return 0; }
"""

#: Makes two launches, a third launch that fails, and other calls.
PROGRAM = """
import sys, numpy, mgpu_rt
functions = mgpu_rt.Library(sys.argv[1])
array = mgpu_rt.to_device(numpy.arange(8, dtype="f4"))
for _ in range(2):
    functions.scale(array, 2)
try:
    functions.scale(mgpu_rt.empty(0), 2)
except mgpu_rt.HipError:
    pass
"""
RANGES = ["begin scale", "end"] * 3
LACKING = "mgpu_rt: MGPU_RT_TRACE=markers: there is no libroctx64.so or librocprofiler-sdk-roctx.so"


@pytest.fixture(scope="module", params=("libroctx64.so.4", "librocprofiler-sdk-roctx.so.1"))
def roctx(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the stand-in; returns the folder that contains it."""
    folder = tmp_path_factory.mktemp("roctx")
    compile_c(folder / request.param, ROCTX, "-shared", "-fPIC")
    return folder


def run(folder: Path, **variables: str) -> tuple[list[str], str]:
    """Runs the program with the folder in LD_LIBRARY_PATH; returns the stand-in's lines, and
    stderr."""
    told = folder / "told"
    told.unlink(missing_ok=True)
    env = environment("softgpu", PYTHONPATH=str(ROOT), ROCTX_TOLD=str(told), **variables)
    env["LD_LIBRARY_PATH"] = f"{folder}:{env.get('LD_LIBRARY_PATH', '')}"
    result = run_process([sys.executable, "-c", PROGRAM, mgpu_rt.lower(DEVICE)], env, cwd=folder)
    assert result.returncode == 0, result.stderr
    return told.read_text().splitlines() if told.exists() else [], result.stderr


@pytest.mark.check
def test_ranges_and_a_trace_are_made_in_one_run(roctx: Path) -> None:
    """A range has the name of its kernel."""
    told, said = run(roctx, MGPU_RT_TRACE="markers,trace.json")
    assert told == ["loaded", *RANGES]
    assert "mgpu_rt: MGPU_RT_TRACE" not in said
    assert recordings.trace(roctx / "trace.json")["traceEvents"]


@pytest.mark.check
def test_nothing_is_loaded_without_markers(roctx: Path) -> None:
    for value in ("", "off", "trace.json"):
        told, _ = run(roctx, MGPU_RT_TRACE=value, MGPU_RT_STATS="stats.json")
        assert told == []


def test_a_missing_library_is_told_once(tmp_path: Path) -> None:
    told, said = run(tmp_path, MGPU_RT_TRACE="markers")
    assert told == [] and said.count(LACKING) == 1
