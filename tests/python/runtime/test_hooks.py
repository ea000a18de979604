"""Tests the hooks of the package with real kernels on softgpu."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import weakref
from pathlib import Path

import pytest

from mgpu_rt.hooks import LaunchHook
from mgpu_rt.runtime import Launch, Runtime
from tests.python.runtime.hooked import hip, launch_on, program
from tests.support.child import ROOT
from tests.support.command import command
from tests.support.sources import SOURCES


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return command("run", "--device", "softgpu", *words, "--", program(), **hip())


def test_the_trace_hook_shows_every_call() -> None:
    done = run("--hook", "trace")
    lines = done.stderr.splitlines()
    assert done.stdout == "2\n"
    names = [line.partition("(")[0] for line in lines]
    assert names[0] == "module_load"
    assert names[-1] == "module_unload" or "mem_free" in names
    assert any(line.startswith("halve<2, 32>(0x") for line in lines)
    assert any(line.startswith("stream_create() = 0x") for line in lines)


def test_the_time_hook_has_a_line_for_each_kernel() -> None:
    *lines, warning = run("--hook", "time").stderr.splitlines()
    assert sorted(line.partition(",")[0] for line in lines) == [
        "halve: 2 launches",
        "spoil: 1 launch",
    ]
    assert warning == "EMULATED: no GPU was timed"


@pytest.mark.check
@pytest.mark.parametrize("runtime", [(), ("--hook", "mgpu_rt.runtime:CachedRuntime")])
def test_the_nan_hook_names_kernel_argument_and_index(runtime: tuple[str, ...]) -> None:
    done = run("--hook", "nan=f32", *runtime)
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert "spoil<1, 1>" in last
    assert "(launch 1 of this kernel) wrote 1 NaNs, first [5] of argument 0" in last


@pytest.mark.check
def test_the_hook_of_the_page_counts_launches_by_their_grid(tmp_path: Path) -> None:
    """The user names a class as a hook. The options --kernel and --nth also apply to a hook of the
    user."""
    blocks = (ROOT / "docs" / "write-a-runtime.md").read_text().split("```python\n")
    (text,) = (block.partition("```")[0] for block in blocks if "class Grids" in block)
    (tmp_path / "mine.py").write_text(text)
    own = ("run", "--device", "softgpu", "--hook", "mine:Grids")
    path = {**hip(), "PYTHONPATH": str(tmp_path)}
    both = command(*own, "--", program(), **path).stdout
    assert "Counter({(2, 1, 1): 2, (1, 1, 1): 1})\n" in both
    halve = command(*own, "--kernel", "halve", "--", program(), **path).stdout
    assert "Counter({(2, 1, 1): 2})\n" in halve
    first = command(*own[:-1], "mine:Grids?kernel=halve nth=1", "--", program(), **path).stdout
    assert "Counter({(2, 1, 1): 1})\n" in first
    assert os.listdir(tmp_path) == ["mine.py"]  # and no bytecode, which a full disk would cut off


@pytest.mark.check
def test_the_hook_of_the_page_reads_a_block_of_each_launch(tmp_path: Path) -> None:
    """The launch also has all attributes that write-a-runtime.md names."""
    page = (ROOT / "docs" / "write-a-runtime.md").read_text()
    (text,) = (part.partition("```")[0] for part in page.split("```python\n") if "First" in part)
    named = sorted(set(re.findall(r"`(launch\.[\w.]+)", page)))
    assert len(named) > 10
    (tmp_path / "mine.py").write_text(f"{text}        [{', '.join(named)}]\n")
    path = {**hip(), "PYTHONPATH": str(tmp_path)}
    done = command("run", "--device", "softgpu", "--hook", "mine:First", "--", program(), **path)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"halve 0 \S+\nhalve 0 \S+\nspoil 0 \S+\n2\n", done.stdout)


@pytest.mark.check
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--kernel", "hal"), "kernel='hal' and nth=0; the kernels are halve, spoil"),
        (("--nth", 3), "kernel='*' and nth=3; the kernels are halve, spoil"),
    ],
)
def test_a_hook_that_saw_no_launch_says_why(words: tuple[object, ...], why: str) -> None:
    done = run("--hook", "time", *words)
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert done.stderr == f"mgpu_rt: the hook has looked at no launch: {why}\n"


def test_a_method_may_keep_a_launch() -> None:
    """A launch holds its runtime, which may hold the launch. Python finds such a cycle."""

    class Keeps(Runtime):
        def launch_kernel(self, launch: Launch) -> None:
            self.kept = launch

    runtime = Keeps()
    runtime.launch_kernel(launch_on(runtime, 1))
    assert (runtime.kept.grid, runtime.kept.function) == ((1, 1, 1), 1)
    gone = weakref.ref(runtime)
    del runtime
    gc.collect()
    assert gone() is None


def test_a_launch_keeps_its_number_while_others_are_counted() -> None:
    """Another thread launches the kernel before the hook has looked up the kernel."""
    seen = []

    class Looks(LaunchHook):
        def on_launch(self, launch: Launch) -> None:
            if launch.number < 3:
                self.launch_kernel(launch_on(self, 1))
            seen.append(launch.number)

    hook = Looks()
    hook.launch_kernel(launch_on(hook, 1))
    assert seen == [3, 2, 1]


def test_a_hook_compares_a_kernels_name_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pattern's result is valid until the handle belongs to another kernel, or the pattern
    changes."""
    compared, seen = [], []

    def compare(name: str, pattern: str) -> bool:
        compared.append(name)
        return name.startswith(pattern)

    class Looks(LaunchHook):
        kernel = "f"

        def on_launch(self, launch: Launch) -> None:
            seen.append((launch.kernel.name, launch.number))

        def launch_natively(self, launch: Launch) -> None:
            seen.append((launch.kernel.name, 0))

    monkeypatch.setattr("mgpu_rt.hooks.fnmatch.fnmatchcase", compare)
    monkeypatch.setattr("mgpu_rt.runtime._base.Runtime.launch_kernel", Looks.launch_natively)
    hook = Looks()
    for name in ("first", "first", "second", "first"):
        hook._found(1, 1, name)
        hook.launch_kernel(launch_on(hook, 1))
    assert compared == ["first", "second", "first"]
    hook.kernel = "s"
    hook.launch_kernel(launch_on(hook, 1))
    assert compared[3:] == ["first"]
    assert seen == [("first", 1), ("first", 2), ("second", 0), ("first", 3), ("first", 0)]


