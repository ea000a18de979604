"""`mgpu-rt compare` says of two files what differs: times, gains, and what explains them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mgpu_rt._cli.report import document
from mgpu_rt._cli.stats.runs import Run, sentence
from mgpu_rt._cli.stats.statistics import Graphs, added, read
from mgpu_rt._cli.stats.tables import Side, lines
from tests.runtime.driver import test_word
from tests.support import recorded
from tests.support.command import invoke
from tests.support.pages import Page

# ---- the spread of runs ----


@pytest.mark.parametrize(
    ("before", "after", "ending"),
    [
        ([2.0, 2.2, 2.1, 2.1], [1.0, 1.1, 1.05, 1.05], "2.00 times as fast"),
        ([1.0, 1.1, 1.05, 1.05], [2.0, 2.2, 2.1, 2.1], "2.00 times as long"),
        ([1.0, 3.0, 2.0, 2.0], [0.9, 1.1, 1.0, 1.0], "the ranges overlap, so no gain is shown"),
        ([2.0, 2.2, 2.1], [1.0, 1.1, 1.05], "too few runs to show a gain (--repeat 5)"),
    ],
)
def test_a_gain_is_named_only_beyond_the_spread(
    before: list[float], after: list[float], ending: str
) -> None:
    assert sentence(before, after).endswith(ending)


def test_a_run_takes_the_time_from_its_first_process_to_its_last(tmp_path: Path) -> None:
    """The processes run at once: the sum of their times is no time of the run."""
    runs = []
    for number, (begin, seconds) in enumerate([(5, 1.5), (6, 1.0), (4, 0.5)]):
        path = tmp_path / f"{number}.json"
        process = recorded.process(begin=begin * 10**9, seconds=seconds)
        path.write_text(json.dumps(recorded.statistics(process=process, start={"ns": 10**9})))
        runs.append(read(path))
    run = added(runs)
    assert Run(run).seconds == 7.0 - 4.0
    sides = [Side(name, run, name) for name in ("before", "after")]
    said = " ".join(" ".join(lines(sides)).split())
    assert "HIP's start, the sum of 3 processes 3000.000 3000.000" in said
    assert "note Times are sums over 3 processes, which may have run at once" in said
    page = document(sides)
    assert "after, the sum of 3 processes." in page
    assert "before: 3.00 s, with HIP&#39;s start, the sum of 3 processes" in page


def test_a_comparison_names_processes_that_did_not_end(tmp_path: Path) -> None:
    process = recorded.process(ended="unfinished")
    said = compare(tmp_path, recorded.stock(), recorded.statistics(process=process))
    assert "note after: 1 process did not end by exit" in said


def test_no_gain_is_named_without_a_gpu() -> None:
    said = sentence([2.0, 2.2, 2.1, 2.1], [1.0, 1.1, 1.05, 1.05], "EMULATED: no GPU was timed")
    assert said.endswith("EMULATED: no GPU was timed") and "times as fast" not in said


@pytest.mark.parametrize("emulated", ["before", "after"])
def test_without_a_gpu_a_comparison_has_no_ratios(tmp_path: Path, emulated: str) -> None:
    """Ratios of an emulated device's times are chance. The numbers of calls and the times stay."""
    runs = {"before": recorded.stock(), "after": recorded.statistics()}
    for run in runs.values():
        run["abi"]["mgpuMemset"] = {"calls": 99, "ns": 990}
    said = compare(tmp_path, **runs)
    assert "mgpuStreamCreate 100 100 1.000 0.010 100 " in said
    assert "fewer than 100 calls" in said and "Each side ran once" in said
    runs[emulated]["device"] = {"name": "softgpu gfx90a (emulated)", "hip": "5.2"}
    said = compare(tmp_path, **runs)
    paths = [str(tmp_path / f"{name}.json") for name in runs]
    page = invoke("compare", "--report", "-", *paths).stdout
    assert "mgpuStreamCreate 100 100 1.000 0.010 mgpu" in said
    for text in (said, page):
        assert "EMULATED: no GPU was timed" in text
        assert not re.search(r"\bratio\b|fewer than|ran once|--repeat", text)
    assert Page(page).tables["Calls of the program"]["mgpuStreamCreate"][-2:] == ["1.000", "0.010"]


