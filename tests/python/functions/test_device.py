"""Calls lowered functions that use device memory, on the emulated device and on a GPU."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from typing import Any

import numpy
import pytest

import mgpu_rt
from tests.devices.gpu import CHIP
from tests.python.functions import DEVICE, library
from tests.python.launches import KERNELS
from tests.support import lower
from tests.support.child import BACKENDS_WITH_GPU, ROOT, Mgpu, environment, in_child
from tests.support.folders import in_folder
from tests.support.patience import HANG, run_process
from tests.support.suites import in_check

on_devices = in_child(policies=("builtin",), backends=BACKENDS_WITH_GPU[1:])
on_softgpu = in_child(policies=("builtin",), backends=("softgpu",))
COUNT = 1000


def device_library(mgpu: Mgpu, **options: Any) -> mgpu_rt.Library:
    """Returns the library; on CUDA the library contains PTX, which runs on any of NVIDIA's GPUs."""
    on_cuda = {"chip": CHIP, "image": "isa"} if mgpu.on_cuda else {}
    return library(DEVICE, **on_cuda, **options)


def numbers(begin: int = 0) -> numpy.ndarray:
    return numpy.arange(begin, begin + COUNT, dtype="f4")


def allocated() -> int:
    """Returns how many bytes of device memory the program has allocated."""
    return mgpu_rt.stats()["memory"]["0"]["allocated"]


@on_devices
def test_inout_copies_an_array_to_the_device_and_back(mgpu: Mgpu) -> None:
    """Programs of public reports pass arrays in this way: InOut stays for them."""
    functions, array = device_library(mgpu), numbers()
    functions.scale(mgpu_rt.InOut(array), 3)
    stream = mgpu_rt.Stream()
    with mgpu_rt.use_stream(stream):
        functions.scale(mgpu_rt.InOut(array), 2)
    assert (array == 6 * numbers()).all()
    fixed = numbers()
    fixed.flags.writeable = False
    for refused in (fixed, mgpu_rt.to_device(array), array[::2]):
        with pytest.raises((TypeError, ValueError), match="argument 1"):
            functions.scale(mgpu_rt.InOut(refused), 2)
    with pytest.raises(ValueError, match="to_device"), mgpu_rt.graph():
        functions.scale(mgpu_rt.InOut(array), 2)
    empty = numbers()[:0]
    with pytest.raises(mgpu_rt.HipError, match="hipErrorInvalidValue"):
        functions.scale(mgpu_rt.InOut(empty), 1)  # a grid without a block
    assert (array == 6 * numbers()).all()


@on_devices
def test_device_arrays_are_passed_where_they_lie(mgpu: Mgpu) -> None:
    for llvm in (22, 19):
        functions, array = device_library(mgpu, llvm=llvm), mgpu_rt.to_device(numbers())
        functions.scale(array, 0.5)
        functions.scale(array, 4)
        assert (array.to_host() == 2 * numbers()).all()
    array.copy_from(numbers(7))
    assert (array.to_host() == numbers(7)).all()
    with pytest.raises(mgpu_rt.HipError, match="hipErrorInvalidValue"):
        functions.scale(mgpu_rt.empty(0), 1)  # a grid without a block
    del array
    gc.collect()
    assert allocated() == 0


@on_devices
def test_device_memory_of_a_function_is_a_device_array(mgpu: Mgpu) -> None:
    functions, given = device_library(mgpu), mgpu_rt.to_device(numbers())
    scaled = functions.scaled(given, 3)
    assert isinstance(scaled, mgpu_rt.DeviceArray) and scaled.device == 0
    assert (scaled.to_host() == 3 * numbers()).all()
    again = functions.itself(scaled)
    del scaled
    gc.collect()
    assert (again.to_host() == 3 * numbers()).all()
    shared = functions.shared()
    assert isinstance(shared, mgpu_rt.DeviceArray) and shared.to_host()[0] == 1
    del again, shared, given
    gc.collect()
    assert allocated() == 0
    assert mgpu.stderr() == ""


@in_child(policies=("builtin",), HIPSTUB_TELLS="1", MGPU_RT_STATS="/dev/null")
def test_the_package_is_no_other_code_that_calls_hip(mgpu: Mgpu) -> None:
    functions, array = library(DEVICE), mgpu_rt.to_device(numbers())
    module = mgpu_rt.Module(lower.code_object(KERNELS, "gfx90a"))
    with mgpu_rt.use_stream(mgpu_rt.Stream()):
        functions.scale(array, 0.5)
    module["scale"](1, 8, mgpu_rt.MemRef(array), 2.0, COUNT)
    array.copy_from(numbers(7))
    assert (array.to_host() == numbers(7)).all()
    del array, module
    gc.collect()
    assert mgpu.stats()["other_calls"] == "none"


@on_devices
def test_a_call_that_fails_raises_hips_error(mgpu: Mgpu) -> None:
    functions = device_library(mgpu)
    for _ in range(2):
        with pytest.raises(mgpu_rt.HipError, match="greedy failed: hipErrorOutOfMemory") as failed:
            functions.greedy()
        assert failed.value.name == "hipErrorOutOfMemory"
    assert "failed with 'hipErrorOutOfMemory'" in mgpu.stderr()
    functions.scale(mgpu_rt.to_device(numbers()), 1)
    with pytest.raises(mgpu_rt.HipError, match=r"there are no .* bytes of device memory"):
        mgpu_rt.empty(1 << 50)


