"""Calls every function of mgpu_rt.h at unusual times (tests/support/hosts/everything.c): no crash,
and no endless wait."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support import known, recordings
from tests.support.child import AT_ONCE, ROOT, environment, library
from tests.support.patience import run_process

MODES = ("wild", "cancelled", "forks", "processes", "exit")
SETTINGS = {
    "plain": {"MGPU_RT_MANAGER": "off"},
    "manager": AT_ONCE,
    "recorded": {**AT_ONCE, "MGPU_RT_TRACE": "t.%p"},
    "early": {"EARLY": "1", "MGPU_RT_MANAGER": "off"},
    "off": {"MGPU_RT_CACHE": "off"},
    "prints": {"MGPU_RT_VERBOSE": "1", "MGPU_RT_SYNC": "misspelt", "MGPU_RT_MANAGER": "off"},
}
CASES = [(m, s) for m in MODES for s in SETTINGS if s != "prints" or m == "cancelled"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = (ROOT / "tests/support/hosts/everything.c").read_text()
    folder = tmp_path_factory.mktemp("everywhere")
    return known.program(folder, text, f"-I{ROOT / 'csrc' / 'include'}")


@pytest.mark.parametrize(("mode", "setting"), CASES)
def test_no_function_hangs_or_crashes(
    mode: str, setting: str, program: Path, tmp_path: Path
) -> None:
    env = environment(**SETTINGS[setting], HIPSTUB_MODE="fast")
    done = run_process([program, mode], env, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr[-2000:]


@pytest.mark.parametrize("mode", ("wild", "exit"))
def test_no_function_hangs_or_crashes_on_the_emulated_device(
    mode: str, program: Path, tmp_path: Path
) -> None:
    """HIP reads the object at a stream's address, even if the address is no stream."""
    env = environment("softgpu", MGPU_RT_MANAGER="off")
    done = run_process([program, mode], env, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr[-2000:]


TWO = """
import ctypes, sys, time
libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
for library in libraries:
    library.mgpuStreamCreate.restype = ctypes.c_void_p
    library.mgpuStreamDestroy.argtypes = [ctypes.c_void_p]
    library.mgpu_rt_manager.restype = ctypes.c_char_p
def managers():
    return [library.mgpu_rt_manager() for library in libraries]
for first, second in (libraries, libraries[::-1]):
    second.mgpuStreamDestroy(first.mgpuStreamCreate())
while managers() != [b"serving", b"serving"]:
    time.sleep(0.01)
print("both")
"""


def test_two_libraries_in_a_process_share_nothing(tmp_path: Path) -> None:
    """Both managers and both recordings run at once. Each of the two libraries treats a stream of
    the other library as a stream of the program."""
    folder = tmp_path / "build" / "lib"
    folder.mkdir(parents=True)
    copy = shutil.copy(library(), folder)
    (tmp_path / "mgpu_rt").symlink_to(ROOT / "mgpu_rt")
    env = environment(**SETTINGS["recorded"], HIPSTUB_MODE="fast")
    env["MGPU_RT_MANAGER"] = f"{sys.executable},delay=0"
    env |= {"MGPU_RT_TRACE": "same"}
    command = [sys.executable, "-c", TWO, library(), copy]
    done = run_process(command, env, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "both\n"), done.stderr
    written = [path for path in tmp_path.iterdir() if path.is_file()]
    found = [recordings.stats(path)["process"]["pid"] for path in written]
    assert len(found) == 2
    assert {path.name for path in written} == {"same", f"same.{found[0]}"}