def compare(tmp_path: Path, before: dict, after: dict) -> str:
    """Compares two runs, and returns the words of the output, with one space between them."""
    paths = [tmp_path / "before.json", tmp_path / "after.json"]
    for path, run in zip(paths, (before, after), strict=True):
        path.write_text(json.dumps(run))
    return " ".join(invoke("compare", *map(str, paths)).stdout.split())


@pytest.mark.parametrize(
    ("ns", "calls", "is_told"), [(5_000, 999, True), (4_900, 999, False), (4_900, 99, True)]
)
def test_the_option_against_questions_is_named_if_they_take_a_tenth(
    tmp_path: Path, ns: int, calls: int, is_told: bool
) -> None:
    """Questions also count if they make the driver's calls more than stock's. The program's calls
    take 50 µs."""
    asking, stock = recorded.statistics(), recorded.stock()
    asking["hip"]["hipStreamQuery"] = {"calls": 100, "ns": ns}
    stock["hip"]["hipStreamCreate"] = {"calls": calls, "ns": 900}
    said = compare(tmp_path, stock, asking)
    assert ("MGPU_RT_EXCLUSIVE=on leaves out most" in said) is is_told


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        ({"exclusive": True}, False),
        ({"exclusive": True, "other_calls": f"hipFree {test_word.ENDED}"}, True),
        ({"graphs": recorded.GRAPHS}, False),
    ],
)
def test_the_option_against_questions_is_named_if_it_would_help(
    tmp_path: Path, changes: dict, is_told: bool
) -> None:
    """The launches of graphs are in no call's time, so the time of the questions is no large part
    of the program's."""
    asking = recorded.statistics(**changes)
    asking["hip"]["hipStreamQuery"] = {"calls": 100, "ns": 40_000}
    said = compare(tmp_path, recorded.stock(), asking)
    assert ("MGPU_RT_EXCLUSIVE=on leaves out most" in said) is is_told


def test_stocks_side_has_no_graphs(tmp_path: Path) -> None:
    plain = {"built": 0, "refused": 0, "launches": 0, "nodes": 0, "plain": 200}
    said = compare(tmp_path, recorded.stock(graphs=plain), recorded.statistics(graphs=plain))
    assert "before: graphs" not in said and "after: graphs" in said


def test_graphs_that_never_ran_have_a_reason() -> None:
    never = Graphs(plain=200).summary
    assert never.endswith("without a graph: 200; docs/graphs.md says when a graph is built")
    assert "docs" not in Graphs(built=1, launches=9, plain=1).summary


@pytest.mark.parametrize(("ns", "is_told"), [(5_000_000, True), (900, False)])
def test_waits_in_another_row_are_told(tmp_path: Path, ns: int, is_told: bool) -> None:
    stock, ours = recorded.stock(), recorded.statistics()
    stock["abi"]["mgpuMemFree"] = {"calls": 100, "ns": ns}
    ours["abi"]["mgpuMemFree"] = {"calls": 100, "ns": 900}
    stock["abi"]["mgpuMemcpy"] = {"calls": 100, "ns": 1_000}
    ours["abi"]["mgpuMemcpy"] = {"calls": 100, "ns": 5_000_000}
    stock["abi"].pop("mgpuStreamDestroy")
    ours["abi"].pop("mgpuStreamDestroy")
    said = compare(tmp_path, stock, ours)
    assert ("Stock waits for the GPU in mgpuMemFree" in said) is is_told


