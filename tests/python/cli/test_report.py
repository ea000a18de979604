"""`mgpu-rt compare --report`: the page's content for each kind of file, and error messages."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from mgpu_rt._cli.files import check_writable
from mgpu_rt._cli.report.advice import advice
from mgpu_rt._cli.stats import statistics
from mgpu_rt._cli.stats.statistics import Statistics
from mgpu_rt._cli.stats.tables import QUESTIONS
from mgpu_rt._text import duration
from tests.runtime.driver import test_witness, test_word
from tests.support import recorded
from tests.support.child import ROOT
from tests.support.command import assert_sentence, command, invoke
from tests.support.pages import Page
from tests.support.programs import STOCK, build

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


def read(folder: Path, **contents: Any) -> Statistics:
    """Writes a file with these contents; returns the run that it describes."""
    (path,) = files(folder, **contents)
    return statistics.read(path)


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
    assert loads[:2] == [str(LAUNCHES), "1"] and len(loads) == 4  # no ratio
    assert shown.tables["Cache"]["modules"][:2] == [str(LAUNCHES - 1), "1"]
    assert f"before: {forum}, run with stock's behaviour" in shown.text
    assert "tmp" not in shown.text.replace(str(forum), "")


# ---- which run a file belongs to ----


def test_two_of_a_kind_are_before_and_after(tmp_path: Path) -> None:
    shown = report(tmp_path, a=recorded.stock(), b=recorded.statistics())
    assert shown.tables["Calls of the program"]["mgpuModuleLoad"] == [
        *("100", "100", "1.000", "0.010", "100")
    ]
    assert "took 5.00 ms before and 50.0 µs after." in shown.text
    assert "times as" not in shown.text  # `compare` names a gain, in a note, beyond the spread


# ---- the page's content ----


def test_a_page_has_kernels_copies_and_modules(tmp_path: Path) -> None:
    whole = recorded.statistics(
        process=recorded.process(rank=3),
        kernels={"mul": {"launches": 60, "ns": 1200}, "add": {"launches": 40, "ns": 9000}},
        copies={"to_device": {"calls": 2, "bytes": 4096}, "fill": {"calls": 0, "bytes": 0}},
        modules=[recorded.module(driver_loads=100, why="writable globals")],
    )
    shown = report(tmp_path, a=whole)
    assert list(shown.tables["Launches of kernels, host time"]) == ["name", "add", "mul", "total"]
    assert shown.tables["Copies"] == {"name": ["calls", "bytes"], "to device": ["2", "4096"]}
    assert shown.tables["Image"]["0123456789abcdef"] == [
        *("4984", "100", "100", "count (loaded again each time: writable globals)")
    ]


def test_times_without_launches_of_graphs_are_marked(tmp_path: Path) -> None:
    """A graph's kernels and copies count when it is built, and its launches are in no call's
    time."""
    whole = recorded.statistics(
        graphs={"built": 1, "refused": 0, "launches": 999, "nodes": 2997, "plain": 1},
        kernels={"add": {"launches": 2, "ns": 9000}},
        copies={"to_device": {"calls": 2, "bytes": 4096}},
    )
    whole["hip"]["hipStreamSynchronize"] = {"calls": 999, "ns": 90_000_000}
    shown = report(tmp_path, a=whole)
    assert "took 50.0 µs, without launches of graphs." in shown.text
    assert "this run: 50.0 µs, without launches of graphs" in shown.text
    assert "Launches of kernels, host time (a graph's count once)" in shown.tables
    assert "Copies (a graph's count once)" in shown.tables
    assert "% of the time" not in shown.text
    assert "No advice about times: launches of graphs are in no call's time." in shown.text
    text = invoke("stats", *files(tmp_path, a=whole)).stdout
    assert text.count("(a graph's count once)") == 2


def test_functions_have_the_names_that_the_runtime_calls_them_by() -> None:
    rows = (ROOT / "csrc" / "runtime" / "driver" / "hip.def").read_text(encoding="utf-8")
    called = {f"hip{name}" for name in re.findall(r"^HIP_FN\(\w+, (\w+),", rows, re.MULTILINE)}
    assert {*QUESTIONS} <= called


def test_the_start_of_hip_is_in_no_call(tmp_path: Path) -> None:
    before = recorded.stock(start={"ns": 299_000_000})
    after = recorded.statistics(start={"ns": 250_000_000})
    shown = report(tmp_path, a=before, b=after)
    assert "5.00 ms before and 50.0 µs after." in shown.text
    assert "HIP's start 299 ms" in shown.text
    assert "before: 304 ms, with HIP's start" in shown.text


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


def test_questions_are_counted_by_themselves(tmp_path: Path) -> None:
    """The queries have their own table. They are calls of the driver, so its total includes
    them."""
    before, after = recorded.stock(), recorded.statistics()
    after["hip"]["hipPointerGetAttributes"] = {"calls": 5000, "ns": 2_000_000}
    shown = report(tmp_path, a=before, b=after)
    plain = report(tmp_path, a=before, b=recorded.statistics())
    name = "Calls of the driver"
    assert shown.tables[name]["questions, below"][:4] == ["–", "5000", "–", "2.000"]
    assert shown.tables[name]["total"][:4] == ["100", "5100", "0.009", "2.009"]
    assert plain.tables[name]["total"][:4] == ["100", "100", "0.009", "0.009"]
    rows = shown.tables["Questions to the driver"]
    assert rows["hipPointerGetAttributes"][:4] == ["–", "5000", "–", "2.000"]
    assert "The library asks the driver before it takes a shortcut" in shown.text
    assert "Questions to the driver" not in plain.text


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
    return {"s": whole}


def test_names_are_only_text(tmp_path: Path) -> None:
    shown = report(tmp_path, **hostile())
    assert not {"script", "img", "u", "i"} & set(shown.tags)
    kernels = shown.tables["Launches of kernels, host time"]
    assert set(HOSTILE[:3]) <= set(kernels)
    assert {r"a\u0000b\u001b[31m\u000ac", r"\u202eevil\u2066", r"\ud800"} <= set(kernels)
    assert "&lt;i&gt;" in kernels
    assert max(map(len, kernels)) <= 161


# ---- error messages ----


def test_a_missing_jinja2_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip installs no jinja2 without mgpu_rt[report]; the tables need none."""
    (path,) = files(tmp_path, s=recorded.statistics())
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = invoke("compare", path, "--report", str(tmp_path / "page.html"))
    assert_sentence(result.exit_code, result.stderr, "a page needs jinja2, which ")
    result = invoke("compare", "--report", "page.html", "--", "no-such-program")
    assert_sentence(result.exit_code, result.stderr, "a page needs jinja2, which ")
    assert not (tmp_path / "page.html").exists()
    assert invoke("compare", path, path).exit_code == 0


