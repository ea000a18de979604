"""Tests MGPU_RT_TRACE: each call is in the right row, and a line gives the number of lost calls."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support import browser, known, recordings
from tests.support.child import Mgpu, environment, in_child
from tests.support.folders import folder, in_folder
from tests.support.patience import run_process
from tests.support.programs import Outcome, run, ways


def read(path: Path) -> tuple[list[dict], dict[str, int]]:
    """Returns the calls in a trace, and the trace's metadata."""
    trace = recordings.trace(path)
    events = trace["traceEvents"]
    assert trace["otherData"]["ended"] == "exit"
    kept = [e for e in events if e["ph"] == "C" or e.get("cat") in ("program", "driver")]
    starts = sum(event.get("cat") == "start" for event in events)
    pointers = sum(len(e["args"].get("pointers", ())) for e in kept if e.get("cat") == "program")
    assert trace["otherData"]["kept"] == len(kept) + starts + pointers
    return [event for event in kept if event["ph"] == "X"], trace["otherData"]


def test_hips_start_is_before_the_first_call(tmp_path: Path) -> None:
    """The trace shows HIP's start, which contains the first stream. No call's time contains HIP's
    start."""
    path, delay = tmp_path / "trace.json", "hipInit:300000,hipStreamCreate:100000"
    way = ways()["linked"]
    run("forum", 22, way, iterations=3, MGPU_RT_TRACE=str(path), HIPSTUB_DELAY=delay)
    events = [e for e in recordings.trace(path)["traceEvents"] if e["ph"] == "X"]
    starts = [event for event in events if event["cat"] == "start"]
    assert [event["name"] for event in starts] == ["HIP's start"] * 2
    assert [event["dur"] >= least for event, least in zip(starts, (3e5, 1e5), strict=True)]
    end = starts[0]["ts"] + starts[0]["dur"]
    assert all(event["ts"] >= end for event in events if event["cat"] == "program")
    assert min(e["ts"] for e in events if e["name"] == "mgpuStreamCreate") > starts[1]["ts"] + 9e4


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Path]:
    """Returns the outcome of a run with a trace, and the trace's path."""
    path = tmp_path_factory.mktemp("recorded") / "trace.json"
    outcome = run("churn", 19, ways()["linked"], iterations=7, MGPU_RT_TRACE=str(path))
    return outcome, path


@pytest.fixture(scope="module")
def traced(recorded: tuple[Outcome, Path]) -> tuple[Outcome, list[dict]]:
    """Returns the program's outcome, and the calls of the trace."""
    outcome, path = recorded
    calls, about = read(path)
    assert about["lost"] == 0
    return outcome, calls


@pytest.fixture(scope="module")
def events(recorded: tuple[Outcome, Path]) -> list[dict]:
    """Returns all events of the trace."""
    return recordings.trace(recorded[1])["traceEvents"]


def test_a_trace_has_every_call(
    recorded: tuple[Outcome, Path], traced: tuple[Outcome, list[dict]]
) -> None:
    """The trace contains each call as often as the statistics count it, including Python's
    calls."""
    _, calls = traced
    stats = recordings.stats(recorded[1])
    for layer, key in (("program", "abi"), ("driver", "hip")):
        counted = {name: counter["calls"] for name, counter in stats[key].items()}
        assert Counter(c["name"] for c in calls if c["cat"] == layer) == counted


def test_each_stream_is_a_row(events: list[dict]) -> None:
    """The work that a program submits to a stream is in the stream's row; a launch has the name of
    the kernel."""
    rows = [event for event in events if event.get("cat") == "stream"]
    assert rows
    assert {row["tid"] for row in rows} == {1}
    calls = [e for e in events if e.get("cat") == "program"]
    kernels = {call["args"].get("kernel") for call in calls if "Launch" in call["name"]}
    assert None not in kernels
    assert kernels < {row["name"] for row in rows}
    assert all(row["args"]["stream"] == row["tid"] for row in rows)


def test_calls_show_the_addresses_that_they_pass(events: list[dict]) -> None:
    """An allocation and a free show the block; a launch and a copy show which blocks they get."""
    calls = [event for event in events if event.get("cat") == "program"]
    held: set[str] = set()
    given = Counter()
    for call in sorted(calls, key=lambda call: call["ts"]):
        if call["name"] == "mgpuMemAlloc":
            held.add(call["args"]["address"])
        elif call["name"] == "mgpuMemFree":
            held.remove(call["args"]["address"])
        elif pointers := call["args"].get("pointers"):
            given[call["name"]] += len(held.intersection(pointers))
    allocations = sum(call["name"] == "mgpuMemAlloc" for call in calls)
    assert given["mgpuLaunchKernel"] == allocations
    assert given["mgpuMemcpy"] == sum(call["name"] == "mgpuMemcpy" for call in calls)


