"""The random driver plays the intended programs, and detects faults."""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proofs.programs import images
from tests.proofs.random import cases, model, programs, runner
from tests.support.compiled import compile_c
from tests.support.patience import HANG

FREES_A_PAGE = ["0 pages 1 1 0", "0 free 0 1 0"]


@pytest.fixture(scope="module", autouse=True)
def _images() -> None:
    images.write("gfx90a")


def _case(seed: int, device: runner.Device = runner.STUB) -> runner.Case:
    source = random.Random(seed)
    drawn = [cases.program(source, 40) for _ in range(10)]
    return programs.Plan(device, drawn, (), late=False, linked=True).case()


@pytest.mark.parametrize("device", [runner.STUB, runner.REUSE, runner.TWO, runner.SOFTGPU])
def test_stock_does_what_the_model_says(device: runner.Device) -> None:
    """Stock returns the model's result for every valid program, even if the stub delays the
    streams."""
    case = _case(1, device)
    assert runner.differences(runner.play(case, runner.STOCK, device), case, None) == []


def test_a_wrong_value_is_seen() -> None:
    case = _case(3)
    values = [(n, line) for n, lines in case.expected.items() for line in lines]
    number, line = next(
        at for at in values if (case.expected[at[0]][at[1]] or "ok") not in ("ok", "last error 0")
    )
    case.expected[number][line] = "1 1"
    found = runner.differences(runner.play(case, runner.STOCK, runner.STUB), case, None)
    assert len(found) == 1 and f"program {number}, line {line}:" in found[0]


def test_a_missing_wait_is_seen() -> None:
    """An event orders launches on two streams; without the event, the second launch runs first."""
    delays = ("HIPSTUB_ASYNC", "0,0,300000,0")  # microseconds, longer than a busy machine's own
    late = dataclasses.replace(runner.STUB, options=(*runner.STUB.options, delays))
    lines = [
        "0 load 0 1 0 0",
        "0 function 0 1 1 0 0",
        "0 stream 0 1",
        "0 stream 0 2",
        "0 stream 0 3",
        "0 malloc 1 1 256 0 0",
        "0 up 0 1 0 64 2 5 0",
        "0 sync 0 2",
        "0 launch 0 1 0 2 1 64 0",
        "0 event 0 1",
        "0 record 0 1 2",
        "0 waitevent 0 1 3",
        "0 down 0 1 0 64 3 0",
    ]
    words = 3 * model.pattern(64, 5) + images.VALUES["plain0"]
    expected = {1: "ok", 2: "ok", 3: "ok", 4: "ok", 5: "ok", 6: "ok", 10: "ok"}
    expected[13] = model.digest(words.astype("uint32"))
    case = runner.Case(images.NAMES, {1: 1}, {1: lines}, {1: expected})
    assert runner.differences(runner.play(case, runner.STOCK, late), case, None) == []
    lines.remove("0 waitevent 0 1 3")
    expected[12] = expected.pop(13)
    found = runner.differences(runner.play(case, runner.STOCK, late), case, None)
    assert len(found) == 1 and "line 12" in found[0]


def test_the_end_of_a_process_is_seen() -> None:
    """The driver detects a crash. The driver also detects a failed call that does not fail with
    stock."""
    case = runner.Case(images.NAMES, {1: 1}, {1: ["0 hostset 1 1 1"]}, {1: {}})
    found = runner.differences(runner.play(case, runner.STOCK, runner.STUB), case, None)
    assert found[0] == "status -11, in program 1"
    case = runner.Case(images.NAMES, {1: 1}, {1: FREES_A_PAGE}, {1: {}})
    said = runner.play(case, runner.STOCK, runner.STUB)
    assert said.failures == {1: ["'hipFree(ptr)' failed with 'hipErrorInvalidValue'"]}
    assert runner.differences(said, case, runner.Output(results=said.results)) != []


def test_a_line_cut_by_the_end_is_ignored() -> None:
    """When main returned, a thread was still writing a line of output."""
    said = runner.run(["printf", "whole\\nm"], {"PATH": os.environ["PATH"]}, HANG)
    assert (said.status, said.other) == (0, ["whole"])


def test_exit_finds_nothing_in_a_buffer_of_stderr(tmp_path) -> None:
    """At exit the C library would flush a buffer without taking the buffer's lock, and could cut or
    repeat a line."""
    after = """#include <stdio.h>
        #include <unistd.h>
        __attribute__((destructor)) static void after_the_players(void) {
            fputs("first, ", stderr);
            (void)!write(STDERR_FILENO, "second\\n", 7);
        }"""
    preload = compile_c(tmp_path / "libafter.so", after, "-shared", "-fPIC")
    side = dataclasses.replace(runner.STOCK, options=(("LD_PRELOAD", str(preload)),))
    case = runner.Case(images.NAMES, {1: 1}, {1: FREES_A_PAGE}, {1: {}})
    assert runner.play(case, side, runner.STUB).other == ["first, second"]


@pytest.mark.check  # 2 s of a core
def test_cases_play_elsewhere(tmp_path: Path) -> None:
    """The folder contains only the files that the command prints. A machine that plays cases may
    lack the repository and the packages."""
    folder = runner.OUT / "cases-elsewhere"
    shutil.rmtree(folder, ignore_errors=True)
    words = ["20", str(folder), "--device", "stub, two devices"]
    write = [sys.executable, "-m", "tests.proofs.random.cases", *words]
    told = subprocess.run(write, cwd=runner.ROOT, capture_output=True, text=True, check=True)
    for name in told.stdout.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (runner.ROOT / name).is_dir() else shutil.copy
        copy(runner.ROOT / name, tmp_path / name)
    command = [sys.executable, "-S", "-m", "tests.proofs.random.play", "--device", words[-1]]
    command += ["--side", "builtin", "--workers", "2", str(folder.relative_to(runner.ROOT))]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "1 cases of 20 programs on stub, two devices" in done.stdout


def test_cases_for_a_side_leave_out_the_actions_that_it_lacks(monkeypatch) -> None:
    argv = ["cases", "20", str(runner.OUT / "none"), "--device", "stub", "--side", "exclusive"]
    monkeypatch.setattr(sys, "argv", argv)
    written: list[object] = []
    monkeypatch.setattr(cases, "write", lambda *given: written.extend(given))
    cases.main()
    assert written[-1] == list(runner.EXCLUSIVE[0].lacks)
