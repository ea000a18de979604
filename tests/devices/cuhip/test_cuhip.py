"""Tests which calls of NVIDIA's driver each function of HIP makes, and when the library opens the
driver."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.devices.cuhip.driver import LIBRARY, Driver, Out, exported, functions, same
from tests.devices.cuhip.mapping import (
    BLOCK,
    BY_RESULT,
    FUNCTION,
    GRID,
    MAPPING,
    MODULE,
    NEAREST,
    REFUSED,
    STREAM,
    TO,
)
from tests.support.child import BUILD, CUSTUB, ROOT
from tests.support.patience import run_process


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    made = Driver()
    assert made.hip.hipSetDevice(0) == 0
    assert made.hip.hipDeviceEnablePeerAccess(1, 0) == 0  # from now on both contexts are known
    yield made


@pytest.fixture(autouse=True)
def clean(request: pytest.FixtureRequest) -> None:
    """Selects device 0 and empties the record before each test."""
    if "driver" in request.fixturenames:
        driver = request.getfixturevalue("driver")
        driver.hip.hipSetDevice(0)
        driver.hip.hipDeviceSynchronize()
        driver.stub.take()


def _call(driver: Driver, function: str, arguments: tuple) -> tuple[int, dict]:
    """Calls the function. Returns the function's result, and the address of each text and each
    output argument."""
    places: dict[object, object] = {}
    for argument in arguments:
        if isinstance(argument, Out):
            places[argument.number] = driver.memory()
        elif isinstance(argument, bytes):
            places[argument] = driver.memory(argument + b"\0")
    given = [
        places[a.number] if isinstance(a, Out) else places[a] if isinstance(a, bytes) else a
        for a in arguments
    ]
    return driver.call(function, *given), {k: driver.address(v) for k, v in places.items()}


@pytest.mark.parametrize(("function", "arguments", "expected"), MAPPING)
def test_each_function_makes_its_driver_calls(
    driver: Driver, function: str, arguments: tuple, expected: list | int
) -> None:
    driver.stub.lib.custub_pointer(0)
    result, places = _call(driver, function, arguments)
    lines = [line for line in driver.stub.take() if not line.startswith(" ")]
    if isinstance(expected, int):
        assert (result, lines) == (expected, [])
        return
    assert result == 0
    assert len(lines) == len(expected), lines
    for line, call in zip(lines, expected, strict=True):
        symbol, *words = (call,) if isinstance(call, str) else call
        if isinstance(call, str):
            assert line.split()[0] == symbol
            continue
        values = [
            places[w.number] if isinstance(w, Out) else places[w] if isinstance(w, bytes) else w
            for w in words
        ]
        assert same(line, symbol, *values), (line, call)


def test_every_function_is_in_the_tests() -> None:
    tested = {function for function, _, _ in MAPPING} | set(BY_RESULT)
    assert tested == set(functions())
    elsewhere = {"hipGetLastError", "hipPeekAtLastError", "hipGetErrorName", "hipGetErrorString"}
    hip = {name for name in exported(LIBRARY) if name.startswith("hip")}
    assert hip == tested | elsewhere


def test_cuhip_has_every_function_that_the_runtime_calls() -> None:
    rows = (ROOT / "csrc" / "runtime" / "driver" / "hip.def").read_text()
    wanted = {f"hip{name}" for name in re.findall(r"^HIP_FN\(\w+, (\w+),", rows, re.MULTILINE)}
    stub = (ROOT / "tests" / "devices" / "hipstub" / "functions.def").read_text()
    wanted |= set(re.findall(r"^HIP_CALL\((\w+),", stub, re.MULTILINE))
    assert wanted <= set(exported(LIBRARY))


def test_symbol_versions_equal_those_of_amd() -> None:
    ours, amds = exported(LIBRARY), exported(softgpu.hip())
    absent = {"hipModuleLaunchCooperativeKernel", "hipStreamGetDevice"}  # missing in HIP 5.2.3
    for name, version in ours.items():
        if name.startswith("hip") and name not in absent:
            assert version == amds[name], name


@pytest.mark.parametrize(("function", "arguments", "expected"), REFUSED)
def test_wrong_arguments_are_refused_without_a_driver_call(
    driver: Driver, function: str, arguments: tuple, expected: int
) -> None:
    result, _ = _call(driver, function, arguments)
    assert result == expected
    assert [line for line in driver.stub.take() if not line.startswith("cuDeviceGet ")] == []


# ---- errors --------------------------------------------------------------------------------------


def _hip_errors() -> set[int]:
    table = (ROOT / "csrc" / "hip_errors.def").read_text()
    return {int(number) for number in re.findall(r"^HIP_ERROR\((\d+),", table, re.MULTILINE)}


def test_errors_become_those_of_hip(driver: Driver) -> None:
    """The library returns the driver's error number if HIP has this number; otherwise the library
    returns a fixed HIP error."""
    try:
        for error in sorted(_hip_errors() | set(NEAREST)):
            driver.stub.fail("cuStreamSynchronize", error)
            expected = NEAREST.get(error, error)
            assert driver.call("hipStreamSynchronize", STREAM) == expected, error
    finally:
        driver.stub.fail("cuStreamSynchronize", 0)


def test_an_error_that_hip_lacks_is_named_once(
    driver: Driver, capfd: pytest.CaptureFixture
) -> None:
    driver.stub.fail("cuStreamQuery", 810)
    for _ in range(2):
        assert driver.call("hipStreamQuery", STREAM) == 999
    driver.stub.fail("cuStreamQuery", 0)
    assert capfd.readouterr().err == (
        "cuhip: the driver answered CUDA_ERROR_OF_STUB (810); HIP's nearest is hipErrorUnknown\n"
    )


def test_each_thread_has_its_last_error(driver: Driver) -> None:
    """A thread's last error is the result of the thread's last call. hipGetLastError returns and
    clears the error."""
    assert driver.call("hipSetDevice", 7) == 101
    assert driver.hip.hipPeekAtLastError() == 101
    other: list[int] = []
    thread = threading.Thread(target=lambda: other.append(driver.hip.hipPeekAtLastError()))
    thread.start()
    thread.join()
    assert other == [0]
    assert [driver.hip.hipGetLastError() for _ in range(2)] == [101, 0]
    driver.call("hipSetDevice", 7)
    driver.call("hipStreamQuery", STREAM)
    assert driver.hip.hipGetLastError() == 0


# ---- contexts ------------------------------------------------------------------------------------


def _in_thread(work) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def test_the_context_is_made_current_once_a_thread(driver: Driver) -> None:
    def work() -> None:
        driver.call("hipStreamQuery", STREAM)
        names = [line.split()[0] for line in driver.stub.take()]
        assert names == ["cuCtxGetCurrent", "cuDeviceGet", "cuCtxSetCurrent", "cuStreamQuery"]
        driver.call("hipStreamQuery", STREAM)
        assert driver.stub.take() == [f"cuStreamQuery {STREAM:x}"]

    _in_thread(work)


def test_set_device_changes_the_context_at_the_next_call(driver: Driver) -> None:
    """After hipSetDevice has selected another device, the next call that needs a context switches
    to that device's context."""
    assert driver.call("hipSetDevice", 1) == 0
    assert driver.stub.take() == []
    driver.call("hipStreamQuery", STREAM)
    names = driver.stub.take()
    assert "cuCtxSetCurrent c1" in names
    driver.call("hipSetDevice", 1)
    driver.call("hipStreamQuery", STREAM)
    assert driver.stub.take() == [f"cuStreamQuery {STREAM:x}"]


