"""The manager's side of the memory that csrc/runtime/manager/table.h describes."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Iterable, Iterator

from mgpu_rt import __version__
from mgpu_rt._manager import ffi, lib
from mgpu_rt.manager import CachedObject, Caches, Decision, Evict, Kind, Limits, Pin

START = 10_000  # ms: the longest time until the library has set the table up
LOOK = 10_000  # ms after which a waiting thread looks at the turn again, even without a wake-up


class Table:
    """Exchanges lists of objects and decisions with the library."""

    def __init__(self) -> None:
        """Raises OSError if this process was not started by a library of the same version."""
        size = ffi.sizeof("struct table")
        if os.fstat(lib.TABLE_FD).st_size != size:
            raise OSError("the package mgpu_rt and the library are of different versions")
        self._table = ffi.from_buffer("struct table *", mmap.mmap(lib.TABLE_FD, size))
        if not lib.table_await(self._table, START):
            raise OSError("the program has ended")
        version = ffi.string(self._table.version).decode(errors="replace")
        if version != __version__:
            raise OSError(f"the package mgpu_rt is {__version__} and the library {version}")
        os.close(lib.TABLE_FD)  # so far the file could take the reason for a refusal
        threading.Thread(target=lib.table_watch, args=(self._table,), daemon=True).start()
        self.verbose = bool(self._table.verbose)
        self._line, self._lines = "", b""

    def turns(self) -> Iterator[Caches]:
        """Waits for each turn of the manager; the caller answers each turn. Endless: the process
        ends with the program."""
        while True:
            while not lib.table_await(self._table, LOOK):
                pass
            yield self._read()

    def _read(self) -> Caches:
        table, devices = self._table, range(lib.TABLE_DEVICES)
        lists = [
            [
                CachedObject(o.handle, o.bytes, o.uses, o.device, bool(o.held))
                for o in table.objects[kind][0 : table.counts[kind]]
            ]
            for kind in Kind
        ]
        limits = {d: table.memory_bytes[d] for d in devices if table.memory_bytes[d]}
        return Caches(*lists, Limits(table.module_bytes, table.streams, limits))

    def answer(self, decisions: Iterable[Decision]) -> None:
        """Ends the manager's turn. Raises the exceptions of a policy that yields its decisions, and
        TypeError for an object that is not a decision; the turn then goes on."""
        count = 0
        for decision in decisions:
            if count < lib.TABLE_DECISIONS:
                self._write(self._table.decisions[count], decision)
            count += 1
        self._table.decided = min(count, lib.TABLE_DECISIONS)
        room = lib.TABLE_TEXT - 1
        ffi.memmove(self._table.text, self._lines[:room] + b"\0", min(len(self._lines), room) + 1)
        self._lines = self._lines[room:]
        lib.table_answer(self._table)

    @staticmethod
    def _write(out: object, decision: Decision) -> None:
        match decision:
            case Evict(kind, handle):
                values = (lib.ACTION_EVICT, Kind(kind), handle, 0)
            case Pin(handle, pinned):
                values = (lib.ACTION_PIN, 0, handle, int(pinned))
            case _:
                raise TypeError(f"{decision!r} is not a decision: use Evict or Pin")
        out.action, out.kind, out.handle, out.value = values  # type: ignore[attr-defined]

    def say(self, text: str) -> None:
        """Prints a line on the program's stderr, at the end of the turn."""
        self._lines += text.encode(errors="replace").replace(b"\0", b"?") + b"\n"

    def write(self, text: str) -> int:
        """Prints the complete lines of a text: this process has no stdout and stderr of its own."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self.say(line)
        return len(text)

    def flush(self) -> None:
        pass
