"""The library and its manager in programs that Python runs."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.child import library
from tests.support.hosting import (
    KERNEL,
    bare_python,
    ends,
    image,
    manager_of,
    promptly,
)
from tests.support.patience import run_process

#: Loads the library through ctypes, and creates unique images.
PRELUDE = """
import ctypes, itertools, json, os, sys, threading, time
lib = ctypes.CDLL(sys.argv[1])
data = open(sys.argv[2], 'rb').read()
kernel = sys.argv[3].encode()
for name in ('mgpuModuleLoad', 'mgpuModuleGetFunction', 'mgpuStreamCreate', 'mgpuMemAlloc'):
    getattr(lib, name).restype = ctypes.c_void_p
lib.mgpuModuleLoad.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
lib.mgpuModuleGetFunction.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
for name in ('mgpuModuleUnload', 'mgpuStreamDestroy', 'mgpuStreamSynchronize'):
    getattr(lib, name).argtypes = [ctypes.c_void_p]
numbers = itertools.count()

def new_image():
    number = next(numbers)
    padding = number.to_bytes(3, 'little') + bytes([os.getpid() & 255])
    return ctypes.create_string_buffer(data[:9] + padding + data[13:], len(data))

def miss():
    module = lib.mgpuModuleLoad(new_image(), 0)
    assert module
    lib.mgpuModuleUnload(module)

def launch():
    module = lib.mgpuModuleLoad(new_image(), 0)
    function = lib.mgpuModuleGetFunction(module, kernel)
    stream = lib.mgpuStreamCreate()
    assert module and function and stream
    lib.mgpuStreamSynchronize(stream)
    lib.mgpuStreamDestroy(stream)
    lib.mgpuModuleUnload(module)

def state():
    lib.mgpu_rt_manager.restype = ctypes.c_char_p
    return lib.mgpu_rt_manager().decode()

def stats():
    from mgpu_rt._record import Recording
    from mgpu_rt._record_json import statistics
    size = ctypes.c_size_t()
    lib.mgpu_rt_record.restype = ctypes.c_void_p
    at = lib.mgpu_rt_record(ctypes.byref(size))
    return statistics(Recording(ctypes.string_at(at, size.value)))['cache']

def wait_until_served():
    while state() == 'starting':
        time.sleep(0.01)
    assert state() == 'serving', state()
"""


def python(
    script: str, *flags: str, interpreter: str = sys.executable, **env: str
) -> subprocess.CompletedProcess[str]:
    """Runs PRELUDE and then the given program; requires that the program prints ok."""
    code = PRELUDE + textwrap.dedent(script) + "\nprint('ok')\n"
    command = [interpreter, *flags, "-c", code, str(library()), str(image()), KERNEL]
    result = run_process(command, promptly(**env), cwd="/")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == "ok", result.stderr
    return result


SERVED = """
launch()
wait_until_served()
launch()
"""


# ---- kinds of hosts -----------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [(), ("-I",), ("-S",), ("-E",), ("-I", "-S", "-E"), ("-O",)])
def test_python_with_any_flags_is_served(flags: tuple[str, ...]) -> None:
    said = python(SERVED, *flags).stderr
    assert ends(manager_of(said)[1])


def test_a_host_without_cffi_is_served() -> None:
    """The manager runs in the library's own environment, not in the environment of the program."""
    python(SERVED, interpreter=str(bare_python()))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_are_served(method: str, tmp_path: Path) -> None:
    """A child process has its own manager or no manager."""
    script = tmp_path / "program.py"
    script.write_text(
        PRELUDE
        + textwrap.dedent(f"""
        import multiprocessing
        def child(number):
            launch()
            return number
        if __name__ == '__main__':
            launch()
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                assert pool.map(child, range(8)) == list(range(8))
            print('ok')
        """)
    )
    command = [sys.executable, str(script), str(library()), str(image()), KERNEL]
    result = run_process(command, promptly())
    assert result.stdout == "ok\n", result.stderr


def test_the_program_sees_its_own_children_only() -> None:
    """wait(-1), SIGCHLD and subprocess see only the program's children."""
    python("""
    import signal, subprocess
    seen = []
    signal.signal(signal.SIGCHLD, lambda *_: seen.append(1))
    launch()
    wait_until_served()
    assert not seen
    try:
        os.waitpid(-1, os.WNOHANG)
        raise AssertionError('there is a child')
    except ChildProcessError:
        pass
    assert subprocess.call(['/bin/true']) == 0
    """)


def test_daemon_threads_may_call_at_exit() -> None:
    for delay in ("0", "30", "100"):
        python(
            """
            def work():
                while True:
                    launch()
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.daemon = True
                thread.start()
            time.sleep(0.2)
            """,
            MGPU_RT_MANAGER=f"delay={delay}",
            MGPU_RT_MODULE_LIMIT="100K",
        )


# ---- events in the program's Python -------------------------------------------------------------


def test_no_signal_is_lost() -> None:
    """A signal handler that interrupts a module load may raise an exception. The exception reaches
    the program, and the load does not fail."""
    result = python("""
    import signal
    class Interrupt(Exception):
        pass
    raised = []
    def handler(*_):
        raised.append(1)
        raise Interrupt
    signal.signal(signal.SIGALRM, handler)
    caught = 0
    def one():
        module = lib.mgpuModuleLoad(new_image(), 0)
        assert module
        lib.mgpuModuleUnload(module)
    for number in range(300):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0002 + number % 10 * 0.0001)  # once
            while len(raised) == number:
                one()
            one()  # the handler has run: what it raised was swallowed
        except Interrupt:
            caught += 1
    assert caught == len(raised) == 300, (caught, len(raised))
    """)
    assert "failed with" not in result.stderr
