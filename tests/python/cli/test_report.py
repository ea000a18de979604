"""`mgpu-rt compare --report`: the page's content for each kind of file, and error messages."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

from mgpu_rt._cli.files import check_writable
from mgpu_rt._cli.options import options
from mgpu_rt._cli.report import charts, inputs, page
from mgpu_rt._cli.report.advice import _LIMITS
from mgpu_rt._cli.report.format import document, duration
from mgpu_rt._cli.report.tables import percentile
from mgpu_rt._cli.stats.statistics import Counter, Statistics
from mgpu_rt._cli.stats.tables import QUESTIONS
from tests.support import recorded
from tests.support.child import ROOT
from tests.support.command import assert_sentence, command, invoke
from tests.support.pages import Page
from tests.support.programs import STOCK, build
from tests.support.recorded import call

LAUNCHES = 20


def files(folder: Path, **contents: Any) -> list[str]:
    """Writes the contents to files, and returns the files' paths."""
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return [str(folder / f"{name}.json") for name in contents]


def report(folder: Path, **contents: Any) -> Page:
    """Returns the report page for files with these contents."""
    result = invoke("compare", "--report", "-", *files(folder, **contents))
    assert result.exit_code == 0, result.stderr
    return Page(result.stdout)


def read(folder: Path, **contents: Any) -> inputs.Run:
    """Writes files with these contents; returns the last of the runs that the files describe."""
    return inputs.of_files(files(folder, **contents))[-1]


def counted(key: str, name: str, **values: int) -> dict[str, Any]:
    """Returns statistics in which one counter is changed."""
    whole = recorded.statistics()
    whole[key][name] = values
    return whole


# ---- a program ----


@pytest.fixture(scope="module")
def forum() -> Path:
    return build("forum", 19, LAUNCHES, STOCK)


def test_a_program_is_run_twice(forum: Path, tmp_path: Path) -> None:
    path = tmp_path / "forum.html"
    words = ("compare", "--report", path, "--device", "softgpu", "--", forum)
    result = command(*words, MGPU_RT_HIP="")
    assert result.returncode == 0
    assert result.stderr == f"mgpu-rt: wrote {path}\n"
    assert result.stdout.startswith("before: stock's behaviour")  # the tables of these two runs
    assert f"{LAUNCHES}      1" in result.stdout
    shown = Page(path.read_text())
    loads = shown.tables["Calls of the driver"]["hipModuleLoadData"]
    assert loads[:2] == [str(LAUNCHES), "1"]
    assert shown.tables["Caches, after"]["modules"][:3] == [str(LAUNCHES - 1), "1", "0"]
    assert f"Before: {LAUNCHES} launches in" in shown.text
    assert "after: 3 objects made by the driver" in shown.text
    assert f"before: {forum}, run with stock's behaviour" in shown.text
    assert "tmp" not in shown.text.replace(str(forum), "")


