"""A pytest plugin that runs the tests of the emulated device on another release of HIP.

    python -m pytest -p tests.devices.rocm.plugin --rocm 7.2.4 -k softgpu tests/runtime/abi

The tests need no changes for this plugin. mgpu_rt._cli.softgpu returns the release's environment to
the tests, and subprocess.Popen starts programs through the release's loader.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from mgpu_rt._lowering import pipelines
from tests.devices.rocm import releases, surroundings
from tests.devices.rocm.differences import difference
from tests.proofs.random import runner
from tests.support import nursery


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rocm")
    group.addoption("--rocm", help="the release of HIP that the emulated device runs")
    group.addoption("--rocm-abi", type=int, help="the code object version of programs, as 500")
    group.addoption("--rocm-chip", help="the chip of programs and of the device, as gfx942")
    group.addoption("--rocm-outcomes", help="a file for what became of each test, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    hip = config.getoption("--rocm")
    if hip:
        install(surroundings.surroundings(releases.find(hip)))
    if config.getoption("--rocm-abi"):
        lower_for(config.getoption("--rocm-abi"))
    if config.getoption("--rocm-chip"):
        present(config.getoption("--rocm-chip"))
    config.pluginmanager.register(Outcomes(config.getoption("--rocm-outcomes")))


def install(here: surroundings.Surroundings) -> None:
    """Makes softgpu use the release in this process from now on."""
    plain = softgpu.environment

    def environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
        return here.environment(plain({**base, "MGPU_RT_HIP": str(here.hip)}))

    nursery.forks = False
    surroundings.Popen.here = here
    subprocess.Popen = surroundings.Popen  # type: ignore[misc]
    softgpu.environment = environment
    softgpu.hip = lambda *_, **__: here.hip
    for name in ("SOFTGPU", "SOFTGPU_TWO"):
        device = getattr(runner, name)
        options = (*here.environment({}).items(), *device.options)
        newer = {"path": ("build/softgpu",), "lacks": runner.SOFTGPU_7.lacks, "stock_fails": True}
        setattr(runner, name, replace(device, hip=str(here.hip), options=options, **newer))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    hip = config.getoption("--rocm")
    for item in items:
        why = hip and difference(item.nodeid, hip)
        if why:
            item.add_marker(pytest.mark.skip(reason=why))


def lower_for(abi: int) -> None:
    """Makes lowering produce another version of code objects from now on."""
    pipelines.DEVICE_PASSES = pipelines.DEVICE_PASSES.replace("abi=400", f"abi={abi}")
    pipelines.RECIPE = (pipelines.RECIPE, abi)  # type: ignore[assignment]


def present(chip: str) -> None:
    """Sets the default chip for lowering from now on."""
    pipelines.DEFAULT_CHIP = softgpu.DEFAULT_TARGETS = chip
    os.environ["MGPU_RT_TEST_CHIP"] = chip


class Outcomes:
    """The result of each test: passed, failed, or skipped with a reason."""

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
