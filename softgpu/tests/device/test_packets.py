"""Tests queues at the limits of their rings, and every kind of packet, without HIP."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

#: The bits of a queue's error signal that ROCr reads.
UNKNOWN_TYPE, UNKNOWN_FORMAT = "0x20", "0x100"


@pytest.fixture
def packets(alone: Callable[..., list[str]]) -> Callable[..., list[str]]:
    return functools.partial(alone, "packets", "gfx90a")


@pytest.mark.parametrize("case", ("wrap", "hole", "all_of", "any_of", "values"))
def test_queues_do_their_packets_in_order(packets: Callable[..., list[str]], case: str) -> None:
    assert packets(case) == []


@pytest.mark.parametrize(
    ("type_", "format_", "bits"),
    (
        (4, 0, UNKNOWN_TYPE),  # for agents that run functions
        (6, 0, UNKNOWN_TYPE),
        (255, 0, UNKNOWN_TYPE),
        (0, 0, UNKNOWN_FORMAT),
        (0, 3, UNKNOWN_FORMAT),
        (0, 255, UNKNOWN_FORMAT),
    ),
)
def test_unknown_packets_are_refused(
    packets: Callable[..., list[str]], type_: int, format_: int, bits: str
) -> None:
    assert packets("refused", type_, format_) == [bits]


def test_a_dispatch_is_numbered_by_its_packet(packets: Callable[..., list[str]]) -> None:
    """A dispatch's id is the index of the dispatch's packet among all packets. Two of every three
    packets in this test are barriers."""
    assert packets("dispatch_ids") == ["0", "3", "6"]
