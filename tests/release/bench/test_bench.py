"""The harness of the benchmarks: that it runs, says what it means, and draws what it measured.

No figure is judged here: those are of a machine, and `make bench` shows them.
"""

from __future__ import annotations

import dataclasses
import io
import json
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from bench import __main__ as command
from bench.measure import breakdown, devices, growth, modules, programs, rounds, unmap
from bench.measure.rounds import Runner
from bench.setup import build, device, native, sides
from bench.show import output, table
from bench.show.figures import Figure, Result, median, ratios
from mgpu_rt._lowering import cache, pipelines, toolchain
from tests.support.suites import in_check

CHIP = pipelines.DEFAULT_CHIP


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def stub() -> device.Device:
    few = {name: 2 for name in device.ITERATIONS}
    return dataclasses.replace(device.find("stub"), iterations=few)


# ---- the programs --------------------------------------------------------------------------------


@pytest.mark.parametrize("llvm", in_check(programs.RELEASES, lambda llvm: llvm < 22))
@pytest.mark.parametrize("program", [p.name for p in programs.PROGRAMS])
def test_every_side_runs_every_program(stub: device.Device, program: str, llvm: int) -> None:
    for side in sides.all_sides(stub, None):
        line = side.command(program, llvm, stub)
        if line is None:
            assert program == "events" and side.name in (sides.REWRITTEN, sides.HOISTED)
            continue
        runner = Runner(line, side.environment)
        assert runner.round(1) > 0
        assert runner.round(2) > 0
        runner.close()


def test_hoisted_makes_the_same_launches(stub: device.Device, tmp_path: Path) -> None:
    """By hand and rewritten as through the library: as many launches."""
    for program in sides.BY_HAND:
        if program in (sides.SERIAL, "spin"):
            continue
        by_side = {}
        for side in sides.all_sides(stub, None):
            if side.name not in (sides.OURS, sides.REWRITTEN, sides.HOISTED):
                continue
            log = tmp_path / f"{program}-{side.name}"
            env = {**side.environment, "HIPSTUB_MODE": "record", "HIPSTUB_LOG": str(log)}
            line = side.command(program, 22, stub)
            assert line is not None
            native.run([*line, time.monotonic_ns(), 3], env)
            by_side[side.name] = json.loads(log.read_text())["counts"]["hipModuleLaunchKernel"]
        assert by_side[sides.OURS] == by_side[sides.HOISTED] > 0, program
        assert by_side[sides.REWRITTEN] == by_side[sides.OURS], program


@pytest.mark.parametrize("program", ["forum", "many", "churn", "vecadd", "overlap"])
def test_programs_by_hand_run_on_libcuda(program: str) -> None:
    """On a stand-in for NVIDIA's driver, which takes any image."""
    library = native.ROOT / "build" / "custub" / "libcuda.so.1"
    words = [library, program, 2, *build.images(program, CHIP), "--", time.monotonic_ns(), 3]
    env = {**native.plain_environment(), "BENCH_WAIT": f"{library},cuCtxSynchronize"}
    assert native.run_json([native.program("hoisted"), *words], env)[0] > 0


def test_breakdown_is_of_the_steady_state(stub: device.Device) -> None:
    """Figures of loading and creating once stand apart from those of each iteration."""
    rows = breakdown.run(stub, quiet).data
    calls = {
        (row["llvm"], row["side"], row["function"]): row["calls"] / row["iterations"]
        for row in rows
        if (row["program"], row["layer"]) == ("forum", "driver")
    }
    starts = {row["side"]: row["once_ms"] for row in rows if row["layer"] == "start"}
    assert set(starts) == {sides.STOCK, sides.OURS}
    assert all(starts.values())
    assert calls[19, sides.STOCK, "hipModuleLoadData"] == 1
    assert calls[19, sides.OURS, "hipModuleLoadData"] == 0
    assert calls[22, sides.STOCK, "hipModuleLoadData"] == 0
    assert calls[22, sides.OURS, "hipStreamCreate"] == 0
    assert calls[22, sides.OURS, "hipModuleLaunchKernel"] == 1