@pytest.mark.parametrize("first", ("hipStreamQuery", "hipGetDevice"))
def test_a_context_of_another_library_is_adopted(driver: Driver, first: str) -> None:
    """The first call of the thread adopts the context, and its device becomes the thread's, until
    the thread selects another device."""
    device = driver.ffi.new("int *")

    def work() -> None:
        driver.stub.lib.cuCtxSetCurrent(0xC1)
        driver.stub.take()
        driver.call(first, STREAM if first == "hipStreamQuery" else device)
        assert not any(line.startswith("cuCtxSetCurrent") for line in driver.stub.take())
        for expected in (1, 0):
            driver.hip.hipGetDevice(device)
            assert device[0] == expected
            driver.hip.hipSetDevice(0)

    _in_thread(work)


# ---- modules and launches ------------------------------------------------------------------------


def _launch(driver: Driver, function: int = FUNCTION, block=BLOCK, grid=GRID, shared=0, extra=0):
    null = driver.ffi.NULL
    extra = extra or null
    return driver.call(
        "hipModuleLaunchKernel", function, *grid, *block, shared, STREAM, null, extra
    )


def _allowed(driver: Driver) -> list[str]:
    return [line for line in driver.stub.take() if line.startswith("cuFuncSetAttribute")]


def test_workgroup_memory_is_asked_for_once_a_function(driver: Driver) -> None:
    for shared in (65536, 65536, 1024):
        assert _launch(driver, shared=shared) == 0
    assert _allowed(driver) == ["cuFuncSetAttribute d10 8 10000"]
    assert _launch(driver, shared=100_000) == 0
    assert _launch(driver, 0xD20, shared=65536) == 0
    assert len(_allowed(driver)) == 2
    driver.call("hipModuleUnload", MODULE)  # the driver may reuse the module's handles
    assert _launch(driver, shared=65536) == 0
    assert len(_allowed(driver)) == 1


