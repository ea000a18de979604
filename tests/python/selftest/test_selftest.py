"""`mgpu-rt selftest` on the emulated device: its output, its files and its refusals."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mgpu_rt._cli import child
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._selftest import (
    bundle,
    fast,
    machine,
    result,
    right,
    run,
    sequences,
    summary,
)
from mgpu_rt._selftest.bundle import Bundle
from tests.proofs.programs import groups
from tests.python.selftest import checks
from tests.support.child import environment, library
from tests.support.command import invoke
from tests.support.patience import HANG, run_process

COMMAND = (sys.executable, "-m", "mgpu_rt", "selftest", "--device", "softgpu")
DEVICE = {"kind", "name", "target", "devices", "hip", "reports", "driver"}

#: The command, with a line on stderr for each step.
TELLS = """
import sys
from mgpu_rt._cli import main, terminal
terminal.progress = lambda text: print(text, file=sys.stderr, flush=True)
sys.argv[0] = "mgpu-rt"
main.main()
"""


def selftest(*words: object, **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs the command on the emulated gfx90a."""
    return run_process([*COMMAND, *map(str, words)], {**environment("softgpu"), **changes})


@pytest.mark.check
def test_results_are_right_and_name_no_machine_user_or_path(tmp_path: Path) -> None:
    file = tmp_path / "a folder of somebody's.json"
    words = ("--only", "programs-15", "--only", "calm-00", "--only", "time")
    ended = selftest(*words, "--json", file)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr + ended.stdout
    assert "yes, all are as with stock's behaviour (programs 1 of 1, sequences 1 of 1)" in (
        ended.stdout
    )
    assert "driver emulated: no GPU was timed" in ended.stdout
    document = json.loads(file.read_text())
    assert (document["format"], document["verdict"], document["ended"]) == (6, "yes", "")
    assert document["device"].keys() == DEVICE
    assert {timing["side"] for timing in document["fast"]} == {"stock", "library", "lazy"}
    assert all(0 < t["low"] <= t["us"] <= t["high"] for t in document["fast"])
    for name in (os.uname().nodename, str(Path.home()), "/tmp", "somebody", str(Path.cwd())):
        assert not re.search(rf"(?<!\w){re.escape(name)}\b", file.read_text())


def test_the_report_of_a_fault_hides_paths_and_names() -> None:
    says = [f"cannot open /home/{os.uname().nodename}/x.so: no file"]
    found = result.Result("1", "2026-01-01")
    found.right = [result.Part("programs", 1, 1, 1, [result.Wrong("a", "library", says, "b")])]
    (part,) = found.document()["right"]
    assert part["wrong"][0]["says"] == ["cannot open (path): no file"]


