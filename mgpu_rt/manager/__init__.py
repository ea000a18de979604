"""The manager: the process beside a program that decides what stays in its caches.

A policy of your own needs the names of `mgpu_rt.manager.protocol`, which are here too. `Shipped` is
the policy that it replaces.
"""

from mgpu_rt.manager.default_policy import Shipped
from mgpu_rt.manager.protocol import (
    Cached,
    Caches,
    Decision,
    Event,
    Evict,
    Kind,
    Limit,
    Limits,
    Memory,
    Pin,
    Policy,
    What,
)

__all__ = [
    "Cached",
    "Caches",
    "Decision",
    "Event",
    "Evict",
    "Kind",
    "Limit",
    "Limits",
    "Memory",
    "Pin",
    "Policy",
    "Shipped",
    "What",
]
