"""Shows a custom policy for the caches, first without a program and then with a program.

MGPU_RT_POLICY=mgpu_rt.manager.rehearsal:Record ./program 2> events
python policy.py events                            # prints the policy's decisions
MGPU_RT_POLICY=policy:KeepLarge ./program          # in this folder, or add it to PYTHONPATH
"""

import sys

from mgpu_rt.manager import EventKind, Evict, Kind, Pin
from mgpu_rt.manager.rehearsal import read, rehearse


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


if __name__ == "__main__":
    decisions = rehearse(KeepLarge, read(sys.argv[1]))
    for seconds, decision in decisions:
        print(f"{seconds:.2f} s: {decision}")
    print(f"{len(decisions)} decisions")
