"""Reads the library's options: the environment variables of csrc/runtime/process/options.def."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mgpu_rt import _layout

_LINE = re.compile(
    r'^OPTION\((?P<field>\w+), "(?P<variable>\w+)", "(?P<default>[^"]*)", "(?P<meaning>[^"]*)"\)$',
    re.MULTILINE,
)


@dataclass(frozen=True)
class Option:
    field: str
    variable: str
    default: str
    meaning: str

    def is_set(self) -> bool:
        """Returns True if the environment sets the option. An empty value counts as unset."""
        return bool(os.environ.get(self.variable))

    def value(self, environ: Mapping[str, str] = os.environ) -> str:
        return environ.get(self.variable) or self.default


def parse(text: str) -> list[Option]:
    """Reads options.def. Raises ValueError for a line that it cannot parse."""
    options = [Option(**match.groupdict()) for match in _LINE.finditer(text)]
    expected = len(re.findall(r"^OPTION\(", text, re.MULTILINE))
    if len(options) != expected:
        raise ValueError(f"options.def has {expected} lines, but only {len(options)} can be parsed")
    return options


def options() -> list[Option]:
    return parse(_layout.table("options.def").read_text(encoding="utf-8"))


def misspelt(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns a sentence about each variable that looks like an option but is unknown."""
    names = {option.variable.removeprefix("MGPU_RT_"): option.variable for option in options()}
    known = {*names.values(), "MGPU_RT_RUN_OPTIONS", "MGPU_RT_CUDA"}  # overrides.py, csrc/cuhip
    sentences = []
    for name in sorted(environ):
        if not name.startswith("MGPU_RT_") or name in known or name.startswith("MGPU_RT_TEST_"):
            continue
        near = difflib.get_close_matches(name.removeprefix("MGPU_RT_"), names, 1)
        meant = f"do you mean {names[near[0]]}?" if near else "`mgpu-rt config` lists them all"
        sentences.append(f"{name} is set, but there is no such option: {meant}")
    return sentences
