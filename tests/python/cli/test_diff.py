"""`mgpu-rt diff` names the first launch whose results differ, and says why: kernel or inputs."""

from __future__ import annotations

import dataclasses
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mgpu_rt._cli import softgpu
from mgpu_rt._cli.diff import search
from mgpu_rt._cli.diff.search import Pair, matched
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._recordings import notes
from mgpu_rt._recordings.difference import Allowed
from mgpu_rt._recordings.launches import Argument, Block, RecordedLaunch
from tests.python.cli import seeded
from tests.python.cli.seeded import SEEDS, Seed
from tests.python.runtime.hooked import hip, program
from tests.support.command import command
from tests.support.folders import folder
from tests.support.sources import SOURCES
from tests.support.suites import sampled

HERE = Path(__file__).parent


def diff(*words: object) -> subprocess.CompletedProcess[str]:
    return command("diff", "--device", "softgpu", *words, **hip())


def variant(name: str, old: str = "", new: str = "", source: str = "barrier.mlir") -> Path:
    """Returns a small program in which one line is changed."""
    path = folder("diff") / f"{name}.mlir"
    text = (HERE / source).read_text()
    assert old in text
    path.write_text(text.replace(old, new) if old else text)
    return program(path)


# ---- whole runs ----


@pytest.mark.check
def test_a_missing_barrier_is_found() -> None:
    before = variant("with")
    after = variant("without", "      gpu.barrier\n", "")
    done = diff("--dtype", "i32", "--", before, "--", after)
    assert done.returncode == 1, done.stderr
    assert (
        "launch 1 of 1 is the first that differs: launch 1 of kernel kernels::reverse"
        in done.stdout
    )
    assert "elements (i32) differ, the first is element " in done.stdout
    assert " before, " in done.stdout
    assert "the cause is the kernel (its inputs are equal): " in done.stdout


def test_a_launch_that_cannot_be_recorded_leaves_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes.Record, "_next", lambda *_: None)
    note = notes.Note(output=str(tmp_path))
    for _ in range(2):
        assert note._next(None, None) is None  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == [notes.LOST]


@pytest.mark.check
def test_equal_programs_are_equal() -> None:
    done = diff("--device", "softgpu,gfx90a", "--", variant("with"))
    last = "1 launch compared: equal; `mgpu-rt check` finds missing waits"
    assert (done.returncode, done.stdout.splitlines()[2:]) == (0, [last])


# ---- which launch is which ----


def launch(label: str, number: int = 1, left: str = "b", found: str = "a") -> RecordedLaunch:
    sizes = (1, 1, 1)
    arguments = (Argument(bytes(8), 0), Argument(b"\1\0\0\0"))
    blocks = (Block(4096, 16, found, left),)
    return RecordedLaunch(
        "", label, label, "", sizes, sizes, 0, arguments, blocks, number=number
    )  # fmt: skip


def launches(names: str) -> list[RecordedLaunch]:
    return [launch(name, names[:at].count(name) + 1) for at, name in enumerate(names)]


AT = "the runs diverge at launch"


@pytest.mark.parametrize(
    ("before", "after", "pairs", "words"),
    [
        ("abab", "abab", 4, ""),
        ("aab", "aba", 3, ""),  # paired by kernel and count, because threads may launch
        ("abcd", "aed", 1, f"{AT} 2: b with 16 bytes before, e with 16 bytes after"),
        ("ab", "abc", 2, "the runs diverge after launch 2: 2 launches before, 3 after"),
        ("abc", "abd", 3, ""),
        ("ab", "c", 0, f"{AT} 1: a with 16 bytes before, c with 16 bytes after"),
    ],
)
def test_launches_are_paired(before: str, after: str, pairs: int, words: str) -> None:
    found, parting = matched(launches(before), launches(after))
    assert (len(found), parting) == (pairs, words)
    if sorted(before) == sorted(after):
        assert all(pair.before.label == pair.after.label for pair in found)


def test_launches_with_other_numbers_are_paired_by_what_they_leave() -> None:
    """A gpu.launch in place of an operation of linalg gives all kernels other numbers."""
    before = [launch("k", found="0", left="1"), launch("k_0", found="1", left="2")]
    after = [launch("k_0", found="0", left="1"), launch("k", found="1", left="2")]
    pairs, parting = matched(before, after)
    assert [(pair.before.label, pair.after.label) for pair in pairs] == [("k", "k_0"), ("k_0", "k")]
    assert parting == ""


