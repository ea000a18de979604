"""The manager: a process that the library starts for a program, and that ends with the program.
The manager asks a policy for decisions about the library's caches, and the library carries the
decisions out. The library starts this file by its path, because the interpreter may find another
package named mgpu_rt."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import resource
import site
import sys
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from mgpu_rt.manager._table import Table

NICER = 10

#: The table's file descriptor. The table contains the reason why there is no manager: TEXT_SIZE
#: bytes at the offset TEXT (csrc/runtime/manager/table.h).
TABLE_FD, TEXT, TEXT_SIZE = 3, 32, 2015


def leave_reason(reason: str) -> None:
    """Tells the library, through the table, why there is no manager. Does not need cffi, which may
    be missing."""
    with contextlib.suppress(OSError):
        if not os.readlink(f"/proc/self/fd/{TABLE_FD}").startswith("/memfd:mgpu_rt"):
            return  # started by hand
        os.pwrite(TABLE_FD, reason.encode(errors="replace")[:TEXT_SIZE], TEXT)


def import_package() -> None:
    """Imports this file's package as `mgpu_rt`; sys.path is unchanged."""
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    importlib.import_module("mgpu_rt")
    del sys.path[0]


def find_cffi() -> None:
    """Makes the packages in the user's own folder importable, because this folder may contain cffi.
    The option -I excludes the folder."""
    if importlib.util.find_spec("_cffi_backend") is None:
        site.addsitedir(site.getusersitepackages())


def policy_paths() -> list[str]:
    """Returns the folders of the program's PYTHONPATH and the current folder, in Python's search
    order."""
    named = os.environ.get("MGPU_RT_POLICY_PATH", "").split(os.pathsep)
    with contextlib.suppress(OSError):  # the current folder was removed
        return [*map(os.path.abspath, filter(None, named)), os.getcwd()]
    return named


def be_modest() -> None:
    """Lowers the priority of this process, and disables its core files."""
    with contextlib.suppress(OSError):
        os.nice(NICER)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve(table: Table, name: str, paths: list[str]) -> None:
    """Runs the policy class `name`. Runs the default policy if no policy was named, or if the named
    policy fails."""
    from mgpu_rt import _loading
    from mgpu_rt.manager import DefaultPolicy

    def report(error: BaseException) -> None:
        reason = _loading.describe(error)
        table.say(f"MGPU_RT_POLICY={name} failed, the policy that ships goes on: {reason}")

    turns = table.turns()
    next(turns)
    table.answer(())  # the library need not wait for the policy
    policy = None
    try:
        if name:
            policy = _loading.load_class(name, paths)()
            table.say(f"MGPU_RT_POLICY={name} is in force")
    except BaseException as error:
        report(error)
    default = DefaultPolicy()
    for caches in turns:
        if policy:
            try:
                table.answer(policy.decide(caches) or ())
                continue
            except BaseException as error:
                report(error)
                policy = None
        table.answer(default.decide(caches))


def attach() -> Table | None:
    """Returns the library's table. If this process cannot be the manager, tells the library the
    reason, and returns None."""
    try:
        find_cffi()
        import_package()
        from mgpu_rt.manager._table import Table

        return Table()
    except BaseException as error:
        leave_reason(f"{type(error).__name__}: {error}")
        print("only the library may start this program:", error, file=sys.stderr)
        return None


def main() -> None:
    be_modest()
    table = attach()
    if table is None:
        raise SystemExit(2)
    paths = policy_paths()
    os.chdir("/")  # the program's directory may be unmounted
    sys.stdout = sys.stderr = cast(TextIO, table)
    if table.verbose:
        version = sys.version.split()[0]
        table.say(f"manager: Python {version}, process {os.getpid()}, '{sys.executable}'")
    serve(table, os.environ.get("MGPU_RT_POLICY", ""), paths)


if __name__ == "__main__":
    main()