def test_a_program_that_dies_is_reported(stub: device.Device) -> None:
    side = sides.all_sides(stub, None)[0]
    line = side.command("forum", 22, stub)
    assert line is not None
    runner = Runner(line, {**side.environment, "BENCH_WAIT": "/nowhere,hipNothing"})
    with pytest.raises(native.Failed, match="/nowhere"):
        runner.round(1)
    runner.close()


def test_no_process_of_a_comparison_outlives_it(
    stub: device.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another one's broke."""
    started = []

    def start(*process: object) -> Runner:
        started.append(Runner(*process))
        return started[-1]

    monkeypatch.setattr(rounds, "Runner", start)
    side = sides.all_sides(stub, None)[0]
    line = side.command("forum", 22, stub)
    assert line is not None
    right = (line, side.environment)
    wrong = (line, {**side.environment, "BENCH_WAIT": "/nowhere,hipNothing"})
    taken = rounds.turns({"one": right, "other": right}, 3, 1, random.Random(0))
    assert {name: len(times) for name, times in taken.items()} == {"one": 3, "other": 3}
    with pytest.raises(native.Failed, match="/nowhere"):
        rounds.turns({"one": right, "wrong": wrong}, 3, 1, random.Random(0))
    assert [runner._process.poll() is None for runner in started] == [False] * 4


def test_threads_and_modules_are_measured_on_their_sides(stub: device.Device) -> None:
    rows = devices.run(stub, 1, 2, None, quiet).data
    assert [(row["threads"], row["side"]) for row in rows] == [
        (threads, side)
        for threads in (1, 2)
        for side in (sides.STOCK, sides.OURS, sides.EXCLUSIVE, sides.HOISTED)
    ]
    figures = modules.run(stub, 1, None, quiet).figures
    assert [figure.name.removeprefix("200 modules, 5 used, ") for figure in figures] == [
        "stock's behaviour",
        "mgpu_rt",
    ]


def test_growth_measures_each_count(stub: device.Device) -> None:
    result = growth.run(stub, 3, None, quiet)
    for side in {row["side"] for row in result.data}:
        times = [row["ms"] for row in result.data if row["side"] == side]
        assert len(times) == len(growth.COUNTS)


def test_unmap_measures_each_size(stub: device.Device) -> None:
    names = [figure.name.split(",")[0] for figure in unmap.run(stub, 1, quiet).figures[::4]]
    assert names == [f"munmap of {size} KB" for size in (4, 64, 1024, 16384)]


@pytest.mark.check
def test_the_library_without_instrumentation_works(stub: device.Device) -> None:
    side = f"bare,{build.bare_runtime()}"
    line = [native.program("calls"), "record", native.STUB, 10, 7, side]
    env = native.stub_environment(HIPSTUB_MODE="record", MGPU_RT_EXCLUSIVE="on")
    counts = native.run_json(line, env)["counts"]
    assert counts == {"hipModuleLaunchKernel": 10, "hipStreamSynchronize": 10}


# ---- without MLIR's tools ------------------------------------------------------------------------


@pytest.mark.check
def test_prepared_programs_run_without_the_tools(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stub: device.Device
) -> None:
    """As on a machine to which build/ was carried, with its objects or without."""
    monkeypatch.setattr(native, "OUT", tmp_path / "bench")
    iterations = {"forum": 2}
    made = {path.name for path in build.prepare(CHIP, ["forum"], iterations)}
    assert {"forum-19-2", "forum-22-1", "hoisted", "libmlir_rocm_runtime.so"} <= made

    def missing(name: str, llvm: int) -> Path:
        raise toolchain.ToolchainMissing(f"{name}-{llvm}", f"llvm-{llvm}")

    monkeypatch.setattr(toolchain, "tool", missing)
    monkeypatch.setattr(cache, "OBJECTS", tmp_path / "objects")
    assert build.executable("forum", 19, CHIP, 2).exists()
    assert [path.name for path in build.images("forum", CHIP)] == ["0.image"]
    assert native.program("calls").exists()
    with pytest.raises(toolchain.ToolchainMissing):
        build.executable("forum", 19, CHIP, 3)


def test_prepared_programs_find_the_library_beside_them(tmp_path: Path) -> None:
    """By a relative path: what was carried lies elsewhere."""
    executable = build.executable("forum", 22, CHIP, 2)
    root = native.ROOT / "build"
    for path in (executable, native.RUNTIME, native.STUB):
        copy = tmp_path / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    moved = tmp_path / executable.relative_to(root)
    needed = native.run(["ldd", moved], native.plain_environment())
    assert str(tmp_path / "lib" / native.RUNTIME.name) in str(
        [Path(word).resolve() for word in needed.split() if word.startswith("/")]
    )


# ---- figures -------------------------------------------------------------------------------------


def test_a_figure_knows_if_it_meets_its_target() -> None:
    assert Figure("", 1.02, "", at_most=1.03).met
    assert not Figure("", 5.4, "", at_least=5.5).met
    assert Figure("", 7, "", exactly=7).met
    assert Figure("", 7, "").met is None


def test_ratios_are_of_the_same_turn() -> None:
    """A turn in which the machine was slow is slow for both."""
    assert median("", ratios([2, 20, 2], [1, 10, 1]), "").value == 2


def test_every_target_is_of_a_program_and_a_side() -> None:
    for target in (*programs.TARGETS, *programs.EMULATED_TARGETS):
        assert target.program in [program.name for program in programs.PROGRAMS]
        assert {target.side, target.base} <= set(sides.TITLES)


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_writes_results_and_draws_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = ["--device", "stub", "--only", "breakdown", "--only", "threads", "--threads", "2"]
    done = CliRunner().invoke(command.main, [*arguments, "--repetitions", "3", "--out", tmp_path])
    assert done.exit_code == 0, done.output
    assert "hipModuleLoadData" in done.output
    (written,) = tmp_path.glob("*-stub.json")
    results = json.loads(written.read_text())
    assert set(results["benchmarks"]) == {"breakdown-stub", "threads-stub"}
    assert results["devices"]["stub"]["title"].startswith("no device")
    drawn = CliRunner().invoke(command.main, ["plot", str(written)])
    assert drawn.exit_code == 0, drawn.output
    names = {path.name.removeprefix(written.stem) for path in tmp_path.iterdir()}
    assert "-threads-stub.png" in names


@pytest.mark.check
@pytest.mark.parametrize("path", sorted((native.ROOT / "bench" / "results").glob("*.json")))
def test_every_plot_of_the_results_can_be_drawn(path: Path, tmp_path: Path) -> None:
    plots = pytest.importorskip("bench.show.plots")
    drawn = list(plots.draw(json.loads(path.read_text()), tmp_path / path.name))
    kept = {p.name for p in path.parent.glob(f"{path.stem}-*") if p.suffix == ".png"}
    assert kept <= {p.name for p in drawn}


def test_the_plot_leaves_hips_start_out_of_an_iteration() -> None:
    """It is paid once, and is in no iteration's time."""
    plot = pytest.importorskip("bench.show.plots.breakdown")
    rows = [
        {"program": "forum", "llvm": 22, "side": side, "layer": layer, "function": function}
        | {"calls": calls, "us": us, "iterations": 10, "once_ms": once}
        for side, start, us in ((sides.STOCK, 299.0, 40.0), (sides.OURS, 250.0, 2.0))
        for layer, function, calls, us, once in (
            ("start", breakdown.START, 0, 0.0, start),
            ("driver", "hipModuleLoadData", 10, us, 3.0),
        )
    ]
    (axes,) = plot.draw(rows).axes
    assert bars(axes)["loading modules"] == [40, 2]
    assert sum(sum(lengths) for lengths in bars(axes).values()) == 42


def bars(axes: Any) -> dict[str, list[float]]:
    """The lengths of each kind's."""
    return {kind.get_label(): [bar.get_width() for bar in kind] for kind in axes.containers}


def test_plots_of_models_skip_what_was_left_out(tmp_path: Path) -> None:
    """Without what was left out."""
    plots = pytest.importorskip("bench.show.plots")
    row = {"model": "block", "variant": "waits"}
    data = [
        {**row, "llvm": llvm, "side": side, "us": us, "low": us - 10, "high": us + 10}
        for llvm in (19, 22)
        for side, us in ((sides.LLVM, 300), (sides.OURS, 100))
    ]
    left_out = {"model": "block", "variant": "shared", "llvm": 22, "left_out": "for a reason"}
    benchmark = {"name": "models", "on": "cuda", "device": "a GPU", "data": [*data, left_out]}
    results = {"date": "2026-01-01", "benchmarks": {"models-cuda": benchmark}}
    drawn = plots.draw(results, tmp_path / "some.json")
    assert [path.name for path in drawn] == ["some-models-cuda.png"]
    by_hand = {**row, "llvm": 22, "side": sides.HOISTED, "us": 99, "low": 98, "high": 100}
    word = {**by_hand, "side": sides.LAZY, "us": 98}
    with_it = {"device": "a GPU", "data": [*data, word, by_hand]}
    shown = table.models({**results, "benchmarks": {"models-cuda": with_it}}, "cuda")
    assert "| block, waits | 300 | 100 | 3 | – | – | 300 | 100 | 3 | 98 | 99 |" in shown
    shown = table.models(results, "cuda")
    assert "| block, waits | 300 | 100 | 3 | 300 | 100 | 3 |" in shown
    assert "| block, shared | – | – | – | – | – | – |" in shown


def test_the_reason_of_a_skipped_row_is_printed() -> None:
    data = [{"model": "mlp", "llvm": 19, "left_out": "pip install 'mgpu_rt[jit]'"}]
    console = Console(width=200, record=True, file=io.StringIO())
    output.show(Result("models", "a GPU", "", data=data), console)
    assert "left out: mlp, 19: pip install 'mgpu_rt[jit]'" in console.export_text()


def test_a_device_that_is_not_here_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device.shutil, "which", lambda _: None)
    done = CliRunner().invoke(command.main, ["--device", "cuda"])
    assert done.exit_code == 1
    assert "nvidia-smi names no NVIDIA GPU here" in done.output


