"""`mgpu-rt lower --graph`: the library replays a lowered function if the arguments equal the
arguments of earlier calls."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cffi import FFI

from mgpu_rt._lowering import cache, graph_functions, object_files, pipelines, toolchain
from tests.support.child import BACKENDS, Mgpu, environment, in_cases, in_child, library
from tests.support.command import COMMAND
from tests.support.graphs import Capture
from tests.support.patience import HANG, run_process
from tests.support.programs import STOCK

SOURCE = Path(__file__).with_name("functions.mlir")
ALL = ("scale", "twice", "again", "registered")
WORDS = 64
COUNTED = {"backends": ("softgpu",), "policies": ("builtin",), "MGPU_RT_STATS": "/dev/null"}
_MEMREF = "float *allocated, float *aligned, int64_t offset, int64_t size, int64_t stride"
_DECLARATIONS = "".join(
    f"void {name}({_MEMREF}, float factor{more});"
    for name, more in (*((name, "") for name in ALL if name != "again"), ("again", ", int64_t n"))
)


def compiled(names: tuple[str, ...], llvm: int) -> Path:
    """Returns an object file of SOURCE in which the library replays the functions in `names`."""
    text = SOURCE.read_text()
    pipeline = pipelines.pipeline(llvm)
    return cache.kept(
        f"functions-{llvm}",
        ".o",
        (pipelines.RECIPE, text, names, Path(graph_functions.__file__).read_text(), pipeline),
        lambda: object_files.tools(pipeline),
        lambda: object_files.host_object(text, pipeline, names),
    )


class Functions:
    """The lowered functions of SOURCE, linked with this process's library. The library replays the
    functions in `names` as graphs."""

    def __init__(self, *names: str, llvm: int = 22) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        out = Path(self._scratch.name, "functions.so")
        shared = [toolchain.compiler(), "-shared", compiled(names, llvm), library(), "-o", out]
        toolchain.run(shared)
        self.ffi = FFI()
        self.ffi.cdef(_DECLARATIONS)
        self.path = str(out)
        self.lib = self.ffi.dlopen(self.path)

    def array(self):
        return self.ffi.new(f"float[{WORDS}]")

    def scale(self, array) -> None:
        """Calls the function `scale`."""
        self.lib.scale(array, array, 0, WORDS, 1, 2)

    def check(self, array, begin: float, factor: float, name: str = "scale", *more: int) -> None:
        """Calls the function with new numbers, and checks the result."""
        for i in range(WORDS):
            array[i] = begin + i
        getattr(self.lib, name)(array, array, 0, WORDS, 1, factor, *more)
        power = {"twice": 2, "again": more[0] if more else 0}.get(name, 1)
        assert list(array) == [(begin + i) * factor**power for i in range(WORDS)]


def counted(mgpu: Mgpu) -> tuple[int, int, int]:
    """Returns how many graphs were built, how often they were launched, and how many calls ran
    without a graph."""
    graphs = mgpu.stats()["graphs"]
    return graphs["built"], graphs["launches"], graphs["plain"]


@in_child(**COUNTED)
def test_a_function_is_built_at_its_second_call_and_replayed(mgpu: Mgpu) -> None:
    """Each replay uses the current content of the memory."""
    for number, llvm in enumerate((22, 19), 1):
        functions = Functions("scale", llvm=llvm)
        array = functions.array()
        for call in range(10):
            functions.check(array, call, 2)
        assert counted(mgpu) == (number, 9 * number, number)
    assert mgpu.stats()["graphs"]["nodes"] == 2 * 9 * 3
    assert mgpu.stderr() == ""


@in_child(**COUNTED)
def test_changed_arguments_build_the_graph_anew(mgpu: Mgpu) -> None:
    functions = Functions("scale")
    arrays = [functions.array() for _ in range(2)]
    for array, factor in ((arrays[0], 2), (arrays[1], 2), (arrays[1], 3)):
        for call in range(20):
            functions.check(array, call, factor)
    assert counted(mgpu) == (3, 3 * 19, 3)
    assert mgpu.stub.hipDeviceSynchronize() == 0


@in_child(**COUNTED)
def test_each_order_of_rotating_buffers_has_a_graph(mgpu: Mgpu) -> None:
    """The test rotates two, three and four buffers, as in double buffering and in the time steps of
    a wave."""
    functions = Functions("scale")
    built = launches = 0
    for orders in (2, 3, 4):
        arrays = [functions.array() for _ in range(orders)]
        for call in range(20 * orders):
            functions.check(arrays[call % orders], call, orders)
        built, launches = built + orders, launches + 19 * orders
        assert counted(mgpu) == (built, launches, built)
    assert mgpu.stub.hipDeviceSynchronize() == 0
    assert mgpu.stderr() == ""


SCARCE = {"MGPU_RT_STATS": "/dev/null", "HIPSTUB_MEMORY": str(1 << 20)}


@in_child(policies=("builtin",), **SCARCE)
def test_graphs_give_way_to_an_allocation(mgpu: Mgpu) -> None:
    """The library frees graphs, like cached memory, if the program's allocation would otherwise
    fail."""
    functions = Functions("scale")
    arrays = [functions.array() for _ in range(4)]

    def call_all(times: int) -> None:
        for call in range(times * 4):
            functions.scale(arrays[call % 4])

    before = mgpu.stub.hipstub_live(b"bytes")
    call_all(3)
    assert counted(mgpu)[0] == 4
    held = mgpu.stub.hipstub_live(b"bytes") - before
    assert held >= 4 * 4 * WORDS
    stream = mgpu.StreamCreate()
    most = mgpu.MemAlloc((1 << 20) - before - 256, stream, False)
    assert most
    assert counted(mgpu)[0] == 4
    mgpu.MemFree(most, stream)
    mgpu.StreamSynchronize(stream)
    call_all(20)
    assert counted(mgpu)[0] > 4
    assert mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stderr() == ""


def leave_nothing(mgpu: Mgpu) -> None:
    """The program allocates all the device's memory by calling HIP."""
    mgpu.by_hip("hipMalloc", (1 << 20) - mgpu.stub.hipstub_live(b"bytes"))


