"""The manager: a process that the library starts for a program, to manage the library's caches.

The library reports the caches' events to the manager. The manager consults a policy, and the
library carries out the policy's decisions. The library starts this file by its path, because the
interpreter may find another package named mgpu_rt. The manager ends with the program.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import site
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from mgpu_rt.manager import Policy
    from mgpu_rt.manager._channel import Channel

WAIT = 1.0  # seconds between two turns if nothing happens
GAP = 0.02  # the least between two turns: one turn takes all events of a burst


#: The channel's file descriptor. The channel contains the reason why there is no manager:
#: CHANNEL_REASON_SIZE bytes at the offset CHANNEL_REASON (csrc/runtime/telemetry/channel.h).
CHANNEL_FD, CHANNEL_REASON, CHANNEL_REASON_SIZE = 3, 40, 215


def leave_reason(reason: str) -> None:
    """Tells the library, through the channel, why there is no manager. Does not need cffi, which
    may be missing."""
    with contextlib.suppress(OSError):
        if not os.readlink(f"/proc/self/fd/{CHANNEL_FD}").startswith("/memfd:mgpu_rt"):
            return  # started by hand
        os.pwrite(CHANNEL_FD, reason.encode(errors="replace")[:CHANNEL_REASON_SIZE], CHANNEL_REASON)


def import_package() -> None:
    """Makes this file's package importable as `mgpu_rt`; sys.path is unchanged."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(
        "mgpu_rt", os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    assert spec and spec.loader
    package = importlib.util.module_from_spec(spec)
    sys.modules["mgpu_rt"] = package
    spec.loader.exec_module(package)


def find_cffi() -> None:
    """Makes the packages in the user's own folder importable, because this folder may contain cffi.
    The option -I excludes the folder."""
    if importlib.util.find_spec("_cffi_backend") is None:
        # proof: users_packages_hold_cffi
        site.addsitedir(site.getusersitepackages())


class Lines:
    """A text file whose lines go to the program's stderr, because this process has no
    stderr."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._say(line)
        return len(text)

    def flush(self) -> None:
        pass


def policy_paths() -> list[str]:
    """Returns the folders of the program's PYTHONPATH and the current folder, in Python's search
    order."""
    try:
        here = os.getcwd()
    except OSError:  # the file was removed
        return os.environ.get("MGPU_RT_POLICY_PATH", "").split(os.pathsep)
    named = filter(None, os.environ.get("MGPU_RT_POLICY_PATH", "").split(os.pathsep))
    return [*(os.path.join(here, path) for path in named), here]


def manage(channel: Channel, policy: Policy) -> None:
    """Manages the caches in an endless loop; the process ends with the program."""
    events, complete = channel.first_events()
    while True:
        for decision in policy.decide(events, complete) or ():
            channel.carry_out(decision)
        time.sleep(GAP)
        events, complete = channel.events(WAIT)


def serve(channel: Channel, name: str, paths: list[str]) -> None:
    """Runs the policy class `name`, which is loaded from `paths`. Runs the default policy if no
    policy was named, or if the named policy fails."""
    from mgpu_rt import _loading
    from mgpu_rt.manager import DefaultPolicy

    if name:
        try:
            policy = _loading.load_class(name, paths)(channel)
            channel.loud = True
            channel.warn(f"MGPU_RT_POLICY={name} is in force")
            manage(channel, policy)
        except BaseException as error:
            channel.loud = False
            reason = _loading.describe(error)
            channel.warn(f"MGPU_RT_POLICY={name} failed, the policy that ships goes on: {reason}")
    # proof: shipped_policy_goes_on, else `raise SystemExit(1)`
    manage(channel, DefaultPolicy(channel))


def attach() -> Channel | None:
    """Returns the library's channel. If this process cannot be the manager, tells the library the
    reason, and returns None."""
    try:
        find_cffi()
        import_package()
        from mgpu_rt.manager._channel import Channel, Refused
    except BaseException as error:
        leave_reason(f"{type(error).__name__}: {error}")
        return None
    try:
        return Channel(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    except Refused as refused:
        print(refused, file=sys.stderr)  # for a person who starts this by hand
        return None


def main() -> None:
    channel = attach()
    if channel is None:
        raise SystemExit(2)
    try:
        paths = policy_paths()
        os.chdir("/")  # the program's directory may be unmounted
        sys.stdout = cast(TextIO, Lines(channel.say))
        sys.stderr = cast(TextIO, Lines(channel.warn))
        serve(channel, os.environ.get("MGPU_RT_POLICY", ""), paths)
    except BaseException as error:
        from mgpu_rt import _loading

        channel.warn(
            f"the policy failed, so the library goes on without it: {_loading.describe(error)}"
        )
        channel.give_up()


if __name__ == "__main__":
    main()
