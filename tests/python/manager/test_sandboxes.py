"""Runs the manager in containers, and in sandboxes that refuse system calls."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from tests.support.hosting import host_command, only_line, promptly
from tests.support.patience import run_process
from tests.support.refused import refusing

#: An init that runs its arguments, waits for all processes, and then prints how many other
#: processes remain.
FIRST = """
import os, subprocess, sys
subprocess.Popen(sys.argv[1:])
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
print("left:", sum(name.isdigit() and name != "1" for name in os.listdir("/proc")))
"""


def in_container(mode: str, *first: str) -> subprocess.CompletedProcess[str]:
    """Runs the host program in a new PID namespace; `first` is the command of process 1, which
    starts the program. Without it the program is process 1."""
    probe = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*probe, "true"], capture_output=True).returncode != 0:
        pytest.skip("no right to make a namespace of processes")
    env = promptly(MGPU_RT_MODULE_LIMIT="10K", MGPU_RT_MANAGER="on")
    return run_process([*probe, *first, *host_command(mode)], env)


def test_the_first_process_of_a_container_has_no_manager() -> None:
    result = in_container("unserved")
    assert result.stdout == "ok\n", result.stderr
    assert "docker run --init" in only_line(result.stderr)


def test_a_container_has_a_manager_that_its_init_waits_for() -> None:
    result = in_container("served", sys.executable, "-c", FIRST)
    assert result.stdout == "ok\nleft: 0\n", result.stderr


#: System calls of the library's own thread, and of the process that becomes the manager. The
#: numbers are those of x86-64. If a sandbox refuses the call, the flag says whether a manager can
#: still run.
REFUSED = {
    "clone": (56, False),
    "dup": (32, False),
    "ftruncate": (77, False),
    "memfd_create": (319, False),
    "prctl": (157, False),
    "close_range": (436, True),
    "kill": (62, True),
    "setsid": (112, False),
    "get_robust_list": (274, True),
    "wait4": (61, True),
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other numbers")
@pytest.mark.parametrize("call", REFUSED)
def test_a_sandbox_may_refuse_what_it_does_not_know(call: str) -> None:
    """The program continues, with or without a manager."""
    number, served = REFUSED[call]
    mode = "served" if served else "unserved"
    result = run_process(refusing(number, *host_command(mode)), promptly())
    assert (result.returncode, result.stdout) == (0, "ok\n"), result.stderr