@in_cases(("same", "another"), **SCARCE)
def test_a_graph_gives_way_to_a_graph(mgpu: Mgpu, function: str) -> None:
    """The device has memory for a single graph, of the same function or of another. HIP can
    nevertheless build the second graph, and no call fails."""
    first = Functions("scale")
    second = first if function == "same" else Functions("scale", llvm=19)
    arrays = [first.array(), second.array()]
    second.scale(arrays[1])
    mgpu.lib.mgpu_rt_empty_cache()
    for _ in range(3):
        first.scale(arrays[0])
    leave_nothing(mgpu)
    for _ in range(4 if second is first else 5):
        second.scale(arrays[1])
    graphs = mgpu.stats()["graphs"]
    assert (graphs["built"], graphs["refused"], mgpu.stderr()) == (2, 0, "")
    first.scale(arrays[0])  # the old memory is used again
    assert mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stderr() == ""


@in_child(policies=("builtin",), **SCARCE)
def test_graphs_that_have_no_memory_become_rare(mgpu: Mgpu) -> None:
    """Calls with two arrays alternate, but there is memory for one graph: the library does not
    build a graph at each call."""
    functions = Functions("scale")
    arrays = [functions.array() for _ in range(2)]
    functions.scale(arrays[0])
    leave_nothing(mgpu)
    for call in range(5000):
        functions.scale(arrays[call % 2])
    built, _, plain = counted(mgpu)
    assert 2 < built < 20 and plain > 4900
    assert mgpu.stderr() == ""


