"""The benchmarks run, and write their measurements.

No test in this file judges a figure, because figures depend on the machine; `make bench` shows the
figures.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import __main__ as command
from bench import records
from bench.measure import programs, rounds
from bench.measure.rounds import Runner
from bench.setup import device, native, sides
from bench.show import output
from bench.show.figures import Figure, Result
from tests.runtime.programs.test_programs import ROUNDS, printed
from tests.support.patience import run_process
from tests.support.suites import in_check


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
        runner = Runner(side.command(program, llvm, stub), side.environment)
        assert runner.round(1) > 0
        assert runner.round(2) > 0
        runner.close()


@pytest.mark.parametrize("program", ["churn", "forkjoin", "forkjoin-nowait", "grow", "ragged"])
def test_programs_by_hand_compute_the_same(program: str) -> None:
    on = device.find("softgpu")
    words = sides.by_hand_arguments(program, on)
    words[2] = str(ROUNDS)
    env = {**on.environment, "BENCH_WAIT": f"{on.hip},hipDeviceSynchronize", "BENCH_RESULT": "on"}
    done = run_process([native.program("hoisted", on.chip), *words], env, input="1\n")
    assert done.stderr == printed(program, 22).splitlines(keepends=True)[0]


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
    right = (line, side.environment)
    wrong = (line, {**side.environment, "BENCH_WAIT": "/nowhere,hipNothing"})
    taken = rounds.turns({"one": right, "other": right}, 3, random.Random(0), 1)
    assert {name: len(times) for name, times in taken.items()} == {"one": 3, "other": 3}
    with pytest.raises(native.Failed, match="/nowhere"):
        rounds.turns({"one": right, "wrong": wrong}, 3, random.Random(0), 1)
    assert [p.poll() is None for runner in started for p in runner._processes] == [False] * 4


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


def test_the_load_is_that_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark of eight processes loads the machine itself."""
    load = [0.5]

    def measure(asked: object) -> Result:
        load[0] = 16.5
        return Result("calls", "d", "m")

    monkeypatch.setattr(os, "getloadavg", lambda: (load[0], 0, 0))
    monkeypatch.setitem(command.BENCHMARKS, "calls", (measure, ("stub",)))
    arguments = ["--device", "stub", "--only", "calls", "--out", str(tmp_path / "bench.json")]
    done = CliRunner().invoke(command.main, arguments)
    assert done.exit_code == 0, done.output
    assert records.load(tmp_path / "bench.json")["load"] == 0.5


def test_a_later_part_of_a_run_adds_its_results(tmp_path: Path) -> None:
    path, on = tmp_path / "bench.json", [device.find("stub")]
    first = Result("models", "d", "m", [Figure("a", 1.5, "µs")], data=[{"us": 1.5}])
    second = Result("models", "d", "m", [Figure("b", 2.5, "µs")], data=[{"us": 2.5}])
    output.write([first, Result("calls", "d", "m")], on, path, load=0.5)
    output.write([second], on, path, load=16.5, before=records.load(path))
    written = json.loads(path.read_text())
    benchmarks = written["benchmarks"]
    assert written["load"] == 0.5
    assert set(benchmarks) == {"models-stub", "calls-stub"}
    assert [figure["name"] for figure in benchmarks["models-stub"]["figures"]] == ["a", "b"]
    assert benchmarks["models-stub"]["data"] == [{"us": 1.5}, {"us": 2.5}]
