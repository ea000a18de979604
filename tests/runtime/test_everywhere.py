"""Every function of mgpu_rt.h where nobody would call it (tests/hosts/everything.c): no crash, and
no wait without an end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.child import AT_ONCE, ROOT, environment, library
from tests.support.compiled import compile_c
from tests.support.patience import HANG

MODES = ("wild", "cancelled", "forks", "exit")
SETTINGS = {
    "plain": {"MGPU_RT_PYTHON": "off"},
    "manager": AT_ONCE,
    "recorded": {**AT_ONCE, "MGPU_RT_STATS": "s.%p", "MGPU_RT_TRACE": "t.%p"},
    "timed": {"MGPU_RT_TRACE": "t.%p", "MGPU_RT_TRACE_GPU": "on", "MGPU_RT_PYTHON": "off"},
    "early": {"EARLY": "1", "MGPU_RT_PYTHON": "off"},
    "off": {"MGPU_RT_CACHE": "off"},
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("everywhere") / "everything"
    flags = (f"-I{ROOT / 'csrc' / 'include'}", str(library()), f"-Wl,-rpath,{library().parent}")
    return compile_c(out, (ROOT / "tests/hosts/everything.c").read_text(), *flags, "-pthread")


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("mode", MODES)
def test_nothing_hangs_or_crashes(mode: str, setting: str, program: Path, tmp_path: Path) -> None:
    env = environment(**SETTINGS[setting], HIPSTUB_MODE="fast")
    done = subprocess.run(
        [program, mode], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANG
    )
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr[-2000:]


@pytest.mark.parametrize("mode", ("wild", "exit"))
def test_on_the_emulated_device(mode: str, program: Path, tmp_path: Path) -> None:
    """HIP reads what a stream points to, where it is asked about one that is none."""
    env = environment("softgpu", MGPU_RT_PYTHON="off")
    done = subprocess.run(
        [program, mode], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANG
    )
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr[-2000:]
