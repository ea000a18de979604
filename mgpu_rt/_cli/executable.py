"""Finds the program that `mgpu-rt run` executes, and determines whether LD_PRELOAD affects the
program."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import struct
import sys
from collections.abc import Mapping
from typing import NoReturn

from mgpu_rt._cli import child
from mgpu_rt._cli.errors import CommandError

ELF_HEADER, PT_INTERP = 64, 3
ELF64_LITTLE = b"\x7fELF\2\1"


def find(program: str, base: Mapping[str, str] = os.environ) -> str:
    """Returns the file that a shell would run for `program`. Raises CommandError with the exit
    status that a shell would return."""
    search = base.get("PATH", os.defpath)
    if found := shutil.which(program, path=search):
        return found
    if program.lower().endswith(".mlir") and os.path.isfile(program):
        way = "rename it, because mgpu-rt lowers only files whose names end in .mlir"
        if program.endswith(".mlir"):  # the fixture mgpu lowers nothing
            way = "`mgpu-rt lower --emit executable` makes an executable of it"
        raise CommandError(f"'{program}' is a program in MLIR: {way}", 126)
    # If a file is not executable, a shell returns status 126.
    if shutil.which(program, mode=os.F_OK, path=search) or os.path.isdir(program):
        raise CommandError(f"'{program}' is not an executable file", 126)
    try:
        os.stat(program)
    except PermissionError as error:
        raise CommandError(f"'{program}' cannot be reached: {error.strerror}", 126) from None
    except (OSError, ValueError):
        raise CommandError(f"'{program}' was not found", 127) from None
    # A shell, too, searches only PATH for a name without a slash.
    way = f"for the file here, write ./{program}"
    raise CommandError(f"'{program}' was not found in PATH: {way}", 127)


def _head(path: str) -> bytes:
    """Returns the first bytes of a 64-bit ELF file; empty for any other file, or for an unreadable
    file."""
    if not os.path.isfile(path):
        return b""  # a FIFO, which the kernel refuses, must not block
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError:
        return b""
    return head if head.startswith(ELF64_LITTLE) and len(head) >= ELF_HEADER else b""


def is_elf(path: str) -> bool:
    return bool(_head(path))


def is_script(path: str) -> bool:
    """Returns True for a file that the kernel gives to an interpreter."""
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False  # it may only be executed


def _is_static(head: bytes) -> bool:
    """Returns True if a 64-bit ELF file names no loader; static programs name none."""
    offset, size, count = struct.unpack_from("<Q14xHH", head, 32)
    if size == 0 or offset + size * count > len(head):
        return False  # damaged, or unusual: the kernel decides
    headers = range(offset, offset + size * count, size)
    return all(struct.unpack_from("<I", head, at)[0] != PT_INTERP for at in headers)


def _is_privileged(path: str) -> bool:
    """Returns True if a program gets privileges that this process lacks."""
    if not _head(path):
        return False  # a script gets none
    file = os.stat(path)
    is_group_set = file.st_mode & stat.S_ISGID and file.st_mode & stat.S_IXGRP
    if file.st_mode & stat.S_ISUID and file.st_uid != os.getuid():
        return True
    if is_group_set and file.st_gid != os.getgid():
        return True
    try:
        return os.getuid() != 0 and bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False  # it has none, or the file system keeps none


def obstacle(program: str) -> str | None:
    """Returns why LD_PRELOAD has no effect on a program, with the remedy; None if LD_PRELOAD
    works."""
    if _is_privileged(program):
        return (
            "it has privileges of its own (set-uid, set-gid or capabilities), so it ignores "
            "LD_PRELOAD and the library's variables: run a copy, in which `cp` leaves them out"
        )
    head = _head(program)  # empty for a script, and for a file about which nothing is known
    if not head or not _is_static(head):
        return None
    return (
        "it is statically linked: link it dynamically, with -L$(mgpu-rt config --path) "
        "-lmlir_rocm_runtime -Wl,-rpath,$(mgpu-rt config --path)"
    )


def check(program: str, *, as_shell: bool = False) -> None:
    """Raises CommandError if the program is missing or ignores LD_PRELOAD. With `as_shell` the
    error for a missing program has the exit status that a shell returns."""
    try:
        reason = obstacle(find(program))
    except CommandError as error:
        if as_shell:
            raise
        raise CommandError(str(error)) from None
    if reason:
        raise CommandError(f"mgpu_rt cannot be preloaded into '{program}': {reason}")


def execute(program: str, arguments: list[str], environ: Mapping[str, str]) -> NoReturn:
    """Executes the program in place of this process, so process id, signals and exit status are the
    program's."""
    path = find(program, environ)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and exec would keep that
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execve(path, [program, *arguments], environ)
    except OSError as error:
        raise CommandError(f"'{path}' cannot be executed: {error.strerror}", 126) from None


#: Signals that `mgpu-rt run` does not pass on. No process can pass on SIGKILL and SIGSTOP. Others
#: are about this process itself.
_OWN_SIGNALS = {
    signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGWINCH, signal.SIGPIPE,
    signal.SIGXFSZ, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT,
    signal.SIGTRAP, signal.SIGSYS,
}  # fmt: skip


def execute_and_wait(
    program: str, arguments: list[str], environ: Mapping[str, str]
) -> tuple[int, int]:
    """Executes the program in a child process. Returns the child's process id and its wait status.

    Passes on the signals that processes send to this process. The terminal's signals, such as that
    of Ctrl-C, reach the program without help, because it is in the same process group. If the
    terminal or the program stops the job (SIGTSTP), this process stops, too, as a shell expects. If
    this process is killed, so is the program."""
    end_with_parent = child.ending_with(os.getpid())
    watched = signal.valid_signals() - _OWN_SIGNALS
    on_end = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a caller may ignore it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched | {signal.SIGCHLD})
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        try:
            end_with_parent()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            signal.signal(signal.SIGCHLD, on_end)
            execute(program, arguments, environ)
        except CommandError as error:
            error.show()
            os._exit(error.exit_code)
        finally:
            os._exit(1)
    while True:
        told = signal.sigwaitinfo(watched | {signal.SIGCHLD})
        if told.si_signo != signal.SIGCHLD:
            if child.is_from_another(told, pid):
                os.kill(pid, told.si_signo)
            continue
        changed, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if changed and os.WIFSTOPPED(status):
            if os.WSTOPSIG(status) != signal.SIGSTOP:  # a debugger may continue only the program
                os.kill(os.getpid(), signal.SIGSTOP)
        elif changed:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return pid, status


# ---- how a program ended ----


def must_exit(ended: child.Ended, program: str, who: str, again: str) -> None:
    """Raises CommandError if a signal ended a program whose results are to be compared. `again` is
    the command to run it without a comparison."""
    if ended.interrupted:
        raise KeyboardInterrupt
    if end := child.signal_name(ended.status):
        raise CommandError(
            f"{who} was ended by {end}, so there is nothing to compare: see why with {again}"
            f"{reason_in_images(program, ended.status)}"
        )


def reason_in_images(program: str, status: int | None) -> str:
    """Returns why a program crashed, with stock too, if its images tell; otherwise returns ""."""
    if status not in (-signal.SIGSEGV, -signal.SIGABRT):
        return ""
    try:
        with open(find(program), "rb") as file:
            content = file.read()
    except (OSError, CommandError):
        return ""
    if b"hidden_default_queue" not in content:
        return ""
    return (
        "; HIP 5.2 crashes with stock too if a kernel names hidden_default_queue, as a kernel of "
        "this program does: lower it with mgpu-rt lower, or run it with another HIP"
    )
