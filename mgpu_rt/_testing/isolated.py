"""Runs each marked test on the device, in a separate process.

The loader reads LD_LIBRARY_PATH and LD_PRELOAD only at a process's start. One server (server.py)
therefore starts in the device's environment, collects the tests again, and forks for each test. A
fault of the GPU ends only one test's process.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import pytest

from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats.statistics import ENDING, added, read
from mgpu_rt._testing import device
from mgpu_rt._testing.device import Device
from mgpu_rt._testing.programs import signal_name

_START = (
    "import sys; sys.path[:] = sys.argv[2:]; from mgpu_rt._testing import server; server.main()"
)


def run(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a marked test on the session's device. Returns None if the test's marks exclude the
    device, or if the device is missing; pytest itself then reports the reason."""
    config = item.config
    try:
        if device.unwanted(item, device.of(config)):
            return None
    except (CommandError, pytest.fail.Exception):
        return None
    where = {"nodeid": item.nodeid, "location": item.location}
    item.ihook.pytest_runtest_logstart(**where)
    for report in [*_reports(item), *_torn_down(item, nextitem)]:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(**where)
    return True


def _torn_down(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Tears down the fixtures of earlier tests that the next test does not need."""
    state = item.session._setupstate
    call = pytest.CallInfo.from_call(lambda: state.teardown_exact(nextitem), "teardown")
    if call.excinfo is None:
        return []
    return [item.ihook.pytest_runtest_makereport(item=item, call=call)]


def _reports(item: pytest.Item) -> list[pytest.TestReport]:
    """Returns the reports that a test's process sent, or reports that state how the process
    ended."""
    limit, errors = _settings(item)
    server = _server(item.config)
    start = time.time()
    try:
        answer = server.ask(item.nodeid, limit)
    except pytest.fail.Exception as error:  # another plugin's limit, which a signal brings
        return _failed(item, str(error), start, server.end())
    except EOFError:
        del item.config.stash[_SERVER]
        return _failed(item, "the process that runs marked tests has ended", start, ("", ""))
    if answer.reports is None:
        return _failed(item, answer.ending, start, answer.said)
    hook = item.config.hook.pytest_report_from_serializable
    reports = [hook(config=item.config, data=data) for data in answer.reports]
    failures = server.failed_calls()
    for report in reports if failures and not errors else []:
        if report.when == "call" and report.passed:
            report.outcome = "failed"
            report.longrepr = (
                f"{failures} (a test that expects that: @pytest.mark.mgpu(errors=True))"
            )
    return reports


def _settings(item: pytest.Item) -> tuple[float, bool]:
    """Returns the time limit of a test, and whether calls of the library may fail. The mark closest
    to the test determines each value."""
    limit, errors = item.config.getoption("mgpu_timeout"), False
    for mark in reversed(list(item.iter_markers("mgpu"))):
        limit = mark.kwargs.get("timeout") or limit
        errors = mark.kwargs.get("errors", errors)
    return limit, errors


def _failed(
    item: pytest.Item, why: str, start: float, said: tuple[str, str]
) -> list[pytest.TestReport]:
    """Returns reports for a test whose process returned no reports."""
    seconds = time.time() - start
    common: dict[str, Any] = {
        "nodeid": item.nodeid,
        "location": item.location,
        "keywords": {name: 1 for name in item.keywords},
    }
    texts = zip(("Captured stdout call", "Captured stderr call"), said, strict=True)
    sections = [(title, text) for title, text in texts if text]
    return [
        pytest.TestReport(**common, outcome="passed", longrepr=None, when="setup"),
        pytest.TestReport(
            **common,
            outcome="failed",
            longrepr=why,
            when="call",
            sections=sections,
            duration=seconds,
            start=start,
            stop=start + seconds,
        ),
        pytest.TestReport(**common, outcome="passed", longrepr=None, when="teardown"),
    ]


class _Answer:
    """The server's answer about a test: the output, and the reports if the test's process sent any.
    `ending` states how the process ended."""

    def __init__(
        self, reports: list[Any] | None, status: int, said: tuple[str, str], ending: str = ""
    ) -> None:
        self.reports = reports
        self.said = said
        how = (
            f"was ended by {signal_name(-status)}" if status < 0 else f"ended with status {status}"
        )
        self.ending = ending or f"the test's process {how}"


class _Server:
    """The server process, which forks for each test."""

    def __init__(self, config: pytest.Config, chosen: Device) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mgpu-rt-test-")
        self._connection, theirs = Pipe()
        environment = {
            **chosen.environment,
            "MGPU_RT_STATS": os.path.join(self._folder.name, f"%p{ENDING}"),
        }
        number = theirs.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(number), *sys.path],
            env=environment,
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._test: int | None = None  # the process of the running test
        self._connection.send_bytes(pickle.dumps(_description(config)))

    def ask(self, test: str, limit: float) -> _Answer:
        """Makes the server run a test. Raises EOFError if the server has ended."""
        for file in Path(self._folder.name).iterdir():
            file.unlink()
        self._connection.send(test)
        begun = self._connection.recv()
        if isinstance(begun, str):  # the reason why the test cannot run
            return _Answer(None, 0, ("", ""), begun)
        self._test = begun
        late = not self._connection.poll(limit)
        if late:
            self._kill()
        answer = self._answer()
        if late and answer.reports is None:
            answer.ending = (
                f"the test did not end in {limit:g} s (@pytest.mark.mgpu(timeout=), "
                "--mgpu-timeout), and was killed"
            )
        return answer

    def end(self) -> tuple[str, str]:
        """Ends the running test. Returns the output of the test so far."""
        self._kill()
        return self._answer().said

    def _answer(self) -> _Answer:
        answer = _Answer(*self._connection.recv())
        self._test = None
        return answer

    def _kill(self) -> None:
        if self._test is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._test, signal.SIGKILL)

    def failed_calls(self) -> str:
        """Returns sentences about the last test's failed calls, or an empty string if no call
        failed."""
        found = []
        for file in Path(self._folder.name).glob(f"*{ENDING}"):
            found.append(read(file))
        return "; ".join(added(found).failures)

    def close(self) -> None:
        """Ends the server and the running test."""
        self._kill()
        self._connection.close()
        self._process.wait()
        self._folder.cleanup()


_SERVER = pytest.StashKey[_Server]()


def _server(config: pytest.Config) -> _Server:
    """Returns the session's server; the first call starts the server."""
    if _SERVER not in config.stash:
        server = config.stash[_SERVER] = _Server(config, device.of(config))
        config.add_cleanup(server.close)
    return config.stash[_SERVER]


def _description(config: pytest.Config) -> dict[str, Any]:
    """Returns the session's options and arguments, with which the server collects the same
    tests."""
    options: dict[str, Any] = {}
    for name, value in vars(config.option).items():
        try:
            options[name] = pickle.loads(pickle.dumps(value))
        except Exception:
            continue  # an option of a plugin, and not of the command line
    factory = getattr(config, "_tmp_path_factory", None)
    options |= {"basetemp": str(factory.mktemp("mgpu") / "tests") if factory else None}
    options |= {"usepdb": False, "dist": "no", "numprocesses": None}
    options.pop("file_or_dir", None)
    options["plugins"] = [*(options.get("plugins") or []), "no:terminal"]
    return {
        "options": options,
        "arguments": list(config.args),
        "workerinput": getattr(config, "workerinput", None),
        "device": config.stash[device.CHOSEN],
    }
