"""The calls to NVIDIA's driver that each function of HIP makes."""

from __future__ import annotations

import struct

from tests.devices.cuhip.driver import Out

STREAM, EVENT, OTHER_EVENT, MODULE, FUNCTION, POOL = 0xA10, 0xB10, 0xB20, 0xC10, 0xD10, 0xE10
TO, FROM = 0x7F0000001000, 0x7F0000002000
DEVICE_0, DEVICE_1, CONTEXT_0, CONTEXT_1 = 50, 51, 0xC0, 0xC1  # as the stub numbers them
OUT, SECOND = Out(1), Out(2)
NAME = b"name"
GRID, BLOCK = (2, 3, 4), (5, 6, 7)
CUGRAPH = 0xF10
KERNEL_NODE = struct.pack("<3I4xQQ3I4xQI4x", *BLOCK, 0, FUNCTION, *GRID, TO, 0)
FILL_NODE = struct.pack("<QI4xQQI4xQ", TO, 4, 1, 64, 7, 16)
WAIT = ("cuStreamSynchronize", 0)

#: (function, arguments, driver calls). The thread already has a context.
MAPPING = [
    ("hipInit", (0,), []),
    ("hipGetDeviceCount", (OUT,), []),
    ("hipGetDevice", (OUT,), []),
    ("hipSetDevice", (0,), []),
    ("hipDeviceGet", (OUT, 1), ["cuDeviceGet"]),
    ("hipDeviceGetName", (OUT, 64, 1), ["cuDeviceGet", "cuDeviceGetName"]),
    (
        "hipDeviceGetPCIBusId",
        (OUT, 64, 1),
        ["cuDeviceGet", ("cuDeviceGetPCIBusId", OUT, 64, DEVICE_1)],
    ),
    ("hipDeviceTotalMem", (OUT, 1), ["cuDeviceGet", ("cuDeviceTotalMem_v2", OUT, DEVICE_1)]),
    (
        "hipDeviceGetAttribute",
        (OUT, 87, 1),
        ["cuDeviceGet", ("cuDeviceGetAttribute", OUT, 10, DEVICE_1)],
    ),
    (
        "hipDeviceComputeCapability",
        (OUT, SECOND, 0),
        [
            "cuDeviceGet",
            ("cuDeviceGetAttribute", OUT, 75, DEVICE_0),
            "cuDeviceGet",
            ("cuDeviceGetAttribute", SECOND, 76, DEVICE_0),
        ],
    ),
    (
        "hipDeviceCanAccessPeer",
        (OUT, 0, 1),
        ["cuDeviceGet", "cuDeviceGet", ("cuDeviceCanAccessPeer", OUT, DEVICE_0, DEVICE_1)],
    ),
    ("hipDeviceEnablePeerAccess", (1, 0), ["cuDeviceGet", ("cuCtxEnablePeerAccess", CONTEXT_1, 0)]),
    ("hipDeviceDisablePeerAccess", (1,), ["cuDeviceGet", ("cuCtxDisablePeerAccess", CONTEXT_1)]),
    (
        "hipDeviceGetStreamPriorityRange",
        (OUT, SECOND),
        [("cuCtxGetStreamPriorityRange", OUT, SECOND)],
    ),
    ("hipStreamIsCapturing", (STREAM, OUT), [("cuStreamIsCapturing", STREAM, OUT)]),
    (
        "hipStreamGetCaptureInfo",
        (STREAM, OUT, SECOND),
        [("cuStreamGetCaptureInfo", STREAM, OUT, SECOND)],
    ),
    (
        "hipThreadExchangeStreamCaptureMode",
        (OUT,),
        [("cuThreadExchangeStreamCaptureMode", OUT)],
    ),
    ("hipGraphCreate", (OUT, 0), [("cuGraphCreate", OUT, 0)]),
    ("hipGraphDestroy", (CUGRAPH,), [("cuGraphDestroy", CUGRAPH)]),
    ("hipGraphAddKernelNode", (OUT, CUGRAPH, 0, 0, KERNEL_NODE), ["cuGraphAddKernelNode"]),
    (
        "hipGraphAddMemsetNode",
        (OUT, CUGRAPH, 0, 0, FILL_NODE),
        ["cuCtxGetCurrent", "cuGraphAddMemsetNode"],
    ),
    (
        "hipGraphAddMemcpyNode1D",
        (OUT, CUGRAPH, 0, 0, TO, FROM, 64, 4),
        [
            *("cuPointerGetAttributes", "cuPointerGetAttributes"),
            *("cuCtxGetCurrent", "cuGraphAddMemcpyNode"),
        ],
    ),
    (
        "hipGraphInstantiate",
        (OUT, CUGRAPH, 0, 0, 0),
        [("cuGraphInstantiateWithFlags", OUT, CUGRAPH, 0)],
    ),
    ("hipGraphLaunch", (CUGRAPH, STREAM), [("cuGraphLaunch", CUGRAPH, STREAM)]),
    ("hipGraphExecDestroy", (CUGRAPH,), [("cuGraphExecDestroy", CUGRAPH)]),
    ("hipDeviceSynchronize", (), [("cuCtxSynchronize",)]),
    ("hipRuntimeGetVersion", (OUT,), []),
    ("hipDriverGetVersion", (OUT,), [("cuDriverGetVersion", OUT)]),
    ("hipModuleLoad", (OUT, NAME), [("cuModuleLoad", OUT, NAME)]),
    ("hipModuleLoadData", (OUT, b"\x7fELF"), [("cuModuleLoadData", OUT, b"\x7fELF")]),
    (
        "hipModuleLoadDataEx",
        (OUT, b"\x7fELF", 0, 0, 0),
        [("cuModuleLoadData", OUT, b"\x7fELF")],
    ),
    ("hipModuleUnload", (MODULE,), [("cuModuleUnload", MODULE)]),
    (
        "hipModuleGetFunction",
        (OUT, MODULE, NAME),
        [("cuModuleGetFunction", OUT, MODULE, NAME)],
    ),
    (
        "hipModuleGetGlobal",
        (OUT, SECOND, MODULE, NAME),
        [("cuModuleGetGlobal_v2", OUT, SECOND, MODULE, NAME)],
    ),
    ("hipFuncGetAttribute", (OUT, 1, FUNCTION), [("cuFuncGetAttribute", OUT, 1, FUNCTION)]),
    ("hipFuncSetAttribute", (FUNCTION, 8, 9), [("cuFuncSetAttribute", FUNCTION, 8, 9)]),
    (
        "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
        (OUT, FUNCTION, 128, 256),
        [("cuOccupancyMaxActiveBlocksPerMultiprocessor", OUT, FUNCTION, 128, 256)],
    ),
    (
        "hipModuleLaunchKernel",
        (FUNCTION, *GRID, *BLOCK, 0, STREAM, TO, 0),
        [("cuLaunchKernel", FUNCTION, *GRID, *BLOCK, 0, STREAM, TO, 0)],
    ),
    (
        "hipModuleLaunchCooperativeKernel",
        (FUNCTION, *GRID, *BLOCK, 0, STREAM, TO),
        [("cuLaunchCooperativeKernel", FUNCTION, *GRID, *BLOCK, 0, STREAM, TO)],
    ),
    ("hipLaunchKernel", (TO, GRID, BLOCK, 0, 0, STREAM), 98),
    ("hipStreamCreate", (OUT,), [("cuStreamCreate", OUT, 0)]),
    ("hipStreamCreateWithFlags", (OUT, 1), [("cuStreamCreate", OUT, 1)]),
    ("hipStreamCreateWithPriority", (OUT, 1, 2), [("cuStreamCreateWithPriority", OUT, 1, 2)]),
    ("hipStreamDestroy", (STREAM,), [("cuStreamDestroy_v2", STREAM)]),
    ("hipStreamSynchronize", (STREAM,), [("cuStreamSynchronize", STREAM)]),
    ("hipStreamQuery", (STREAM,), [("cuStreamQuery", STREAM)]),
    ("hipStreamWaitEvent", (STREAM, EVENT, 0), [("cuStreamWaitEvent", STREAM, EVENT, 0)]),
    (
        "hipStreamAddCallback",
        (STREAM, FUNCTION, TO, 0),
        [("cuStreamAddCallback", STREAM, FUNCTION, TO, 0)],
    ),
    ("hipStreamGetFlags", (STREAM, OUT), [("cuStreamGetFlags", STREAM, OUT)]),
    ("hipStreamGetDevice", (STREAM, OUT), ["cuStreamGetDevice", "cuDeviceGet"]),
    ("hipEventCreate", (OUT,), [("cuEventCreate", OUT, 0)]),
    ("hipEventCreateWithFlags", (OUT, 0xC0000003), [("cuEventCreate", OUT, 3)]),
    ("hipEventDestroy", (EVENT,), [("cuEventDestroy_v2", EVENT)]),
    ("hipEventRecord", (EVENT, STREAM), [("cuEventRecord", EVENT, STREAM)]),
    ("hipEventSynchronize", (EVENT,), [("cuEventSynchronize", EVENT)]),
    ("hipEventQuery", (EVENT,), [("cuEventQuery", EVENT)]),
    (
        "hipEventElapsedTime",
        (OUT, EVENT, OTHER_EVENT),
        [("cuEventElapsedTime", OUT, EVENT, OTHER_EVENT)],
    ),
    ("hipMalloc", (OUT, 100), [("cuMemAlloc_v2", OUT, 100)]),
    ("hipExtMallocWithFlags", (OUT, 100, 0), [("cuMemAlloc_v2", OUT, 100)]),
    ("hipFree", (TO,), [("cuMemFree_v2", TO)]),
    ("hipMallocManaged", (OUT, 100, 1), [("cuMemAllocManaged", OUT, 100, 1)]),
    ("hipHostMalloc", (OUT, 100, 0x40000004), [("cuMemHostAlloc", OUT, 100, 7)]),
    ("hipHostFree", (TO,), ["cuPointerGetAttributes", ("cuMemFreeHost", TO)]),
    ("hipHostRegister", (TO, 100, 0), [("cuMemHostRegister_v2", TO, 100, 3)]),
    ("hipHostUnregister", (TO,), [("cuMemHostUnregister", TO)]),
    ("hipHostGetDevicePointer", (OUT, TO, 0), [("cuMemHostGetDevicePointer_v2", OUT, TO, 0)]),
    ("hipHostGetFlags", (OUT, TO), [("cuMemHostGetFlags", OUT, TO)]),
    ("hipMemGetInfo", (OUT, SECOND), [("cuMemGetInfo_v2", OUT, SECOND)]),
    ("hipMemGetAddressRange", (OUT, SECOND, TO), [("cuMemGetAddressRange_v2", OUT, SECOND, TO)]),
    ("hipMallocAsync", (OUT, 100, STREAM), [("cuMemAllocAsync", OUT, 100, STREAM)]),
    ("hipFreeAsync", (TO, STREAM), [("cuMemFreeAsync", TO, STREAM)]),
    (
        "hipDeviceGetDefaultMemPool",
        (OUT, 1),
        ["cuDeviceGet", ("cuDeviceGetDefaultMemPool", OUT, DEVICE_1)],
    ),
    ("hipMemPoolTrimTo", (POOL, 100), [("cuMemPoolTrimTo", POOL, 100)]),
    ("hipMemPoolGetAttribute", (POOL, 4, OUT), [("cuMemPoolGetAttribute", POOL, 4, OUT)]),
    ("hipMemPoolSetAttribute", (POOL, 4, OUT), [("cuMemPoolSetAttribute", POOL, 4, OUT)]),
    ("hipMemcpy", (TO, FROM, 100, 4), [("cuMemcpyAsync", TO, FROM, 100, 0), WAIT]),
    (
        "hipMemcpyAsync",
        (TO, FROM, 100, 1, STREAM),
        [("cuMemcpyAsync", TO, FROM, 100, STREAM)],
    ),
    (
        "hipMemcpyWithStream",
        (TO, FROM, 100, 2, STREAM),
        [("cuMemcpyAsync", TO, FROM, 100, STREAM), ("cuStreamSynchronize", STREAM)],
    ),
    *(
        (f"hipMemcpy{kind}", (TO, FROM, 100), [("cuMemcpyAsync", TO, FROM, 100, 0), WAIT])
        for kind in ("HtoD", "DtoH", "DtoD")
    ),
    *(
        (
            f"hipMemcpy{kind}Async",
            (TO, FROM, 100, STREAM),
            [("cuMemcpyAsync", TO, FROM, 100, STREAM)],
        )
        for kind in ("HtoD", "DtoH", "DtoD")
    ),
    (
        "hipMemcpyPeer",
        (TO, 0, FROM, 1, 100),
        [
            "cuDeviceGet",
            "cuDeviceGet",
            ("cuMemcpyPeerAsync", TO, CONTEXT_0, FROM, CONTEXT_1, 100, 0),
            WAIT,
        ],
    ),
    (
        "hipMemcpyPeerAsync",
        (TO, 0, FROM, 1, 100, STREAM),
        [
            "cuDeviceGet",
            "cuDeviceGet",
            ("cuMemcpyPeerAsync", TO, CONTEXT_0, FROM, CONTEXT_1, 100, STREAM),
        ],
    ),
    ("hipMemset", (TO, 0x41, 100), [("cuMemsetD8Async", TO, 0x41, 100, 0)]),
    ("hipMemsetAsync", (TO, 0x41, 100, STREAM), [("cuMemsetD8Async", TO, 0x41, 100, STREAM)]),
    *(
        (f"hipMemsetD{width}", (TO, 0x41, 100), [(f"cuMemsetD{width}Async", TO, 0x41, 100, 0)])
        for width in (8, 16, 32)
    ),
    *(
        (
            f"hipMemsetD{width}Async",
            (TO, 0x41, 100, STREAM),
            [(f"cuMemsetD{width}Async", TO, 0x41, 100, STREAM)],
        )
        for width in (8, 16, 32)
    ),
]