def run_samename(*words: object) -> subprocess.CompletedProcess[str]:
    path = program(SOURCES["samename"], 2)
    return command("run", "--device", "softgpu", *words, "--", path, **hip())


@pytest.mark.check
def test_kernels_of_one_name_are_told_apart() -> None:
    lines = sorted(run_samename("--hook", "time").stderr.splitlines()[:-1])
    rows = [line.partition(",")[0] for line in lines]
    assert rows == ["first::mark: 2 launches", "second::mark: 2 launches"]


@pytest.mark.check
@pytest.mark.parametrize("pattern", ["second::*", "second::mark", "mark"])
def test_a_pattern_fits_the_full_name_and_the_plain_one(pattern: str) -> None:
    done = run_samename("--hook", "trace", "--kernel", pattern, "--nth", 2)
    shown = [line.partition("<")[0] for line in done.stderr.splitlines()]
    assert shown == (["first::mark"] if pattern == "mark" else []) + ["second::mark"]


@pytest.mark.check
def test_a_stripped_program_shows_the_hash_that_statistics_show(tmp_path: Path) -> None:
    stripped, stats = tmp_path / "stripped", tmp_path / "stats"
    built = program(SOURCES["samename"], 2)
    subprocess.run(["strip", "-o", stripped, built], check=True)
    words = ("run", "--device", "softgpu", "--hook", "time", "--stats-json", stats, "--", stripped)
    shown = {line.partition(":  ")[0] for line in command(*words, **hip()).stderr.splitlines()[:-1]}
    names = {line.rpartition(":")[0] for line in shown}
    assert names == set(json.loads(stats.read_text())["kernels"])


@pytest.mark.check
def test_the_hook_that_needs_numpy_says_so(without_numpy: dict[str, str]) -> None:
    words = ("run", "--device", "softgpu", "--hook", "nan", "--", program())
    done = command(*words, **without_numpy)
    assert done.returncode == 1
    assert "the hook nan needs numpy, which" in done.stderr