@on_softgpu
def test_device_code_that_hip_refuses_is_an_error(mgpu: Mgpu) -> None:
    with pytest.raises(
        mgpu_rt.HipError, match=r"the device code in /.*\.so was not loaded: hipErr"
    ):
        library(DEVICE, chip="gfx942")
    assert "gfx942" in mgpu.stderr()


@on_devices
def test_work_goes_to_a_lent_stream(mgpu: Mgpu) -> None:
    functions, stream = device_library(mgpu), mgpu.StreamCreate()
    array = mgpu_rt.to_device(numbers())
    with mgpu_rt.use_stream(int(mgpu.ffi.cast("uintptr_t", stream))):
        functions.scale(array, 2)
        scaled = functions.scaled(array, 5)
        again = functions.scaled(scaled, 1)
        assert (again.to_host() == 10 * numbers()).all()
    # Work on another stream waits for the earlier work on the array.
    assert (functions.scaled(scaled, 1).to_host() == 10 * numbers()).all()
    mgpu.StreamSynchronize(stream)
    mgpu.StreamDestroy(stream)
    assert (scaled.to_host() == 10 * numbers()).all()
    assert mgpu.stderr() == ""


@on_devices
def test_a_function_becomes_a_graph(mgpu: Mgpu) -> None:
    functions, array = device_library(mgpu), mgpu_rt.to_device(numbers())
    functions.scale(array, 1)  # does the one-time work
    with mgpu_rt.graph() as graph:
        functions.scale(array, 2)
        functions.scale(array, 3)
    assert (array.to_host() == numbers()).all()
    graph.replay()
    assert (array.to_host() == 6 * numbers()).all()


@on_softgpu
def test_a_graph_keeps_its_arrays(mgpu: Mgpu) -> None:
    """A replay would otherwise change an array that got their memory."""
    functions, source = device_library(mgpu), numbers()
    array = mgpu_rt.to_device(source)
    with mgpu_rt.graph() as graph:
        array.copy_from(source + 1)
        functions.scale(array, 2)
        result = array.to_host()
    seen = weakref.ref(result)
    del array, result
    gc.collect()
    others = [mgpu_rt.to_device(numbers()) for _ in range(4)]
    graph.replay()
    assert all((other.to_host() == numbers()).all() for other in others)
    kept = seen()
    assert kept is not None and (kept == 2 * (numbers() + 1)).all()
    held = allocated()
    del graph
    gc.collect()
    assert allocated() < held


@in_child(policies=("builtin",), backends=("softgpu",), MGPU_RT_STATS="stats.json")
@in_folder
def test_functions_run_beside_other_features(mgpu: Mgpu) -> None:
    """Functions work with an installed hook, and with a replayed graph."""
    array = mgpu_rt.to_device(numbers())
    held = allocated()
    replayed = device_library(mgpu, graph=["scale"])
    for _ in range(4):
        replayed.scale(array, 2)
    assert mgpu_rt.stats()["graphs"]["launches"] == 3
    with mgpu_rt.intercept(mgpu_rt.hooks.Trace()):
        device_library(mgpu).scale(array, 0.25)
    assert (array.to_host() == 4 * numbers()).all()
    assert "scale" in mgpu.stderr()
    assert allocated() == held


@on_softgpu
def test_threads_call_on_arrays_of_their_own(mgpu: Mgpu) -> None:
    functions, wrong = device_library(mgpu), []

    def work(number: int) -> None:
        for _ in range(20):
            array = mgpu_rt.to_device(numbers(number))
            functions.scale(array, 2)
            if not (array.to_host() == 2 * numbers(number)).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert wrong == []
    assert mgpu.stderr() == ""


#: When the process ends, a library and a module that have launched kernels still exist. So do a
#: reference cycle, device arrays, one of them in a module, and a forked child.
ENDS = """
import os, sys, threading, numpy, mgpu_rt
functions, module = mgpu_rt.Library(sys.argv[1]), mgpu_rt.Module(sys.argv[2])
kernel = module["scale"]
cycle = [module]; cycle.append(cycle)
kept = mgpu_rt.to_device(numpy.arange(1000, dtype="f4"))
thread = threading.Thread(target=lambda: kernel(4, 256, mgpu_rt.MemRef(kept), 2.0, 1000))
thread.start()
thread.join()
sys.modules["kept"] = kept
lent = mgpu_rt.load().mgpuStreamCreate()
with mgpu_rt.use_stream(lent):
    scaled = functions.scaled(kept, 2)
if os.fork() == 0:
    del functions, module, kept, scaled
    sys.exit(0)
os.wait()
class Late:
    def __del__(self): cycle.clear()
late = Late()
print(kept.to_host().sum(), scaled.to_host().sum())
"""


@pytest.mark.parametrize("cache", in_check(["on", "off"], lambda cache: cache == "off"))
def test_a_process_ends_with_device_arrays(cache: str) -> None:
    module = lower.lower(KERNELS, llvm=22)
    quiet = ("-W", "ignore::DeprecationWarning")  # about a fork with threads, since Python 3.12
    result = run_process(
        [sys.executable, *quiet, "-c", ENDS, os.fspath(mgpu_rt.lower(DEVICE)), module],
        environment("softgpu", PYTHONPATH=str(ROOT), MGPU_RT_CACHE=cache),
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "999000.0 1998000.0\n", "")
