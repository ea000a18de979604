"""Uses the pytest plugin (mgpu_rt/_testing): pytest runs in a folder of tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.support import lower
from tests.support.child import environment
from tests.support.compiled import LIB, compile_c
from tests.support.patience import run_process

pytestmark = pytest.mark.check  # each test starts pytest

SESSION = Path(__file__).with_name("session.py")
LINKED = (str(LIB / "libmlir_rocm_runtime.so"), f"-Wl,-rpath,{LIB}")
HEAD = """
#include "program.h"
"""
PROGRAMS = {
    "right": """int main(int argc, char **argv) {
        mgpuStreamDestroy(mgpuStreamCreate());
        puts(argv[argc - 1]);
        return 0; }""",
    "failing": "int main(void) { mgpuMemFree((void *)16, 0); return 0; }",
    "status": "int main(void) { mgpuStreamDestroy(mgpuStreamCreate()); return 7; }",
    "aborting": "int main(void) { mgpuStreamDestroy(mgpuStreamCreate()); abort(); }",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for name, text in PROGRAMS.items():
        compile_c(folder / name, HEAD + text, "-w", *LINKED)
    return folder


def run(folder: Path, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest in a folder, over the stub of HIP unless `env` names another HIP."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, words)]
    changes = {"PYTEST_ADDOPTS": "", "PYTEST_XDIST_WORKER": "", "COLUMNS": "200", **env}
    clean = {k: v for k, v in environment(**changes).items() if v or not k.startswith("PYTEST")}
    return run_process(command, clean, cwd=folder)


def outcomes(file: Path) -> dict[str, tuple[str, str]]:
    """Returns the outcome of each test in a file of --junitxml, and the test's message with the
    captured output."""
    found = {}
    for case in ElementTree.parse(file).iter("testcase"):
        parts = {part.tag: f"{part.get('message')}\n{part.text}" for part in case}
        kind = next((tag for tag in ("failure", "error", "skipped") if tag in parts), "")
        words = {"failure": "failed", "error": "error", "skipped": "skipped", "": "passed"}
        found[case.get("name", "")] = words[kind], "\n".join(parts.values())
    return found


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=("alone", "xdist"))
def test_each_test_ends_as_it_says(words: tuple[str, ...], programs: Path, tmp_path: Path) -> None:
    """A fault, a hang or a crash ends its own test, and the session continues."""
    shutil.copy(SESSION, tmp_path / "test_session.py")
    file = tmp_path / "out.xml"
    options = ("--junitxml", file, "--mgpu-device", "hip", "--strict-markers", *words)
    done = run(tmp_path, *options, PROGRAMS=str(programs))
    assert done.returncode == 1, done.stdout + done.stderr
    found = outcomes(file)
    text = SESSION.read_text()
    defined = re.findall(r'def (test_(\w+?)_\w+)\(.*\):\n(?: +"""(.*)""")?', text)
    assert {name.partition("[")[0] for name in found} == {name for name, *_ in defined}
    for name, outcome, said in defined:
        for given in (each for each in found if each.partition("[")[0] == name):
            assert found[given][0] == outcome, (given, found[given], done.stdout)
            assert said in found[given][1], (given, found[given])
    assert "said before the crash" in done.stdout
    assert "previous item was not torn down" not in done.stdout


def test_a_device_is_named_before_the_tests(tmp_path: Path) -> None:
    shutil.copy(SESSION, tmp_path / "test_session.py")
    for words, said in (
        (("--mgpu-device", "mi300x"), "--mgpu-device mi300x: 'mi300x' is none of auto"),
        (("--mgpu-device", "hip"), "MGPU_RT_HIP=/nowhere: there is no such file"),
    ):
        done = run(tmp_path, *words, MGPU_RT_HIP="/nowhere", MGPU_RT_CUDA="/nowhere")
        assert (done.returncode, done.stderr.count("\n")) == (4, 2), done.stdout + done.stderr
        assert done.stderr.startswith(f"ERROR: {said}")


def test_the_fixture_and_the_mark_need_a_named_device(tmp_path: Path) -> None:
    """The tests fail, because a skipped test would look like a passed test."""
    text = "import pytest\ndef test_one(mgpu): pass\n@pytest.mark.mgpu\ndef test_two(): pass\n"
    (tmp_path / "test_it.py").write_text(text)
    done = run(tmp_path, "-q")
    assert done.returncode == 1 and "2 errors" in done.stdout
    needs = "mgpu needs pytest --mgpu-device auto (or addopts)"
    assert done.stdout.count(needs) == 4, done.stdout  # and in the summary


def test_nothing_is_imported_where_nothing_is_asked_for(tmp_path: Path) -> None:
    """pytest imports the plugin wherever the package is installed."""
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    ours = {name for name in sys.modules if name.startswith('mgpu_rt')}\n"
        "    assert ours <= {'mgpu_rt', 'mgpu_rt._testing'}, ours\n"
        "    assert 'click' not in sys.modules and 'cffi' not in sys.modules\n"
    )
    done = run(tmp_path, "-q")
    assert "1 passed" in done.stdout, done.stdout


FAR = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @far(%x: memref<256xf32>) kernel {
      %i = arith.constant 1099511627776 : index
      %two = arith.constant 2.0 : f32
      memref.store %two, %x[%i] : memref<256xf32>
      gpu.return
    }
  }
}
"""