def test_processes_of_a_program_are_added_up(forum: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\n"{forum}"\n"{forum}"\nexit 0\n')
    script.chmod(0o755)
    words = ("compare", "--report", "-", "--device", "softgpu", "--", script)
    result = command(*words, MGPU_RT_HIP="")
    assert result.returncode == 0, result.stderr
    shown = Page(result.stdout)
    launches = shown.tables["Calls of the program"]["mgpuLaunchKernel"]
    assert launches[:2] == [str(2 * LAUNCHES)] * 2
    assert f"after: {2 * LAUNCHES} launches in" in shown.text


def test_a_page_of_real_files_has_the_calls(forum: Path, tmp_path: Path) -> None:
    """The test creates the files with `mgpu-rt run`, as a user does."""
    places = [str(tmp_path / name) for name in ("stats.json", "trace.json")]
    outputs = ("--stats-json", places[0], "--trace", places[1])
    command("run", "--device", "softgpu", *outputs, "--", forum, MGPU_RT_HIP="")
    result = command("compare", *places, "--report", tmp_path / "page.html")
    assert result.returncode == 0, result.stderr
    calls = Page((tmp_path / "page.html").read_text()).tables["Calls of the program"]
    assert calls["mgpuLaunchKernel"][0] == str(LAUNCHES)


# ---- which run a file belongs to ----


def test_two_of_a_kind_are_before_and_after(tmp_path: Path) -> None:
    shown = report(tmp_path, a=recorded.stock(), b=recorded.statistics())
    assert shown.tables["Calls of the program"]["mgpuModuleLoad"] == [
        *("100", "100", "1.00 ms", "10.0 µs", "10.0 µs", "100 ns", "100")
    ]
    assert "took 5.00 ms before and 50.0 µs after, 100 times as fast" in shown.text


def test_a_slower_run_is_called_slower(tmp_path: Path) -> None:
    shown = report(tmp_path, a=recorded.statistics(), b=recorded.stock())
    assert "50.0 µs before and 5.00 ms after, 100 times as long" in shown.text


def test_the_headline_says_how_far_the_ratio_varies(tmp_path: Path) -> None:
    """The page says that the program ran only once on each side. If the two traces contain equal
    calls, the page also shows the range of ratios."""
    begun = [call("mgpuLaunchKernel", 100 * n, 40) for n in range(18)]
    slow = recorded.trace(*begun, *(call("mgpuLaunchKernel", 2000 + 100 * n, 80) for n in range(2)))
    fast = recorded.trace(*(call("mgpuLaunchKernel", 50 * n, 20) for n in range(20)))
    told = "Each side ran once. In ten equal parts of the calls, the ratio is 2.00 to 4.00."
    assert told in report(tmp_path, a=slow, b=fast).text
    fewer = recorded.trace(*begun)
    assert "Each side ran once. " in report(tmp_path, a=slow, b=fewer).text
    assert "Each side ran once" not in report(tmp_path, b=fast).text


def test_one_trace_belongs_to_the_last_run(tmp_path: Path) -> None:
    one = recorded.trace(call("mgpuLaunchKernel", 5))
    first, last = inputs.of_files(
        files(tmp_path, a=recorded.stock(), b=recorded.statistics(), t=one)
    )
    assert first.trace is None
    assert last.trace


def test_a_trace_belongs_to_its_process(tmp_path: Path) -> None:
    before = recorded.stock(process=recorded.process())
    after = recorded.statistics(process=recorded.process(pid=8))
    one = recorded.trace(call("mgpuLaunchKernel", 5))  # of process 7
    first, last = inputs.of_files(files(tmp_path, t=one, a=before, b=after))
    assert first.trace
    assert last.trace is None


def test_a_trace_without_statistics_has_counts(tmp_path: Path) -> None:
    calls = [call("mgpuLaunchKernel", 10 * n, 2, kernel="k") for n in range(4)]
    shown = report(tmp_path, t=recorded.trace(*calls))
    assert shown.tables["Calls of the program"]["mgpuLaunchKernel"] == ["4", "8.00 µs", "2.00 µs"]
    assert shown.tables["Launches by kernel"]["k"] == ["4", "8.00 µs", "2.00 µs"]
    assert "– No statistics were given" in shown.text


def test_statistics_without_a_trace_say_so(tmp_path: Path) -> None:
    shown = report(tmp_path, a=recorded.statistics())
    assert "– No trace was given" in shown.text
    assert "– Neither is in these files" in shown.text
    assert "Time of one call, by the trace" not in shown.tables


def test_more_than_two_of_a_kind_are_refused(tmp_path: Path) -> None:
    paths = files(tmp_path, **dict.fromkeys("abc", recorded.statistics()))
    result = invoke("compare", "--report", str(tmp_path / "page"), *paths)
    assert_sentence(result.exit_code, result.stderr, "3 statistics files were named: name one, or")


# ---- the page's content ----


def test_a_page_has_kernels_copies_and_modules(tmp_path: Path) -> None:
    whole = recorded.statistics(
        process=recorded.process(rank=3),
        kernels={"mul": {"launches": 60, "ns": 1200}, "add": {"launches": 40, "ns": 9000}},
        copies={"to_device": {"calls": 2, "bytes": 4096}, "fill": {"calls": 0, "bytes": 0}},
        modules=[recorded.module(driver_loads=100, why="writable globals")],
    )
    shown = report(tmp_path, a=whole)
    assert list(shown.tables["Launches by kernel"]) == ["kernel", "add", "mul", "total"]
    assert shown.tables["Copies and fills"] == {
        "direction": ["calls", "bytes"],
        "to the device": ["2", "4.1 kB"],
    }
    assert shown.tables["Modules"]["0123456789abcdef"] == [
        *("4,984", "100", "100", "count", "writable globals")
    ]
    assert "process 7, rank 3" in shown.text


def test_peaks_of_devices_are_added_up(tmp_path: Path) -> None:
    """The page distinguishes a counter with value 0 from a missing counter."""
    keys = ("allocated", "peak_allocated", "reserved", "blocks", "cached_blocks")
    device = {**dict.fromkeys(keys, 0), "peak_reserved": 2_000_000}
    shown = report(tmp_path, a=recorded.statistics(memory={"0": device, "1": device}))
    assert "device memory, peak 4.0 MB" in shown.text


def test_quantiles_come_from_the_trace(tmp_path: Path) -> None:
    calls = [call("mgpuLaunchKernel", 1000 * n, n) for n in range(1, 101)]
    shown = report(tmp_path, t=recorded.trace(*calls))
    row = shown.tables["Time of one call, by the trace"]["mgpuLaunchKernel"]
    assert row == ["50.0 µs", "99.0 µs", "100 µs"]


@pytest.mark.parametrize("count", [1, 2, 3, 50, 99, 100, 101, 1000])
def test_quantiles_are_those_of_a_plain_sort(count: int) -> None:
    values = random.Random(count).sample(range(10 * count), count)
    for percent in (1, 50, 90, 99, 100):
        enough = [v for v in values if 100 * sum(w <= v for w in values) >= percent * count]
        assert percentile(percent, sorted(values)) == min(enough)


def test_the_median_is_never_beyond_99_of_100(tmp_path: Path) -> None:
    """The trace contains two calls, one of them long."""
    events = [call("mgpuLaunchKernel", 10_000 * n, duration) for n, duration in ((1, 1), (2, 3000))]
    rows = report(tmp_path, t=recorded.trace(*events)).tables["Time of one call, by the trace"]
    assert rows["mgpuLaunchKernel"] == ["1.00 µs", "3.00 ms", "3.00 ms"]


def test_functions_have_the_names_that_the_runtime_calls_them_by() -> None:
    rows = (ROOT / "csrc" / "runtime" / "driver" / "hip.def").read_text(encoding="utf-8")
    called = {f"hip{name}" for name in re.findall(r"^HIP_FN\(\w+, (\w+),", rows, re.MULTILINE)}
    limits = {name for _, make, take, _ in _LIMITS.values() for name in (make, take)}
    assert {*charts.MAKES, *QUESTIONS, *limits} <= called


def test_the_advice_knows_the_defaults() -> None:
    defaults = {f"{option.variable} ({option.default})" for option in options()}
    assert {option for *_, option in _LIMITS.values()} <= defaults


def test_memory_of_processes_is_added_up_over_time(tmp_path: Path) -> None:
    """Two processes own memory at the same time, and the page adds their memory up."""
    one = recorded.trace(
        call("mgpuMemAlloc", 0),
        call("mgpuMemFree", 100),
        recorded.memory(10, 1_000_000, 0),
        recorded.memory(60, 0, 1_000_000),
        recorded.memory(20, 2_000_000, 500_000, pid=8),
    )
    shown = report(tmp_path, t=one)
    assert "At most 3.0 MB held by the program, 3.5 MB with the blocks kept" in shown.text


def test_a_trace_without_memory_says_so(tmp_path: Path) -> None:
    shown = report(tmp_path, t=recorded.trace(call("mgpuLaunchKernel", 0)))
    assert "Device memory – The trace holds nothing about it." in shown.text


def test_the_start_of_hip_is_in_no_call(tmp_path: Path) -> None:
    """Statistics contain the time of HIP's start. If there are no statistics, the page reads this
    time from the trace."""
    before = recorded.stock(start={"ns": 299_000_000})
    after = recorded.statistics(start={"ns": 250_000_000})
    shown = report(tmp_path, a=before, b=after)
    assert "5.00 ms before and 50.0 µs after, 100 times as fast." in shown.text
    assert "each run pays it once, 299 ms before and 250 ms after." in shown.text
    assert "HIP's start 299 ms → 250 ms" in shown.text
    assert "before: 304 ms, with HIP's start" in shown.text
    events = (call("HIP's start", 0, 300, "start"), call("mgpuLaunchKernel", 400, 2))
    alone = report(tmp_path, t=recorded.trace(*events))
    assert "HIP's start 300 µs" in alone.text
    assert alone.tables["Calls of the program"]["total"][:2] == ["1", "2.00 µs"]


def test_waits_within_copies_are_shown(tmp_path: Path) -> None:
    """The group of mgpuStreamSynchronize does not contain a copy's wait."""
    before, after = recorded.stock(), recorded.statistics()
    after["hip"]["hipStreamSynchronize"] = {"calls": 9, "ns": 61_800_000}
    shown = report(tmp_path, a=before, b=after).text
    assert "HIP waited for the GPU – → 61.8 ms of these times, in calls of several groups" in shown
    assert "waited for the GPU" not in report(tmp_path, a=before, b=before).text


def test_a_page_says_where_and_when(tmp_path: Path) -> None:
    more = {"process": recorded.process(), "device": {"name": "MI300X", "hip": "7.2.4"}}
    shown = report(tmp_path, s=recorded.statistics(**more))
    assert "On MI300X, HIP 7.2.4, 2027-01-15 08:00 UTC." in shown.text
    assert "EMULATED" not in shown.text
    more["device"] = {"name": "softgpu gfx90a (emulated)", "hip": None}
    shown = report(tmp_path, a=recorded.stock(**more), b=recorded.statistics(**more))
    assert shown.text.count("EMULATED: no GPU was timed.") == 1
    assert "EMULATED: no GPU was timed. The program's calls took" in shown.text
    assert "HIP of an unknown release, 2027" in shown.text


def test_rows_beyond_those_that_matter_are_counted(tmp_path: Path) -> None:
    kernels = {f"k{n}": {"launches": 1, "ns": 1000 - n} for n in range(100)}
    rows = report(tmp_path, a=recorded.statistics(kernels=kernels)).tables["Launches by kernel"]
    assert list(rows)[1:41] == [f"k{n}" for n in range(40)]
    assert "and 60 more" in rows
    assert rows["total"][0] == "100"


# ---- charts ----


def test_steps_hold_running_totals_and_highest_levels() -> None:
    assert charts.running_totals([0, 1, 5, 9.99, 10], 0, 10, 5) == [2, 2, 3, 3, 5]
    memory = [inputs.Level(2, 5, 0), inputs.Level(3, 1, 4), inputs.Level(7, 0, 0)]
    held, kept = charts.memory_levels(memory, 0, 10, 5)
    assert held == [0, 5, 1, 1, 0]
    assert kept == [0, 5, 5, 5, 0]


def test_a_short_run_has_as_many_steps_as_it_takes() -> None:
    assert charts.step_count(5, 10) == charts.STEPS / 2
    assert charts.step_count(1, 10_000) == 1


def test_a_call_without_a_duration_is_drawn(tmp_path: Path) -> None:
    events = [call("mgpuLaunchKernel", 5, 0), recorded.memory(5, 0, 0)]
    shown = report(tmp_path, t=recorded.trace(*events))
    assert "1 launch in 1 ns" in shown.text


def test_ticks_are_round() -> None:
    assert charts.ticks(1000) == [0, 250, 500, 750, 1000]
    assert charts.ticks(7) == [0, 2, 4, 6, 8]
    assert charts.ticks(0.3)[-1] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("ns", "told"),
    [
        (None, "–"),
        (0, "0 ns"),
        (41.4, "41 ns"),
        (999.6, "1.00 µs"),
        (9_996, "10.0 µs"),
        (446e6, "446 ms"),
        (999.6e6, "1.00 s"),
        (12_345e9, "12345 s"),
    ],
)
def test_durations_have_three_digits(ns: float | None, told: str) -> None:
    assert duration(ns) == told


