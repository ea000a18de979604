"""Remembers the pending work on device memory, so that each use of the memory waits for the work
that was submitted before.

The package submits work to streams of the caller, and does not wait for that work. Each allocation
of the package therefore has one `Work`, which all arrays in the allocation share. Each launch, call
or copy collects the allocations that it uses in a `Uses`.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterable, Iterator

from mgpu_rt._library import RuntimeLibrary, load
from mgpu_rt.runtime._hip import Hip


class _Mark:
    """An event after the work that a stream has so far. A reset of the device ends that work."""

    def __init__(self, library: RuntimeLibrary, event: int) -> None:
        self._library, self._event, self._life = library, event, library.life()
        library.finalize(self, library.mgpuEventDestroy, event)

    def precede(self, stream: int) -> None:
        if self._library.lasts(self._life):
            self._library.mgpuStreamWaitEvent(stream, self._event)

    def wait(self) -> None:
        if self._library.lasts(self._life):
            self._library.mgpuEventSynchronize(self._event)


def _mark(stream: int) -> _Mark | None:
    """Returns a new mark; if HIP creates no event, waits for the stream and returns None."""
    library = load()
    event = library.mgpuEventCreate()
    if not event:
        library.mgpuStreamSynchronize(stream)
        return None
    library.mgpuEventRecord(event, stream)
    return _Mark(library, event)


class Work:
    """The pending work on one allocation: the work that may write the memory, and later work that
    only reads the memory. Any thread may use the object."""

    def __init__(self) -> None:
        self.is_shared = False  # True once another package has had the memory
        self._lock = threading.RLock()  # a finalizer may interrupt its own thread
        self._written: _Mark | None = None
        self._read: dict[int, _Mark] = {}  # the last work that reads, by stream

    def before(self, *, writes: bool) -> list[_Mark]:
        """Returns the marks that a use of the memory must wait for."""
        with self._lock:
            found = [] if self._written is None else [self._written]
            return [*found, *self._read.values()] if writes else found

    def add(self, mark: _Mark, stream: int, *, writes: bool) -> None:
        """Adds the mark of work on a stream, which waits for all marks that `before` returns."""
        with self._lock:
            if writes:
                self._written, self._read = mark, {}
            else:
                self._read[stream] = mark

    def remove(self, marks: Iterable[_Mark]) -> None:
        done = set(map(id, marks))
        with self._lock:
            if id(self._written) in done:
                self._written = None
            self._read = {s: mark for s, mark in self._read.items() if id(mark) not in done}


class Uses:
    """The allocations that one launch, call or copy uses. First `add` each allocation. Then call
    `precede` or `wait`, submit the work, and call `submitted` or `complete`."""

    def __init__(self) -> None:
        self._all: dict[Work, bool] = {}  # whether the work may write
        self._streams: set[int] = set()  # of other packages, whose work comes first
        self._captures: bool | None = None  # whether a program captures the stream
        self._awaited: dict[Work, list[_Mark]] = {}
        self.kept: list[object] = []  # a graph's arrays, which its replays use

    def add(self, work: Work | None, *, writes: bool) -> None:
        """Adds an allocation; None stands for memory of another package."""
        if work is not None:
            self._all[work] = self._all.get(work, False) or writes

    def follow(self, stream: int | None) -> None:
        """Adds the stream of another package, whose work so far precedes the use of an array; None
        stands for no work."""
        if stream is not None:
            self._streams.add(stream)

    def copy(self) -> Uses:
        made = Uses()
        made._all = dict(self._all)
        return made

    def _is_captured(self, stream: int) -> bool:
        if self._captures is None:
            hip = Hip.in_use()
            self._captures = hip is not None and hip.is_captured(stream)
        return self._captures

    def _marks(self) -> set[_Mark]:
        self._awaited = {work: work.before(writes=w) for work, w in self._all.items()}
        return {mark for marks in self._awaited.values() for mark in marks}

    def precede(self, stream: int) -> bool:
        """Makes the stream wait for other packages' streams, and for the earlier work on the
        allocations; returns False if there is no such work. While this thread builds a graph, waits
        for the work on the allocations instead, because a graph cannot contain the wait. Omits
        these waits while a program captures the stream: HIP refuses a capture that waits for
        earlier work."""
        for other in self._streams - {stream}:
            if mark := _mark(other):
                mark.precede(stream)
        marks = self._marks()
        if marks and _building.uses is not None:
            for mark in marks:
                mark.wait()
        elif marks and self._is_captured(stream):
            self._awaited = {}
        else:
            for mark in marks:
                mark.precede(stream)
        return bool(marks)

    def wait(self) -> None:
        """Waits for other packages' streams, and for the earlier work on the allocations."""
        for other in self._streams:
            load().mgpuStreamSynchronize(other)
        for mark in self._marks():
            mark.wait()

    def submitted(self, stream: int) -> None:
        """Remembers the work on the stream so far as a use of the allocations. Work that is part of
        a graph has not run."""
        if _building.uses is not None:
            for work, writes in self._all.items():
                _building.uses.add(work, writes=writes)
        elif self._all and not self._is_captured(stream):
            mark = _mark(stream)
            for work, writes in self._all.items() if mark else ():
                work.add(mark, stream, writes=writes)

    def finish(self, stream: int, wait: bool) -> None:
        """Waits for the stream, or remembers its work as `submitted` does."""
        if wait:
            load().mgpuStreamSynchronize(stream)
            self.complete()
        else:
            self.submitted(stream)

    def complete(self) -> None:
        """Removes the earlier work that the caller has waited for, with the work of this use."""
        if _building.uses is not None:
            self.submitted(0)
            return
        for work, marks in self._awaited.items():
            work.remove(marks)


# ---- graphs ----


class _Building(threading.local):
    uses: Uses | None = None


_building = _Building()


def builds_graph() -> bool:
    """Returns whether this thread's calls become a graph."""
    return _building.uses is not None


def keep_in_graph(array: object) -> None:
    """While this thread builds a graph, makes the graph keep an array: replays use its memory."""
    if _building.uses is not None:
        _building.uses.kept.append(array)


@contextlib.contextmanager
def graph_uses() -> Iterator[Uses]:
    """While this thread builds a graph, collects the allocations that each launch of the graph will
    use, and their arrays."""
    outer, mine = _building.uses, Uses()
    _building.uses = mine
    try:
        yield mine
    finally:
        _building.uses = outer


# ---- memory that other packages share ----

_shared: weakref.WeakValueDictionary[int, Work] = weakref.WeakValueDictionary()


def share(work: Work, address: int) -> None:
    """Remembers that another package can use an allocation of this package."""
    work.is_shared = True
    begin = _allocation_of(address)
    if begin is not None:
        _shared[begin] = work


def of_shared(address: int) -> Work | None:
    """Returns the work on the memory at an address in an array of another package. Returns None if
    this package has not shared the memory."""
    if not _shared:
        return None
    begin = _allocation_of(address)
    return None if begin is None else _shared.get(begin)


def _allocation_of(address: int) -> int | None:
    """Returns the address at which HIP's allocation around an address begins, if it is known."""
    hip = Hip.in_use()
    found = hip.address_range(address) if hip else None
    return found and found[0]
