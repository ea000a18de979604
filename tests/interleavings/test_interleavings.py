"""All interleavings of three threads over each state table of cache/types.h, and mutants of its
transitions that they find. docs/record/interleavings.md has what was looked at."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.child import BUILD, ROOT
from tests.support.folders import locked
from tests.support.patience import HANG
from tests.support.variants import Change

EXPLORE = "build/interleavings/explore"
MAKE = ["make", "-s", "-f", "tests/interleavings/build.mk", EXPLORE]
RECORD = ROOT / "docs" / "record" / "interleavings.md"

SCENARIOS = (
    "events",
    "events-asked",
    "events-reset",
    "modules",
    "modules-reset",
    "streams",
    "streams-asked",
    "streams-reset",
    "streams-moved",
    "staging",
    "blocks",
    "blocks-graph",
)

_BLOCKS = "csrc/runtime/cache/blocks.c"
_BLOCKS_POOL_H = "csrc/runtime/cache/blocks_pool.h"
_CACHES = "csrc/runtime/cache/caches.c"
_BLOCKS_TABLE = "csrc/runtime/cache/blocks_table.c"
_EVENTS = "csrc/runtime/cache/events.c"
_MODULES = "csrc/runtime/cache/modules.c"
_MODULES_H = "csrc/runtime/cache/modules.h"
_STAGING = "csrc/runtime/cache/staging.c"
_STREAMS = "csrc/runtime/cache/streams.c"
_STREAMS_POOL = "csrc/runtime/cache/streams_pool.c"
_STREAMS_POOL_H = "csrc/runtime/cache/streams_pool.h"

#: By the transition of types.h that is done wrong; and where that shows.
MUTANTS = {
    "staging is taken": (
        Change(
            _STAGING,
            "    return !exchange_acquire(&staging->taken, 1);",
            "    return !load_acquire(&staging->taken) &&\n"
            "           (store_release(&staging->taken, 1), true);",
        ),
        "staging 1 1 0",
    ),
    "staging is released": (
        Change(_STAGING, "    store_release(&staging->taken, 0);", "    (void)staging;"),
        "staging 1 1 0",
    ),
    "staging changes its owner": (
        Change(
            _STAGING,
            "    return !owner || !staging->used || stream_has_passed(owner, staging->mark);",
            "    return !owner || true;",
        ),
        "staging 1 1 0",
    ),
    "a block is entered": (
        Change(
            _BLOCKS_TABLE,
            "    store_release(&block->state, state);\n    pthread_mutex_unlock",
            "    store_release(&block->state, BLOCK_CACHED);\n    pthread_mutex_unlock",
        ),
        "blocks 1 1 0",
    ),
    "a block is freed": (
        Change(
            _BLOCKS,
            "    if (UNLIKELY(!block || !cas_acq_rel(&block->state, &live, BLOCK_CACHED)))",
            "    if (UNLIKELY(!block || !cas_acq_rel(&block->state, &live, BLOCK_LIVE)))",
        ),
        "blocks 1 1 0",
    ),
    "a block is handed out": (
        Change(
            _BLOCKS_POOL_H, "        store_release(&block->state, BLOCK_LIVE);", "        (void)0;"
        ),
        "blocks 1 1 0",
    ),
    "a block leaves": (
        Change(_BLOCKS_TABLE, "    if (owned)\n", "    if (true)\n"),
        "blocks 1 1 0",
    ),
    "a block is forgotten": (
        Change(
            _BLOCKS_TABLE, "        if (of_device(device, block->device) &&", "        if (false &&"
        ),
        "blocks 1 1 0",
    ),
    "a block leaves the account": (
        Change(_BLOCKS_TABLE, "    block->booked = false;\n", ""),
        "blocks 1 1 0",
    ),
    "a block waits for other streams": (
        Change(
            "csrc/runtime/cache/blocks_waiting.c",
            "    return at_work == stream || stream_has_passed(at_work, mark) || "
            "stream_is_idle(at_work);",
            "    return at_work == stream || mark;",
        ),
        "blocks 4 0 0",
    ),
    "a block is entered for a graph": (
        Change(
            _BLOCKS,
            "!block_enter(address, size, device, BLOCK_GRAPH)",
            "!block_enter(address, size, device, BLOCK_LIVE)",
        ),
        "blocks-graph 1 1 1",
    ),
    "a block is kept for a graph": (
        Change(
            _BLOCKS,
            "    if (!cas_acq_rel(&block->state, &state, BLOCK_KEPT))",
            "    if (!cas_acq_rel(&block->state, &state, BLOCK_GRAPH))",
        ),
        "blocks-graph 1 1 0",
    ),
    "a block serves its graph again": (
        Change(
            _BLOCKS,
            "change_block(block, BLOCK_KEPT, BLOCK_GRAPH);",
            "block && load_acquire(&block->state) == BLOCK_KEPT;",
        ),
        "blocks-graph 1 1 1",
    ),
    "a graph ends as its block is freed": (
        Change(
            _BLOCKS,
            "    if (state == BLOCK_GRAPH || state == BLOCK_LIVE) /*",
            "    if (false) /*",
        ),
        "blocks-graph 1 1 1",
    ),
}


def _explore(home: Path, arguments: str) -> subprocess.CompletedProcess[str]:
    command = [home / EXPLORE, *arguments.split()]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG)


def _states(home: Path, arguments: str) -> int:
    found = _explore(home, arguments)
    assert found.returncode == 0, found.stdout + found.stderr
    counted = re.search(r": (\d+) states, ", found.stdout)
    assert counted, found.stdout
    return int(counted[1])


def _recorded() -> dict[str, tuple[int, float]]:
    """Threads, and millions of states, by scenario."""
    rows = re.findall(r"(?m)^\| ([a-z-]+) \|.*\| (\d) \| ([\d.]+) \|$", RECORD.read_text())
    return {name: (int(threads), float(millions)) for name, threads, millions in rows}


@pytest.fixture(scope="module")
def explorer() -> Path:
    with locked(BUILD / "interleavings"):
        subprocess.run([*MAKE, "-j2"], cwd=ROOT, check=True, timeout=HANG)
    return ROOT


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_state_of_two_threads_is_as_types_h_says(explorer: Path, scenario: str) -> None:
    assert _states(explorer, f"{scenario} 1 1 0") > 500


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_all_that_the_record_lists_was_explored(explorer: Path, scenario: str) -> None:
    threads, millions = _recorded()[scenario]
    # Addresses decide which words lie side by side, and so on a few states more.
    states = _states(explorer, f"{scenario} 1 1 {threads - 2}") / 1e6
    assert states == pytest.approx(millions, rel=0.2)


def test_the_record_has_every_scenario() -> None:
    assert tuple(_recorded()) == SCENARIOS


@pytest.mark.parametrize("name", MUTANTS)
def test_the_explorer_finds_each_planted_fault(name: str, explorer: Path, tmp_path: Path) -> None:
    change, arguments = MUTANTS[name]
    for folder in ("csrc", "tests/interleavings", "build/interleavings"):
        shutil.copytree(explorer / folder, tmp_path / folder)  # with the times of its files
    change.make_in(tmp_path)
    subprocess.run(MAKE, cwd=tmp_path, check=True, timeout=HANG)
    found = _explore(tmp_path, arguments)
    assert found.returncode == 1, found.stdout + found.stderr
