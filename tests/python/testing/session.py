"""Tests as a user writes them; test_plugin.py runs these tests with pytest. Each docstring is the
expected result of its test."""

import ctypes
import os
import signal
import subprocess
from pathlib import Path

import pytest

import mgpu_rt

PROGRAMS = Path(os.environ["PROGRAMS"])
WORD = os.environ.get("WORD", "hip")  # --mgpu-device
PARENT = os.getpid()


def library():
    return ctypes.CDLL(mgpu_rt.library_path())


# ---- programs ----


def test_passed_a_program_runs(mgpu):
    ended = mgpu.run(PROGRAMS / "right", "a b")
    assert ended.stdout == "a b\n"
    assert (ended.status, ended.stderr) == (0, "")
    assert ended.calls == {"mgpuStreamCreate": 1, "mgpuStreamDestroy": 1}
    assert ended.driver_calls["hipStreamCreate"] == 1
    assert ended.launches == {}
    assert ended.stats[0]["abi"]["mgpuStreamCreate"]["calls"] == 1


def test_passed_the_environment_is_there_for_others():
    subprocess.run([PROGRAMS / "right", "a"], stdin=-3, check=True)


def test_failed_a_call_fails(mgpu):
    """1 call of mgpuMemFree failed with hipErrorInvalidValue"""
    mgpu.run(PROGRAMS / "failing")


def test_passed_a_failing_call_is_expected(mgpu):
    assert "hipErrorInvalidValue" in mgpu.run(PROGRAMS / "failing", errors=True).stderr


def test_failed_a_status(mgpu):
    """ended with status 7, not 0; the status of a @main that returns nothing"""
    mgpu.run(PROGRAMS / "status")


def test_failed_a_program_in_mlir(mgpu, tmp_path):
    """is a program in MLIR: `mgpu-rt lower --emit executable` makes an executable of it"""
    (tmp_path / "f.mlir").write_text("func.func @main() { return }")
    mgpu.run(tmp_path / "f.mlir")


def test_passed_a_status_is_expected(mgpu):
    assert mgpu.run(PROGRAMS / "status", status=7).status == 7
    assert mgpu.run(PROGRAMS / "status", status=None).status == 7


def test_failed_nothing_is_called(mgpu):
    """true: exit status 0, and 'true' called none of the library's functions: `mgpu-rt inspect"""
    mgpu.run("true")


def test_failed_a_fault(mgpu):
    """was ended by signal 6 (SIGABRT)"""
    mgpu.run(PROGRAMS / "aborting")


def test_failed_it_hangs_with_a_child(mgpu):
    """did not end in 0.5 s (timeout=), and was killed"""
    mgpu.run("sh", "-c", "sleep 1000 & sleep 1000", timeout=0.5)


SLEEPS = ("sh", "-c", "sleep 1; exec $0 a", PROGRAMS / "right")


def test_failed_it_takes_longer(mgpu):
    """did not end in 0.5 s (timeout=), and was killed"""
    mgpu.run(*SLEEPS, timeout=0.5)


def test_passed_a_timeout_is_longer(mgpu):
    mgpu.run(*SLEEPS, timeout=60)


def test_failed_it_is_not_there(mgpu):
    """'./nowhere' was not found"""
    mgpu.run("./nowhere")


# ---- marked tests ----


@pytest.fixture(scope="module")
def module_wide():
    """The fixture is created in each test's process, and torn down there."""
    yield os.getpid()
    print("torn down in", os.getpid())


@pytest.mark.mgpu
def test_passed_a_process_of_its_own(mgpu, module_wide, tmp_path):
    assert module_wide == os.getpid() != PARENT
    assert library().mgpuStreamCreate()
    tmp_path.joinpath("file").touch()
    assert mgpu.run(PROGRAMS / "right", "a").status == 0


@pytest.mark.mgpu
@pytest.mark.parametrize("number", (1, 2))
def test_passed_another_process(number, module_wide, tmp_path):
    assert module_wide == os.getpid()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.mgpu
def test_failed_an_assertion():
    """assert 1 == 2"""
    assert 1 == 2


@pytest.mark.mgpu
def test_failed_a_crash():
    """the test's process was ended by signal 11 (SIGSEGV)"""
    os.write(2, b"said before the crash\n")
    ctypes.string_at(0)


@pytest.mark.mgpu
def test_failed_an_exit_with_success():
    """the test's process ended with status 0"""
    os._exit(0)


@pytest.mark.mgpu
def test_failed_an_exit():
    """the test's process ended with status 5"""
    os._exit(5)


@pytest.mark.mgpu(timeout=0.5)
def test_failed_it_hangs():
    """the test did not end in 0.5 s (@pytest.mark.mgpu(timeout=)), and was"""
    signal.pause()


@pytest.mark.mgpu
@pytest.mark.timeout(2, method="signal")
def test_failed_another_plugins_limit():
    """Timeout (>2.0s)"""
    signal.pause()


@pytest.mark.mgpu
def test_failed_a_call_in_the_process():
    """1 call of mgpuMemFree failed with hipErrorInvalidValue (a test that expects that"""
    library().mgpuMemFree(ctypes.c_void_p(16), None)


@pytest.mark.mgpu(errors=True)
def test_passed_a_call_in_the_process_is_expected():
    library().mgpuMemFree(ctypes.c_void_p(16), None)


@pytest.mark.mgpu
def test_skipped_by_itself():
    """not today"""
    pytest.skip("not today")


@pytest.mark.mgpu("gfx908")
def test_skipped_another_device():
    """for gfx908, and --mgpu-device is"""


@pytest.mark.mgpu("hip", "softgpu")
def test_passed_on_this_device():
    pass


@pytest.mark.mgpu("mi300x")
def test_error_an_unknown_device():
    """@pytest.mark.mgpu: 'mi300x' is none of auto"""


@pytest.mark.mgpu
@pytest.mark.xfail(strict=True)
def test_skipped_it_is_known():
    """"""
    raise AssertionError


class TestOfAClass:
    @pytest.mark.mgpu
    def test_passed_a_method(self):
        assert os.getpid() != PARENT


def test_passed_an_unmarked_one_stays_here(module_wide):
    assert module_wide == os.getpid()
    assert "MGPU_RT_STATS" not in os.environ
