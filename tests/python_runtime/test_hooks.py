"""The hooks that ship, and launches that are recorded and replayed: real kernels on softgpu."""

from __future__ import annotations

import fcntl
import functools
import itertools
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import PROGRAMS
from bench.setup.printing import print_library
from mgpu_rt import files
from mgpu_rt.cli import softgpu
from mgpu_rt.lowering import lower, object_files
from mgpu_rt.runtime import Recording, recording
from tests.support.child import ROOT, environment, library
from tests.support.command import assert_sentence, command
from tests.support.folders import folder
from tests.support.patience import HANG

HERE = Path(__file__).parent


@functools.cache
def program(source: Path = HERE / "nan.mlir", iterations: int | None = None) -> Path:
    """Linked with the library."""
    parts = [library(), print_library()]
    return object_files.link(
        [lower.lower(source, llvm=22, iterations=iterations)],
        libraries=parts,
        rpath=[part.parent for part in parts],
        out=folder("hooks") / source.stem,
    )


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return command("run", "--device", "softgpu", *words, "--", program(), **hip())


def hip() -> dict[str, str]:
    return {"MGPU_RT_HIP": str(softgpu.hip({})), "MGPU_RT_PYTHON": "off"}


def test_a_program_runs_without_a_hook() -> None:
    done = run()
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_the_trace_hook_shows_every_call() -> None:
    done = run("--hook", "trace")
    lines = done.stderr.splitlines()
    assert done.stdout == "2\n"
    names = [line.partition("(")[0] for line in lines]
    assert names[0] == "module_load"
    assert names[-1] == "module_unload" or "mem_free" in names
    assert any(line.startswith("halve<2, 32>(memref<64>@0x") for line in lines)
    assert any(line.startswith("stream_create() = 0x") for line in lines)


def test_a_pattern_and_a_number_choose_launches() -> None:
    done = run("--hook", "trace", "--kernel", "hal*", "--nth", 2)
    (line,) = done.stderr.splitlines()
    assert line.startswith("halve<")


def test_the_time_hook_has_a_line_for_each_kernel() -> None:
    lines = sorted(run("--hook", "time").stderr.splitlines())
    assert [line.partition(",")[0] for line in lines] == ["halve: 2 launches", "spoil: 1 launches"]


@pytest.mark.parametrize("runtime", [(), ("--runtime", "mgpu_rt.runtime:CachedRuntime")])
def test_the_nan_hook_names_kernel_argument_and_index(runtime: tuple[str, ...]) -> None:
    done = run("--hook", "nan=f32", *runtime)
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert "spoil<1, 1>" in last
    assert "launch 1 of this kernel: it has written 1 NaNs, first [5] of argument 0" in last


def test_the_nan_hook_skips_unwanted_kernels() -> None:
    assert run("--hook", "nan", "--kernel", "halve").stdout == "2\n"


def test_the_faults_hook_fails_the_named_call() -> None:
    done = run("--hook", "faults=mgpuMemAlloc:1:hipErrorOutOfMemory")
    assert "'hipMalloc(&ptr, sizeBytes)' failed with 'hipErrorOutOfMemory'" in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--hook", "nothing"), "there is no hook 'nothing': name one of trace, nan, time, "),
        (("--hook", "mine:Hook=3"), "takes no value"),
        (("--hook", "time=3"), "takes no value"),
        (("--kernel", "x"), "add --hook NAME"),
    ],
)
def test_a_wrong_option_is_named(words: tuple[str, ...], sentence: str) -> None:
    done = run(*words)
    assert_sentence(done.returncode, done.stderr, sentence)


def test_the_hook_of_the_page_counts_launches_by_their_grid(tmp_path: Path) -> None:
    """A class is named as a hook, and --kernel and --nth are for it too."""
    blocks = (ROOT / "docs" / "write-a-runtime.md").read_text().split("```python\n")
    (text,) = (block.partition("```")[0] for block in blocks if "class Grids" in block)
    (tmp_path / "mine.py").write_text(text)
    own = ("run", "--device", "softgpu", "--hook", "mine:Grids")
    path = {**hip(), "PYTHONPATH": str(tmp_path)}
    both = command(*own, "--", program(), **path).stdout
    assert "Counter({(2, 1, 1): 2, (1, 1, 1): 1})\n" in both
    halve = command(*own, "--kernel", "halve", "--", program(), **path).stdout
    assert "Counter({(2, 1, 1): 2})\n" in halve


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--kernel", "hal"), "no kernel's name fits 'hal'; launched were halve, spoil"),
        (("--nth", 3), "no kernel that fits was launched 3 times"),
    ],
)
def test_a_hook_that_saw_no_launch_says_why(words: tuple[object, ...], why: str) -> None:
    done = run("--hook", "time", *words)
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert done.stderr == f"mgpu_rt: the hook has looked at no launch: {why}\n"


