"""Graphs: the GPU work of a lowered function, built once and replayed by one call."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mgpu_rt._arrays.work import Uses, graph_uses
from mgpu_rt._errors import HipError
from mgpu_rt._library import RuntimeLibrary, load
from mgpu_rt._streams import stream_for

_REFUSED = "hipErrorNotSupported"


class Graph:
    """A graph that mgpu_rt.graph has built.

    The graph owns its memory and its modules, and keeps the arrays that it uses, until the last
    reference to this object is gone. Any thread may replay the graph. Before HIP 6.3, make
    all calls on one thread. If another thread launches a kernel of the graph without a graph, HIP
    may run both kernels with wrong arguments.
    """

    def __init__(self, library: RuntimeLibrary, uses: Uses) -> None:
        self._library = library
        self._uses = uses  # the device memory that each launch of the graph uses, and the arrays
        self._handle: Any = None
        self._process = os.getpid()
        self._lock = threading.Lock()  # held while HIP gets the graph

    def _built(self, handle: Any) -> None:
        self._handle = handle
        destroy = self._library.mgpu_rt_graph_destroy
        self._library.finalize(self, destroy, handle, survives_reset=True)

    def _checked(self) -> Any:
        """Returns the handle. Raises ValueError if there is no graph, and in a forked child."""
        if os.getpid() != self._process:
            raise ValueError("the graph belongs to the parent process")
        if self._handle is None:
            raise ValueError("the graph is not built yet")
        return self._handle

    def replay(self, stream: Any = None) -> None:
        """Submits the graph to `stream`, or to the external stream (use_stream), and does not wait.
        Without a stream, submits the graph to one of the library's streams, and waits.

        While the graph runs, its copies read and write host memory. Raises HipError if HIP
        refuses the launch, or if the stream belongs to another device. Also raises HipError if
        memory that the graph copies or fills was registered, unregistered, freed or reallocated:
        then build the graph again. Raises ValueError if the graph is not built.
        """
        library, graph = self._library, self._checked()
        uses = self._uses.copy()  # several threads may replay the graph
        with stream_for(library, stream) as (on, wait):
            with self._lock:
                uses.precede(on)
                library.mgpu_rt_graph_launch(graph, on)
            uses.finish(on, wait)
        library.check("the graph was not replayed")

    def __len__(self) -> int:
        """Returns the number of the graph's nodes."""
        return self._library.mgpu_rt_graph_nodes(self._checked())

    def __repr__(self) -> str:
        try:
            return f"<mgpu_rt.Graph of {len(self)} nodes>"
        except ValueError:
            return "<mgpu_rt.Graph, none>"


@contextmanager
def graph() -> Iterator[Graph]:
    """Builds the GPU work of a `with` statement into a graph, which one call replays.

        with mgpu_rt.graph() as graph:
            lowered_function(...)      # nothing runs yet
        graph.replay()

    The calling thread's calls become nodes. Each node follows the node before, even if the calls
    use several streams. The graph omits the thread's waits. A replay uses the same addresses and
    values as the calls that built the graph. Use a graph only for host code that just submits
    work; docs/graphs.md lists the conditions.

    Raises HipError if the library cannot build the graph, and prints the reason on stderr. After
    this error no call within the `with` statement has run, so you can call the function without a
    graph.
    """
    library = load()
    with library.giving_back_later(), graph_uses() as uses:
        yield from _build(library, uses)


def _build(library: RuntimeLibrary, uses: Uses) -> Iterator[Graph]:
    found = Graph(library, uses)
    # An exception from a signal handler could interrupt the look-up of a function, and the
    # construction of the graph would not end.
    begin, end = library.mgpu_rt_graph_begin, library.mgpu_rt_graph_end
    begun, handle = True, None
    try:
        if begin() != 0:
            begun = False
            raise HipError("", 0, _REFUSED, "no graph can be built (stderr says why)")
        yield found
    finally:
        if begun:
            handle = end()
        if handle:
            found._built(handle)
    if not handle:
        raise HipError("", 0, _REFUSED, "the graph was not built (stderr says why)")