@pytest.mark.check
def test_a_million_events_are_binned() -> None:
    """A page stays small, even if the trace is long and contains many kernels."""
    half = 500_000
    events = (
        event
        for n in range(half)
        for event in (
            call("mgpuLaunchKernel", 10 * n, 2, kernel=f"kernel_{n % 5000}_{'x' * 500}"),
            call("hipModuleLaunchKernel", 10 * n + 0.5, 1, "driver"),
        )
    )
    read = inputs.read_traces({"t.json": {"traceEvents": events}})
    assert read.program["mgpuLaunchKernel"].counter() == Counter(half, 2000 * half)
    counted = Statistics({}, {}, {})
    run = inputs.Run("program", counted, inputs.Details(), read, ("t.json",))
    text = document("title", page.body([run]))
    assert "500,000 launches in 5.00 s" in Page(text).text
    assert len(text) < 200_000


def test_hits_of_scratch_buffers_are_no_calls(tmp_path: Path) -> None:
    """A cache hit for a scratch buffer does not count as a call by the program."""
    whole = counted("cache", "memory", hits=5, misses=1, evictions=0)
    assert report(tmp_path, s=whole).tables["Caches"]["memory"][:3] == ["5", "1", "0"]


def test_questions_are_counted_by_themselves(tmp_path: Path) -> None:
    """If the library queries HIP more often, the page does not count these queries as work of the
    driver."""
    before, after = recorded.stock(), recorded.statistics()
    after["hip"]["hipPointerGetAttributes"] = {"calls": 5000, "ns": 2_000_000}
    shown = report(tmp_path, a=before, b=after)
    plain = report(tmp_path, a=before, b=recorded.statistics())
    name = "Calls of the driver"
    assert shown.tables[name]["total"] == plain.tables[name]["total"]
    rows = shown.tables["Questions to the driver"]
    assert rows["hipPointerGetAttributes"][:4] == ["–", "5,000", "–", "2.00 ms"]
    assert "questions to the driver 5,000 in 2.00 ms – before" in shown.text
    assert "The library asks the driver before it takes a shortcut" in shown.text
    assert "uestions to the driver" not in plain.text


