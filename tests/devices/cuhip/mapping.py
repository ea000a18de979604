"""The calls to NVIDIA's driver that each function of HIP makes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

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
ELF = b"\x7fELF"


def _word(word: str) -> object:
    return globals()[word] if word[0].isalpha() else int(word, 0)


def _call(text: str) -> str | tuple:
    """Returns the symbol of a call of the driver, and the arguments if the row states them."""
    symbol, *words = text.split()
    return symbol if words == ["..."] else (symbol, *map(_word, words))


def _rows() -> Iterator[tuple[str, tuple, list | int]]:
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        left, _, right = line.partition("->")
        function, *words = left.split()
        number = right.strip().isdecimal()
        calls = [_call(call) for call in right.split(";") if call.strip()]
        yield function, tuple(map(_word, words)), int(right) if number else calls


#: (function, arguments, driver calls or error)
MAPPING = list(_rows())

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