def test_a_launch_on_other_blocks_parts_the_runs() -> None:
    other = dataclasses.replace(launch("b"), blocks=(Block(0, 32, "a", "b"),))
    found, parting = matched(launches("ab"), [launch("a"), other])
    assert len(found) == 1
    assert parting == f"{AT} 2: b with 16 bytes before, b with 32 bytes after"


Searched = Callable[..., tuple[list[str], int]]


@pytest.fixture
def searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Searched:
    """Searches the launches that the sides' first runs record, and those that later runs record."""

    def make(*first: list[RecordedLaunch], again: object = None, lost: str = "") -> Any:
        runs = {False: first, True: again or first}
        sides = [search.Side(name, ["p"], "softgpu", {}) for name in ("before", "after")]

        def run(side: search.Side, _: Path, whole: object = ()) -> Any:
            return runs[bool(whole)][side.name == "after"], side.name == lost

        monkeypatch.setattr(search, "run", run)
        return search.search(sides, Allowed(None, 0, "f32"), tmp_path)

    return make


def test_a_side_that_is_not_deterministic_is_refused(searched: Searched) -> None:
    one, found, changed = ([launch("k", left=left)] for left in "bcd")
    with pytest.raises(CommandError, match="after is not deterministic: launch 1"):
        searched(one, found, again=(one, changed))


def test_runs_without_a_common_launch_name_only_where_they_diverge(searched: Searched) -> None:
    lines, status = searched(launches("ab"), launches("c"))
    assert (lines[3:], status) == (["0 launches compared"], 1)


@pytest.mark.parametrize(
    ("mine", "theirs", "is_candidate", "inputs"),
    [
        (("a", "b"), ("a", "b"), False, 0),
        (("a", "b"), ("a", "c"), True, 0),
        (("a", "a"), ("a", "c"), True, 0),  # one side does not write
        (("a", "a"), ("c", "c"), False, 1),  # nobody writes
        (("a", "b"), ("c", "b"), False, 1),  # the earlier content is overwritten
    ],
)
def test_only_memory_that_a_side_wrote_is_a_candidate(
    mine: tuple[str, str], theirs: tuple[str, str], is_candidate: bool, inputs: int
) -> None:
    pair = Pair(1, *(launch("k", found=found, left=left) for found, left in (mine, theirs)))
    assert search._written_otherwise(pair) == is_candidate
    assert len([*search._inputs(pair)]) == inputs