def test_a_longer_call_has_its_reason(tmp_path: Path) -> None:
    """A function may take longer after a change because another function takes less time by the
    same amount."""
    wait, destroy = "mgpuStreamSynchronize", "mgpuStreamDestroy"
    before, after = recorded.stock(), recorded.statistics()
    before["abi"] |= {wait: {"calls": 9, "ns": 100}, destroy: {"calls": 9, "ns": 900_000}}
    after["abi"] |= {wait: {"calls": 9, "ns": 900_000}, destroy: {"calls": 9, "ns": 100}}
    moved = "the wait for the GPU has probably moved here"
    reason = f"{wait}: 0.900 ms more here, and 0.900 ms less in {destroy}: {moved}."
    assert reason in report(tmp_path, a=before, b=after).text
    for unlike in (200_000, 4_000_000):
        before["abi"][destroy]["ns"] = unlike
        assert moved not in report(tmp_path, a=before, b=after).text
    before["abi"][destroy]["ns"] = 900_000
    after["abi"]["mgpuLaunchKernel"]["ns"] = 20_000_000  # nine tenths of a ms are noise
    assert moved not in report(tmp_path, a=before, b=after).text
    assert "Calls that take longer" not in report(tmp_path, a=before, b=before).text


# ---- names ----

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=http://localhost:1/x onerror=alert(1)>',
    "</style></title></svg><u>",
    "a\x00b\x1b[31m\nc",
    "\u202eevil\u2066",
    "\ud800",
    "&lt;i&gt;",
    "x" * 100_000,
]


