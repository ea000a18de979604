"""The selftest reports a library as wrong if the library handles external streams or graphs
wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.selftest import share
from tests.support.variants import without

pytestmark = pytest.mark.check


def is_called_wrong(library: Path, folder: Path, *names: str) -> bool:
    return any([share.calls_wrong(check) for check in share.checks_of(library, folder, names)])


def test_a_library_that_ignores_lent_streams_is_called_wrong(tmp_path: Path) -> None:
    with without("caller_has_an_external_stream") as library:
        assert is_called_wrong(library, tmp_path, "proofs-captures")


@pytest.mark.parametrize(
    "proof",
    ["wait_of_a_stream_is_an_edge", "memory_that_serves_again_is_an_edge", "graph_may_run_still"],
)
def test_a_library_that_gets_graphs_wrong_is_called_wrong(proof: str, tmp_path: Path) -> None:
    """The faulty library omits an edge for a wait or for reused memory, or destroys a graph that is
    still running."""
    with without(proof) as library:
        assert is_called_wrong(library, tmp_path, "proofs-graphs")