def interrupted(at: str, *words: object) -> tuple[int, str, str]:
    """Presses Ctrl-C once a step has begun; returns the status and the printed lines."""
    process = subprocess.Popen(
        [sys.executable, "-c", TELLS, *COMMAND[3:], *map(str, words)],
        env=environment("softgpu"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if at in line:
            break
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=HANG)
    return process.returncode, out, err


@pytest.mark.check
@pytest.mark.parametrize(
    ("at", "only", "checked"),
    [
        ("programs: programs-22", ("programs-22", "calm-00"), [0, 0]),
        ("sequences: calm-01", ("programs-15", "calm-00", "calm-01", "time"), [1, 1]),
        ("timing: forum", ("programs-15", "time"), [1]),
    ],
)
def test_an_interrupt_keeps_the_results_so_far(
    at: str, only: tuple[str, ...], checked: list[int], tmp_path: Path
) -> None:
    """The results include each step that ended before the interrupt."""
    file = tmp_path / "found.json"
    words = [word for name in only for word in ("--only", name)]
    status, said, _ = interrupted(at, *words, "--json", file)
    document = json.loads(file.read_text())
    assert (status, document["ended"]) == (130, "interrupted")
    parts = document["right"]
    assert all(part["checked"] >= at for part, at in zip(parts, checked, strict=True))
    assert not any(part["wrong"] for part in parts)
    complete = all(part["compared"] == part["total"] for part in parts)
    assert document["verdict"] == ("yes" if complete else "not known")
    assert ("right:    yes" in said) == complete and "ended early: interrupted" in said


@pytest.mark.check
def test_an_interrupt_before_the_first_check_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(machine, "find", interrupt)
    ended = invoke("selftest")
    assert (ended.exit_code, ended.stdout) == (130, "")
    assert ended.stderr == "mgpu-rt: interrupted before anything was tested\n"


@pytest.mark.check
def test_a_full_disk_does_not_stop_the_printed_results() -> None:
    ended = selftest("--only", "programs-15", "--json", "/dev/full")
    assert ended.returncode == 2
    assert "'/dev/full' cannot be written: No space left on device" in ended.stderr
    document = json.loads(ended.stdout[ended.stdout.index("\n{") :])
    assert document["verdict"] == "yes"


def test_a_full_disk_keeps_the_results_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    found = machine.find("softgpu", bundle.read(), base=environment("softgpu"))
    monkeypatch.setattr(machine, "find", lambda *_: found)
    monkeypatch.setattr(right, "perform", full)
    ended = run.run(run.Request(), lambda text: None)
    assert ended.ended == "failed: No space left on device, in the folder for temporary files"


@pytest.mark.check
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--json", "/none/found.json"), "'/none/found.json' cannot be written"),
        (("--only", "programs-99"), "--only programs-99: there are programs-22, programs-19"),
    ],
)
def test_a_wrong_option_is_named_before_the_test(words: tuple[str, ...], said: str) -> None:
    ended = selftest(*words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


@pytest.mark.check
def test_two_devices_are_tested() -> None:
    ended = selftest("--only", "proofs-devices", MGPU_RT_SOFTGPU="gfx90a,gfx90a")
    assert "yes, all are as with stock's behaviour (proofs 1 of 1)" in ended.stdout


def proofs_played(folder: Path, *names: str) -> result.Part:
    """Plays the named groups of tests/proofs/programs, or all groups if no name is given, on one or
    two emulated devices."""
    parts: list[result.Part] = []
    right.perform(checks.checks_of(library(), folder, names), parts, lambda text: None, "")
    return parts[0]


@pytest.mark.nightly
def test_all_proofs_are_compared_and_right(tmp_path: Path) -> None:
    """Some of the proofs reset a device."""
    part = proofs_played(tmp_path)
    assert (part.compared, part.wrong) == (part.total, [])
    assert part.total == len(groups())


@pytest.mark.check
def test_proofs_are_right(tmp_path: Path) -> None:
    """This test plays some groups of proofs; `make check` plays the other groups."""
    played = ("shared", "memory", "memory-others", "streams", "captures", "registered-pages")
    part = proofs_played(tmp_path, *(f"proofs-{name}" for name in played))
    assert (part.compared, part.total, part.wrong) == (len(played), len(played), [])


def test_no_gpu_that_hip_finds_is_said() -> None:
    ended = selftest(HIP_VISIBLE_DEVICES="-1")
    assert ended.returncode == 2
    doctor = "`mgpu-rt doctor --device softgpu`"
    assert f" finds no GPU; {doctor} says more" in ended.stderr


def test_a_program_that_hangs_is_given_up() -> None:
    begin = time.monotonic()
    ended = child.run(["sleep", "1000"], dict(os.environ), limit=0.2)
    assert ended.status is None and "hangs" in ended.how
    assert time.monotonic() - begin < HANG / 2


def test_the_check_in_which_the_gpu_hangs_is_named_and_ends_the_rest() -> None:
    def hang() -> right.Findings:
        return right.Findings([], {"library": [f"status {child.HUNG}, in program 3"]})

    checks = [right.Check("sequences", name, [], hang) for name in ("calm-00", "calm-01")]
    parts: list[result.Part] = []
    ended = right.perform(checks, parts, lambda text: None, "mgpu-rt selftest")
    assert ended == "hung in calm-00"
    (part,) = parts
    assert (part.checked, part.total) == (1, 2)
    assert part.wrong[0].repeat == "mgpu-rt selftest --only calm-00"


EMPTY = Bundle({}, {"programs": {}, "chips": []})
ENDED = (sequences.Output(status=-6), ["status -6, in program 3"])
WELL: tuple[sequences.Output, list[str]] = (sequences.Output(), [])


def played(stock: list, library: list) -> right.Findings:
    """Compares the two sides of a sequence, and returns the findings. Each side plays its given
    outcomes in order, and succeeds after the last outcome."""
    plays = {"stock": iter(stock), "library": iter(library)}
    return right.sequence_compared(lambda side, _=None: next(plays.get(side, iter(())), WELL))


def test_a_fault_is_of_the_side_that_shows_it() -> None:
    wrong = (sequences.Output(), ["program 3, line 1: '1', not '2'"])
    for fault in (ENDED, wrong):
        assert played([], [fault]).wrong.keys() == {"library"}
        assert played([fault], []).wrong.keys() == {"stock"}


def found_so(*parts: result.Part, **fields: object) -> result.Result:
    """Returns a selftest's result with the given parts."""
    found = result.Result("1", "2026-01-01", dict.fromkeys(DEVICE, 1))
    found.right = list(parts)
    return dataclasses.replace(found, **fields)  # type: ignore[arg-type]


BY_US = result.Wrong("calm-03", "library", ["status -6"], "mgpu-rt selftest --only calm-03")
BY_STOCK = dataclasses.replace(BY_US, side=result.STOCK)


ASKED = run.Request()
ALL = result.Part("programs", 3, 3, 3)
TIMES = {result.STOCK: 90.0, "library": 10.0}


NONE, SOME = result.Part("sequences", 2), result.Part("sequences", 2, 2, 1, [BY_STOCK, BY_US])
VERDICTS = [
    (found_so(ALL), "yes", "yes, all are as with stock's behaviour (programs 3 of 3)", 0),
    (found_so(), "not known", "NOT KNOWN: nothing was compared", 2),
    (found_so(NONE), "not known", "NOT KNOWN: nothing was compared", 2),
    (found_so(ALL, NONE), "not known", "only 3 of 5 could be compared", 2),
    (found_so(ALL, ended="interrupted"), "yes", "yes, all are", 130),
    (found_so(ALL, untimed=["churn"]), "yes", "yes, all are", 2),
    (
        found_so(ALL, result.Part("sequences", 1, 1, 0, [BY_STOCK])),
        *("not known", "NOT KNOWN: stock's behaviour itself is wrong", 1),
    ),
    (found_so(SOME), "no", "NO: 1 differ from stock's behaviour (compared: sequences 1 of 2)", 1),
]


@pytest.mark.parametrize(("found", "verdict", "says", "status"), VERDICTS)
def test_the_verdict_is_of_the_compared_parts(
    found: result.Result, verdict: str, says: str, status: int
) -> None:
    assert (found.verdict, run.status(ASKED, found)) == (verdict, status)
    assert found.document()["verdict"] == verdict
    assert says in summary.lines(found)[3]
    only_times = run.Request(only=("time",))
    assert run.status(only_times, found_so(untimed=found.untimed)) == (2 if found.untimed else 0)


def test_a_program_whose_calls_fail_is_wrong_with_stock_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With stock's behaviour, a failed call before main returns is a fault. A failed call after
    main has returned is no fault."""
    found = machine.find("softgpu", bundle.read(), base=environment("softgpu"))
    failed = "'hipModuleLaunchKernel' failed with 'hipErrorInvalidValue'\n"
    read = Bundle({}, {"programs": {"22": ["forum"]}, "chips": []})
    for err, wrong in ((failed + "# end\n", {result.STOCK}), ("# end\n" + failed, set())):
        ended = child.Ended(0, "# forum\n", err)
        monkeypatch.setattr(child, "run", lambda *_, ended=ended, **__: ended)
        check = right.checks(read, found, Path())[0]
        assert check.make().wrong.keys() == wrong


def test_a_loop_whose_calls_fail_has_no_time() -> None:
    found = machine.find("softgpu", bundle.read(), base=environment("softgpu"))
    lost = dataclasses.replace(found, environment={**found.environment, "MGPU_RT_HIP": "/none"})
    measured = found_so()
    fast.measure(lost, Path("/none"), measured, lambda text: None)
    assert not measured.fast
    assert len(measured.untimed) == len(fast.LOOPS)
    assert any(line.startswith("untimed:  ") for line in summary.lines(measured))


@pytest.mark.parametrize(("driver", "is_told"), [("6.12", True), (machine.EMULATED, False)])
def test_a_gain_is_named_only_on_a_gpu(driver: str, is_told: bool) -> None:
    sides = [result.Timing("forum", 22, side, us, us, us, 9) for side, us in TIMES.items()]
    found = found_so(fast=sides, device={**dict.fromkeys(DEVICE, 1), "driver": driver})
    (line,) = (line for line in summary.lines(found) if line.startswith("time:  "))
    assert ("9.0 times as fast" in line) is is_told
    assert "90.0 µs with stock's behaviour, 10.0 µs with the library" in line


def test_nothing_is_played_once_nvidias_driver_has_ended() -> None:
    lines = ["0 stream 0 1", "21 event 0 2", "20 event 0 1", "22 unevent 0 2"]
    known = {1: "ok", 2: "ok", 3: "last error 0", 4: None}
    case = sequences.Case([], {1: 1}, {1: lines}, {1: known}).with_nvidia()
    assert case.lines == {1: ["0 stream 0 1", "20 event 0 1"]}
    assert case.expected == {1: {1: "ok", 2: "last error 0"}}


def test_a_refused_call_has_no_last_error_of_nvidias_driver() -> None:
    lines = ["0 unstream 0 1", "0 lasterror 2", "0 lasterror 2"]
    known = {2: "an error", 3: "no error"}
    case = sequences.Case([], {1: 1}, {1: lines}, {1: known}).with_nvidia()
    assert case.lines == {1: ["0 unstream 0 1", "0 lasterror 2"]}
    assert case.expected == {1: {2: "no error"}}


def test_failures_once_nvidias_driver_has_ended_are_not_counted() -> None:
    """A thread that still runs after the driver has ended may make any number of failing calls."""
    failed = "'hipFree(ptr)' failed with 'hipErrorInvalidValue'"
    ended = "'hipEventCreate(&event)' failed with 'hipErrorDeinitialized'"
    said = [sequences.Output() for _ in range(2)]
    for one, lines in zip(said, ([failed, ended], [failed, ended, failed, ended]), strict=True):
        for line in lines:
            one.add(line)
    assert said[0] == said[1] and said[0].failures == {-1: [failed]}


def test_a_chip_without_kernels_is_named_with_the_way_out() -> None:
    without = Bundle({}, {"chips": ["gfx900"]})
    with pytest.raises(CommandError, match=r"no kernels for gfx90a.* here: with an LLVM"):
        machine.find("softgpu", without, base=environment("softgpu"))


@pytest.mark.parametrize(
    ("hip", "early"), (("7.2.53211", True), ("6.4.43484", False), ("cuhip", False))
)
def test_hip_7_may_return_before_a_copy_is_done(hip: str, early: bool) -> None:
    assert right.copies_return_early(hip) == early