def hostile() -> dict[str, Any]:
    """Returns statistics in which every name contains control characters or markup."""
    functions = {name: {"calls": 1, "ns": 10} for name in HOSTILE}
    whole = recorded.statistics(
        abi=functions,
        hip=functions,
        process=recorded.process(program="".join(HOSTILE), ended=HOSTILE[1]),
        kernels={name: {"launches": 1, "ns": 1} for name in HOSTILE},
        modules=[
            recorded.module(image=name, kernels=HOSTILE, driver_loads=9, why=name)
            for name in HOSTILE
        ],
    )
    whole["cache"].update({name: {"hits": 1, "misses": 1, "evictions": 1} for name in HOSTILE})
    events = [call(name, n, 5, kernel=name, result=name) for n, name in enumerate(HOSTILE)]
    return {"s": whole, "t": recorded.trace(*events)}


def test_names_are_only_text(tmp_path: Path) -> None:
    shown = report(tmp_path, **hostile())
    assert not {"script", "img", "u", "i"} & set(shown.tags)
    kernels = shown.tables["Launches by kernel"]
    assert set(HOSTILE[:3]) <= set(kernels)
    assert {r"a\u0000b\u001b[31m\u000ac", r"\u202eevil\u2066", r"\ud800"} <= set(kernels)
    assert "&lt;i&gt;" in kernels
    assert max(map(len, kernels)) <= 161


