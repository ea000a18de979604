"""The manager: the process beside a program that decides what stays in its caches.

The names of `mgpu_rt.manager.protocol`, which a policy of your own needs, are here too, and so is
`Shipped`, the policy that it takes the place of.
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