def test_rows_of_other_numbers_of_calls_have_no_ratio_if_graphs_ran(tmp_path: Path) -> None:
    without, ran = recorded.statistics(), recorded.statistics(graphs=recorded.GRAPHS)
    ran["abi"]["mgpuStreamDestroy"] = {"calls": 2, "ns": 10}
    said = compare(tmp_path, recorded.stock(), ran)
    assert "graph launches: 98, of 294 nodes;" in said
    assert said.count("--repeat 5") == 1
    assert "mgpuStreamDestroy 100 2 1.000 0.000 – " in said
    assert "mgpuStreamCreate 100 100 1.000 0.010 100 " in said
    without["hip"]["hipModuleLaunchKernel"] = {"calls": 2, "ns": 900}
    said = compare(tmp_path, recorded.stock(), without)
    assert "hipModuleLaunchKernel 100 2 0.009 0.001 10.0 " in said


def test_runs_of_different_calls_do_not_compare(tmp_path: Path) -> None:
    """Such as the runs of two programs."""
    other = recorded.statistics()
    other["abi"]["mgpuStreamDestroy"] = {"calls": 99, "ns": 10}
    other["kernels"] = {"add": {"launches": 2, "ns": 10}}
    other["hip"]["hipModuleLaunchKernel"] = {"calls": 20_000, "ns": 9_000_000}
    kernels = {"add": {"launches": 1, "ns": 10}}
    said = compare(tmp_path, recorded.stock(kernels=kernels), other)
    assert "mgpuStreamDestroy 100 99 1.000 0.000 – " in said
    assert "mgpuStreamCreate 100 100 1.000 0.010 100 " in said
    assert "total 500 499 5.000 0.040 – " in said
    assert "hipModuleLaunchKernel 100 20000 0.009 9.000 – " in said
    assert "add 1 2 0.000 0.000 – " in said
    assert "note The sides made different calls, so the totals do not compare" in said


def test_few_calls_have_no_ratio(tmp_path: Path) -> None:
    """The times of a single call differ by chance."""
    runs = recorded.stock(), recorded.statistics()
    for run in runs:
        run["abi"] = {"mgpuStreamCreate": {"calls": 99, "ns": 990}}
    said = compare(tmp_path, *runs)
    assert "mgpuStreamCreate 99 99 0.001 0.001 – " in said
    assert said.count("A row of fewer than 100 calls on each side has no ratio") == 1
    page = invoke("compare", "--report", "-", *map(str, sorted(tmp_path.iterdir()))).stdout
    assert page.count("A row of fewer than 100 calls on each side has no ratio") == 1
    assert "fewer than 100" not in compare(tmp_path, recorded.stock(), recorded.statistics())


def test_a_comparison_of_one_run_a_side_says_so(tmp_path: Path) -> None:
    said = compare(tmp_path, recorded.stock(), recorded.statistics())
    assert "Each side ran once, so a row may differ by chance" in said


@pytest.mark.parametrize(
    "changes",
    [
        {"graphs": {"built": 1, "refused": 0, "launches": 999, "nodes": 2997, "plain": 1}},
        {"failed": [{"function": "hipFree", "error": "hipErrorInvalidValue", "calls": 3}]},
        {"abi": {"mgpuStreamCreate": {"calls": 1, "ns": 50_000}}},
    ],
)
def test_totals_that_do_not_compare_have_no_ratio(tmp_path: Path, changes: dict) -> None:
    """A graph's launch stands for calls that are not counted; a failed call does no work; other
    calls are other work."""
    runs = [recorded.stock(), recorded.statistics(**changes)]
    paths = [tmp_path / "stock.json", tmp_path / "ours.json"]
    for path, run in zip(paths, runs, strict=True):
        path.write_text(json.dumps(run))
    said = invoke("compare", *map(str, paths)).stdout.splitlines()
    totals = [line.split() for line in said if line.startswith("total")]
    assert totals and all(line[-1] == "–" for line in totals)
    page = invoke("compare", "--report", "-", *map(str, paths)).stdout
    assert "do not compare" in page
    assert "times as fast" not in page and "5.00 ms" not in page and "50.0 µs" not in page
    assert "Where the time went" not in page
