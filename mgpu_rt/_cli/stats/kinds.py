"""The kinds of calls: questions to the driver and all others, waits, registrations.

The runtime asks before it takes a shortcut, since other code may have used HIP since
(docs/rule.md). A question changes nothing, so it counts apart from the work that a cache saves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

#: The questions by which the runtime makes certain; an error is an answer too.
QUESTIONS = (
    "hipEventQuery",
    "hipGetLastError",
    "hipMemGetAddressRange",
    "hipPeekAtLastError",
    "hipPointerGetAttribute",
    "hipPointerGetAttributes",
    "hipStreamGetDevice",
    "hipStreamGetFlags",
    "hipStreamQuery",
)

#: The program's functions that wait for the GPU, and the driver's. The first call that waits takes
#: the time from later ones.
WAITS = ("mgpuStreamSynchronize", "mgpuEventSynchronize")
WAITING = (
    (*WAITS, "mgpuMemcpy"),
    ("hipStreamSynchronize", "hipEventSynchronize", "hipMemcpyAsync"),
)
#: With those that may wait too.
WAITED = (
    ("mgpuStreamDestroy", "mgpuMemFree", "mgpuModuleUnload", *WAITING[0]),
    ("hipStreamDestroy", "hipFree", "hipModuleUnload", *WAITING[1]),
)

REGISTRATIONS = (
    "mgpuMemHostRegister",
    "mgpuMemHostRegisterMemRef",
    "mgpuMemHostUnregister",
    "mgpuMemHostUnregisterMemRef",
)

PURPOSE = (
    "The library asks the driver before it takes a shortcut: is the stream idle, is the block "
    "still the program's? MGPU_RT_EXCLUSIVE=on leaves most of them out."
)

Counted = TypeVar("Counted")


def work(calls: Mapping[str, Counted]) -> dict[str, Counted]:
    """The calls that do something."""
    return {name: counted for name, counted in calls.items() if name not in QUESTIONS}


def questions(calls: Mapping[str, Counted]) -> dict[str, Counted]:
    """The questions."""
    return {name: counted for name, counted in calls.items() if name in QUESTIONS}