def test_a_recording_of_nothing_says_why(tmp_path: Path) -> None:
    words = ("record", "--device", "softgpu", "--kernel", "x", "-o", tmp_path / "x")
    assert "no kernel's name fits 'x'" in command(*words, "--", program(), **hip()).stderr


def test_an_unknown_fault_is_named() -> None:
    done = run("--hook", "faults=mgpuNothing")
    assert done.returncode == 1
    assert "'mgpuNothing' is no fault" in done.stderr


def run_samename(*words: object) -> subprocess.CompletedProcess[str]:
    path = program(PROGRAMS / "samename.mlir", 2)
    return command("run", "--device", "softgpu", *words, "--", path, **hip())


def test_kernels_of_one_name_are_told_apart() -> None:
    lines = sorted(run_samename("--hook", "time").stderr.splitlines())
    rows = [line.partition(",")[0] for line in lines]
    assert rows == ["first::mark: 2 launches", "second::mark: 2 launches"]


@pytest.mark.parametrize("pattern", ["second::*", "second::mark", "mark"])
def test_a_pattern_fits_the_full_name_and_the_plain_one(pattern: str) -> None:
    done = run_samename("--hook", "trace", "--kernel", pattern, "--nth", 2)
    shown = [line.partition("<")[0] for line in done.stderr.splitlines()]
    assert shown == (["first::mark"] if pattern == "mark" else []) + ["second::mark"]


def test_a_stripped_program_shows_the_hash_that_statistics_show(tmp_path: Path) -> None:
    stripped, stats = tmp_path / "stripped", tmp_path / "stats"
    built = program(PROGRAMS / "samename.mlir", 2)
    subprocess.run(["strip", "-o", stripped, built], check=True)
    words = ("run", "--device", "softgpu", "--hook", "time", "--stats-json", stats, "--", stripped)
    shown = {line.partition(":  ")[0] for line in command(*words, **hip()).stderr.splitlines()}
    names = {line.rpartition(":")[0] for line in shown}
    assert names == set(json.loads(stats.read_text())["kernels"])


# ---- record and replay ----


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("record") / "recording"
    words = ("record", "--device", "softgpu", "--kernel", "halve", "--nth", 2, "-o", out)
    done = command(*words, "--", program(), **hip())
    assert done.stdout == "2\n", done.stderr
    assert "recorded launch 2 of halve" in done.stderr
    return out


def replay(*words: object) -> subprocess.CompletedProcess[str]:
    return command("replay", "--device", "softgpu", *words, **hip())


def test_a_kernel_that_shares_its_name_is_recorded_by_the_full_one(tmp_path: Path) -> None:
    out, path = tmp_path / "recording", program(PROGRAMS / "samename.mlir", 2)
    words = ("record", "--device", "softgpu", "--kernel", "second::*", "-o", out, "--", path)
    assert "recorded launch 1 of second::mark, " in command(*words, **hip()).stderr
    assert replay(out).stdout.startswith("second::mark: same, ")


@pytest.fixture
def without_numpy(tmp_path: Path) -> dict[str, str]:
    """An environment whose Python has no NumPy, as after `pip install mgpu_rt`."""
    (tmp_path / "without").mkdir()
    missing = "raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')\n"
    (tmp_path / "without" / "numpy.py").write_text(missing)
    return {**hip(), "PYTHONPATH": str(tmp_path / "without")}


