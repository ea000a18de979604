"""Devices, modules, launches, streams, events and errors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from tests.python.snippets.library import Hip
from tests.support.images import bundle, code_object
from tests.support.patience import HANG

WARP_SIZE, THREADS_PER_BLOCK = 87, 56  # hipDeviceAttribute_t
ONE = (1, 1, 1, 1, 1, 1)

#: The arguments of each call of a function whose codes say all.
CALLS: dict[str, Callable[[Hip], Iterable[tuple]]] = {
    "hipInit": lambda hip: [(0,)],
    "hipSetDevice": lambda hip: [(0,), (7,), (-1,)],
    "hipDeviceGetName": lambda hip: [
        *((hip.new("char[]", 100), *of) for of in ((100, 0), (2, 0), (0, 0), (100, 7))),
        (hip.null, 100, 0),
    ],
    "hipModuleUnload": lambda hip: [(hip.module(),), (hip.null,)],
    "hipModuleLaunchCooperativeKernel": lambda hip: [(hip.kernel(), *ONE, 0, hip.null, hip.null)],
    "hipLaunchKernel": lambda hip: [
        (hip.new("char[]", 8), ONE[:3], ONE[:3], hip.null, 0, hip.null)
    ],
    "hipStreamDestroy": lambda hip: [(hip.stream(),), (hip.null,)],
    "hipStreamSynchronize": lambda hip: [(hip.stream(),), (hip.null,)],
    "hipEventDestroy": lambda hip: [(hip.event(),), (hip.null,)],
    "hipEventRecord": lambda hip: [
        (event := hip.event(), hip.stream()),
        (event, hip.null),
        (hip.null, hip.null),
    ],
    "hipFree": lambda hip: [(hip.memory(100),), (hip.null,), (hip.new("char[]", 8),)],
    "hipHostFree": lambda hip: [
        (hip.made("hipHostMalloc", "void *", 100, 0),),
        (hip.null,),
    ],
}


def calls_snippet(function: str) -> Callable[[Hip], None]:
    def run(hip: Hip) -> None:
        for arguments in CALLS[function](hip):
            getattr(hip, function)(*arguments)

    return run


def hipGetDeviceCount(hip: Hip) -> None:
    assert hip.made("hipGetDeviceCount", "int") == 1
    hip.hipGetDeviceCount(hip.null)


def hipGetDevice(hip: Hip) -> None:
    assert hip.made("hipGetDevice", "int") == 0
    hip.hipGetDevice(hip.null)


def hipGetDeviceProperties(hip: Hip) -> None:
    """Checks only the target's name, because each release of HIP up to 7.2 stores the name at
    offset 396 of the structure."""
    properties = hip.new("char[]", 4096)
    for device in (0, 7):
        hip.hipGetDeviceProperties(properties, device)
    assert hip.ffi.string(properties + 396) == b"gfx90a:sramecc+:xnack-"
    hip.hipGetDeviceProperties(hip.null, 0)


def hipDeviceGetAttribute(hip: Hip) -> None:
    assert hip.made("hipDeviceGetAttribute", "int", WARP_SIZE, 0) == 64
    assert hip.made("hipDeviceGetAttribute", "int", THREADS_PER_BLOCK, 0) == 1024
    hip.hipDeviceGetAttribute(hip.new("int *"), WARP_SIZE, 7)
    hip.hipDeviceGetAttribute(hip.null, WARP_SIZE, 0)


def hipRuntimeGetVersion(hip: Hip) -> None:
    assert hip.made("hipRuntimeGetVersion", "int") == 50221153
    hip.hipRuntimeGetVersion(hip.null)


def hipDriverGetVersion(hip: Hip) -> None:
    assert hip.made("hipDriverGetVersion", "int") == 50221153
    hip.hipDriverGetVersion(hip.null)


def hipModuleLoadData(hip: Hip) -> None:
    forum = code_object("forum")
    image = hip.new("char[]", forum)
    first = hip.made("hipModuleLoadData", "hipModule_t", image)
    assert hip.made("hipModuleLoadData", "hipModule_t", image) != first
    assert hip.made("hipModuleLoadData", "hipModule_t", hip.new("char[]", bundle(forum)))
    out = hip.new("hipModule_t *")
    hip.hipModuleLoadData(out, hip.null)
    hip.hipModuleLoadData(out, hip.new("char[]", b"no image of anything" * 10))


def hipModuleGetFunction(hip: Hip) -> None:
    module, out = hip.module(), hip.new("hipFunction_t *")
    name = hip.new("char[]", b"test_func")
    first = hip.made("hipModuleGetFunction", "hipFunction_t", module, name)
    assert hip.made("hipModuleGetFunction", "hipFunction_t", module, name) == first
    hip.hipModuleGetFunction(out, module, hip.new("char[]", b"absent"))
    hip.hipModuleGetFunction(out, module, hip.null)
    hip.hipModuleGetFunction(out, hip.null, name)


def hipModuleGetGlobal(hip: Hip) -> None:
    first, second = hip.module("globals"), hip.module("globals")
    name, size = hip.new("char[]", b"launches"), hip.new("size_t *")
    address = hip.made("hipModuleGetGlobal", "void *", size, first, name)
    assert size[0] == 4
    assert hip.read(address, 4) == bytes(4)
    assert hip.made("hipModuleGetGlobal", "void *", size, second, name) != address
    hip.hipModuleGetGlobal(hip.new("void **"), size, first, hip.new("char[]", b"absent"))


def hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(hip: Hip) -> None:
    """The kernel uses vector registers, because AMD's HIP 5.2.3 divides by the number of a kernel's
    vector registers."""
    blocks, name = hip.new("int *"), hip.new("char[]", b"count")
    function = hip.made("hipModuleGetFunction", "hipFunction_t", hip.module("globals"), name)
    hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, 64, 0)
    assert blocks[0] > 0


def hipModuleLaunchKernel(hip: Hip) -> None:
    function, stream = hip.kernel(), hip.stream()
    hip.launch(stream, function=function)
    hip.launch(stream, grid=64, block=256, function=function)
    hip.hipStreamSynchronize(stream)
    hip.launch(stream, grid=0, function=function)
    hip.launch(stream, block=1025, function=function)
    hip.hipModuleLaunchKernel(hip.null, *ONE, 0, stream, hip.null, hip.null)


def hipStreamCreate(hip: Hip) -> None:
    assert hip.stream() != hip.stream()
    hip.hipStreamCreate(hip.null)


def hipStreamCreateWithFlags(hip: Hip) -> None:
    for flags in (0, 1):
        hip.made("hipStreamCreateWithFlags", "hipStream_t", flags)
    hip.hipStreamCreateWithFlags(hip.new("hipStream_t *"), 2)


def hipStreamGetFlags(hip: Hip) -> None:
    flags = hip.new("unsigned *")
    for wanted in (0, 1):
        stream = hip.made("hipStreamCreateWithFlags", "hipStream_t", wanted)
        hip.hipStreamGetFlags(stream, flags)
        assert flags[0] == wanted


def hipStreamGetDevice(hip: Hip) -> None:
    device = hip.new("int *", 7)
    hip.hipStreamGetDevice(hip.stream(), device)
    assert device[0] == 0


def hipStreamQuery(hip: Hip) -> None:
    stream = hip.stream()
    hip.launch(stream)
    hip.hipStreamSynchronize(stream)
    hip.hipStreamQuery(stream)
    hip.hipStreamQuery(hip.null)


def hipStreamWaitEvent(hip: Hip) -> None:
    event, stream = hip.event(), hip.stream()
    hip.hipStreamWaitEvent(stream, event, 0)
    hip.hipEventRecord(event, hip.stream())
    hip.hipStreamWaitEvent(stream, event, 0)
    hip.hipStreamWaitEvent(hip.null, event, 0)
    hip.hipStreamWaitEvent(stream, hip.null, 0)
    hip.hipStreamSynchronize(stream)


def hipStreamAddCallback(hip: Hip) -> None:
    called = threading.Event()
    function = hip.ffi.callback("hipStreamCallback_t", lambda *_: called.set())
    stream = hip.stream()
    hip.hipStreamAddCallback(stream, function, hip.null, 0)
    assert called.wait(HANG)
    hip.hipStreamAddCallback(stream, hip.null, hip.null, 0)


def hipEventCreate(hip: Hip) -> None:
    assert hip.event() != hip.event()
    hip.hipEventCreate(hip.null)


def hipEventCreateWithFlags(hip: Hip) -> None:
    for flags in (0, 1, 2, 3):
        hip.made("hipEventCreateWithFlags", "hipEvent_t", flags)
    hip.hipEventCreateWithFlags(hip.new("hipEvent_t *"), 16)


def hipEventSynchronize(hip: Hip) -> None:
    event = hip.event()
    hip.hipEventSynchronize(event)
    hip.hipEventRecord(event, hip.stream())
    hip.hipEventSynchronize(event)
    hip.hipEventSynchronize(hip.null)


def hipEventQuery(hip: Hip) -> None:
    event = hip.event()
    hip.hipEventQuery(event)
    hip.hipEventRecord(event, hip.stream())
    hip.hipEventSynchronize(event)
    hip.hipEventQuery(event)
    hip.hipEventQuery(hip.null)


def hipEventElapsedTime(hip: Hip) -> None:
    start, stop, stream = hip.event(), hip.event(), hip.stream()
    hip.hipEventElapsedTime(hip.new("float *"), start, stop)
    hip.hipEventRecord(start, stream)
    hip.launch(stream)
    hip.hipEventRecord(stop, stream)
    hip.hipEventSynchronize(stop)
    assert hip.made("hipEventElapsedTime", "float", start, stop) >= 0
    untimed = hip.made("hipEventCreateWithFlags", "hipEvent_t", 2)
    hip.hipEventElapsedTime(hip.new("float *"), start, untimed)


def hipDeviceReset(hip: Hip) -> None:
    hip.hipDeviceReset()
    assert hip.hipStreamSynchronize(hip.stream()) == 0
    assert hip.memory(100)


def hipDeviceSynchronize(hip: Hip) -> None:
    hip.launch(hip.stream())
    hip.hipDeviceSynchronize()


def hipGetLastError(hip: Hip) -> None:
    hip.hipGetLastError()
    hip.hipSetDevice(7)
    hip.hipGetLastError()
    hip.hipGetLastError()


def hipPeekAtLastError(hip: Hip) -> None:
    hip.hipSetDevice(7)
    hip.hipPeekAtLastError()
    hip.hipPeekAtLastError()
    hip.hipGetLastError()


def hipGetErrorName(hip: Hip) -> None:
    """Asks for the name of every error number, because the names are part of stock's lines."""
    for error in range(1100):
        name = hip.ffi.string(hip.lib.hipGetErrorName(error)).decode()
        hip.codes.append((name, error))


def hipGetErrorString(hip: Hip) -> None:
    assert hip.ffi.string(hip.lib.hipGetErrorString(2))