def test_a_failed_launch_has_its_reason(driver: Driver) -> None:
    driver.stub.fail("cuLaunchKernel", 1)
    try:
        assert _launch(driver, block=(1025, 1, 1)) == 9
        assert _launch(driver, grid=(0, 1, 1)) == 1
        assert _launch(driver) == 1
    finally:
        driver.stub.fail("cuLaunchKernel", 0)


def test_extra_arguments_are_translated(driver: Driver) -> None:
    def pointers(*values: int):
        return driver.ffi.new("void *[]", [driver.ffi.cast("void *", v) for v in values])

    good = pointers(1, 0x111, 2, 0x222, 3)
    assert _launch(driver, extra=good) == 0
    assert [line.split()[1] for line in driver.stub.take()[1:]] == ["1", "111", "2", "222", "0"]
    for wrong in (pointers(2, 0x222, 1, 0x111, 3), pointers(1, 0x111, 2, 0x222, 0)):
        assert _launch(driver, extra=wrong) == 1
    assert driver.stub.take() == []


# ---- properties, attributes and frees --------------------------------------------------------


def test_device_properties_are_translated(driver: Driver) -> None:
    properties = driver.ffi.new("hipDeviceProp_t *")
    assert driver.hip.hipGetDeviceProperties(properties, 1) == 0
    raw = driver.ffi.buffer(properties)[:]
    assert raw[:5] == b"stub\0"
    assert int.from_bytes(raw[256:264], "little") == 1 << 30
    assert int.from_bytes(raw[264:272], "little") == 1008  # workgroup memory: attribute 8
    assert int.from_bytes(raw[276:280], "little") == 1010  # the width of a wave: attribute 10
    assert driver.hip.hipGetDeviceProperties(properties, 9) == 101


@pytest.mark.parametrize(("kind", "memory_type", "managed"), [(1, 0, 0), (2, 1, 0), (3, 1, 1)])
def test_pointer_attributes_are_translated(
    driver: Driver, kind: int, memory_type: int, managed: int
) -> None:
    driver.stub.lib.custub_pointer(kind)
    found = driver.ffi.new("hipPointerAttribute_t *")
    assert driver.call("hipPointerGetAttributes", found, TO) == 0
    assert driver.call("hipPointerGetAttribute", driver.memory(bytes(8)), 7, TO) == 0
    assert (found.memory_type, found.is_managed, found.device) == (memory_type, managed, 1)
    assert driver.address(found.device_pointer) == TO


def test_a_pointer_that_the_driver_does_not_know_is_refused(driver: Driver) -> None:
    driver.stub.lib.custub_pointer(0)
    found = driver.ffi.new("hipPointerAttribute_t *")
    assert driver.call("hipPointerGetAttributes", found, TO) == 1
    assert driver.call("hipPointerGetAttribute", found, 7, TO) == 1


