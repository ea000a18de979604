"""The process that runs marked tests (isolated.py). The process collects the session's tests, and
forks a child for each requested test."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import sys
import tempfile
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol

from mgpu_rt._testing import device

_PR_SET_PDEATHSIG = 1


def main() -> NoReturn:
    """Serves a session through a pipe, until the session closes the pipe. The first argument is the
    pipe's file descriptor."""
    _end_with_parent()
    connection = Connection(int(sys.argv[1]))
    sys.argv[1:] = []
    asked = pickle.loads(connection.recv_bytes())
    config = pytest.Config.fromdictargs(asked["options"], asked["arguments"])
    config.stash[device.CHOSEN] = asked["device"]
    if asked["workerinput"] is not None:
        config.workerinput = asked["workerinput"]
    config.pluginmanager.register(_Loop(connection))
    try:
        config.hook.pytest_cmdline_main(config=config)
    finally:  # the device's reports and caches belong to the session
        os._exit(1)


def _end_with_parent() -> None:
    """Makes the kernel end this process when the parent process ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class _Loop:
    """Replaces pytest's loop over the tests."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._refused: list[str] = []  # files that could not be collected, with the reason

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Stores the name of a file that could not be collected, and the reason."""
        if report.failed:
            self._refused.append(f"{report.nodeid}: {report.longreprtext}")

    def pytest_collection(self, session: pytest.Session) -> None:
        """Creates the parent folder of all `tmp_path` folders once, before the process forks."""
        if factory := getattr(session.config, "_tmp_path_factory", None):
            factory.getbasetemp()

    def pytest_runtestloop(self, session: pytest.Session) -> NoReturn:
        """Runs the tests whose names arrive through the pipe."""
        tests = {item.nodeid: item for item in session.items}
        while True:
            try:
                name = self._connection.recv()
            except EOFError:
                os._exit(0)
            if name in tests:
                self._run(tests[name])
            else:
                why = [f"{name} was not there when its process collected it again", *self._refused]
                self._connection.send("\n".join(why))

    def _run(self, item: pytest.Item) -> None:
        with tempfile.TemporaryDirectory(prefix="mgpu-rt-test-") as folder:
            file = Path(folder, "reports")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # threads of others' and fork
                pid = os.fork()
            if pid == 0:
                _in_child(item, file)
            _lead(pid)
            self._connection.send(pid)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            is_complete = status == 0 and file.exists()  # a test may call os._exit(0)
            reports = pickle.loads(file.read_bytes()) if is_complete else None
        self._connection.send((reports, status, _captured(item.config)))


def _in_child(item: pytest.Item, file: Path) -> NoReturn:
    """Runs one test with all of its fixtures, and writes the reports to a file."""
    status = 1
    try:
        _lead(0)
        _end_with_parent()
        hook = item.config.hook.pytest_report_to_serializable
        reports = runtestprotocol(item, log=False)
        whole = file.with_suffix(".whole")
        whole.write_bytes(pickle.dumps([hook(config=item.config, report=r) for r in reports]))
        whole.rename(file)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _lead(pid: int) -> None:
    """Makes a process the leader of its own group, so that a signal can end the whole group. Both
    the parent and the child process call this function."""
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)


def _captured(config: pytest.Config) -> tuple[str, str]:
    """Returns the output of a test's process, as far as pytest has captured it."""
    manager: Any = config.pluginmanager.getplugin("capturemanager")
    return (
        tuple(manager.read_global_capture())
        if manager and manager.is_globally_capturing()
        else ("", "")
    )
