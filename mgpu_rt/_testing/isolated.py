"""Runs each marked test in a fork of pytest's process. A crash, an exit or a fault of the GPU ends
only one test."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol

from mgpu_rt._cli.child import kill, signal_name
from mgpu_rt._cli.stats.statistics import added, read

LIMIT = 300.0  # seconds, for a program and for a marked test


def run(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Runs a marked test, and passes its reports to pytest. Tears down the fixtures of earlier
    tests that the next test does not need."""
    where = {"nodeid": item.nodeid, "location": item.location}
    item.ihook.pytest_runtest_logstart(**where)
    reports = [*_reports(item)]
    teardown = item.session._setupstate.teardown_exact
    call = pytest.CallInfo.from_call(lambda: teardown(nextitem), "teardown")
    if call.excinfo is not None:
        reports.append(item.ihook.pytest_runtest_makereport(item=item, call=call))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(**where)
    return True


def _reports(item: pytest.Item) -> Iterator[pytest.TestReport]:
    """Yields the reports of a test's process, or a report that states how the process ended."""
    given: dict[str, Any] = {"timeout": None, "errors": False}
    for mark in reversed([*item.iter_markers("mgpu")]):  # the closest mark counts
        given |= mark.kwargs
    if factory := getattr(item.config, "_tmp_path_factory", None):
        factory.getbasetemp()  # the parent of all `tmp_path` folders, created before the fork
    with tempfile.TemporaryDirectory(prefix="mgpu-rt-test-") as folder:
        file = Path(folder, "reports")
        try:
            why = _fork(item, file, given["timeout"] or LIMIT)
        except pytest.fail.Exception as error:  # another plugin's limit, which a signal brings
            why = str(error)
        if why or not file.exists():  # a test may call os._exit(0)
            yield _failed(item, why or "the test's process ended with status 0")
            return
        found = pickle.loads(file.read_bytes())
        failures = added(read(each) for each in Path(folder).glob("recording-*")).failures
    for data in found:
        report = item.ihook.pytest_report_from_serializable(config=item.config, data=data)
        if failures and not given["errors"] and report.when == "call" and report.passed:
            hint = "a test that expects that: @pytest.mark.mgpu(errors=True)"
            report.outcome, report.longrepr = "failed", f"{'; '.join(failures)} ({hint})"
        yield report


def _fork(item: pytest.Item, file: Path, limit: float) -> str:
    """Runs a test in a fork. Returns how the process ended; empty if it ended with status 0."""
    process = multiprocessing.get_context("fork").Process(target=_in_child, args=(item, file))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of others' and fork
        process.start()
    assert process.pid is not None
    with contextlib.suppress(OSError):
        os.setpgid(process.pid, process.pid)
    try:
        process.join(limit)
    finally:
        status = process.exitcode
        if status is None:
            kill(process.pid)
            process.join()
    if status is None:
        return f"the test did not end in {limit:g} s (@pytest.mark.mgpu(timeout=)), and was killed"
    end = f"was ended by {signal_name(status)}" if status < 0 else f"ended with status {status}"
    return f"the test's process {end}" if status else ""


def _in_child(item: pytest.Item, file: Path) -> NoReturn:
    """Runs one test, and writes the reports to a file. Tears down only what this process has set
    up: pytest's process tears down its own fixtures."""
    status = 1
    try:
        os.environ["MGPU_RT_STATS"] = str(file.with_name("recording-%p"))
        there = [node for node in item.listchain() if node in item.session._setupstate.stack]
        until: Any = SimpleNamespace(listchain=lambda: there) if there else None
        hook = item.config.hook.pytest_report_to_serializable
        reports = runtestprotocol(item, log=False, nextitem=until)
        file.write_bytes(pickle.dumps([hook(config=item.config, report=r) for r in reports]))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _failed(item: pytest.Item, why: str) -> pytest.TestReport:
    """Returns a report for a test whose process wrote no reports, with the output so far."""
    manager: Any = item.config.pluginmanager.getplugin("capturemanager")
    if manager and manager.is_globally_capturing():
        for name, text in zip(("stdout", "stderr"), manager.read_global_capture(), strict=True):
            item.add_report_section("call", name, text)
    call = pytest.CallInfo.from_call(lambda: pytest.fail(why, pytrace=False), "call")
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    return report
