"""The benchmarks run, print correct text, and draw diagrams of their measurements.

No test in this file judges a figure, because figures depend on the machine; `make bench` shows the
figures.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import __main__ as command
from bench import records
from bench.measure import programs, rounds
from bench.measure.rounds import Runner
from bench.setup import build, device, native, sides
from bench.show import output
from bench.show.figures import Figure, Result
from mgpu_rt._lowering import cache, pipelines, toolchain
from tests.runtime.programs.test_programs import printed
from tests.runtime.programs.test_programs import rounds as rounds_of
from tests.support.programs import Way, run
from tests.support.suites import in_check

CHIP = pipelines.DEFAULT_CHIP


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def stub() -> device.Device:
    few = {name: 2 for name in device.ITERATIONS}
    return dataclasses.replace(device.find("stub"), iterations=few)


# ---- the programs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "llvm"),
    in_check(
        itertools.product([one.name for one in programs.PROGRAMS], programs.RELEASES),
        lambda program, llvm: (program, llvm) != ("forum", 22),
    ),
)
def test_every_side_runs_every_program(stub: device.Device, program: str, llvm: int) -> None:
    for side in sides.all_sides(stub, None):
        line = side.command(program, llvm, stub)
        if line is None:
            assert side.name == sides.HOISTED and program not in sides.BY_HAND
            continue
        runner = Runner(line, side.environment)
        assert runner.round(1) > 0
        assert runner.round(2) > 0
        runner.close()


@pytest.mark.check
def test_by_hand_makes_the_same_launches(stub: device.Device, tmp_path: Path) -> None:
    """The ideal runtime and the library make equal numbers of launches."""
    for program in sides.BY_HAND:
        if program == "spin":
            continue
        by_side = {}
        for side in sides.all_sides(stub, None):
            if side.name not in (sides.OURS, sides.HOISTED):
                continue
            log = tmp_path / f"{program}-{side.name}"
            env = {**side.environment, "HIPSTUB_MODE": "record", "HIPSTUB_LOG": str(log)}
            line = side.command(program, 22, stub)
            assert line is not None
            native.run(line, env, rounds=[3])
            by_side[side.name] = json.loads(log.read_text())["counts"]["hipModuleLaunchKernel"]
        assert by_side[sides.OURS] == by_side[sides.HOISTED] > 0, program


@pytest.mark.parametrize(
    ("program", "llvm"),
    in_check(
        itertools.product(sides.BY_HAND, programs.RELEASES),
        lambda program, llvm: program not in ("churn", "ragged") or llvm != 22,
    ),
)
def test_programs_by_hand_compute_the_same(program: str, llvm: int) -> None:
    done = run(program, llvm, Way(native.BY_HAND), backend="softgpu", iterations=rounds_of(program))
    assert (done.signal, done.stdout, done.stderr) == (0, printed(program, llvm), "")


def test_no_process_of_a_comparison_outlives_it(
    stub: device.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one process of a comparison fails, the comparison also ends its other processes."""
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


# ---- without MLIR's tools ------------------------------------------------------------------------


@pytest.mark.nightly
def test_prepared_programs_run_without_the_tools(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stub: device.Device
) -> None:
    """The machine has a copy of build/, but neither MLIR's tools nor the cached object files."""
    monkeypatch.setattr(native, "OUT", tmp_path / "bench")
    iterations = {"forum": 2}
    made = {path.name for path in build.prepare(CHIP, ["forum"], iterations)}
    assert {"forum-19-2", "forum-22-1", "calls"} <= made

    def missing(name: str, llvm: int) -> Path:
        raise toolchain.ToolchainMissing(f"{name}-{llvm}", f"llvm-{llvm}")

    monkeypatch.setattr(toolchain, "tool", missing)
    monkeypatch.setattr(cache, "OBJECTS", tmp_path / "objects")
    assert build.executable("forum", 19, CHIP, 2).exists()
    assert native.program("calls").exists()
    with pytest.raises(toolchain.ToolchainMissing):
        build.executable("forum", 19, CHIP, 3)


def test_prepared_programs_find_the_library_beside_them(tmp_path: Path) -> None:
    """The prepared programs are copied to another folder, so each program stores a relative path to
    the library."""
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


def test_every_target_is_of_a_program_and_a_side() -> None:
    for names, _, ratio in (*programs.TARGETS, *programs.EMULATED_TARGETS):
        assert {*names} <= {program.name for program in programs.PROGRAMS}
        assert {ratio.side, ratio.base} <= set(sides.TITLES)


# ---- the command ---------------------------------------------------------------------------------


@pytest.mark.check
def test_the_command_writes_results(tmp_path: Path) -> None:
    arguments = ["--device", "stub", "--only", "in_python", "--only", "threads", "--threads", "2"]
    done = CliRunner().invoke(command.main, [*arguments, "--repetitions", "3", "--out", tmp_path])
    assert done.exit_code == 0, done.output
    (written,) = tmp_path.glob("*-stub.json")
    results = json.loads(written.read_text())
    assert set(results["benchmarks"]) == {"in_python-stub", "threads-stub"}
    assert results["devices"]["stub"]["title"].startswith("no device")


def test_a_device_that_is_not_here_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device.shutil, "which", lambda _: None)
    done = CliRunner().invoke(command.main, ["--device", "cuda"])
    assert done.exit_code == 1
    assert "nvidia-smi names no NVIDIA GPU here" in done.output


def test_earlier_figures_stay_where_a_later_benchmark_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine is lent for only a few minutes, and disappears in the middle of a run."""

    def measured(name: str, *_: object) -> Callable[[object], Result]:
        def measure(_step: object) -> Result:
            if name == "threads":
                raise OSError
            return Result(name, "d", "m", [Figure("a", 1.5, "ns")])

        return measure

    monkeypatch.setattr(command, "_benchmark", measured)
    words = ["--device", "stub", "--only", "calls", "--only", "threads", "--out", str(tmp_path)]
    assert isinstance(CliRunner().invoke(command.main, words).exception, OSError)
    (path,) = tmp_path.iterdir()
    assert list(json.loads(path.read_text())["benchmarks"]) == ["calls-stub"]


def test_a_later_part_of_a_run_adds_its_results(tmp_path: Path) -> None:
    path, on = tmp_path / "bench.json", [device.find("stub")]
    first = Result("models", "d", "m", [Figure("a", 1.5, "µs")], data=[{"us": 1.5}])
    second = Result("models", "d", "m", [Figure("b", 2.5, "µs")], data=[{"us": 2.5}])
    output.write([first, Result("calls", "d", "m")], on, path)
    output.write([second], on, path, records.load(path))
    benchmarks = json.loads(path.read_text())["benchmarks"]
    assert set(benchmarks) == {"models-stub", "calls-stub"}
    assert [figure["name"] for figure in benchmarks["models-stub"]["figures"]] == ["a", "b"]
    assert benchmarks["models-stub"]["data"] == [{"us": 1.5}, {"us": 2.5}]


def test_a_program_that_fails_leaves_the_others_results(
    stub: device.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(program: programs.Program, *_: object) -> dict[str, list[float]]:
        if program.name == "many":
            raise native.Failed("many ended: no memory")
        return {sides.OURS: [1.0]}

    monkeypatch.setattr(programs, "measure", measure)
    result = programs.run(stub, 3, None, quiet)
    missing = {(row["program"], row["failed"]) for row in result.data if "failed" in row}
    assert missing == {("many", "many ended: no memory")}
    assert {row["program"] for row in result.data if "us" in row} >= {"forum", "grow"}
