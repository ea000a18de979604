"""Tests the behaviour of later releases of HIP: `make test` runs the newest release, and `make
check-rocm` runs all releases."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mgpu_rt import _hip_search
from mgpu_rt._cli import softgpu
from softgpu.tests.device.conftest import KERNELS, PROGRAMS
from tests.devices.rocm.surroundings import Popen, Surroundings
from tests.support import lower
from tests.support.compiled import compile_c
from tests.support.patience import HANG
from tests.support.printing import print_library
from tests.support.sources import SOURCES

pytestmark = pytest.mark.check  # a newer release of HIP, which is downloaded

LIBRARY = softgpu.BUILD / "lib" / "libmlir_rocm_runtime.so"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(here: Surroundings, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a command on the release under test."""
    Popen.here = here

    def start(
        command: list[object], variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        env = here.environment({"MGPU_RT_SOFTGPU": here.release.chips[0], **(variables or {})})
        words = [str(word) for word in command]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with Popen(words, env=env, text=True, **pipes) as process:
            out, err = process.communicate(timeout=HANG)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    return start


@pytest.fixture(scope="module")
def device(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs one case of a program in softgpu/tests/device."""
    folder = tmp_path_factory.mktemp("rocm")
    image = folder / "kernels.co"
    image.write_bytes(lower.code_object(KERNELS, "gfx90a"))

    def start(program: str, case: str) -> subprocess.CompletedProcess[str]:
        compiled = folder / program
        if not compiled.exists():
            flags = ["-O1", "-std=c11", "-D_GNU_SOURCE"]
            source = PROGRAMS / f"{program}.c"
            subprocess.run(["cc", *flags, "-o", compiled, source, "-ldl"], check=True, timeout=HANG)
        return run([compiled, case, image])

    return start


def lowered(program: str, folder: Path, iterations: int | None = None) -> Path:
    """Returns a program, linked with the same library as for HIP 5.2.3."""
    compiled = lower.lower(SOURCES[program], llvm=22, iterations=iterations)
    out = folder / program
    libraries = [LIBRARY, print_library()]
    rpath = [library.parent for library in libraries]
    return lower.link([compiled], libraries=libraries, rpath=rpath, out=out)


def test_the_stand_in_for_the_driver_is_recognised(here: Surroundings) -> None:
    """mgpu_rt must recognise the library through which an installed HIP calls the driver. Otherwise
    this HIP cannot use the emulated device."""
    assert _hip_search.seams(str(here.hip)) == [here.release.seam]
    assert softgpu.serves(str(here.hip))


@pytest.mark.parametrize(("program", "case"), (("launch", "stores"), ("launch", "cooperative")))
def test_the_release_runs(device: Run, program: str, case: str) -> None:
    done = device(program, case)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_copy_of_a_gibibyte_is_right(request: pytest.FixtureRequest, device: Run) -> None:
    if not request.config.getoption("--rocm", None):
        pytest.skip("takes ten seconds: make check-rocm")
    done = device("memory", "huge_copies")
    assert done.returncode == 0, done.stdout + done.stderr


def test_programs_print_what_they_should(run: Run, tmp_path: Path) -> None:
    done = run([lowered("vecadd", tmp_path)])
    assert done.stdout == " ".join(["3.75"] * 1000) + "\n", done.stderr
    assert done.stderr == ""


def test_a_program_that_is_linked_with_hip_starts_without_a_warning(
    here: Surroundings, run: Run, tmp_path: Path
) -> None:
    """At the start of a program the loader compares the versions of symbols: HIP 5.7.1 names the
    versions of libamd_comgr that it needs."""
    source = (
        "int hipRuntimeGetVersion(int *version);"
        "int main(void) { int version; return hipRuntimeGetVersion(&version); }"
    )
    flags = [str(here.hip), "-Wl,--allow-shlib-undefined"]
    done = run([compile_c(tmp_path / "linked", source, *flags)])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


#: A program records an event on its own stream, then destroys the stream. The program then
#: overwrites the stream's memory, and destroys the event. A query of the event would read the
#: overwritten memory.
STREAM_IS_GONE = """
#include "program.h"
int main(void) {
    void *stream;
    HIP(hipStreamCreate, void **)(&stream);
    void *event = mgpuEventCreate();
    mgpuEventRecord(event, stream);
    HIP(hipStreamSynchronize, void *)(stream);
    HIP(hipStreamDestroy, void *)(stream);
    const size_t size = malloc_usable_size(stream);
    for (int i = 0; i < 4000; i++) {
        int *block = malloc(size);
        for (size_t k = 0; k < size / sizeof *block; k++)
            block[k] = 1; /* to HIP, a stream that captures */
    }
    mgpuEventDestroy(event);
    mgpuEventDestroy(mgpuEventCreate());
    puts("done");
    fflush(stdout);
    _Exit(0);
}
"""


def test_an_event_outlives_the_stream_that_it_was_recorded_on(run: Run, tmp_path: Path) -> None:
    """HIP 7.2.4's hipEventQuery reads a destroyed stream, and terminates the process with
    std::bad_variant_access."""
    flags = [str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}", "-ldl"]
    done = run([compile_c(tmp_path / "program", STREAM_IS_GONE, *flags)])
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_fault_ends_as_in_the_release(here: Surroundings, device: Run) -> None:
    """After a fault, HIP up to release 6 aborts the process. HIP 7 returns the error from all later
    calls, and the process continues."""
    done = device("process", "outlive_fault")
    assert "softgpu: kernel store" in done.stderr
    if here.release.returns_faults:
        assert done.returncode == 0
        assert done.stdout.endswith("went on after hipErrorIllegalAddress\nstill there\n")
    else:
        assert done.returncode == -signal.SIGABRT
        assert "went on" not in done.stdout
