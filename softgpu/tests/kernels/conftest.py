"""Lowers the selected programs' modules, two at a time, and starts a child process for each
target."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from softgpu.tests.kernels.host import Host
from softgpu.tests.kernels.images import image
from softgpu.tests.kernels.program import Module


@pytest.fixture(scope="session")
def images(request: pytest.FixtureRequest) -> Iterator[Callable[[Module, str], Path]]:
    """Returns the path of a module's code object for a target."""
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        jobs: dict[tuple[str, str], Future[Path]] = {}

        def job(module: Module, chip: str) -> Future[Path]:
            key = (module.name, chip)
            if key not in jobs:
                jobs[key] = pool.submit(image, module, chip)
            return jobs[key]

        for item in request.session.items:
            chosen = getattr(item, "callspec", None)
            if chosen and "module" in chosen.params and "chip" in chosen.params:
                job(chosen.params["module"], chosen.params["chip"])
        yield lambda module, chip: job(module, chip).result()


@pytest.fixture(scope="session")
def hosts() -> Iterator[Callable[[str], Host]]:
    """Returns a child process that runs AMD's HIP on the emulated device of a target."""
    started: dict[str, Host] = {}

    def host(chip: str) -> Host:
        return started.setdefault(chip, Host(chip))

    yield host
    for each in started.values():
        each.close()
