"""Counts of kernels, images and failed calls; each process has its own counts."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest

from tests.support import lower, recordings
from tests.support.child import Mgpu, in_cases, in_child
from tests.support.folders import in_folder
from tests.support.images import code_object

COUNTED = {"MGPU_RT_STATS": "/dev/null"}
FORUM, GLOBALS, INCREMENT = "test_func", "count", "increment"


def run_kernel(mgpu: Mgpu, image, name: str) -> None:
    """Loads a module, looks up its kernel and launches the kernel, like code that LLVM 19
    lowered."""
    module = mgpu.load(image)
    mgpu.launch(mgpu.function(module, name))
    mgpu.ModuleUnload(module)


def launches(mgpu: Mgpu) -> dict[str, int]:
    return {name: row["launches"] for name, row in mgpu.stats()["kernels"].items()}


@in_cases(
    {"on": {}, "off": {"MGPU_RT_CACHE": "off"}},
    **COUNTED,
    HIPSTUB_DELAY="hipInit:300000,hipStreamCreate:100000",
)
def test_no_call_includes_hips_start(mgpu: Mgpu, _: str) -> None:
    """HIP takes 300 ms to start, and 100 ms to start the device with the first stream. The seconds
    of the process contain all of that."""
    mgpu.StreamDestroy(mgpu.StreamCreate())
    stats = mgpu.stats()
    assert stats["start"]["ns"] >= 400_000_000
    assert stats["process"]["seconds"] * 1e9 >= stats["start"]["ns"]
    assert sum(row["ns"] for row in stats["abi"].values()) < stats["start"]["ns"]
    assert stats["device"] == {"name": "stub of HIP", "hip": "5.2.21153"}
    assert stats["process"]["date"] > 1_700_000_000
    assert mgpu.count("hipInit") == mgpu.count("hipStreamCreate") == 1


@in_child(policies=("builtin",), MGPU_RT_TRACE="t.json", HIPSTUB_DELAY="hipStreamCreate:100000")
@in_folder
def test_no_call_includes_the_wait_for_the_start_on_another_thread(mgpu: Mgpu) -> None:
    """Two threads create a stream at once. Both calls begin when the device has started."""
    at_once = threading.Barrier(2)

    def create() -> None:
        at_once.wait()
        mgpu.StreamCreate()

    mgpu.SetDefaultDevice(0)
    threads = [threading.Thread(target=create) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = [e for e in recordings.trace("t.json")["traceEvents"] if e["ph"] == "X"]
    start = [e for e in events if e["cat"] == "start"][-1]
    made = [e for e in events if e["name"] in ("mgpuStreamCreate", "hipStreamCreate")]
    assert len(made) == 4
    assert all(event["ts"] >= start["ts"] + 9e4 for event in made)


@in_child(
    policies=("builtin",), **COUNTED, HIPSTUB_FAULT="hipMemcpyAsync:*:719,hipMemsetD32Async:*:719"
)
def test_a_copy_that_failed_is_no_copy(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(100, stream, False)
    mgpu.Memcpy(block, mgpu.image(b"x" * 100), 100, stream)
    mgpu.Memset32(block, 7, 25, stream)
    assert sum(failed(mgpu).values()) == 2
    assert all(row == {"calls": 0, "bytes": 0} for row in mgpu.stats()["copies"].values())


@in_cases({"auto": {}, "on": {"MGPU_RT_EXCLUSIVE": "on"}}, **COUNTED)
def test_statistics_tell_whether_the_library_is_the_only_user(mgpu: Mgpu, case: str) -> None:
    mgpu.StreamCreate()
    assert mgpu.stats()["exclusive"] is (case == "on")


@in_child(policies=("builtin",), **COUNTED, HIPSTUB_DEVICES="2")
def test_only_the_first_chosen_device_is_started(mgpu: Mgpu) -> None:
    """A context of an unused device would take device memory for nothing."""
    mgpu.SetDefaultDevice(1)
    assert mgpu.count("hipFree") == 0
    assert mgpu.stats()["device"]["name"] is None
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert mgpu.stats()["device"]["name"] == "stub of HIP"


@in_cases({"on": {}, "off": {"MGPU_RT_CACHE": "off"}}, **COUNTED)
def test_launches_and_loads_are_counted(mgpu: Mgpu, cache: str) -> None:
    """Counts are equal with and without the cache, so two runs can be compared. The last two
    launches are of a hipFunction_t that HIP itself returned, and of the host symbol of a kernel."""
    programs = {"churn": (INCREMENT, 1), "forum": (FORUM, 3), "globals": (GLOBALS, 4)}
    for program, (kernel, times) in programs.items():
        image = mgpu.image(code_object(program))
        for _ in range(times):
            run_kernel(mgpu, image, kernel)
    null = mgpu.ffi.NULL
    mgpu.launch(mgpu.ffi.cast("hipFunction_t", 0x1230))
    mgpu.LaunchKernelRT(mgpu.ffi.cast("void *", 0x4560), *[1] * 6, 0, null, null, null, 0)
    assert launches(mgpu) == {INCREMENT: 1, FORUM: 3, GLOBALS: 4, "(others)": 2}
    stats = mgpu.stats()
    made = ("mgpuLaunchKernel", "mgpuLaunchKernelRT")
    spent = sum(stats["abi"][function]["ns"] for function in made)
    assert sum(row["ns"] for row in stats["kernels"].values()) == spent
    modules = sorted(stats["modules"], key=lambda module: module["loads"])
    loads = [(module["loads"], module["driver_loads"], module["why"]) for module in modules]
    assert [module["kernels"] for module in modules] == [[INCREMENT], [FORUM], [GLOBALS]]
    if cache == "on":
        why = "globals that kernels or the host can write"
        assert loads == [(1, 1, None), (3, 1, None), (4, 4, why)]
    else:
        assert loads == [(times, times, "MGPU_RT_CACHE=off") for times in (1, 3, 4)]
    assert modules[2]["bytes"] == len(code_object("globals"))
    assert len(modules[2]["image"]) == 16 and int(modules[2]["image"], 16)


MANY = 1200  # kernels; there are 1024 rows


@pytest.mark.check
@in_child(policies=("builtin",), HIPSTUB_MODE="fast", **COUNTED)
def test_kernels_without_a_row_are_counted_as_others(mgpu: Mgpu) -> None:
    """Launches of kernels without a row are counted as `(others)`: no launch is lost, and no launch
    counts twice."""
    functions = [f"gpu.func @kernel{number}() kernel {{ gpu.return }}" for number in range(MANY)]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "many.mlir")
        source.write_text(
            "module attributes {gpu.container_module} { gpu.module @all {\n"
            + "\n".join(functions)
            + "\n} }\n"
        )
        module = mgpu.load(mgpu.image(lower.code_object(source, "gfx90a", module="all")))
    for number in range(MANY):
        mgpu.launch(mgpu.function(module, f"kernel{number}"))
    counted = launches(mgpu)
    assert sum(counted.values()) == MANY
    assert 0 < counted.pop("(others)") <= MANY - 900
    assert set(counted.values()) == {1}
    assert set(counted) < {f"kernel{number}" for number in range(MANY)}


@in_child(policies=("builtin",), HIPSTUB_MODE="fast", **COUNTED)
def test_threads_count_together(mgpu: Mgpu) -> None:
    image = mgpu.image(code_object("forum"))
    run_kernel(mgpu, image, FORUM)

    def work() -> None:
        for _ in range(500):
            run_kernel(mgpu, image, FORUM)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert launches(mgpu) == {FORUM: 2001}
    (module,) = mgpu.stats()["modules"]
    assert module["loads"] == mgpu.stats()["abi"]["mgpuModuleLoad"]["calls"] == 2001


# ---- failed calls ----

INVALID = "hipErrorInvalidValue"


def failed(mgpu: Mgpu) -> dict[tuple[str, str], int]:
    return {(row["function"], row["error"]): row["calls"] for row in mgpu.stats()["failed"] or ()}


@in_child(policies=("builtin",), MGPU_RT_TRACE="trace.json")
@in_folder
def test_failed_calls_are_counted_by_function_and_error(mgpu: Mgpu) -> None:
    assert failed(mgpu) == {}
    for _ in range(3):
        mgpu.MemFree(mgpu.ffi.cast("void *", 1), mgpu.null)
    assert not mgpu.load(mgpu.image(b"none"))
    mgpu.launch(mgpu.ffi.NULL)
    stream = mgpu.StreamCreate()
    mgpu.MemFree(mgpu.MemAlloc(100, stream, False), stream)
    counted = failed(mgpu)
    assert counted.pop(("mgpuMemFree", INVALID)) == 3
    assert {function for function, _ in counted} == {"mgpuModuleLoad", "mgpuLaunchKernel"}
    assert all(error.startswith("hipError") for _, error in counted)
    assert set(counted.values()) == {1}
    trace = recordings.trace("trace.json")
    frees = [e for e in trace["traceEvents"] if e["name"] in ("mgpuMemFree", "hipFree")]
    assert [e["args"].get("error") for e in frees] == [INVALID] * 6 + [None]


# ---- files -----


@in_child(policies=("builtin",), MGPU_RT_TRACE="trace.json")
@in_folder
def test_a_miss_outside_the_abi_is_counted_for_no_call(mgpu: Mgpu) -> None:
    """The allocation of a scratch buffer was a miss, and the load after the allocation is a hit."""
    image = mgpu.image(code_object("forum"))
    run_kernel(mgpu, image, FORUM)
    scratch = mgpu.ffi.new("struct mgpu_rt_scratch *")
    assert mgpu.lib.mgpu_rt_scratch_reserve(scratch, 1000)
    run_kernel(mgpu, image, FORUM)
    assert recordings.results("trace.json", "mgpuModuleLoad") == ["miss", "hit"]


def recorded_memory(mgpu: Mgpu) -> dict[str, int]:
    """Returns the memory counts that the recording would contain if the process were killed now."""
    return recordings.stats("stats.json")["memory"]["0"]


@in_child(policies=("builtin",), MGPU_RT_STATS="stats.json")
@in_folder
def test_a_recording_has_the_memory_of_the_last_call(mgpu: Mgpu) -> None:
    """The memory counts include scratch buffers. Blocks that the library has returned to HIP no
    longer count."""
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(1000, stream, False)
    scratch = mgpu.ffi.new("struct mgpu_rt_scratch *")
    mgpu.lib.mgpu_rt_scratch_reserve(scratch, 500)
    assert recorded_memory(mgpu) == {**mgpu.stats()["memory"]["0"], "allocated": 1024 + 512}
    mgpu.lib.mgpu_rt_scratch_reserve(scratch, 2000)
    assert recorded_memory(mgpu)["allocated"] == 1024 + 2048
    mgpu.lib.mgpu_rt_scratch_release(scratch)
    mgpu.MemFree(block, stream)
    mgpu.MemFree(block, stream)  # in vain
    whole = recorded_memory(mgpu)
    assert whole == mgpu.stats()["memory"]["0"]
    assert (whole["allocated"], whole["peak_allocated"]) == (0, 1024 + 512 + 2048)
    assert whole["blocks"] == whole["cached_blocks"] == 3
    assert mgpu.lib.mgpu_rt_empty_cache() >= 3
    mgpu.StreamSynchronize(stream)
    assert (recorded_memory(mgpu)["reserved"], recorded_memory(mgpu)["blocks"]) == (0, 0)


@in_child(
    backends=("softgpu",),
    policies=("builtin",),
    MGPU_RT_SOFTGPU="gfx90a,gfx90a",
    MGPU_RT_STATS="stats.json",
)
@in_folder
def test_counting_does_not_hide_what_hip_lacks(mgpu: Mgpu) -> None:
    """HIP 5.2.3 lacks hipStreamGetDevice. With several devices, the library would otherwise ask it
    of which device a stream is."""
    for _ in range(4):
        mgpu.StreamDestroy(mgpu.StreamCreate())
    hip = mgpu.stats()["hip"]
    assert hip["hipStreamCreate"]["calls"] == 1
    assert "hipStreamGetDevice" not in hip


@in_child(policies=("builtin",), MGPU_RT_STATS="")
def test_nothing_is_counted_unless_asked_for(mgpu: Mgpu) -> None:
    mgpu.MemAlloc(4096, mgpu.null, False)
    run_kernel(mgpu, mgpu.image(code_object("forum")), FORUM)
    stats = mgpu.stats()
    for name in (*("abi", "hip", "kernels", "copies", "modules"), *("failed", "graphs", "made")):
        assert stats[name] is None, name
    assert stats["start"] == {"ns": None}
    assert stats["cache"]["modules"]["hits"] is stats["cache"]["modules"]["bypasses"] is None
    assert stats["process"]["seconds"] is stats["process"]["date"] is None
    memory = stats["memory"]["0"]
    assert (memory["allocated"], memory["peak_allocated"]) == (4096, None)
    assert memory["reserved"] == memory["peak_reserved"] > 0
    assert (stats["process"]["pid"], stats["process"]["rank"]) == (os.getpid(), None)