def test_a_fault_of_the_emulated_device_ends_its_test(tmp_path: Path) -> None:
    """The environment names no device: the loader finds the device when pytest starts again."""
    (tmp_path / "far.mlir").write_text(FAR)
    lower.lower(tmp_path / "far.mlir", llvm=22, chip="gfx908", out=tmp_path / "far.o")
    (tmp_path / "test_it.py").write_text(
        "import mgpu_rt, numpy, pytest\n"
        "pytestmark = pytest.mark.mgpu('gfx908')\n"
        "def test_far():\n"
        "    x = mgpu_rt.to_device(numpy.ones(256, dtype=numpy.float32))\n"
        "    mgpu_rt.Module('far.o')['far'](1, 1, mgpu_rt.MemRef(x))\n"
        "def test_after(mgpu):\n"
        "    stream = mgpu_rt.load().mgpuStreamCreate()\n"
        "    assert stream and mgpu.chip == 'gfx908'\n"
        "    assert mgpu_rt.stats()['device']['name'] == 'softgpu gfx908 (emulated)'\n"
    )
    done = run(tmp_path, "-q", "--mgpu-device", "gfx908", MGPU_RT_HIP="")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "the test's process was ended by signal 6 (SIGABRT)" in done.stdout
    assert "access outside mapped memory" in done.stdout


def test_fixtures_of_pytests_process_survive_a_marked_test(tmp_path: Path) -> None:
    """A marked test uses a fixture that an unmarked test has created, and tears down its own."""
    (tmp_path / "test_it.py").write_text(
        "import os, pytest\n"
        "@pytest.fixture(scope='module')\n"
        "def shared(tmp_path_factory):\n"
        "    path = tmp_path_factory.mktemp('x') / 'file'\n"
        "    path.touch(); yield path; path.unlink()\n"
        "@pytest.fixture\n"
        "def own(): yield 1; os.write(2, b'torn down\\n')\n"
        "def test_a(shared): assert shared.exists()\n"
        "@pytest.mark.mgpu\n"
        "def test_b(shared, own): assert shared.exists()\n"
        "def test_c(shared): assert shared.exists()\n"
    )
    done = run(tmp_path, "-s", "--mgpu-device", "auto")
    assert "3 passed" in done.stdout, done.stdout
    assert done.stderr.count("torn down") == 1


def test_it_goes_with_what_pytest_has(tmp_path: Path) -> None:
    """The plugin works with a user's own options, another import mode, a unittest class, and tests
    in other folders."""
    (tmp_path / "a/b c").mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --import-mode=importlib --own=1 --mgpu-device=auto\n"
    )
    (tmp_path / "conftest.py").write_text(
        "import pytest\n"
        "def pytest_addoption(parser): parser.addoption('--own')\n"
        "@pytest.fixture(scope='session')\n"
        "def own(request): return request.config.getoption('--own')\n"
    )
    (tmp_path / "a/b c/test_it.py").write_text(
        "import os, pytest, sys, unittest\n"
        "PARENT = os.getpid()\n"
        "pytestmark = pytest.mark.mgpu(timeout=100)\n"
        "class TestOld(unittest.TestCase):\n"
        "    def test_old(self): self.assertNotEqual(os.getpid(), PARENT)\n"
        "@pytest.mark.parametrize('text', ['a::b', '[ä]', 'x\\ny'])\n"
        "def test_text(text, own, capfd):\n"
        "    print(text); assert capfd.readouterr().out == text + '\\n' and own == '2'\n"
        "def test_said(own): print('said', own); assert 0\n"
        "def test_never(): assert 0\n"
    )
    words = ("--own=2", "-W", "error", "-k", "not never")
    for more, folder in ((), tmp_path), (("-s",), tmp_path), (("a/b c",), tmp_path):
        done = run(folder, *words, *more)
        assert "1 failed, 4 passed" in done.stdout, done.stdout + done.stderr
        assert "said 2" in done.stdout
    stopped = run(tmp_path / "a", "--own=2", "-x", "../a/b c/test_it.py::test_said", "b c")
    assert "stopping after 1 failures" in stopped.stdout, stopped.stdout