def test_a_file_is_tried_before_the_run(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    check_writable(page)
    assert not page.exists()
    page.write_text("kept")
    check_writable(page)
    assert page.read_text() == "kept"
    os.mkfifo(tmp_path / "fifo")
    check_writable(tmp_path / "fifo")  # a process may read the FIFO later


# ---- advice, and the evidence for each piece of it ----


def titles(folder: Path, **contents: Any) -> list[str]:
    return [item.title for item in advice(read(folder, **contents))]


def with_modules(**changes: Any) -> dict[str, Any]:
    return recorded.statistics(modules=[recorded.module(**changes)])


def loaded(loads: int, unloads: int) -> Any:
    """Returns the statistics of a program that loads one image, and unloads it so often."""
    run = with_modules(driver_loads=loads, why=None)
    run["abi"]["mgpuModuleLoad"] = {"calls": loads, "ns": 10}
    run["abi"]["mgpuModuleUnload"] = {"calls": unloads, "ns": 10}
    return run


def undestroyed(gone: int = 0, **values: int) -> dict[str, Any]:
    """Returns statistics of a program that destroys so many of its 100 streams."""
    whole = counted("cache", "streams", evictions=0, **values)
    whole["abi"]["mgpuStreamDestroy"] = {"calls": gone, "ns": 10}
    return whole


FAILED = {"function": "mgpuLaunchKernel", "error": "hipErrorInvalidImage", "calls": 1}

FINDINGS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # the title of the advice; files for which the page gives the advice; similar files for which
    # the page does not give the advice
    ("No cache was in use", {"s": recorded.stock()}, {"s": recorded.statistics()}),
    (
        "A module is loaded 100 times: writable globals",
        {"s": with_modules(driver_loads=100, why="writable globals")},
        {"s": with_modules(driver_loads=1, why="writable globals")},
    ),
    (
        "A module is loaded 100 times: the program holds it",
        {"s": loaded(100, unloads=0)},
        {"s": loaded(100, unloads=100)},
    ),
    (
        "Streams are not reused",
        {"s": undestroyed(hits=9, misses=10)},
        {"s": undestroyed(hits=5, misses=9)},
    ),
    (  # one of ten chains of tokens has no wait
        "Streams are not reused",
        {"s": undestroyed(gone=90, hits=50, misses=50)},
        {"s": undestroyed(gone=91, hits=50, misses=50)},
    ),
    (  # the program destroys the streams while they are at work
        "Streams are not reused",
        {"s": undestroyed(hits=0, misses=100)},
        {"s": counted("cache", "streams", hits=0, misses=100, evictions=0)},
    ),
    (
        "The program registers host memory again and again",
        {"s": counted("abi", "mgpuMemHostRegisterMemRef", calls=10, ns=10_000)},
        {"s": counted("abi", "mgpuMemHostRegisterMemRef", calls=9, ns=10_000)},
    ),
    (
        "The program registers host memory again and again",
        {"s": counted("abi", "mgpuMemHostRegister", calls=10, ns=10_000)},
        {"s": counted("abi", "mgpuMemHostRegister", calls=10, ns=5_000)},
    ),
    (
        "The library asks the driver often",
        {"s": counted("hip", "hipStreamQuery", calls=100, ns=5_000)},
        {"s": counted("hip", "hipStreamQuery", calls=100, ns=4_900)},
    ),
    (
        "1 call failed",
        {"s": recorded.statistics(failed=[FAILED])},
        {"s": recorded.statistics(failed=[])},
    ),
    (
        "1 process did not end by exit",
        {"s": recorded.statistics(process=recorded.process(ended="unfinished"))},
        {"s": recorded.statistics(process=recorded.process())},
    ),
    (
        "60 % of the time the program waits for the GPU",
        {"s": counted("hip", "hipStreamSynchronize", calls=1, ns=30_000)},
        {"s": counted("hip", "hipStreamSynchronize", calls=1, ns=25_000)},
    ),
]