# ---- the number of runs ----


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Launches that the sides "before" and "after" repeat; each run adds its side to the list."""
    made: list[str] = []

    def run(side: search.Side, _: Path, whole: object = ()) -> Any:
        made.append(side.name)
        left = "b" if side.name == "before" else "c"
        return [launch("k", number, left) for number in range(1, 501)], False

    monkeypatch.setattr(search, "run", run)
    monkeypatch.setattr(RecordedLaunch, "content", lambda _, name: CONTENTS.get(name, b""))
    return made


CONTENTS = {"b": struct.pack("4f", 1, 2, 3, 4), "c": struct.pack("4f", 1.001, 2, 3, 4)}
SIDES = [search.Side(name, ["p"], "softgpu", {}) for name in ("before", "after")]
NEARLY = Allowed(0.01, 0, "f32")


def test_runs_do_not_grow_with_the_launches_that_differ_within_the_tolerance(
    runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_holes", lambda *_: ())  # no image was recorded
    lines, status = search.search(SIDES, NEARLY, tmp_path)
    assert (status, runs) == (0, ["before", "after"] * 2)
    assert "500 launches compared: equal within the tolerance; " in lines[2]


def test_a_run_records_no_more_memory_than_there_is_room_for() -> None:
    large = dataclasses.replace(launch("k"), blocks=(Block(0, search.ROOM // 40, "a", "b"),))
    huge = dataclasses.replace(launch("k"), blocks=(Block(0, search.ROOM, "a", "b"),))
    pairs = [Pair(n, each, each) for n, each in enumerate([large] * 50 + [huge] * 20, 1)]
    sizes = [len(batch) for batch in search._batches(pairs)]
    assert sizes == [20, 20, search.BATCH, search.BATCH - 2]
    assert not [*search._batches([])]


def test_launches_behind_the_first_that_differs_may_change(runs: list[str], tmp_path: Path) -> None:
    pairs = [Pair(n, launch("k", n, "b"), launch("k", n, "c")) for n in (1, 2)]
    pairs[1] = pairs[1]._replace(after=launch("k", 2, "another"))
    found, _ = search._first(SIDES, Allowed(0.0001, 0, "f32"), pairs, tmp_path)
    assert found and found.number == 1
    with pytest.raises(CommandError, match="after is not deterministic: launch 2"):
        search._first(SIDES, NEARLY, pairs, tmp_path)


# ---- launches of other sizes ----

#: Stores 7 into the first numbers of memory that holds FILL.
SIZED = """module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @set(%numbers: memref<256xi32>) kernel {
      %i = gpu.thread_id x
      %seven = arith.constant 7 : i32
      memref.store %seven, %numbers[%i] : memref<256xi32>
      gpu.return
    }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    %threads = arith.constant THREADS : index
    %filling = arith.constant FILL : i32
    %start = gpu.wait async
    %numbers, %allocated = gpu.alloc async [%start] () : memref<256xi32>
    %filled = gpu.memset async [%allocated] %numbers, %filling : memref<256xi32>, i32
    %launched = gpu.launch_func async [%filled] @kernels::@set
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%numbers : memref<256xi32>)
    %freed = gpu.dealloc async [%launched] %numbers : memref<256xi32>
    gpu.wait [%freed]
    return
  }
}
"""


@pytest.mark.check
@pytest.mark.parametrize("filling", [7, 0])
def test_launches_of_other_sizes_are_named(filling: int, tmp_path: Path) -> None:
    """Equal results do not hide it, and the kernel is not the cause: both sides have one."""
    sides = []
    for threads in (250, 256):
        sides.append(tmp_path / f"{threads}.mlir")
        text = SIZED.replace("THREADS", str(threads)).replace("FILL", str(filling))
        sides[-1].write_text(text)
    done = diff("--dtype", "i32", *sides)
    sizes = "first launch 1 of kernel kernels::set: block 250 x 1 x 1 before, 256 x 1 x 1 after"
    assert f"\n1 of 1 launches has another size, {sizes}\n" in done.stdout, done.stderr
    cause = "the cause is the launch's size (its inputs are equal): "
    assert (done.returncode, cause in done.stdout) == ((0, False) if filling else (1, True))


def test_the_cause_is_the_kernel_only_in_launches_of_one_size() -> None:
    one, sides = launch("k"), [search.Side(n, ["p"], n, {}) for n in ("hip", "gfx90a")]
    wide = dataclasses.replace(one, grid=(2, 1, 1), shared=64)
    other = dataclasses.replace(wide, image="another")
    pairs = [Pair(1, one, one), Pair(2, one, wide), Pair(3, one, other)]
    assert [search._cause(pair, sides) for pair in pairs] == [
        "the device: both sides have one image",
        "the launch's size",
        "the kernel, or the launch's size",
    ]
    assert [*search._other_sizes(pairs)] == [
        "2 of 3 launches have another size, first launch 1 of kernel k: grid 1 x 1 x 1 before, "
        "2 x 1 x 1 after, dynamic workgroup memory 0 bytes before, 64 bytes after"
    ]
    assert not [*search._other_sizes(pairs[:1])]


def test_a_launch_without_device_memory_is_not_called_equal(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = dataclasses.replace(launch("k"), blocks=(), arguments=())
    monkeypatch.setattr(RecordedLaunch, "content", lambda *_: b"")
    lines, status = searched([bare], [bare])
    assert status == 2 and lines[2:] == [
        "1 launch compared",
        "not compared: no argument of a launch leads to device memory",
    ]


@pytest.mark.check
def test_a_side_whose_only_launch_fails_says_so(tmp_path: Path) -> None:
    for threads in (250, 512):
        text = SIZED.replace("THREADS", str(threads)).replace("FILL", "7")
        (tmp_path / f"{threads}.mlir").write_text(text)
    done = diff(tmp_path / "512.mlir", tmp_path / "250.mlir")
    said = "no launch was recorded: the lines above give the reason\n"
    assert done.returncode == 2 and done.stderr.endswith(said), done.stderr


# ---- a difference that grows ----

#: The first launch stores VALUE; the second subtracts 1.
GROWS = """func.func @main() {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %numbers = gpu.alloc () : memref<64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %value = arith.constant VALUE : f32
    memref.store %value, %numbers[%tx] : memref<64xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %one = arith.constant 1.0 : f32
    %number = memref.load %numbers[%tx] : memref<64xf32>
    %less = arith.subf %number, %one : f32
    memref.store %less, %numbers[%tx] : memref<64xf32>
    gpu.terminator
  }
  gpu.dealloc %numbers : memref<64xf32>
  return
}
"""


@pytest.mark.check
def test_a_difference_that_grows_is_followed_to_its_launch(tmp_path: Path) -> None:
    """Without the tolerance, the kernel of the first launch is the cause."""
    sides = [tmp_path / "before.mlir", tmp_path / "after.mlir"]
    for side, value in zip(sides, ("1.0", "1.00000012"), strict=True):
        side.write_text(GROWS.replace("VALUE", value))
    done = diff("--dtype", "f32", "--ulps", 8, *sides)
    assert (done.returncode, done.stdout.splitlines()[-3:]) == (
        1,
        [
            "  the cause is its inputs: on the inputs before, the kernel after writes the results "
            "before, within the tolerance",
            "  launch 1 differs within the tolerance: a smaller one names its cause",
            "2 launches compared",
        ],
    ), done.stderr
    exact = diff(*sides)
    assert "launch 1 of 2 is the first that differs" in exact.stdout
    assert "the cause is the kernel" in exact.stdout


# ---- sides ----


@pytest.mark.check
def test_variables_that_kernels_write_are_not_called_equal() -> None:
    """The kernel counts its launches in a global variable."""
    counts = program(SOURCES["globals"], iterations=5)
    found = diff("--", counts, "--", counts)
    assert found.returncode == 2
    assert "5 launches compared: equal" in found.stdout
    assert "not compared: variables that kernels can write, 'launches'" in found.stdout


def test_the_numbers_of_gpus_do_not_hide_an_emulated_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**hip(), "HIP_VISIBLE_DEVICES": "1"}.items():
        monkeypatch.setenv(name, value)
    assert search.side("before", ["sh"], "hip").environment["HIP_VISIBLE_DEVICES"] == "1"
    assert "HIP_VISIBLE_DEVICES" not in search.side("after", ["sh"], "gfx90a").environment


# ---- differences that are seeded into the models ----


def compare_models(before: Path, after: Path) -> str:
    """Compares two models on the emulated device, with one pass each; returns the output of the
    command."""
    wait = f"{softgpu.hip({})},hipDeviceSynchronize"
    sides = [("sh", "-c", 'echo 1 | "$0"', str(path)) for path in (before, after)]
    words = ("diff", "--device", "softgpu", "--", *sides[0], "--", *sides[1])
    done = command(*words, **hip(), BENCH_WAIT=wait)
    assert done.returncode < 2, done.stderr
    return done.stdout


#: `make nightly` runs the other seeds.
SAMPLE = [seed for seed in SEEDS if seed.name in ("a wrong constant", "the other extreme")]


@pytest.mark.parametrize("seed", sampled(SEEDS, SAMPLE), ids=lambda seed: seed.name)
def test_a_seeded_difference_is_named_at_its_launch(seed: Seed) -> None:
    before = seeded.executable(seed.model, seeded.source(seed.model), seed.model)
    after = seeded.executable(seed.name, seed.source(), seed.model)
    said = compare_models(before, after)
    assert f"\nlaunch {seed.operation} of " in said
    assert seed.verdict in said


def test_launches_of_a_side_that_failed_are_not_a_difference(searched: Searched) -> None:
    """With a wrong chip on one side, launches are missing there: nothing was compared."""
    lines, status = searched(launches("a"), [], lost="after")
    assert status == 2
    assert "not compared: launches that failed or could not be recorded" in lines