def test_each_free_takes_either_kind_of_memory(driver: Driver) -> None:
    driver.stub.lib.custub_pointer(1)
    driver.stub.fail("cuMemFree_v2", 1)
    assert driver.call("hipFree", TO) == 0
    assert driver.stub.take()[-1] == f"cuMemFreeHost {TO:x}"
    driver.stub.lib.custub_pointer(0)
    assert driver.call("hipFree", TO) == 1
    driver.stub.fail("cuMemFree_v2", 0)
    driver.stub.take()
    driver.stub.lib.custub_pointer(2)
    assert driver.call("hipHostFree", TO) == 0
    assert driver.stub.take()[-1] == f"cuMemFree_v2 {TO:x}"


# ---- finding the driver --------------------------------------------------------------------------

_LOOK = """
import ctypes, sys
hip = ctypes.CDLL(sys.argv[1])
def opened():
    return any("libcuda" in line for line in open("/proc/self/maps"))
hip.hipGetErrorName.restype = ctypes.c_char_p
print(opened(), hip.hipGetErrorName(35).decode(), opened())
print(hip.hipInit(0), hip.hipGetDeviceCount(ctypes.byref(ctypes.c_int())), hip.hipFree(1), opened())
"""


def _child(**env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _LOOK, str(LIBRARY)]
    return run_process(command, env, check=True)


def test_the_first_call_that_needs_the_driver_opens_it() -> None:
    done = _child(MGPU_RT_CUDA=str(CUSTUB))
    assert done.stdout.split() == ["False", "hipErrorInsufficientDriver", "False",
                                   "0", "0", "0", "True"]  # fmt: skip
    assert done.stderr == ""


_START_AT_ONCE = """
import ctypes, sys, threading
hip = ctypes.CDLL(sys.argv[1])
barrier, results = threading.Barrier(16), []
def start():
    barrier.wait()
    results.append(hip.hipFree(1))
threads = [threading.Thread(target=start) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results)
"""


def test_threads_may_start_the_driver_concurrently() -> None:
    command = [sys.executable, "-c", _START_AT_ONCE, str(LIBRARY)]
    env = {"MGPU_RT_CUDA": str(CUSTUB)}
    for _ in range(5):
        done = run_process(command, env)
        assert (done.stdout, done.stderr) == (f"{[0] * 16}\n", "")


#: Maps each path at which there is no driver to words that are printed about the path.
NO_DRIVER = {
    "/tmp": "MGPU_RT_CUDA=/tmp cannot be used: ",
    "/dev/null": "MGPU_RT_CUDA=/dev/null cannot be used: ",
    "/dev/zero": "MGPU_RT_CUDA=/dev/zero cannot be used: ",
    "/nowhere/libcuda.so.1": "MGPU_RT_CUDA=/nowhere/libcuda.so.1 cannot be used: ",
    str(BUILD / "hipstub" / "libamdhip64.so.5"): "has no cuInit: it is too old, or no libcuda",
    "fifo": "/fifo is a FIFO",  # the dynamic loader would wait for its writer
}


@pytest.mark.parametrize("path", NO_DRIVER, ids=lambda path: Path(path).name)
def test_a_path_without_a_driver_is_named(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    done = _child(MGPU_RT_CUDA=str(tmp_path / path))
    assert done.stdout.split()[3:] == ["35", "35", "35", "False"]
    assert NO_DRIVER[path] in done.stderr
    assert done.stderr.count("cuhip: ") == done.stderr.count("\n") <= 2


def test_a_missing_driver_is_reported() -> None:
    try:
        import ctypes

        ctypes.CDLL("libcuda.so.1")
    except OSError:
        done = _child()
        assert done.stdout.split()[3:] == ["35", "35", "35", "False"]
        assert done.stderr.startswith("cuhip: NVIDIA's driver was not found: ")
        assert "set MGPU_RT_CUDA" in done.stderr


def test_a_missing_device_is_reported() -> None:
    done = _child(MGPU_RT_CUDA=str(CUSTUB), CUSTUB_INIT="100")
    assert done.stdout.split()[3:6] == ["100", "100", "100"]