#: functions whose output the tests check, instead of the driver calls
BY_RESULT = ("hipGetDeviceProperties", "hipPointerGetAttribute", "hipPointerGetAttributes")

#: Calls that the library rejects without a driver call, and the errors that AMD's HIP 5.2.3 returns
#: for these calls.
REFUSED = [
    ("hipGetDeviceCount", (0,), 1),
    ("hipSetDevice", (2,), 101),
    ("hipSetDevice", (-1,), 101),
    ("hipDeviceGetAttribute", (0, 87, 0), 1),
    ("hipDeviceGetAttribute", (OUT, 87, 7), 101),
    ("hipModuleLoadData", (OUT, 0), 1),
    ("hipModuleUnload", (0,), 500),
    ("hipModuleGetFunction", (OUT, 0, NAME), 500),
    ("hipModuleGetFunction", (OUT, MODULE, b""), 500),
    ("hipModuleGetFunction", (OUT, MODULE, 0), 1),
    ("hipModuleGetGlobal", (0, 0, MODULE, NAME), 1),
    ("hipModuleLaunchKernel", (0, *GRID, *BLOCK, 0, STREAM, 0, 0), 200),
    ("hipModuleLaunchCooperativeKernel", (FUNCTION, 0, 1, 1, 1, 1, 1, 0, STREAM, 0), 1),
    ("hipModuleLaunchCooperativeKernel", (FUNCTION, 1, 1, 1, 1025, 1, 1, 0, STREAM, 0), 9),
    ("hipStreamCreate", (0,), 1),
    ("hipStreamCreateWithFlags", (OUT, 2), 1),
    ("hipStreamDestroy", (0,), 400),
    ("hipStreamWaitEvent", (STREAM, 0, 0), 400),
    ("hipStreamWaitEvent", (STREAM, EVENT, 1), 1),
    ("hipEventCreateWithFlags", (OUT, 16), 1),
    ("hipEventDestroy", (0,), 400),
    ("hipEventRecord", (0, 0), 400),
    ("hipEventSynchronize", (0,), 400),
    ("hipEventQuery", (0,), 400),
    ("hipEventElapsedTime", (0, EVENT, EVENT), 1),
    ("hipMalloc", (0, 8), 1),
    ("hipMalloc", (OUT, 0), 0),
    ("hipHostMalloc", (OUT, 0, 0), 0),
    ("hipMallocManaged", (OUT, 0, 1), 1),
    ("hipMallocManaged", (OUT, 8, 3), 1),
    ("hipMallocAsync", (OUT, 0, STREAM), 1),
    ("hipFree", (0,), 0),
    ("hipHostFree", (0,), 0),
    ("hipFreeAsync", (0, STREAM), 1),
    ("hipHostRegister", (TO, 0, 0), 2),
    ("hipHostRegister", (0, 8, 0), 1),
    ("hipHostUnregister", (0,), 713),
    ("hipMemcpy", (TO, FROM, 0, 4), 0),
    ("hipMemcpy", (0, FROM, 8, 4), 1),
    ("hipMemcpy", (TO, FROM, 8, 5), 21),
    ("hipMemset", (0, 1, 0), 0),
    ("hipPointerGetAttributes", (0, TO), 1),
]

#: Maps a driver error to the nearest error of HIP, if HIP has no error with the same number.
NEAREST = {
    34: 35, 36: 35, 46: 101, 102: 101, 220: 214, 221: 303, 222: 218, 223: 801, 224: 801, 225: 801,
    226: 719, 402: 999, 703: 719, 711: 999, 714: 719, 715: 719, 716: 719, 717: 719, 718: 719,
    721: 719, 800: 801, 802: 3, 803: 35, 804: 35, 805: 999, 811: 801, 812: 801, 909: 702, 911: 999,
    912: 9, 913: 500, 914: 999,
}  # fmt: skip
