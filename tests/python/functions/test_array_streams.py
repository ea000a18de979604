"""Arrays in device memory, whose pending work runs on streams of the caller. Each use of an array
waits for the earlier work on the array.

The stub holds each operation back until a thread waits for the operation. So a use that does not
wait sees the values from before the work, and no result depends on the time."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy
import pytest

import mgpu_rt
from mgpu_rt import In, MemRef
from tests.python.functions import HOST, library
from tests.support import lower
from tests.support.child import BUILD, Mgpu, in_child

STREAMS = HOST.with_name("streams.mlir")
KERNELS = str(BUILD / "hipstub" / "kernels.so")  # the kernels' bodies
COUNT = 8
BYTES = 4 * COUNT
OLD, WRITTEN = 1.0, 50.0
NON_BLOCKING = 1  # hipStreamNonBlocking

held = {"HIPSTUB_ASYNC": "held", "HIPSTUB_KERNELS": KERNELS}
on_held_streams = in_child(policies=("builtin",), **held)


class View:
    """An array of another package that shares one of our arrays, and has no work of its own."""

    def __init__(self, array: mgpu_rt.DeviceArray) -> None:
        array._share()
        self._array = array
        said = {"data": (address_of(array), False), "shape": array.shape, "typestr": "<f4"}
        self.__cuda_array_interface__ = {**said, "version": 3}


class Bench:
    """Kernels over the stub: `increment` adds 1 to an array, `layer` writes an array plus 1 to
    another array. Both kernels run when a thread waits for them."""

    def __init__(self, mgpu: Mgpu) -> None:
        self.mgpu, self.graphs = mgpu, []
        self.functions = library(STREAMS)
        self.module = mgpu_rt.Module(lower.code_object(STREAMS, "gfx90a"))
        self.other = self.foreign_stream()
        self.streams = {
            "null": 0,
            "own": int(mgpu.ffi.cast("uintptr_t", mgpu.StreamCreate())),
            "foreign": self.foreign_stream(),
        }

    def foreign_stream(self) -> int:
        """Returns a stream that HIP orders with no other stream, as PyTorch's and CuPy's are."""
        made = self.mgpu.stub_ffi.new("void **")
        assert self.mgpu.stub.hipStreamCreateWithFlags(made, NON_BLOCKING) == 0
        return int(self.mgpu.stub_ffi.cast("uintptr_t", made[0]))

    def array(self, value: float = OLD) -> mgpu_rt.DeviceArray:
        return mgpu_rt.to_device(numpy.full(COUNT, value, "f4"))

    def increment(self, array: Any, **options: Any) -> None:
        self.module["increment"](1, 1, MemRef(array), COUNT, **options)

    def layer(self, source: Any, target: Any, **options: Any) -> None:
        self.module["layer"](1, 1, MemRef(source), MemRef(target), COUNT, **options)

    def pending(self, stream: int) -> int:
        return self.mgpu.pending(self.mgpu.ffi.cast("void *", stream))

    def wait(self, stream: int) -> None:
        self.mgpu.StreamSynchronize(self.mgpu.ffi.cast("hipStream_t", stream))

    def read(self, address: int, stream: int) -> float:
        """Reads the first element on a stream, as another package does."""
        found = self.mgpu.ffi.new("float[]", COUNT)
        on = self.mgpu.ffi.cast("hipStream_t", stream)
        self.mgpu.Memcpy(found, self.mgpu.ffi.cast("void *", address), BYTES, on)
        self.wait(stream)
        return found[0]

    def overwrite(self, address: int, stream: int) -> None:
        """Fills the memory on a stream, as another package does, and waits."""
        bits = int(numpy.float32(WRITTEN).view("u4"))
        on = self.mgpu.ffi.cast("hipStream_t", stream)
        self.mgpu.Memset32(self.mgpu.ffi.cast("void *", address), bits, COUNT, on)
        self.wait(stream)


def address_of(array: Any) -> int:
    return array._array.address


# ---- work that changes an array, and is not complete ----


def launch(bench: Bench, array: Any, stream: int) -> None:
    bench.increment(array, stream=stream)


def launch_in_use_stream(bench: Bench, array: Any, stream: int) -> None:
    with mgpu_rt.use_stream(stream):
        bench.increment(array)


def launch_on_a_view(bench: Bench, array: Any, stream: int) -> None:
    bench.increment(View(array), stream=stream)


def launch_on_a_result(bench: Bench, array: Any, stream: int) -> None:
    bench.increment(bench.functions.itself(array), stream=stream)


def call(bench: Bench, array: Any, stream: int) -> None:
    """Lowered functions do not use the null stream, but streams that wait for the null stream."""
    if not stream:
        return launch(bench, array, stream)
    with mgpu_rt.use_stream(stream):
        bench.functions.increment(array)


def replay(bench: Bench, array: Any, stream: int) -> None:
    with mgpu_rt.graph() as graph:
        bench.increment(array)
    graph.replay(stream)
    bench.graphs.append(graph)  # the end of a graph waits for the graph's work


def replay_of_a_function(bench: Bench, array: Any, stream: int) -> None:
    with mgpu_rt.graph() as graph:
        bench.functions.increment(array)
    with mgpu_rt.use_stream(stream):
        graph.replay(stream)
    bench.graphs.append(graph)


CHANGES = (launch, launch_in_use_stream, launch_on_a_view, launch_on_a_result)
CHANGES += (call, replay, replay_of_a_function)

# ---- uses that read: each returns the first element that it sees ----

#: These uses also run within `use_stream` on another stream.
READS: dict[str, Callable[[Bench, Any], float]] = {
    "to_host": lambda bench, array: array.to_host()[0],
    "to_host of a result": lambda bench, array: bench.functions.itself(array).to_host()[0],
    "to_device": lambda bench, array: mgpu_rt.to_device(array).to_host()[0],
}


def reads(use: Callable[[Bench, Any], float]) -> Callable[[Bench, Any], float]:
    READS[use.__name__] = use
    return use


@reads
def copy_of_a_view(bench: Bench, array: Any) -> float:
    target = mgpu_rt.empty(COUNT)
    target.copy_from(View(array))
    return bench.read(address_of(target), bench.other)


@reads
def a_launch(bench: Bench, array: Any) -> float:
    target = mgpu_rt.empty(COUNT)
    bench.layer(In(array), target)
    return bench.read(address_of(target), bench.other) - 1


@reads
def a_function(bench: Bench, array: Any) -> float:
    target = mgpu_rt.empty(COUNT)
    bench.functions.layer(array, target)
    return bench.read(address_of(target), bench.other) - 1


@reads
def a_result_elsewhere(bench: Bench, array: Any) -> float:
    """The function does not wait for its kernel."""
    with mgpu_rt.use_stream(bench.other):
        result = bench.functions.copied(array)
    with mgpu_rt.use_stream(None):
        return result.to_host()[0] - 1


@reads
def a_graph(bench: Bench, array: Any) -> float:
    target = mgpu_rt.empty(COUNT)
    with mgpu_rt.graph() as graph:
        bench.layer(array, target)
    graph.replay()
    return target.to_host()[0] - 1


@reads
def interface(bench: Bench, array: Any) -> float:
    described = array.__cuda_array_interface__
    assert described["stream"] in (None, bench.other)
    return bench.read(described["data"][0], bench.other)


# ---- uses that write WRITTEN to the array ----

WRITES: dict[str, Callable[[Bench, Any], None]] = {
    "copy_from": lambda bench, array: array.copy_from(bench.array(WRITTEN)),
    "launch": lambda bench, array: bench.layer(bench.array(WRITTEN - 1), array),
    "launch on a view": lambda bench, array: bench.layer(bench.array(WRITTEN - 1), View(array)),
    "function": lambda bench, array: bench.functions.layer(bench.array(WRITTEN - 1), array),
}


def writes(use: Callable[[Bench, Any], None]) -> Callable[[Bench, Any], None]:
    WRITES[use.__name__] = use
    return use


@writes
def copy_of_host_memory(bench: Bench, array: Any) -> None:
    array.copy_from(numpy.full(COUNT, WRITTEN, "f4"))


@writes
def written_by_a_graph(bench: Bench, array: Any) -> None:
    source = bench.array(WRITTEN - 1)
    with mgpu_rt.graph() as graph:
        bench.layer(source, array)
    graph.replay(bench.other)
    bench.wait(bench.other)


@writes
def written_by_interface(bench: Bench, array: Any) -> None:
    bench.overwrite(array.__cuda_array_interface__["data"][0], bench.other)


# ---- the tables ----

Table = Mapping[str, Callable[..., Any]]


def named(*functions: Callable[..., Any]) -> Table:
    return {function.__name__: function for function in functions}


def with_and_without_a_stream(uses: Table) -> Table:
    """Returns the uses, and each use within `use_stream` on another stream."""

    def on_a_stream(use: Callable[..., Any], bench: Bench, array: Any) -> Any:
        with mgpu_rt.use_stream(bench.other):
            result = use(bench, array)
        bench.wait(bench.other)
        return result

    also = {f"{name} on a stream": partial(on_a_stream, use) for name, use in uses.items()}
    return {**uses, **also}


def check_table(bench: Bench, rows: Table, columns: Table, seen: Callable[..., tuple]) -> None:
    """Checks each row with each column on each stream. Names all cases that see a wrong value."""
    wrong = []
    for names in itertools.product(rows, columns, bench.streams):
        row, column, stream = rows[names[0]], columns[names[1]], bench.streams[names[2]]
        wanted, found = seen(row, column, stream)
        for each in bench.streams.values():
            bench.wait(each)
        if wanted != found:
            wrong.append(f"{', '.join(names)}: {found}, not {wanted}")
    assert not wrong, "\n".join(wrong)
    assert bench.mgpu.stderr() == ""


def check_reads(mgpu: Mgpu, changes: Table, reads: Table) -> None:
    bench = Bench(mgpu)

    def seen(change: Any, read: Any, stream: int) -> tuple[float, float]:
        array = bench.array()
        change(bench, array, stream)
        return OLD + 1, float(read(bench, array))

    check_table(bench, changes, with_and_without_a_stream(reads), seen)


@on_held_streams
def test_reads_see_the_earlier_work_on_an_array(mgpu: Mgpu) -> None:
    check_reads(mgpu, named(*CHANGES), READS)


@pytest.mark.check
@on_held_streams
def test_writes_follow_the_earlier_work_on_an_array(mgpu: Mgpu) -> None:
    """A change that runs after the write adds 1 to the written value."""
    bench = Bench(mgpu)

    def seen(change: Any, write: Any, stream: int) -> tuple[float, float]:
        array = bench.array()
        change(bench, array, stream)
        write(bench, array)
        bench.wait(stream)
        return WRITTEN, bench.read(address_of(array), stream)

    check_table(bench, named(*CHANGES), with_and_without_a_stream(WRITES), seen)


def read_by_a_launch(bench: Bench, array: Any, stream: int) -> Any:
    target = bench.array()
    bench.layer(In(array), target, stream=stream)
    return target


def read_by_a_function(bench: Bench, array: Any, stream: int) -> Any:
    if not stream:
        return read_by_a_launch(bench, array, stream)
    with mgpu_rt.use_stream(stream):
        return bench.functions.copied(In(array))


def read_by_a_graph(bench: Bench, array: Any, stream: int) -> Any:
    target = bench.array()
    with mgpu_rt.graph() as graph:
        bench.layer(In(array), target)
    graph.replay(stream)
    bench.graphs.append(graph)
    return target


def read_by_copy_from(bench: Bench, array: Any, stream: int) -> Any:
    """This copy is complete when `copy_from` returns."""
    target = bench.array()
    with mgpu_rt.use_stream(stream):
        target.copy_from(array)
    bench.increment(target, stream=stream)
    return target


def freed(bench: Bench, array: Any) -> None:
    """Frees the array, and writes to an array that may get the memory."""
    del array
    copy_of_host_memory(bench, mgpu_rt.empty(COUNT))


def freed_and_written_on_a_stream(bench: Bench, array: Any) -> None:
    del array
    with mgpu_rt.use_stream(bench.other):
        copy_of_host_memory(bench, mgpu_rt.empty(COUNT))


@pytest.mark.check
@on_held_streams
def test_writes_follow_the_earlier_reads_of_an_array(mgpu: Mgpu) -> None:
    """A read that runs after the write sees the written value."""
    bench = Bench(mgpu)

    def seen(read: Any, write: Any, stream: int) -> tuple[float, float]:
        kept = [bench.array()]
        target = read(bench, kept[0], stream)
        write(bench, kept.pop())
        bench.wait(stream)
        return OLD + 1, bench.read(address_of(target), stream)

    reads = named(read_by_a_launch, read_by_a_function, read_by_a_graph, read_by_copy_from)
    frees = named(freed, freed_and_written_on_a_stream)
    check_table(bench, reads, {**with_and_without_a_stream(WRITES), **frees}, seen)


# ---- with other settings ----


@in_child(policies=("builtin",), MGPU_RT_CACHE="off", **held)
def test_uses_wait_without_a_cache(mgpu: Mgpu) -> None:
    """Without a cache there are no graphs."""
    plain = [change for change in CHANGES if change not in (replay, replay_of_a_function)]
    check_reads(mgpu, named(*plain), {name: READS[name] for name in READS if name != "a_graph"})


@in_child(policies=("builtin",), HIPSTUB_FAULT="hipEventCreateWithFlags:*:2", **held)
def test_a_stream_is_waited_for_if_there_is_no_event(mgpu: Mgpu) -> None:
    bench = Bench(mgpu)
    array = bench.array()
    with pytest.raises(mgpu_rt.HipError, match="hipErrorOutOfMemory"):
        bench.increment(array, stream=bench.other)
    assert array.to_host()[0] == OLD + 1


# ---- waits that are not needed ----


@on_held_streams
def test_reads_do_not_wait_for_each_other(mgpu: Mgpu) -> None:
    bench, array = Bench(mgpu), mgpu_rt.empty(COUNT)
    first, second = bench.streams["foreign"], bench.other
    array.copy_from(numpy.full(COUNT, OLD, "f4"))
    targets = [bench.array(), bench.array()]
    for target, stream in zip(targets, (first, second), strict=True):
        bench.layer(In(array), target, stream=stream)
    bench.wait(second)
    assert bench.pending(first) > 0
    assert [target.to_host()[0] for target in targets] == [OLD + 1] * 2


@on_held_streams
def test_other_arrays_do_not_wait(mgpu: Mgpu) -> None:
    bench = Bench(mgpu)
    arrays = [bench.array(), bench.array()]
    bench.increment(arrays[0], stream=bench.other)
    assert arrays[1].to_host()[0] == OLD and bench.pending(bench.other) > 0
    bench.increment(arrays[1], stream=bench.streams["foreign"])
    assert arrays[1].to_host()[0] == OLD + 1 and bench.pending(bench.other) > 0


# ---- other packages ----


@on_held_streams
def test_memory_of_another_package_is_freed_after_the_devices_work(mgpu: Mgpu) -> None:
    """As hipFree does, because the work of the other package is not known."""
    bench = Bench(mgpu)
    array = bench.array()
    address = array.__cuda_array_interface__["data"][0]
    target = mgpu_rt.empty(COUNT)
    copy = ctypes.CDLL(os.environ["MGPU_RT_HIP"]).hipMemcpyAsync
    pointers = [ctypes.c_void_p(value) for value in (address_of(target), address, bench.other)]
    assert copy(*pointers[:2], BYTES, 3, pointers[2]) == 0  # within the device
    del array
    written = mgpu_rt.empty(COUNT)
    written.copy_from(numpy.full(COUNT, WRITTEN, "f4"))
    assert address_of(written) == address
    assert bench.read(address_of(target), bench.other) == OLD


@on_held_streams
def test_work_of_another_package_can_be_declared(mgpu: Mgpu) -> None:
    bench = Bench(mgpu)
    array = bench.array()
    for stream in bench.streams.values():
        bench.module["increment"](1, 1, *[address_of(array)] * 2, 0, COUNT, 1, COUNT, stream=stream)
        array.fill_on(stream)
        assert array.to_host()[0] == OLD + 1
        array.copy_from(numpy.full(COUNT, OLD, "f4"))


# ---- captures ----


@in_child(policies=("builtin",), HIPSTUB_VERSION="60443484", **held)
def test_a_capture_gets_no_waits(mgpu: Mgpu) -> None:
    """HIP refuses a capture that waits for work from before the capture. The captured work has not
    run, so later uses do not wait for the captured work."""
    bench = Bench(mgpu)
    array = bench.array()
    bench.increment(array, stream=bench.streams["foreign"])
    graph, on = mgpu.stub_ffi.new("void **"), mgpu.stub_ffi.cast("void *", bench.other)
    with mgpu_rt.use_stream(bench.other):
        assert mgpu.stub.hipStreamBeginCapture(on, 0) == 0
        bench.increment(array)
        assert mgpu.stub.hipStreamEndCapture(on, graph) == 0
    assert array.to_host()[0] == OLD + 1
    executable = mgpu.stub_ffi.new("void **")
    null = mgpu.stub_ffi.NULL
    assert mgpu.stub.hipGraphInstantiate(executable, graph[0], null, null, 0) == 0
    assert mgpu.stub.hipGraphLaunch(executable[0], on) == 0
    array.fill_on(bench.other)
    assert array.to_host()[0] == OLD + 2
    assert mgpu.stderr() == ""
