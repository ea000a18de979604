"""Runs the manager in containers with several kinds of process 1, and in sandboxes that refuse
system calls."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import subprocess
import sys

import pytest

from tests.support.child import library
from tests.support.hosting import KERNEL, host, image, only_line, promptly, run_host, run_program


def test_the_first_process_of_a_container_has_no_manager() -> None:
    probe = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*probe, "true"], capture_output=True).returncode != 0:
        pytest.skip("no right to make a namespace of processes")
    command = [*probe, str(host()), str(library()), str(image()), KERNEL, "unserved"]
    result = run_program(command, promptly())
    assert result.stdout == "ok\n", result.stderr
    assert "docker run --init" in only_line(result.stderr)


#: A process 1 that runs its arguments, and then prints which child processes remain.
FIRST = """
import os, signal, subprocess, sys, time
reaps = sys.argv[1] == "reaps"
if sys.argv[1] == "system":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
if reaps:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, signal.SIGTERM])
program = subprocess.Popen(sys.argv[2:])
if reaps:
    left = True
    while left:
        try:
            process, status = os.wait()
        except ChildProcessError:
            break
        if process == program.pid:
            program.returncode = os.waitstatus_to_exitcode(status)
else:
    program.wait()
def state(process):
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
others = [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]
while any(state(process) not in "ZX" for process in others):
    time.sleep(0.05)
print("left:", len(others))
sys.exit(program.returncode)
"""


def in_container(first: str, mode: str) -> subprocess.CompletedProcess[str]:
    """Runs the host program in a new PID namespace; FIRST is process 1 and starts the program."""
    probe = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*probe, "true"], capture_output=True).returncode != 0:
        pytest.skip("no right to make a namespace of processes")
    init = [sys.executable, "-c", FIRST, first]
    init += ["sh", "-c", 'until grep -q "State:.S" /proc/1/status; do :; done; exec "$@"', "sh"]
    command = [*probe, *init, str(host()), str(library()), str(image()), KERNEL, mode]
    return run_program(command, promptly())


@pytest.mark.parametrize("first", ["selfish", "system"])
def test_no_zombie_where_process_1_waits_for_its_own_children_only(first: str) -> None:
    """Each program that runs for more than a second would leave a zombie. system() blocks SIGCHLD
    while its command runs."""
    result = in_container(first, "unserved")
    assert (result.returncode, result.stdout) == (0, "ok\nleft: 0\n"), result.stderr
    assert "process 1 of this container may never wait" in result.stderr


def test_a_container_with_an_init_has_a_manager() -> None:
    result = in_container("reaps", "served")
    assert (result.returncode, result.stdout) == (0, "ok\nleft: 0\n"), result.stderr


#: System calls of the library's own thread, and of the process that becomes the manager. The
#: numbers are those of x86-64. If a sandbox refuses the call, the flag says whether a manager can
#: still run.
REFUSED = {
    "clone": (56, False),
    "dup": (32, False),
    "ftruncate": (77, False),
    "memfd_create": (319, False),
    "prctl": (157, False),
    "readlink": (89, False),
    "close_range": (436, True),
    "get_robust_list": (274, True),
    "getpriority": (140, True),
    "kill": (62, True),
    "sched_getscheduler": (145, True),
    "setpriority": (141, True),
    "setsid": (112, True),
    "wait4": (61, True),
}


def refuse(number: int) -> None:
    """Installs a seccomp filter; the given system call then returns EPERM."""
    load, equal, answer = 0x20, 0x15, 0x06
    code = [(load, 0, 0, 0), (equal, 0, 1, number), (answer, 0, 0, 0x50000 | errno.EPERM)]
    code.append((answer, 0, 0, 0x7FFF0000))
    text = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *each) for each in code))
    filters = struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(text))
    no_new_rights, seccomp, by_filter = 38, 22, 2
    library = ctypes.CDLL(None)
    assert library.prctl(no_new_rights, 1, 0, 0, 0) == 0
    assert library.prctl(seccomp, by_filter, filters) == 0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other numbers")
@pytest.mark.parametrize("call", REFUSED)
def test_a_sandbox_may_refuse_what_it_does_not_know(call: str) -> None:
    """The program continues, with or without a manager."""
    number, served = REFUSED[call]
    mode = "served" if served else "unserved"
    result = run_host(mode, promptly(), preexec_fn=lambda: refuse(number))
    assert (result.returncode, result.stdout) == (0, "ok\n"), result.stderr
