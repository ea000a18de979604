"""Records launches of real kernels on softgpu."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import mgpu_rt
from mgpu_rt.runtime import Launch, Record, Runtime
from tests.python.runtime.hooked import hip, launches_of, program, replay
from tests.runtime.images import corpus
from tests.support import lower
from tests.support.child import Mgpu, environment, in_cases, in_child
from tests.support.command import COMMAND, assert_sentence, command
from tests.support.sources import SOURCES

EXACT = Path(__file__).with_name("exact.mlir")


def test_a_kernel_that_shares_its_name_is_recorded_by_the_full_one(tmp_path: Path) -> None:
    out, path = tmp_path / "recording", program(SOURCES["samename"], 2)
    words = ("run", "--device", "softgpu", "--kernel", "second::*", "--record", out, "--", path)
    assert "recorded launch 1 of second::mark, " in command(*words, **hip()).stderr
    assert replay(out).stdout.startswith("second::mark: same\n")


@pytest.mark.check
def test_recording_and_replaying_need_no_numpy(
    tmp_path: Path, without_numpy: dict[str, str]
) -> None:
    """pip installs no NumPy."""
    words = ("run", "--device", "softgpu", "--kernel", "halve", "--record", tmp_path / "recording")
    done = command(*words, "--", program(), **without_numpy)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    again = ("replay", "--device", "softgpu", tmp_path / "recording")
    assert command(*again, **without_numpy).stdout.startswith("halve: same\n")
    other = command(*again, "--grid", 1, **without_numpy)
    assert (other.returncode, "bytes differ" in other.stdout) == (1, True)
    refused = command(*again, "--dtype", "f32", "--tolerance", 1, **without_numpy)
    assert_sentence(refused.returncode, refused.stderr, "needs numpy, which")


def test_a_program_goes_on_where_nothing_can_be_recorded() -> None:
    """The hook records no launch, and one line names the cause."""
    hook = ("--hook", "mgpu_rt.runtime:Record?output=/dev/null/recording", "--nth", 1)
    done = command("run", "--device", "softgpu", *hook, "--", program(), **hip())
    assert (done.returncode, done.stdout) == (0, "2\n")
    (line,) = done.stderr.splitlines()
    assert "launch 1 of halve and later ones are not recorded: " in line
    assert "'/dev/null/recording' cannot be written: Not a directory; name another" in line


BLOCKED = 'rmdir recording && touch recording && exec "$0"'


@pytest.mark.parametrize("options", [(), ("--stats-json", "s.json")])
@pytest.mark.parametrize("is_blocked", [True, False])
def test_a_run_that_records_no_launch_ends_with_1(
    is_blocked: bool, options: tuple[str, ...], tmp_path: Path
) -> None:
    """The launch cannot be recorded, as on a full disk, or the program makes no launch."""
    words = ["sh", "-c", BLOCKED, program()] if is_blocked else ["true"]
    recorded = [COMMAND, "run", "--device", "softgpu", "--record", "recording", *options, "--"]
    done = subprocess.run(
        [*recorded, *words], env=environment(**hip()), cwd=tmp_path, capture_output=True, text=True
    )
    reason = "mgpu-rt: no launch was recorded, so the exit status is 1 in place of 0\n"
    assert (done.returncode, done.stderr.endswith(reason)) == (1, True), done.stderr
    assert ("are not recorded: " in done.stderr) == is_blocked
    assert not (tmp_path / "recording").is_dir()


def test_a_program_that_leaves_its_folder_is_recorded_where_it_began(tmp_path: Path) -> None:
    words = ["sh", "-c", 'cd / && exec "$0"', program()]
    hook = ("run", "--device", "softgpu", "--record", "recording", "--kernel", "halve", "--")
    done = subprocess.run(
        [COMMAND, *hook, *words], env=environment(**hip()), cwd=tmp_path, capture_output=True
    )
    assert f", in {tmp_path}/recording\n" in done.stderr.decode()
    assert len(launches_of(tmp_path / "recording")) == 1


@pytest.mark.parametrize(("out", "status"), [("there", 2), ("there/file", 1), ("link", 2)])
def test_something_that_is_there_is_left_alone(out: str, status: int, tmp_path: Path) -> None:
    """Beside a file, a folder with another name gets the recording; the program ends with 1."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("content")
    (tmp_path / "link").symlink_to("file")
    words = ("run", "--device", "softgpu", "--record", tmp_path / out, "--", "false")
    done = command(*words, **hip())
    assert done.returncode == status
    assert done.stderr.startswith(f"mgpu-rt: '{tmp_path / out}' ")
    assert (tmp_path / "there" / "file").read_text() == "content"