def test_recording_and_replaying_need_no_numpy(
    tmp_path: Path, without_numpy: dict[str, str]
) -> None:
    """pip brings none."""
    words = ("record", "--device", "softgpu", "--kernel", "halve", "-o", tmp_path / "recording")
    done = command(*words, "--", program(), **without_numpy)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    again = ("replay", "--device", "softgpu", tmp_path / "recording")
    assert command(*again, **without_numpy).stdout.startswith("halve: same, ")
    other = command(*again, "--grid", 1, **without_numpy)
    assert (other.returncode, "bytes differ" in other.stdout) == (1, True)
    refused = command(*again, "--tolerance", 1, **without_numpy)
    assert_sentence(refused.returncode, refused.stderr, "needs NumPy: pip install numpy")


def test_the_hook_that_needs_numpy_says_so(without_numpy: dict[str, str]) -> None:
    words = ("run", "--device", "softgpu", "--hook", "nan", "--", program())
    done = command(*words, **without_numpy)
    assert done.returncode == 1
    assert "the hook nan needs NumPy: pip install numpy" in done.stderr


def test_an_unknown_type_is_named(recorded: Path) -> None:
    done = replay(recorded, "--tolerance", 1, "--dtype", "f33")
    assert_sentence(done.returncode, done.stderr, "'f33' is no type of numbers: name one of f16")


def test_a_replay_of_several_launches_says_which_it_makes(tmp_path: Path) -> None:
    out = tmp_path / "recording"
    words = ("record", "--device", "softgpu", "--nth", 0, "--kernel", "halve", "-o", out)
    assert command(*words, "--", program(), **hip()).returncode == 0
    first, second = replay(out), replay(out, "--launch", 2)
    assert first.stderr == "mgpu-rt: launch 1 of 2 in this recording; --launch chooses\n"
    assert (first.returncode, second.returncode, second.stderr) == (0, 0, "")


def test_a_missing_image_is_named(recorded: Path, tmp_path: Path) -> None:
    done = replay(recorded, "--image", tmp_path / "none")
    assert_sentence(done.returncode, done.stderr, "was not found: name a file that holds an image")


def test_only_its_owner_can_read_a_recording(recorded: Path) -> None:
    assert recorded.stat().st_mode & 0o777 == 0o700


def test_a_replay_leaves_the_same_memory(recorded: Path) -> None:
    done = replay(recorded)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("halve: same, ")


def test_a_replay_with_another_block_size_leaves_the_same(recorded: Path) -> None:
    done = replay(recorded, "--grid", 4, "--block", 16, "--iterations", 3)
    assert done.stdout.startswith("halve: same, median ")


def test_a_replay_that_writes_less_says_where(recorded: Path) -> None:
    done = replay(recorded, "--grid", 1, "--tolerance", 0.5)
    assert done.returncode == 1
    assert "memory block 0: 32 elements (f4) differ, the first [32], largest error 2" in done.stdout
    assert replay(recorded, "--grid", 1, "--tolerance", 3).returncode == 0


def test_a_write_outside_an_argument_is_named(recorded: Path) -> None:
    done = replay(recorded, "--grid", 33, "--tolerance", 100)
    assert done.returncode == 1
    assert "bytes behind memory block 0 were written" in done.stdout


def test_a_replay_takes_another_image(recorded: Path, tmp_path: Path) -> None:
    manifest = json.loads((recorded / "manifest.json").read_text())
    image = tmp_path / "image"
    image.write_bytes((recorded / "blobs" / manifest["launches"][0]["image"]).read_bytes())
    assert replay(recorded, "--image", image).returncode == 0
    image.write_bytes(b"nothing")
    assert replay(recorded, "--image", image).returncode == 2


def test_a_script_can_replay(recorded: Path, tmp_path: Path) -> None:
    script = tmp_path / "replay.py"
    assert replay(recorded, "--script", script).returncode == 0
    env = environment("softgpu", MGPU_RT_PYTHON="off")
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True)
    assert done.stdout.startswith("halve: same, "), done.stderr


