"""Which streams stay."""

from __future__ import annotations

from collections.abc import Iterator

from mgpu_rt.books import Books
from mgpu_rt.policy import Caches, Decision, Evict, Kind


class StreamPool(Books):
    """The streams that exist.

    The library hands idle ones out again and keeps up to MGPU_RT_STREAM_LIMIT of them. A program
    that once used many at a time and no longer does need not keep them: what was not used for a
    minute goes back, but for the one that serves a program with one at a time. A stream whose uses
    the library does not count (0) stays.
    """

    PATIENCE = 60.0  # seconds

    def __init__(self, caches: Caches) -> None:
        super().__init__(Kind.STREAM, caches.streams)

    def shared(self, device: int) -> int | None:
        """The stream that serves a program with one at a time: the device's first one."""
        return next((s.handle for s in self if s.device == device), None)

    def decide(self) -> Iterator[Decision]:
        if not self.look():
            return
        old = self.clock() - self.PATIENCE
        for stream in self.idle():
            if (
                stream.uses
                and stream.last_use < old
                and stream.handle != self.shared(stream.device)
            ):
                yield Evict(Kind.STREAM, stream.handle)