@in_child(backends=BACKENDS, policies=("builtin",), MGPU_RT_STATS="/dev/null")
def test_memory_that_comes_back_as_another_builds_the_graph_anew(mgpu: Mgpu) -> None:
    """The new memory has the old memory's address. HIP 6 and 7 look up memory when they create a
    node, so the library must build the graph again."""
    functions = Functions("scale")
    array = functions.array()
    host = mgpu.ffi.cast("void *", int(functions.ffi.cast("uintptr_t", array)))

    def calls(times: int) -> int:
        for call in range(times):
            if mgpu.on_stub:  # the stub runs no kernel
                functions.scale(array)
            else:
                functions.check(array, call, 2)
        return counted(mgpu)[0]

    assert calls(20) == 1
    mgpu.MemHostRegister(host, 4 * WORDS)
    assert calls(20) == 2
    mgpu.MemHostUnregister(host)
    assert calls(20) == 3
    mgpu.MemHostRegister(host, 4 * WORDS)  # registered as before, but in another call
    assert calls(20) == 4
    mgpu.MemHostUnregister(host)
    assert mgpu.stderr() == ""


@in_child(policies=("builtin",), MGPU_RT_STATS="/dev/null", MGPU_RT_EXCLUSIVE="on")
def test_memory_that_hip_has_registered_for_nobody_is_no_graphs(mgpu: Mgpu) -> None:
    """The memory is returned to HIP before a replay, and a node of HIP 7 would read unmapped
    memory."""
    functions = Functions("scale")
    array = functions.array()
    host = mgpu.ffi.cast("void *", int(functions.ffi.cast("uintptr_t", array)))
    mgpu.MemHostRegister(host, 4 * WORDS)
    for _ in range(20):
        functions.scale(array)
    mgpu.MemHostUnregister(host)
    assert mgpu.count("hipHostUnregister") == 0
    functions.scale(array)
    assert (counted(mgpu)[0], mgpu.count("hipHostUnregister")) == (2, 1)
    assert mgpu.stderr() == ""


@in_child(**COUNTED)
def test_arguments_that_always_change_run_plainly(mgpu: Mgpu) -> None:
    functions = Functions("scale")
    array = functions.array()
    for call in range(100):
        functions.check(array, call, 2 + call % 5)
    assert counted(mgpu) == (0, 0, 100)
    (said,) = mgpu.stderr().splitlines()
    words = "each of 16 calls in a row had other arguments than the 4 calls before it"
    assert f"'scale' ran without a graph: {words}" in said


