"""A plugin of pytest's that runs the tests of the emulated device on another release of HIP.

    python -m pytest -p tests.rocm.plugin --rocm 7.2.4 -k softgpu tests/test_bad_input.py

The tests themselves know nothing of it: where they ask mgpu_rt.softgpu for an environment they get
the release's, and what they start with it is started by the release's loader.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mgpu_rt import softgpu
from tests.rocm import releases, surroundings


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rocm")
    group.addoption("--rocm", help="the release of HIP that the emulated device runs")
    group.addoption("--rocm-outcomes", help="a file for what became of each test, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    hip = config.getoption("--rocm")
    if hip:
        install(surroundings.surroundings(releases.find(hip)))
    config.pluginmanager.register(Outcomes(config.getoption("--rocm-outcomes")))


def install(here: surroundings.Surroundings) -> None:
    """From here on this process's softgpu is the release's."""
    plain = softgpu.environment

    def environment(
        base: Mapping[str, str] | None = None, *, build: Path | None = None
    ) -> dict[str, str]:
        named = dict(os.environ if base is None else base)
        return here.environment(plain({**named, "MGPU_RT_HIP": str(here.hip)}, build=build))

    surroundings.Popen.here = here
    subprocess.Popen = surroundings.Popen  # type: ignore[misc]
    softgpu.environment = environment
    softgpu.hip = lambda base=None: here.hip


class Outcomes:
    """What became of each test: passed, failed, or skipped and why."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.tests: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            if report.outcome == "failed":
                why = report.longreprtext.strip().splitlines()[-1] if report.longreprtext else ""
            self.tests[report.nodeid] = (report.outcome, why)

    def pytest_sessionfinish(self) -> None:
        if self.file:
            Path(self.file).write_text(json.dumps(self.tests, indent=1))
