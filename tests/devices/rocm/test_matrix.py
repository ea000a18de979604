"""docs/record/tested.md shows the tests that ran, and names each failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.devices.rocm import debian, matrix, packages
from tests.devices.rocm.releases import RELEASES, find
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


def test_rows_are_counted_by_chip_and_llvm() -> None:
    programs = "tests/runtime/programs/test_programs.py::test_programs_print_what_they_should"
    device = "softgpu/tests/device/test_device.py"
    outcomes = {
        f"{programs}[forum-19-softgpu-linked]": ("passed", ""),
        f"{programs}[forum-22-softgpu-linked]": ("failed", "E"),
        f"{device}::test_memory_works[copies]": ("skipped", "Skipped: no time"),
        f"{device}::test_every_target_runs_its_own_code[gfx908]": ("passed", ""),
    }
    rows = matrix.rows(find("7.2.4"), "device", 400, outcomes)
    assert [(row["chip"], row["llvm"], row["passed"], row["failed"]) for row in rows] == [
        ("gfx908", 22, 1, 0),
        ("gfx90a", 19, 1, 0),
        ("gfx90a", 22, 0, 1),
    ]
    assert rows[2]["skipped"] == {"no time": 1}


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGPU_RT_ROCM_CACHE", str(tmp_path))
    monkeypatch.setattr(debian, "_SOURCES", tmp_path)
    with pytest.raises(packages.PackagesMissing, match="names no source of Debian packages"):
        packages.fetch(RELEASES[-1])


def test_the_plugin_is_found() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "tests.devices.rocm.plugin", "--help"]
    done = subprocess.run(command, cwd=packages.ROOT, capture_output=True, text=True, timeout=HANG)
    assert "--rocm-outcomes" in done.stdout