def test_a_trace_counts_device_memory(events: list[dict]) -> None:
    """Freed memory stays cached at the end. While the program holds blocks, the second value also
    contains the bytes by which sizes are rounded up."""
    values = [event["args"] for event in events if event["ph"] == "C"]
    assert max(value["allocated"] for value in values) > 0
    assert values[-1]["allocated"] == 0 < values[-1]["rounding and cached"]


#: Reads a trace with the browser's own reader, and returns each row's name and the names of the
#: row's entries.
READ = """(async () => {
    const reader = await import("devtools://devtools/bundled/models/trace/trace.js");
    const model = reader.TraceModel.Model.createWithAllHandlers();
    await model.parse(TRACE.traceEvents, {metadata: {}, isFreshRecording: false});
    const {Meta, Renderer} = model.parsedTrace(0).data;
    const rows = [...Renderer.processes.values()].flatMap(p => [...p.threads.values()]);
    return {generic: Meta.traceIsGeneric,
            rows: rows.map(row => [row.name, row.entries.map(entry => entry.name)])};
})()"""


@pytest.mark.check
@pytest.mark.skipif(not browser.find(), reason="there is no Chromium")
def test_a_browser_reads_a_trace(events: list[dict]) -> None:
    """The test uses Chromium's developer tools, which also read traces, because Debian's Chromium
    lacks chrome://tracing."""
    trace = json.dumps({"traceEvents": events})
    page = "devtools://devtools/bundled/devtools_app.html"
    found = browser.value(page, READ.replace("TRACE", trace))
    assert found["generic"]
    shown = {name: Counter(names) for name, names in found["rows"]}
    for row in (event for event in events if event["name"] == "thread_name"):
        place = (row["pid"], row["tid"])
        made = (e["name"] for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == place)
        assert shown[row["args"]["name"]] == Counter(made)


def test_driver_calls_lie_within_calls_of_the_program(traced: tuple[Outcome, list[dict]]) -> None:
    """No two calls of the program overlap. Each driver call happens during one call of the program,
    except some driver calls at exit."""
    _, calls = traced
    program = sorted((c for c in calls if c["cat"] == "program"), key=lambda c: c["ts"])
    for call, following in itertools.pairwise(program):
        assert call["ts"] + call["dur"] <= following["ts"]
    last = program[-1]["ts"] + program[-1]["dur"]
    for call in calls:
        if call["cat"] == "driver" and call["ts"] < last:
            inside = [p for p in program if p["ts"] <= call["ts"] < p["ts"] + p["dur"]]
            assert len(inside) == 1, call
            assert call["ts"] + call["dur"] <= inside[0]["ts"] + inside[0]["dur"]


THREADS = """
#include "program.h"
static void *work(void *calls) {
    for (long i = 0; i < (long)calls; i++)
        mgpuStreamDestroy(mgpuStreamCreate());
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t threads[2];
    (void)argc;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)atol(argv[1]));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
"""


@pytest.fixture(scope="module")
def threads() -> Path:
    """Builds a program whose name JSON must escape; each of its two threads makes a given number of
    calls."""
    return known.program(folder("trace"), THREADS, name='two "threads"')


def run_threads(threads: Path, calls: int, path: Path) -> subprocess.CompletedProcess[str]:
    env = environment(MGPU_RT_TRACE=str(path), MGPU_RT_MANAGER="off", HIPSTUB_MODE="fast")
    return run_process([str(threads), str(calls)], env)


