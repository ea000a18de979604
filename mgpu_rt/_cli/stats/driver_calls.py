"""The driver's calls in two kinds: those that do something, and questions.

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
