"""Reads the library's options: the environment variables of csrc/runtime/process/options.def."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mgpu_rt import _layout
from mgpu_rt._cli.errors import CommandError

#: Variables that other parts read: overrides.py, csrc/cuhip, softgpu/src/check.
_OF_OTHERS = ("MGPU_RT_RUN_OPTIONS", "MGPU_RT_CUDA", "MGPU_RT_CHECK_UNINITIALISED")

#: Matches the library's lines about values that it does not use.
SENSELESS = re.compile(r"^mgpu_rt: (MGPU_RT_\w+='.+)$", re.MULTILINE)

_ROW = r'OPTION\(\w+, "(?P<variable>\w+)", "(?P<default>[^"]*)", "(?P<meaning>[^"]*)"\)'


@dataclass(frozen=True)
class Option:
    variable: str
    default: str
    meaning: str

    def is_set(self) -> bool:
        """Returns True if the environment sets the option. An empty value counts as unset."""
        return bool(os.environ.get(self.variable))

    def value(self) -> str:
        return os.environ.get(self.variable) or self.default


def options() -> list[Option]:
    return [Option(**row.groupdict()) for row in _layout.rows("options.def", _ROW)]


def misspelt(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns a sentence about each variable that looks like an option but is unknown."""
    names = {option.variable.removeprefix("MGPU_RT_"): option.variable for option in options()}
    known = {*names.values(), *_OF_OTHERS}
    sentences = []
    for name in sorted(environ):
        if not name.startswith("MGPU_RT_") or name in known or name.startswith("MGPU_RT_TEST_"):
            continue
        near = difflib.get_close_matches(name.removeprefix("MGPU_RT_"), names, 1)
        meant = f"do you mean {names[near[0]]}?" if near else "`mgpu-rt config` lists them all"
        sentences.append(f"{name} is set, but there is no such option: {meant}")
    return sentences


def senseless() -> list[str]:
    """Returns a sentence about each value that the library does not use. A small program's first
    call prints them, without HIP and Python."""
    from mgpu_rt import _hip_search
    from mgpu_rt._cli import child, hip_devices

    quiet = dict.fromkeys(("MGPU_RT_POLICY", "MGPU_RT_RUNTIME", "MGPU_RT_STATS"), "")
    trace = os.environ.get("MGPU_RT_TRACE", "").removeprefix("markers,")
    quiet["MGPU_RT_TRACE"] = trace if trace in ("1", "on") else ""  # a path would get a file
    alone = {**os.environ, **quiet, "MGPU_RT_HIP": os.devnull}
    try:
        ended = child.run([_hip_search.probe()], alone, limit=hip_devices.TIMEOUT, **child.PIPES)
    except CommandError:  # an incomplete installation, which doctor explains
        return []
    return SENSELESS.findall(ended.stderr)
