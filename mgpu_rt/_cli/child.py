"""Runs a program to its end, and explains or repeats how the program ended."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

GRACE = 5.0  # seconds to wait for a killed process; one that hangs in the kernel remains

HUNG = "it did not end within its time limit: the GPU or its driver hangs, see dmesg"

#: The streams of a program whose output this package reads.
PIPES = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


class Ended(NamedTuple):
    """How a program ended. `status` is its exit status, or the negated number of the signal that
    ended the program. If the program was killed at its time limit, `status` is None."""

    status: int | None
    stdout: str
    stderr: str
    interrupted: bool = False  # by Ctrl-C
    terminated: bool = False  # by a SIGTERM to this process

    @property
    def how(self) -> str:
        """Returns a description of how the program ended; empty if it succeeded."""
        if self.status is None:
            return HUNG
        if end := signal_name(self.status):
            return f"it was ended by {end}"
        return f"exit status {self.status}" if self.status else ""


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    limit: float | None = None,
    outlives_term: bool = False,
    **streams: Any,
) -> Ended:
    """Runs a program to its end. Ctrl-C does not end the wait, because the program gets the signal
    too; the result tells of Ctrl-C. `streams` are subprocess.Popen's arguments. With a `limit` in
    seconds, the program leads a session of its own, whose processes are killed at the limit or by
    Ctrl-C. If this process is killed, so is the program. SIGTERM kills both; with `outlives_term`,
    it kills the program, and the result tells of it. Raises CommandError."""
    form = {"encoding": "utf-8", "errors": "replace", "start_new_session": limit is not None}
    form |= {"preexec_fn": ending_with(os.getpid())}
    try:
        child = subprocess.Popen([*command], env=environment, **{**form, **streams})
    except OSError as error:
        # A saved random case has neither this module nor click.
        from mgpu_rt._cli.errors import CommandError

        raise CommandError(f"'{command[0]}' cannot be executed: {error.strerror}") from None
    if limit is None:
        return _wait(child, outlives_term)
    try:
        out, err = child.communicate(timeout=limit)
        return Ended(child.returncode, out or "", err or "")
    except subprocess.TimeoutExpired:
        kill(child.pid)
        out = err = ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            out, err = child.communicate(timeout=GRACE)
        return Ended(None, out or "", err or "")
    except BaseException:
        kill(child.pid)
        raise


def _wait(child: subprocess.Popen[str], outlives_term: bool) -> Ended:
    """Waits for a program in this process's group. The terminal sends Ctrl-C to the whole group. A
    SIGINT that another process sends may reach only this process, so it is passed on.

    A second thread reads the output and waits for the end, and then signals this thread. The
    kernel's SIGCHLD could go to another thread, which would ignore it."""
    interrupted, terminated, waiting_thread = False, False, threading.get_ident()
    outputs: list[tuple[str, str]] = []
    watched = {signal.SIGINT, signal.SIGCHLD}
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        watched.add(signal.SIGTERM)

    def communicate() -> None:
        try:
            outputs.append(child.communicate())
        finally:
            ended.set()
            signal.pthread_kill(waiting_thread, signal.SIGCHLD)

    ended = threading.Event()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)  # the second thread inherits this
    try:
        threading.Thread(target=communicate, daemon=True).start()
        while not ended.is_set():
            told = signal.sigwaitinfo(watched)
            if told.si_signo == signal.SIGTERM:
                child.kill()  # the program may ignore SIGTERM
                if not outlives_term:
                    end_as(signal.SIGTERM)  # removes the temporary files
                terminated = True
                signal.signal(signal.SIGTERM, signal.SIG_IGN)  # timeout sends it twice
            is_ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
            if told.si_signo == signal.SIGINT and not is_ignored:
                interrupted = True
                if is_from_another(told, child.pid):
                    child.send_signal(signal.SIGINT)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    out, err = outputs[0]
    killed = terminated and child.returncode == -signal.SIGKILL
    status = -signal.SIGTERM if killed else child.returncode
    return Ended(status, out or "", err or "", interrupted, terminated)


def is_from_another(told: signal.struct_siginfo, program: int) -> bool:
    """Returns True if a process other than the program has sent a signal, and no terminal."""
    return told.si_code <= 0 and told.si_pid != program


_PR_SET_PDEATHSIG = 1


def ending_with(parent: int) -> Callable[[], None]:
    """Returns what a new process calls so that the kernel kills it with its parent. Loads the C
    library now: the new process must not."""
    prctl = ctypes.CDLL(None).prctl

    def end_with_parent() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return end_with_parent


def kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def signal_name(status: int | None) -> str:
    """Names the signal that ended a program: signal 9 (SIGKILL). Returns "" if no signal did."""
    if status is None or status >= 0:
        return ""
    names = {each.value: f" ({each.name})" for each in signal.Signals}
    return f"signal {-status}{names.get(-status, '')}"


def end_as(status: int) -> NoReturn:
    """Ends this process as the process with this wait status has ended."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program may have dumped its own
    atexit._run_exitfuncs()  # the signal runs none: they remove temporary files
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
    os.kill(os.getpid(), -code)
    sys.exit(128 - code)
