"""Implements `mgpu-rt check RECORDING`: repeats a recorded launch on the emulated device. Any GPU
may have made the recorded launch.

The launch runs in a separate process, like a program. The module passes names of files and kernels
as data, never as program text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from mgpu_rt._cli import replay, softgpu
from mgpu_rt._cli.check.reports import Report
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._text import shown

#: The exit status after a failed launch; a line on stderr gives the reason.
NOT_MADE = 2


def device(recording: str, launch: int | None, wanted: str, arguments: Sequence[str]) -> str:
    """Returns `wanted` if `wanted` names a device, otherwise the emulated device that the launch's
    image targets. Raises CommandError."""
    if arguments:
        raise CommandError(
            f"'{recording}' is a recording and takes no arguments: put options before it"
        )
    if wanted in ("hip", "cuda"):
        raise CommandError(f"a recording is checked on an emulated device: not --device {wanted}")
    if wanted != "auto":
        return wanted
    targets = _targets(recording, (launch or 1) - 1)
    if not targets or "MGPU_RT_SOFTGPU" in os.environ:
        return "softgpu"
    for target in targets:
        if target in softgpu.TARGETS:
            return target
    raise CommandError(
        f"the launch's image is for {', '.join(map(shown, targets))}, and check emulates only "
        f"{', '.join(softgpu.TARGETS)}"
    )


def _targets(recording: str, number: int) -> list[str]:
    """Returns the targets of a launch's image. Returns an empty list if the image cannot be read;
    the launch then reports the reason."""
    from mgpu_rt.runtime import Image, Recording

    try:
        opened = Recording(recording)
        launch = opened.launches[number]
        found = Image(launch.content(launch.image)).description
    except replay.FAILURES:
        return []
    parts = found.parts if found else ()
    return list(dict.fromkeys(each.target.partition(":")[0] for each in parts if each.target))


def describe(found: Sequence[Report]) -> None:
    """Names the memory in reports as `mgpu-rt replay` does. Removes all calls from reports, since a
    recording does not contain the program's calls."""
    for report in found:
        report.pop("place", None)
        if allocation := report.get("allocation"):
            allocation |= {"allocated": [], "freed": []}
            allocation["name"] = f"memory block {allocation['number'] - 1}"
