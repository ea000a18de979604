"""Shows a custom policy for the caches.

MGPU_RT_POLICY=policy:KeepLarge ./program          # in this folder, or add it to PYTHONPATH
"""

from mgpu_rt.manager import Evict, Kind, Pin


class KeepLarge:
    """A policy that keeps modules of 64 KB and more loaded, and caches at most one destroyed
    stream."""

    LARGE = 64 << 10

    def decide(self, caches):
        for module in caches.modules:
            if module.bytes >= self.LARGE:
                yield Pin(module.handle)
        idle = [stream for stream in caches.streams if not stream.held]
        for stream in idle[1:]:
            yield Evict(Kind.STREAM, stream.handle)