@in_child(**COUNTED)
def test_graphs_that_do_not_pay_become_rare(mgpu: Mgpu) -> None:
    """Calls come in pairs with equal arguments, so a graph serves only the second call of a pair.
    The library soon stops building graphs that serve so few calls."""
    functions = Functions("scale")
    array = functions.array()
    for call in range(200):
        functions.check(array, call, 2 + call // 2 % 5)
    assert counted(mgpu) == (4, 4, 196)
    for call in range(20):  # after enough calls with the same arguments another try is worth it
        functions.check(array, call, 7)
    assert counted(mgpu) == (5, 8, 212)


@in_child(**COUNTED)
def test_calls_within_a_graph_are_part_of_the_graph(mgpu: Mgpu) -> None:
    functions = Functions("scale", "twice")
    array = functions.array()
    for call in range(10):
        functions.check(array, call, 2, "twice")
    # The first call of `twice` runs without a graph. Within this first call, the second call of
    # `scale` builds a graph.
    graphs = mgpu.stats()["graphs"]
    assert (graphs["built"], graphs["launches"], graphs["nodes"]) == (2, 10, 3 + 9 * 6)


@in_child(**COUNTED)
def test_a_function_may_have_any_name(mgpu: Mgpu) -> None:
    functions = Functions("größe $")
    array = functions.array()
    address, one = int(functions.ffi.cast("uintptr_t", array)), ctypes.c_int64(1)
    memref = ctypes.c_void_p(address), ctypes.c_void_p(address), ctypes.c_int64(0)
    call = ctypes.CDLL(functions.path)["größe $"]
    array[0] = 1
    for _ in range(5):
        call(*memref, ctypes.c_int64(WORDS), one, ctypes.c_float(2))
    assert (array[0], counted(mgpu)) == (2**5, (1, 4, 1))


@in_child(**COUNTED)
def test_a_function_that_calls_itself_is_right(mgpu: Mgpu) -> None:
    functions = Functions("again")
    array = functions.array()
    for times in (3, 3, 3, 5, 5, 0, 0, 3):
        functions.check(array, 1, 2, "again", times)


@in_child(**COUNTED)
def test_a_function_that_cannot_be_in_a_graph_runs_plainly(mgpu: Mgpu) -> None:
    functions = Functions("registered")
    array = functions.array()
    for call in range(5):
        functions.check(array, call, 2, "registered")
    said = mgpu.stderr().splitlines()
    assert len(said) == 2, said
    assert "mgpuMemHostRegister" in said[0] and "the graph is not built" in said[0]
    assert said[1] == "mgpu_rt: 'registered' runs without a graph from now on"
    assert counted(mgpu) == (0, 0, 5)
    assert mgpu.stats()["graphs"]["refused"] == 1


#: Calls of HIP that fail while a graph is built, and a part of the line that names them.
FAILING = {"MGPU_RT_STATS": "/dev/null"}
NOT_BUILT = {
    "hipGraphAddKernelNode": "runs without its graph: 'hipGraphAddKernelNode(&node, ",
    "hipGraphCreate": "'hipGraphCreate(&graph, 0)' failed with ",
}


@in_cases({call: {"HIPSTUB_FAULT": f"{call}:1:2"} for call in NOT_BUILT}, **FAILING)
def test_a_graph_that_hip_refuses_is_no_failure_of_the_program(mgpu: Mgpu, call: str) -> None:
    """The function runs without a graph."""
    functions = Functions("scale")
    array = functions.array()
    for _ in range(3):
        functions.scale(array)
    said = mgpu.stderr().splitlines()
    assert len(said) == 2, said
    assert NOT_BUILT[call] in said[0] and said[0].endswith("'hipErrorOutOfMemory'")
    assert counted(mgpu) == (0, 0, 3)
    assert mgpu.stats()["failed"] == []


@in_child(policies=("builtin",), **FAILING, HIPSTUB_FAULT="hipGraphLaunch:3:2")
def test_a_launch_that_hip_refuses_is_no_failure_of_the_program(mgpu: Mgpu) -> None:
    """The function runs without a graph, and a later call builds another graph."""
    functions = Functions("scale")
    array = functions.array()
    launches = [mgpu.count("hipModuleLaunchKernel")]
    for _ in range(5):
        functions.scale(array)
        launches.append(mgpu.count("hipModuleLaunchKernel"))
    assert launches == [0, 1, 1, 1, 2, 2]
    assert counted(mgpu) == (2, 3, 2)
    assert mgpu.stderr() == (
        "mgpu_rt: a function runs without its graph: 'hipGraphLaunch(graph, stream)' failed with "
        "'hipErrorOutOfMemory'\n"
    )
    assert mgpu.stats()["failed"] == []
    assert mgpu.stub.hipPeekAtLastError() == 0


@in_child(**COUNTED)
def test_threads_have_right_results(mgpu: Mgpu) -> None:
    """One thread at a time replays the function's graph. On HIP before 6.3, no thread replays the
    graph while other threads make calls."""
    functions = Functions("scale")

    def work(number: int) -> None:
        array = functions.array()
        for call in range(50):
            functions.check(array, call, 2 + number)

    with ThreadPoolExecutor(4) as threads:
        for ended in [threads.submit(work, number) for number in range(4)]:
            ended.result(HANG)
    said = mgpu.stderr().splitlines()
    assert all("'scale' runs without a graph while other threads" in line for line in said), said


@in_child(backends=BACKENDS, policies=("builtin",), MGPU_RT_STATS="/dev/null")
def test_old_releases_run_plainly_beside_other_threads(mgpu: Mgpu) -> None:
    """Graphs of old releases may fail while another thread launches the same kernel."""
    functions = Functions("scale")
    array = functions.array()
    ended, calls = threading.Event(), threading.Event()

    def stay() -> None:
        mgpu.StreamDestroy(mgpu.StreamCreate())
        calls.set()
        ended.wait(HANG)

    def call() -> None:
        for _ in range(3):
            functions.scale(array)

    call()
    assert counted(mgpu) == (1, 2, 1)
    other = threading.Thread(target=stay)
    other.start()
    assert calls.wait(HANG)
    call()
    release = tuple(map(int, mgpu.stats()["device"]["hip"].split(".")))
    assert counted(mgpu) == ((1, 5, 1) if release >= (6, 3) else (1, 2, 4))
    ended.set()
    other.join(HANG)


@in_child(policies=("builtin",), MGPU_RT_STATS="/dev/null")
def test_a_function_runs_plainly_in_a_capture_of_the_program(mgpu: Mgpu) -> None:
    functions = Functions("scale")
    array = functions.array()
    capture = Capture(mgpu)
    with capture():
        for _ in range(3):
            functions.scale(array)
    assert counted(mgpu) == (0, 0, 3)
    capture.replay()
    assert mgpu.count("hipModuleLaunchKernel") == 3
    assert "failed" not in mgpu.stderr()


@in_child(policies=("builtin",), MGPU_RT_STATS="/dev/null")
def test_after_a_reset_a_function_runs_without_a_graph(mgpu: Mgpu) -> None:
    functions = Functions("scale", llvm=19)
    array = functions.array()
    for _ in range(3):
        functions.scale(array)
    assert counted(mgpu)[:2] == (1, 2)
    assert mgpu.stub.hipDeviceReset() == 0
    for _ in range(6):
        functions.scale(array)
    assert counted(mgpu)[:2] == (1, 2)
    assert mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stderr() == ""


def test_a_function_runs_over_another_library(tmp_path: Path) -> None:
    """Stock has no functions for graphs."""
    out = tmp_path / "functions.so"
    toolchain.run([toolchain.compiler(), "-shared", compiled(("scale",), 22), STOCK, "-o", out])
    program = f"""
from cffi import FFI
ffi = FFI()
ffi.cdef({_DECLARATIONS!r})
functions = ffi.dlopen({str(out)!r}, ffi.RTLD_LAZY)  # HIP 5.2.3 lacks what the library may call
array = ffi.new("float[64]", list(range(64)))
for _ in range(3):
    functions.scale(array, array, 0, 64, 1, 2)
assert list(array) == [8 * i for i in range(64)]
"""
    env = environment("softgpu")
    env["LD_LIBRARY_PATH"] += f"{os.pathsep}{STOCK.parent}"
    done = run_process([sys.executable, "-c", program], env)
    assert (done.returncode, done.stderr) == (0, "")


# ---- the command ---------------------------------------------------------------------------------


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return run_process([str(word) for word in (COMMAND, *words)])


@pytest.mark.check
def test_a_trace_shows_graphs(tmp_path: Path) -> None:
    program, trace = tmp_path / "program", tmp_path / "trace.json"
    command("lower", SOURCE, "--graph", "scale", "--emit", "executable", "-o", program)
    command("run", "--device", "softgpu", "--trace", trace, "--", program)
    events = json.loads(trace.read_text())["traceEvents"]
    launches = [event for event in events if event.get("cat") == "graph"]
    assert [event["args"] for event in launches] == [{"nodes": 3}] * 9
    assert all(event["name"] == "graph" and event["dur"] > 0 for event in launches)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("nothing", "the program defines no function of that name"),
        ("sum", "the function returns a value"),
        ("unranked", "a memref without a rank"),
        ("_mlir_ciface_scale", "this C wrapper calls scale: name that function"),
    ],
)
def test_a_function_that_cannot_be_replayed_is_refused(
    function: str, words: str, tmp_path: Path
) -> None:
    out = tmp_path / "out.o"
    done = command("lower", SOURCE, "--graph", function, "-o", out)
    assert done.returncode == 2
    assert f"--graph {function}: " in done.stderr and words in done.stderr
    assert not out.exists()