def test_earlier_figures_stay_where_a_later_benchmark_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that was lent for minutes goes away in the middle of a run."""

    def measured(name: str, *_: object) -> Callable[[object], Result]:
        def measure(_step: object) -> Result:
            if name == "replay":
                raise OSError
            return Result(name, "d", "m", [Figure("a", 1.5, "ns")])

        return measure

    monkeypatch.setattr(command, "_benchmark", measured)
    words = ["--device", "stub", "--only", "startup", "--only", "replay", "--out", str(tmp_path)]
    assert isinstance(CliRunner().invoke(command.main, words).exception, OSError)
    (path,) = tmp_path.iterdir()
    assert list(json.loads(path.read_text())["benchmarks"]) == ["startup-stub"]


def test_json_is_one_line_a_figure(tmp_path: Path) -> None:
    figures = [Figure(f"a{n}", 1.5, "ns", at_most=2) for n in range(9)]
    result = Result("x", "d", "m", figures, data=[{"k": [1, 2]}])
    path = output.path_in(tmp_path, [])
    output.write([result], [], path)
    lines = {line.strip(" ,") for line in path.read_text().splitlines()}
    for n in range(9):
        figure = f'{{"name": "a{n}", "value": 1.5, "unit": "ns", "at_most": 2, "met": true}}'
        assert figure in lines
    benchmark = json.loads(path.read_text())["benchmarks"]["x-stub"]
    assert benchmark["data"] == [{"k": [1, 2]}]
