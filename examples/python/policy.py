"""Shows a custom policy for the caches.

MGPU_RT_POLICY=policy:KeepLarge ./program          # in this folder, or add it to PYTHONPATH
"""

from mgpu_rt.manager import EventKind, Evict, Kind, Pin


class KeepLarge:
    """A policy that keeps modules of 64 KB and more loaded, and caches at most one destroyed
    stream."""

    LARGE = 64 << 10

    def __init__(self, caches):
        self.caches = caches

    def decide(self, events, complete):
        for event in events:
            if event.what is EventKind.MODULE_LOADED and event.bytes >= self.LARGE:
                yield Pin(event.handle)
        idle = [stream for stream in self.caches.streams() if not stream.held]
        for stream in idle[1:]:
            yield Evict(Kind.STREAM, stream.handle)
