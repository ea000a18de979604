"""What runs beside a program: the manager of its caches and the policy that it asks.

The names of `mgpu_rt.manager.protocol`, which a policy of your own needs, are here too, and so is
`Shipped`, the policy that it takes the place of.
"""

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
from mgpu_rt.manager.default_policy import Shipped

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
