"""The manager: the process that decides what stays in a program's caches.

This package exports the names that your own policy needs; mgpu_rt/manager/_protocol.py explains the
names. A user's policy replaces `DefaultPolicy`.
"""

from mgpu_rt.manager._default_policy import DefaultPolicy
from mgpu_rt.manager._protocol import (
    CachedObject,
    Caches,
    Decision,
    Evict,
    Kind,
    Limit,
    Limits,
    Pin,
    Policy,
)

__all__ = [
    "CachedObject",
    "Caches",
    "Decision",
    "DefaultPolicy",
    "Evict",
    "Kind",
    "Limit",
    "Limits",
    "Pin",
    "Policy",
]