def test_a_recording_that_was_changed_is_refused(recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", recorded, copy], check=True)
    manifest = json.loads((copy / "manifest.json").read_text())
    blob = copy / "blobs" / manifest["launches"][0]["blocks"][0]["before"]
    blob.write_bytes(b"\1" + blob.read_bytes()[1:])
    done = replay(copy)
    assert (done.returncode, "is not what was recorded" in done.stderr) == (2, True)


def test_a_recording_with_other_results_differs(recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", recorded, copy], check=True)
    manifest = json.loads((copy / "manifest.json").read_text())
    block = manifest["launches"][0]["blocks"][0]
    block["after"] = block["before"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    assert replay(copy).returncode == 1


def test_a_folder_that_is_no_recording_is_named(tmp_path: Path) -> None:
    done = replay(tmp_path / "nothing")
    assert_sentence(done.returncode, done.stderr, "is no folder")
    done = replay(tmp_path)
    assert_sentence(done.returncode, done.stderr, "holds no launch: none was recorded to its end")
    (tmp_path / "manifest.json").write_text("{}")
    done = replay(tmp_path)
    assert_sentence(done.returncode, done.stderr, "is no recording's manifest")


LAUNCH = {"kernel": "k", "image": "x", "grid": [1, 1, 1], "block": [1, 1, 1], "shared": 0}
LAUNCH |= {"arguments": [], "blocks": []}


@pytest.mark.parametrize(
    "launch",
    [
        5,
        {},
        {**LAUNCH, "kernel": 5},
        {**LAUNCH, "grid": ["x"]},
        {**LAUNCH, "shared": 1 << 32},
        {**LAUNCH, "blocks": [5]},
        {**LAUNCH, "arguments": 5},
        {**LAUNCH, "arguments": [{"bytes": "no hex"}]},
        {**LAUNCH, "arguments": [{"bytes": "", "block": 1}]},
        {**LAUNCH, "arguments": [{"bytes": "", "offset": -1}]},
    ],
)
def test_a_damaged_launch_is_named(launch: object, tmp_path: Path) -> None:
    manifest = {"format": 1, "launches": [launch]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="launch 1 is damaged"):
        Recording(tmp_path)


def test_a_program_goes_on_where_nothing_can_be_recorded() -> None:
    """All of its launches: one line names the cause."""
    words = ("record", "--device", "softgpu", "--nth", 0, "-o", "/dev/null/recording")
    done = command(*words, "--", program(), **hip())
    assert (done.returncode, done.stdout) == (0, "2\n")
    (line,) = done.stderr.splitlines()
    assert "launch 1 of " in line
    assert "are not recorded: '/dev/null/recording' cannot be written: Not a directory" in line


ENTERING = """
import sys
from pathlib import Path
from mgpu_rt.runtime.recording import Recorder
recorder = object.__new__(Recorder)
recorder._folder = Path(sys.argv[1])
for number in range(50):
    recorder._enter({"number": number})
"""


def test_processes_that_record_in_one_folder_lose_no_launch(tmp_path: Path) -> None:
    """As MPI's ranks do. Each reads the manifest and writes it whole."""
    command = [sys.executable, "-c", ENTERING, tmp_path]
    processes = [subprocess.Popen(command, env=environment()) for _ in range(4)]
    assert [process.wait(HANG) for process in processes] == [0] * 4
    launches = json.loads((tmp_path / "manifest.json").read_text())["launches"]
    assert [launch["number"] for launch in launches].count(49) == 4
    assert len(launches) == 200


@pytest.mark.parametrize("entering", [True, False])
def test_processes_that_enter_launches_are_waited_for(
    entering: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long they take together; one that enters nothing is given up."""
    looks = itertools.count()
    other = os.open(tmp_path, os.O_RDONLY)

    def sleep(_seconds: float) -> None:
        look = next(looks)
        if entering:
            os.utime(tmp_path, ns=(look, look))
        if look == 4:
            os.close(other)

    clock = itertools.count(step=recording._LONGEST)
    monkeypatch.setattr(recording, "time", SimpleNamespace(monotonic=clock.__next__, sleep=sleep))
    fcntl.flock(other, fcntl.LOCK_EX)
    given_up = pytest.raises(OSError, match="has kept this recording")
    with nullcontext() if entering else given_up, recording._alone(tmp_path):
        assert next(looks) == 5


def test_a_recording_of_fifos_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "WAIT", 0.1)
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(OSError, match="nobody has written to this FIFO"):
        Recording(tmp_path)


def test_an_existing_folder_is_left_alone(recorded: Path) -> None:
    done = command("record", "--device", "softgpu", "-o", recorded, "--", "true", **hip())
    assert_sentence(done.returncode, done.stderr, "is there already")