# ---- error messages ----

BAD = [
    (b"", "is empty"),
    (b'{"traceEvents": [{"ph": "X"', "is damaged or truncated"),
    (b"\xff\xfe", "is not text"),
    (b"[1, 2]", "is JSON, but no statistics"),
    (b'{"abi": {}}', "is JSON, but no statistics"),
    (b'{"traceEvents": []}', "is a trace without calls: trace a program"),
    (b'{"traceEvents": 5}', "is JSON, but no trace"),
    (b'{"traceEvents": [5]}', "is JSON, but no trace"),
    (b'{"traceEvents": [{"ph": "X", "cat": "driver"}]}', "is JSON, but no trace"),
    (json.dumps(recorded.trace(call("f", float("nan")))).encode(), "is JSON, but no trace"),
    (json.dumps(recorded.trace(call("f", -1))).encode(), "is JSON, but no trace"),
    (json.dumps(recorded.trace(call("f", 10**400))).encode(), "is JSON, but no trace"),
    (json.dumps(recorded.trace(call(["f"], 1))).encode(), "is JSON, but no trace"),  # type: ignore
    (
        json.dumps(recorded.trace(call("f", 1, kernel=5, bytes="x", result="hit"))).encode(),
        "is JSON, but no trace",
    ),
    (json.dumps(recorded.trace(recorded.memory(1, -1, 0))).encode(), "is JSON, but no trace"),
    (json.dumps(recorded.statistics(modules=[5])).encode(), "is JSON, but no statistics"),
    (json.dumps(recorded.statistics(kernels={"k": 1})).encode(), "is JSON, but no statistics"),
    (json.dumps(recorded.statistics(start={"ns": -1})).encode(), "is JSON, but no statistics"),
    (
        json.dumps(recorded.statistics(device={"name": 5, "hip": "x"})).encode(),
        "is JSON, but no statistics",
    ),
    (json.dumps(recorded.statistics(process={"pid": -1})).encode(), "is JSON, but no statistics"),
]


@pytest.mark.parametrize(("content", "said"), BAD)
def test_bad_files_are_named(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    out = tmp_path / "page.html"
    result = invoke("compare", str(path), "--report", str(out))
    assert_sentence(result.exit_code, result.stderr, said)
    assert not out.exists()


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    missing = invoke("compare", "--report", "-", str(tmp_path / "none.json"))
    assert_sentence(missing.exit_code, missing.stderr, "was not found: `mgpu-rt run --stats-json")
    folder = invoke("compare", "--report", "-", str(tmp_path))
    assert_sentence(folder.exit_code, folder.stderr, "is a directory")


def test_unwritable_paths_are_named(tmp_path: Path) -> None:
    (path,) = files(tmp_path, s=recorded.statistics())
    for place, said in [
        (tmp_path, "is a directory: name a file"),
        (tmp_path / "none" / "page.html", "there is no folder"),
        ("/dev/full", "No space left on device; name another place"),
    ]:
        result = invoke("compare", path, "--report", str(place))
        assert_sentence(result.exit_code, result.stderr, said)
    page = tmp_path / "page.html"
    result = invoke("compare", "--report", "/proc/page.html", "--", "no-such-program")
    assert_sentence(result.exit_code, result.stderr, "No such file or directory; name another")
    check_writable(page)
    assert not page.exists()
    page.write_text("kept")
    check_writable(page)
    assert page.read_text() == "kept"
    os.mkfifo(tmp_path / "fifo")
    check_writable(tmp_path / "fifo")  # a process may read the FIFO later


def test_a_program_is_not_run_for_nothing(tmp_path: Path) -> None:
    result = invoke("compare", "--report", str(tmp_path), "--", "no-such-program")
    assert_sentence(result.exit_code, result.stderr, "is a directory: name a file")


def test_report_wants_files_or_a_program(tmp_path: Path) -> None:
    for arguments in ((), ("a", "--", "true")):
        result = invoke("compare", "--report", "-", *arguments)
        assert result.exit_code == 2
        assert "name two statistics files, or a program after --" in result.stderr
    result = invoke("compare", "--report", "-", "--", str(tmp_path / "none"))
    assert_sentence(result.exit_code, result.stderr, "was not found")
