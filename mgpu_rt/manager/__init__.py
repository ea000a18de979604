"""The names that a policy of your own needs, which replaces `DefaultPolicy`.
mgpu_rt/manager/_protocol.py explains the names."""

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
