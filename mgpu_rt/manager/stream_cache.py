"""The streams that exist."""

from __future__ import annotations

from collections.abc import Iterator

from mgpu_rt.manager.mirror import Mirror
from mgpu_rt.manager.protocol import Caches, Decision, Kind


class StreamCache(Mirror):
    """The streams that exist, for people and for policies that extend this one.

    It decides nothing: the library keeps to MGPU_RT_STREAM_LIMIT by itself. The library does not
    count the uses of a stream, so a stream in use looks like one that nobody needs.
    """

    def __init__(self, caches: Caches) -> None:
        super().__init__(Kind.STREAM, caches.streams)

    def decide(self) -> Iterator[Decision]:
        self.look()
        return iter(())
