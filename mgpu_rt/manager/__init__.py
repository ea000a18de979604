"""The manager: the process that decides what stays in a program's caches.

Your own policy needs these names, which mgpu_rt/manager/_protocol.py explains. A user's policy
replaces `DefaultPolicy`.
"""

from mgpu_rt.manager._default_policy import DefaultPolicy
from mgpu_rt.manager._protocol import (
    CachedObject,
    Caches,
    Decision,
    Event,
    EventKind,
    Evict,
    Kind,
    Limit,
    Limits,
    Memory,
    Pin,
    Policy,
)

#: Earlier names of three of these classes, which are kept for one release.
Cached, Shipped, What = CachedObject, DefaultPolicy, EventKind

__all__ = [
    "CachedObject",
    "Caches",
    "Decision",
    "DefaultPolicy",
    "Event",
    "EventKind",
    "Evict",
    "Kind",
    "Limit",
    "Limits",
    "Memory",
    "Pin",
    "Policy",
]
