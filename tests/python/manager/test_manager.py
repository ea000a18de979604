"""The manager and its policies: lists, the effects of decisions, and failures."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from mgpu_rt.manager import _manager
from tests.python.manager.test_hosting_python import PRELUDE
from tests.support.child import ROOT, library
from tests.support.hosting import (
    KERNEL,
    MANAGER,
    ends,
    image,
    is_running,
    manager_of,
    promptly,
    run_host,
)
from tests.support.patience import HANG, run_process, wait_until

HOSTS = ROOT / "tests" / "support" / "hosts"


class Program:
    """A Python program that starts with the hosts' prelude, and executes commands line by line."""

    def __init__(
        self, directory: Path, policy: str, folder: Path | None = None, **env: str
    ) -> None:
        self.log = directory / "policy.log"
        self._said = directory / "stderr"
        (directory / "policies.py").write_text((HOSTS / "policies.py").read_text())
        changes = {"PYTHONPATH": str(directory), **env}
        if policy:
            changes["MGPU_RT_POLICY"] = policy if ":" in policy else f"policies:{policy}"
        loop = "for line in sys.stdin:\n    exec(line)\n    print('done')\n    sys.stdout.flush()\n"
        import sys

        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + loop, str(library()), str(image()), KERNEL],
            env=promptly(**changes),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said.open("w"),
            text=True,
        )

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def do(self, line: str) -> None:
        """Runs a line of Python in the program, and waits until the line has been executed."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", self.said()

    def end(self) -> int:
        """Ends the program; returns its exit status."""
        self.process.communicate(timeout=HANG)
        return self.process.returncode

    def said(self) -> str:
        return self._said.read_text()

    def notes(self) -> list[dict]:
        """Returns the lines that the policy has written to its log."""
        if not self.log.exists():
            return []
        lines = self.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def wait_for(self, condition: Callable[[], object]) -> None:
        assert wait_until(condition), f"{self.notes()[-3:]} {self.said()}"

    def manager(self) -> int:
        self.wait_for(lambda: "process" in self.said())
        return manager_of(self.said())[1]


# ---- decisions -----------------------------------------------------------------------------------


def test_a_policy_may_pin_everything_and_log(tmp_path: Path) -> None:
    """The policy gets a list of all objects; no limit evicts a pinned object."""
    with Program(tmp_path, "PinAll", MGPU_RT_MODULE_LIMIT="20K") as program:
        program.do("launch(); wait_until_served()")
        program.wait_for(lambda: len(program.notes()) > 1)  # the first turn's pins are in force
        first = program.notes()[0]
        assert (len(first["modules"]), first["streams"], first["blocks"]) == (1, 1, [])
        assert first["limits"] == 20 << 10
        program.do("held = [lib.mgpuModuleLoad(new_image(), 0) for _ in range(3)]")
        program.do("block = lib.mgpuMemAlloc(ctypes.c_uint64(1000), None, False)")
        program.wait_for(lambda: program.notes()[-1]["blocks"])
        modules = program.notes()[-1]["modules"]
        assert len({module[0] for module in modules}) == 4  # with the first one
        assert sum(module[4] for module in modules) == 3  # those that the program holds
        assert all(module[1] > image().stat().st_size + (32 << 10) for module in modules)
        assert program.notes()[-1]["blocks"][0][1] == 1024
        turns = len(program.notes())
        program.wait_for(lambda: len(program.notes()) > turns + 1)  # each turn pins
        program.do("[lib.mgpuModuleUnload(module) for module in held]")
        program.do("[miss() for _ in range(100)]")
        program.do("assert stats()['modules']['evictions'] < 100 and state() == 'serving'")
        assert program.end() == 0


def test_a_policy_may_evict_everything(tmp_path: Path) -> None:
    """The policy requests the eviction of all objects. The library evicts idle objects, and ignores
    objects in use and unknown objects."""
    with Program(tmp_path, "EvictAll") as program:
        program.do("stream = lib.mgpuStreamCreate()")
        program.do("module = lib.mgpuModuleLoad(new_image(), 0); wait_until_served()")
        for _ in range(5):
            turns = len(program.notes())
            program.do("launch()")
            program.wait_for(lambda turns=turns: len(program.notes()) > turns)
        program.do("while stats()['modules']['evictions'] < 5: time.sleep(0.02)")
        program.do("assert lib.mgpuModuleGetFunction(module, kernel)")
        program.do("lib.mgpuStreamSynchronize(stream); lib.mgpuStreamDestroy(stream)")
        program.do("lib.mgpuModuleUnload(module)")
        assert program.end() == 0
        assert "failed" not in program.said()


def test_an_eviction_spoils_no_capture(tmp_path: Path) -> None:
    """During a capture in global mode, another thread may free memory only if that thread is in
    relaxed mode."""
    with Program(tmp_path, "EvictAll") as program:
        program.do("hip, to = ctypes.CDLL(os.environ['MGPU_RT_HIP']), ctypes.byref")
        program.do("own, graph = ctypes.c_void_p(), ctypes.c_void_p()")
        program.do("assert hip.hipStreamCreate(to(own)) == 0; launch(); wait_until_served()")
        program.do("stream = ctypes.c_void_p(lib.mgpuStreamCreate())")
        program.do("block = lib.mgpuMemAlloc(ctypes.c_uint64(1000), stream, False)")
        program.do("assert hip.hipStreamBeginCapture(own, 0) == 0")
        program.do("lib.mgpuMemFree(ctypes.c_void_p(block), stream)")
        program.do("while not stats()['memory']['evictions']: time.sleep(0.02); miss()")
        program.do("assert hip.hipStreamEndCapture(own, to(graph)) == 0")
        assert program.end() == 0
        assert "failed" not in program.said()


def test_the_program_does_not_wait_for_a_stopped_manager(tmp_path: Path) -> None:
    """While the manager stands still, the library serves the program and evicts."""
    with Program(tmp_path, "PinAll", MGPU_RT_MODULE_LIMIT="10K", HIPSTUB_MODE="fast") as program:
        program.do("launch(); wait_until_served()")
        process = program.manager()
        program.wait_for(program.notes)
        os.kill(process, signal.SIGSTOP)
        program.do("[miss() for _ in range(3000)]")
        program.do("assert stats()['modules']['evictions'] > 2000")
        turns = len(program.notes())
        os.kill(process, signal.SIGCONT)
        program.wait_for(lambda: len(program.notes()) > turns + 1)
        assert program.end() == 0


def test_the_documented_policy_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text().split("### Writing a policy")[1]
    (tmp_path / "example.py").write_text(page.split("```python\n")[1].split("```")[0])
    with Program(tmp_path, "example:KeepFirst") as program:
        program.do("launch(); wait_until_served()")
        program.do("streams = [lib.mgpuStreamCreate() for _ in range(4)]")
        program.do("[lib.mgpuStreamDestroy(stream) for stream in streams]")
        program.do("while stats()['streams']['evictions'] < 3: time.sleep(0.02); launch()")
        program.do("launch()")
        assert program.end() == 0
        assert "failed" not in program.said()


def test_a_policys_output_goes_to_the_programs_stderr(tmp_path: Path) -> None:
    """The manager's messages go to the program's stderr, line by line."""
    with Program(tmp_path, "Chatty") as program:
        program.do("launch(); wait_until_served()")
        program.wait_for(lambda: "mgpu_rt: said\n" in program.said())
        assert "mgpu_rt: to the program's stderr\n" in program.said()
        assert program.said().count("mgpu_rt: line ") == 300
        assert program.end() == 0


def test_the_manager_calls_no_hip_after_its_end(tmp_path: Path) -> None:
    """The library calls no function of HIP for the manager after the exit handlers have run."""
    (tmp_path / "policies.py").write_text((HOSTS / "policies.py").read_text())
    env = promptly(
        PYTHONPATH=str(tmp_path),
        MGPU_RT_POLICY="policies:DecidesWithoutEnd",
        HIPSTUB_TEARDOWN="1",
        WAIT_FOR=str(tmp_path / "policy.log"),
    )
    result = run_host("slow-end", env)
    assert result.stdout == "ok\n", result.stderr
    assert "teardown" not in result.stderr


def test_a_childs_objects_are_not_the_parents(tmp_path: Path) -> None:
    """A forked child has no manager, and the parent's manager does not see the child's modules."""
    with Program(tmp_path, "PinAll", HIPSTUB_MODE="fast") as program:
        program.do("launch(); wait_until_served()")
        program.wait_for(program.notes)
        program.do("child = os.fork() or [[launch() for _ in range(40)], os._exit(0)]")
        program.do("assert os.waitpid(child, 0)[1] == 0")
        program.do("launch()")
        program.wait_for(lambda: len(program.notes()[-1]["modules"]) >= 2)
        assert len(program.notes()[-1]["modules"]) == 2  # and none of the child's 40
        assert program.end() == 0


# ---- failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("RaisesAtOnce", "ValueError: no policy today"),
        ("RaisesLater", "ZeroDivisionError: what is one by nothing?"),
        ("Nonsense", "TypeError: 'evict everything' is not a decision"),
        ("Exits", "SystemExit: 3"),
        ("nowhere:Policy", "goes on: there is no module 'nowhere' in /"),
        ("policies:Nobody", "'policies' has no class 'Nobody'"),
        (":", "it is not of the form package.module:Class"),
    ],
)
def test_a_failed_policy_is_replaced(policy: str, reason: str, tmp_path: Path) -> None:
    """If a policy fails, one line reports the failure, the default policy takes over, and no call
    fails."""
    with Program(tmp_path, policy) as program:
        program.do("launch(); wait_until_served()")
        program.wait_for(lambda: "the policy that ships goes on" in program.said())
        program.do("launch(); assert state() == 'serving'")
        assert program.end() == 0
        said = program.said()
        assert reason in said
        assert said.count(" failed") == 1


class FailsOnce:
    """A policy that must not get a second turn."""

    def decide(self, caches: object) -> None:
        raise ValueError("once")


def test_a_failed_policy_gets_no_further_turn() -> None:
    table = mock.Mock()
    table.turns.return_value = iter([{}] * 3)
    _manager.serve(table, f"{__name__}:FailsOnce", [str(ROOT)])
    said = [call.args[0] for call in table.say.call_args_list]
    assert [line.split()[1] for line in said] == ["is", "failed,"], said
    assert table.answer.call_count == 3  # the start, and the default policy's two turns


@pytest.mark.parametrize("path", ["policies", "", "/nowhere"])
def test_a_policy_is_found_from_the_folder_of_the_program(path: str, tmp_path: Path) -> None:
    """The entries of PYTHONPATH are relative to the program's folder. The manager searches the
    folders in PYTHONPATH, then the program's folder, and then Python's packages."""
    module = "quiet"
    (tmp_path / "policies").mkdir()
    text = "class Quiet:\n    def decide(self, caches): ...\n"
    (tmp_path / (path if path == "policies" else "") / f"{module}.py").write_text(text)
    with Program(tmp_path, f"{module}:Quiet", tmp_path, PYTHONPATH=path) as program:
        program.do("launch(); wait_until_served()")
        program.wait_for(lambda: "quiet:Quiet" in program.said())
        assert f"MGPU_RT_POLICY={module}:Quiet is in force" in program.said()
    assert not list(tmp_path.rglob("__pycache__"))  # bytecode, which a full disk would cut off


@pytest.mark.parametrize("how", ["Dies", "kill"])
def test_the_library_goes_on_without_its_manager(how: str, tmp_path: Path) -> None:
    """If the manager ends early, a line reports the loss, and the library continues without a
    manager."""
    with Program(tmp_path, "Dies" if how == "Dies" else "PinAll") as program:
        program.do("launch()")
        if how == "kill":
            os.kill(program.manager(), signal.SIGKILL)
        program.wait_for(lambda: "the manager in Python has ended" in program.said())
        program.do("launch()")
        program.do("while state() == 'serving': time.sleep(0.01)")  # the line comes a moment before
        program.do("launch(); assert state() == 'ended', state()")
        assert program.end() == 0
        assert program.said().count("has ended") == 1


@pytest.mark.parametrize("policy", ["Hangs", "HoldsTheGil", "PinAll"])
def test_the_program_waits_for_no_policy(policy: str, tmp_path: Path) -> None:
    """The program does not wait for the policy, even at exit; the manager ends with the program. A
    signal has stopped the last manager."""
    with Program(tmp_path, policy) as program:
        program.do("launch(); wait_until_served()")
        process = program.manager()
        program.wait_for(program.notes)
        if policy == "PinAll":
            os.kill(process, signal.SIGSTOP)
        program.do("[launch() for _ in range(50)]")
        assert program.end() == 0
        if policy == "PinAll":
            os.kill(process, signal.SIGCONT)
        assert ends(process)


@pytest.mark.parametrize("seed", range(4))
def test_random_failures_of_managers_harm_no_program(seed: int, tmp_path: Path) -> None:
    """Managers start, raise exceptions, hang, are stopped or are killed at random times. After a
    fork, only the parent has a manager."""
    dice = random.Random(seed)
    policy = dice.choice(["", "PinAll", "EvictAll", "RaisesLater", "Hangs", "HoldsTheGil", "Dies"])
    env = {"MGPU_RT_MODULE_LIMIT": "50K"}
    env["MGPU_RT_MANAGER"] = f"delay={dice.choice([0, 0, 20, 200])}"
    with Program(tmp_path, policy, HIPSTUB_MODE="fast", **env) as program:
        for _ in range(30):
            program.do(f"[launch() for _ in range({dice.randrange(1, 30)})]")
            found = MANAGER.search(program.said())
            if found and is_running(int(found[2])) and dice.random() < 0.3:
                what = dice.choice([signal.SIGSTOP, signal.SIGCONT, signal.SIGCONT, signal.SIGKILL])
                os.kill(int(found[2]), what)
            if dice.random() < 0.1:
                program.do("child = os.fork() or [[launch() for _ in range(20)], os._exit(0)]")
                program.do("assert os.waitpid(child, 0)[1] == 0")
            time.sleep(dice.choice([0, 0, 0.02, 0.1]))
        assert program.end() == 0
        said = program.said()
        assert "failed with" not in said
        if found := MANAGER.search(said):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(found[2]), signal.SIGCONT)
            assert ends(int(found[2]))


# ---- policies that start at once ----


def test_a_policy_that_is_named_starts_at_once_and_says_so(tmp_path: Path) -> None:
    """The program's stderr shows the policy's output."""
    (tmp_path / "told.py").write_text(TELLS)
    with Program(tmp_path, "told:Tells", MGPU_RT_VERBOSE="", MGPU_RT_MANAGER="") as program:
        program.do("launch()")
        program.wait_for(lambda: "first" in program.said())
        assert program.end() == 0
        lines = program.said().splitlines()
    assert lines[0] == "mgpu_rt: MGPU_RT_POLICY=told:Tells is in force"
    assert lines[1] == "mgpu_rt: first 1 1"


TELLS = """
class Tells:
    turns = 0

    def decide(self, caches):
        if not self.turns:
            print(f"first {len(caches.modules)} {len(caches.streams)}")
        self.turns += 1
"""


# ---- without a program --------------------------------------------------------------------------


def test_a_manager_started_by_hand_refuses() -> None:
    done = run_process([sys.executable, "-I", str(ROOT / "mgpu_rt" / "manager" / "_manager.py")])
    assert "only the library may start this program" in done.stdout + done.stderr
    assert done.returncode == 2
