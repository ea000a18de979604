"""The command and the plugin for pytest where the user's folders cannot be entered, as under
`docker --user` and `sudo -u`, and where no home exists."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.child import ROOT, environment
from tests.support.patience import HANG

pytestmark = pytest.mark.check  # each test starts commands

FOLDERS = ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
NOBODY = 12345  # a user whom the system's list of users lacks
VECADD = ROOT / "examples" / "python" / "vecadd.py"
PROGRAM = ("python3", "-c", "pass")

#: The words of each command, and whether the command may end with a line about what is missing.
COMMANDS = {
    "config": ("config",),
    "config --libs": ("config", "--libs"),
    "doctor": ("doctor",),
    "doctor --device softgpu": ("doctor", "--device", "softgpu"),
    "run": ("run", "--", *PROGRAM),
    "run --device softgpu": ("run", "--device", "softgpu", "--", *PROGRAM),
    "run a kernel": ("run", "--device", "softgpu", "--", sys.executable, str(VECADD)),
    "compare": ("compare", "--device", "softgpu", "--", *PROGRAM),
    "stats": ("stats", "missing.json"),
    "report": ("compare", "missing.json", "--report", "page.html"),
    "inspect": ("inspect", "missing.o"),
    "lower": ("lower", str(ROOT / "examples" / "steps.mlir"), "-o", "steps.o"),
    "hoist": ("hoist", "missing.mlir"),
    "record": ("run", "--device", "softgpu", "--record", "recording", "--", *PROGRAM),
    "replay": ("replay", "--device", "softgpu", "missing"),
    "diff": ("diff", "--device", "softgpu", "--", *PROGRAM),
    "check": ("check", "--", *PROGRAM),
    "selftest": ("selftest", "--device", "softgpu", "--list"),
}


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A folder that the child may not enter."""
    folder = tmp_path / "closed"
    folder.mkdir()
    tmp_path.chmod(0o755)
    folder.chmod(0)
    yield folder
    folder.chmod(0o700)


@pytest.fixture
def open_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working folder that the child may use; its parents belong to this process's user."""
    with tempfile.TemporaryDirectory(prefix="mgpu-rt-test-home-") as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def run(
    words: tuple[str, ...], homes: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Runs Python as another user if this process is root's, whom no permission binds."""
    clean = {name: value for name, value in environment().items() if name not in FOLDERS}
    clean.pop("MGPU_RT_HIP", None)
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **homes},
        capture_output=True,
        text=True,
        timeout=HANG,
        **as_nobody,  # type: ignore[call-overload]
    )


def homes_in(folder: Path) -> dict[str, dict[str, str]]:
    return {
        "HOME": {"HOME": str(folder / "home")},
        "the folders of XDG": {name: str(folder / name) for name in FOLDERS},
        "no home": {},
    }


CASES = [
    *((name, "HOME") for name in COMMANDS),
    *itertools.product(("doctor", "run a kernel", "lower"), ("the folders of XDG", "no home")),
]


@pytest.mark.parametrize(("name", "where"), CASES)
def test_a_command_ends_without_a_traceback(
    name: str, where: str, closed: Path, open_folder: Path
) -> None:
    done = run(("-m", "mgpu_rt", *COMMANDS[name]), homes_in(closed)[where], open_folder)
    assert "Traceback" not in done.stderr and done.returncode in (0, 1, 2, 3), done.stderr
    if name in ("config", "doctor", "run", "run --device softgpu", "run a kernel", "lower"):
        assert done.returncode == 0, done.stderr
    assert not (open_folder / "~").exists()


def test_a_second_library_in_a_closed_folder_is_left_alone(closed: Path, open_folder: Path) -> None:
    homes = {"HOME": str(open_folder), "LD_LIBRARY_PATH": f"{closed}:{closed / 'lib'}"}
    for words in (("doctor",), ("run", "--", *PROGRAM)):
        done = run(("-m", "mgpu_rt", *words), homes, open_folder)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_the_plugin_runs_tests(closed: Path, open_folder: Path) -> None:
    test = open_folder / "test_marked.py"
    test.write_text("import pytest\n@pytest.mark.mgpu\ndef test_it():\n    pass\n")
    words = ("-m", "pytest", "-p", "no:cacheprovider", "--mgpu-device", "softgpu", str(test))
    done = run(words, homes_in(closed)["HOME"], open_folder)
    assert "INTERNALERROR" not in done.stdout and done.returncode == 0, done.stdout + done.stderr


LOWERS = """
import sys, mgpu_rt
from mgpu_rt._lowering import cache
cache.OBJECTS = cache.users_folder()  # as in an installed package
print(mgpu_rt.lower(sys.argv[1]))
"""


@pytest.mark.parametrize("home", ["closed", "missing", "none"])
def test_a_lowering_without_a_home_names_the_way_out(
    home: str, closed: Path, open_folder: Path
) -> None:
    """No command makes a home."""
    missing = open_folder / "missing"
    homes = {"closed": {"HOME": str(closed)}, "missing": {"HOME": str(missing)}, "none": {}}[home]
    words = ("-c", LOWERS, str(ROOT / "examples" / "steps.mlir"))
    done = run(words, homes, open_folder)
    assert "set XDG_CACHE_HOME to a folder that can be written" in done.stderr
    assert list(open_folder.iterdir()) == []
    place = open_folder / "cache"
    done = run(words, {**homes, "XDG_CACHE_HOME": str(place)}, open_folder)
    assert Path(done.stdout.strip()).is_relative_to(place), done.stderr
