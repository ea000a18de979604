"""The manager: the process beside a program that decides what stays in its caches.

A policy of your own needs these names, which mgpu_rt/manager/_protocol.py explains. Such a policy
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

#: The earlier names of three of these, for one release.
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