def test_threads_are_told_apart(threads: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    run_threads(threads, 1000, path)
    calls, _ = read(path)
    made = Counter(call["tid"] for call in calls if call["cat"] == "program")
    assert sorted(made.values()) == [2000, 2000]


@pytest.mark.nightly
def test_the_newest_million_events_are_kept(threads: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    run_threads(threads, 270_000, path)  # 1,080,000 calls and a few of the driver's
    calls, about = read(path)
    assert about["kept"] == len(calls) == 1 << 20
    assert about["lost"] >= 1_080_000 - (1 << 20)
    assert calls[-1]["name"] == "mgpuStreamDestroy"  # nothing goes back at exit


@pytest.mark.check
@in_child(policies=("builtin",), HIPSTUB_MODE="fast", MGPU_RT_TRACE="trace.json")
@in_folder
def test_each_of_many_streams_has_its_number(mgpu: Mgpu) -> None:
    """The streams are numbered in the order of their first use."""
    streams = [mgpu.StreamCreate() for _ in range(4500)]
    for _ in range(2):
        for stream in streams:
            mgpu.StreamSynchronize(stream)
    trace = recordings.trace("trace.json")
    calls = [e for e in trace["traceEvents"] if e["name"] == "mgpuStreamSynchronize"]
    rows = [call["args"]["stream"] for call in calls if call["cat"] == "program"]
    assert rows == 2 * list(range(1, 4501))


# ---- the ways of copies ----

TRACED = {"policies": ("builtin",), "MGPU_RT_TRACE": "trace.json"}
KIB, MIB = 1 << 10, 1 << 20


@in_child(**TRACED, MGPU_RT_EXCLUSIVE="on")
@in_folder
def test_a_copy_shows_its_way(mgpu: Mgpu) -> None:
    """Copies up to 512 KiB to the device go through pinned memory. HIP makes larger copies, copies
    from the device, within the device and within the host, and copies of registered memory. The
    last copy is on a stream that the program has destroyed."""
    stream, gone = mgpu.StreamCreate(), mgpu.StreamCreate()
    block, other = (mgpu.MemAlloc(MIB, stream, False) for _ in range(2))
    host = mgpu.ffi.new("char[]", MIB)
    for size in (KIB, MIB):
        mgpu.Memcpy(block, host, size, stream)
        mgpu.StreamSynchronize(stream)
    for target, source in ((host, block), (other, block), (host, host + KIB)):
        mgpu.Memcpy(target, source, KIB, stream)
    mgpu.MemHostRegister(host, KIB)
    mgpu.Memcpy(block, host, KIB, stream)
    mgpu.StreamDestroy(gone)
    mgpu.Memcpy(block, host, KIB, gone)
    assert recordings.results("trace.json", "mgpuMemcpy") == [
        "hit",
        "bypass",
        *[None] * 4,
        "refused",
    ]


@in_child(backends=("custub",), **TRACED)
@in_folder
def test_nvidias_driver_does_small_copies(mgpu: Mgpu) -> None:
    """NVIDIA's driver copies the bytes during the call, so pinned memory would gain nothing."""
    stream = mgpu.StreamCreate()
    block, host = mgpu.MemAlloc(MIB, stream, False), mgpu.ffi.new("char[]", MIB)
    for size in (16 * KIB, MIB):
        mgpu.Memcpy(block, host, size, stream)
    for size in (16 * KIB, MIB):
        mgpu.Memcpy(host, block, size, stream)
    assert recordings.results("trace.json", "mgpuMemcpy") == [None, "bypass", "hit", "bypass"]


@in_child(backends=("custub",), **TRACED)
@in_folder
def test_nvidias_driver_tells_which_arguments_may_be_pointers(mgpu: Mgpu) -> None:
    """The stub's kernels have two parameters of 8 bytes. A third word behind them is no argument,
    and a number below 64 KiB is no address."""
    stream = mgpu.StreamCreate()
    text = b".version 7.0\n.target sm_90\n.address_size 64\n.visible .entry add() {ret;}\n"
    module = mgpu.lib.mgpuModuleLoadJIT(mgpu.image(text), 2, 0)
    function = mgpu.ModuleGetFunction(module, mgpu.ffi.from_buffer(b"add\0"))
    for words in ([1 << 20, 7, 1 << 21], [7, 1 << 20, 1 << 21], [1 << 20, 1 << 21, 1 << 22]):
        values = mgpu.ffi.new("uint64_t[]", words)
        params = mgpu.ffi.new("void *[]", [values + i for i in range(3)])
        null = mgpu.ffi.NULL
        mgpu.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, null, 0)
    calls = recordings.trace("trace.json")["traceEvents"]
    launches = [c for c in calls if c.get("cat") == "program" and "Launch" in c["name"]]
    given = [c["args"]["pointers"] for c in launches]
    assert given == [["0x100000"], ["0x100000"], ["0x100000", "0x200000"]]