@pytest.mark.parametrize(("title", "proof", "nearly"), FINDINGS)
def test_advice_needs_evidence(
    title: str, proof: dict[str, Any], nearly: dict[str, Any], tmp_path: Path
) -> None:
    assert title in titles(tmp_path, **proof)
    assert titles(tmp_path, **nearly) == []


@pytest.mark.parametrize(
    "times",
    [
        counted("abi", "mgpuMemHostRegisterMemRef", calls=10, ns=10_000),
        counted("hip", "hipStreamQuery", calls=100, ns=5_000),
        counted("hip", "hipStreamSynchronize", calls=1, ns=30_000),
    ],
)
def test_the_emulated_device_gives_no_advice_about_time(times: dict, tmp_path: Path) -> None:
    assert titles(tmp_path, s=times) != []
    device = {"name": "softgpu gfx90a (emulated)", "hip": "5.2"}
    assert titles(tmp_path, s={**times, "device": device}) == []


def test_advice_on_memory_that_waits_names_what_mlir_can_do(tmp_path: Path) -> None:
    reasons = dict.fromkeys(("first_use", "size", "limit", "other_code"), 0)
    (found,) = advice(read(tmp_path, s=recorded.statistics(made={**reasons, "waits": 100})))
    assert found.evidence.startswith("100 blocks came from the driver")
    assert "`gpu.dealloc`" in found.step
    assert "Threads that work at once also need blocks of their own" in found.step
    assert advice(read(tmp_path, s=recorded.statistics(made={**reasons, "waits": 9}))) == []


@pytest.mark.parametrize(
    ("said", "begin"),
    [
        ("none", "If nothing else in the process calls HIP, run it with"),
        (f"hipMalloc {test_witness.FIRST}", "If you can leave out the code that calls HIP beside"),
        (f"hipMalloc {test_word.ENDED}", "If you can leave out the code that calls HIP beside"),
        (test_word.OVERRIDE_ENDED, "If you can leave out the code that calls HIP beside"),
    ],
)
def test_advice_on_exclusive_names_what_has_ended_it(said: str, begin: str, tmp_path: Path) -> None:
    for key, name in (("abi", "mgpuMemHostRegister"), ("hip", "hipStreamQuery")):
        whole = counted(key, name, calls=100, ns=10_000)
        (found,) = advice(read(tmp_path, s={**whole, "other_calls": said}))
        assert found.step.startswith(begin)
        assert said == "none" or f"({said})" in found.step


def test_a_page_and_the_tables_say_that_streams_are_not_reused(tmp_path: Path) -> None:
    lost = files(tmp_path, s=undestroyed(hits=40, misses=60))[0]
    stock = files(tmp_path, t=recorded.stock())[0]
    said = "60 of 100 streams came from the driver; the program destroyed 0"
    page = Page(invoke("compare", "--report", "-", stock, lost).stdout).text
    assert f"Streams are not reused {said}." in page and page.count("not reused") == 1
    alone, after, both = (
        " ".join(invoke(*words).stdout.split())
        for words in (("stats", lost), ("compare", stock, lost), ("compare", lost, lost))
    )
    assert f"note streams are not reused: {said}; `mgpu-rt check` names the place" in alone
    assert f"note after: streams are not reused: {said}" in after
    assert (after.count("not reused"), both.count("not reused")) == (1, 2)


def test_no_cache_advice_for_stock_runs(tmp_path: Path) -> None:
    private = recorded.module(driver_loads=100, why="writable globals")
    whole = recorded.stock(modules=[private])
    whole["hip"]["hipStreamQuery"] = {"calls": 100, "ns": 5_000_000}
    assert titles(tmp_path, s=whole) == ["No cache was in use"]