# ---- failures, on the stub ----

TIMES = 3


def fill(mgpu: Mgpu) -> None:
    """Launches a kernel TIMES times; each launch fills the same block of 512 bytes."""
    module = mgpu.load(mgpu.image(lower.code_object(EXACT, corpus.AMD)))
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(512, stream, False)
    begin = int(mgpu.ffi.cast("uintptr_t", block))
    values = [mgpu.ffi.new("int64_t *", value) for value in (begin, begin, 0, 64, 1, 7)]
    params = mgpu.ffi.new("void *[]", values)
    for _ in range(TIMES):
        mgpu.launch(mgpu.function(module, "fill"), stream, (1, 1, 1), (64, 1, 1), params)
    mgpu.StreamSynchronize(stream)
    mgpu.MemFree(block, stream)
    mgpu.StreamDestroy(stream)
    mgpu.ModuleUnload(module)


NOT_RECORDED = {
    "hipMemcpyAsync:1:1": "memory block 0 was not read: 'hipMemcpyAsync(",
    "hipMemcpyAsync:2:2": "memory block 0 was not read: 'hipMemcpyAsync(",
    "hipStreamSynchronize:1:719": "memory block 0 was not read: 'hipStreamSynchronize(",
    "hipModuleLaunchKernel:1:1": "it failed with hipErrorInvalidValue",
}


@in_cases({"errors end": {}, "errors stay": {"HIPSTUB_VERSION": "70253211"}})
def test_a_launch_is_not_recorded_if_a_copy_failed_or_itself(mgpu: Mgpu, _case: str) -> None:
    """The hook cannot record the first of several launches. A copy that the hook makes does not
    count as a call of the program. HIP 7's last error survives a successful call."""
    for fault, words in NOT_RECORDED.items():
        with TemporaryDirectory() as folder:
            mgpu.stub.hipstub_reset()
            assert mgpu.stub.hipstub_set_fault(fault.encode()) == 0
            with mgpu_rt.intercept(Record(output=folder, nth=0)):
                fill(mgpu)
            assert [launch["number"] for launch in launches_of(Path(folder))] == [2, 3]
        assert mgpu.count("hipModuleLaunchKernel") == TIMES
        (line,) = (line for line in mgpu.stderr().splitlines() if "not recorded" in line)
        assert line.startswith(f"mgpu_rt: launch 1 of fill is not recorded: {words}")
        its_own = fault.startswith("hipModuleLaunchKernel")
        assert bool(mgpu.lib.mgpu_rt_take_error()) == its_own
        assert its_own or mgpu.stub.hipPeekAtLastError() == 0


class Cooperates(Runtime):
    """A hook that makes each launch cooperative."""

    def launch_kernel(self, launch: Launch) -> None:
        launch._c.cooperative = True
        super().launch_kernel(launch)


class Both(Cooperates, Record):
    pass


@in_child(policies=("builtin",))
def test_a_launch_that_a_replay_could_not_make_is_not_recorded(mgpu: Mgpu) -> None:
    with TemporaryDirectory() as folder:
        with mgpu_rt.intercept(Both(output=folder, nth=0)):
            fill(mgpu)
        assert os.listdir(folder) == []
    (line,) = mgpu.stderr().splitlines()
    assert "launch 1 of fill is not recorded: a replay makes no cooperative launch" in line
    assert mgpu.count("hipModuleLaunchCooperativeKernel") == TIMES
