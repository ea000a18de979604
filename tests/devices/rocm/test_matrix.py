"""docs/record/tested.md shows the tests that ran, and names each failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.devices.rocm import debian, matrix, packages
from tests.devices.rocm.releases import RELEASES
from tests.devices.rocm.suites import SUITES
from tests.support.patience import HANG


def test_the_page_shows_the_last_runs() -> None:
    page = matrix.DOCUMENT.read_text(encoding="utf-8")
    assert page == matrix.document(matrix.load()), "run: python -m tests.devices.rocm --docs"


def test_every_suite_was_run_on_every_release() -> None:
    ran = {(row["hip"], row["suite"]) for row in matrix.load()["rows"]}
    assert ran >= {(release.hip, suite.name) for release in RELEASES for suite in SUITES}


def test_nothing_failed() -> None:
    assert [row for row in matrix.load()["rows"] if row["failed"]] == []


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGPU_RT_ROCM_CACHE", str(tmp_path))
    monkeypatch.setattr(debian, "_SOURCES", tmp_path)
    with pytest.raises(packages.PackagesMissing, match="names no source of Debian packages"):
        packages.fetch(RELEASES[-1])


@pytest.mark.check  # starts pytest
def test_the_plugin_is_found() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "tests.devices.rocm.plugin", "--help"]
    done = subprocess.run(command, cwd=packages.ROOT, capture_output=True, text=True, timeout=HANG)
    assert "--rocm-outcomes" in done.stdout
