"""Selects the hooks and runtimes in Python that `mgpu-rt run` inserts into a program's calls."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from mgpu_rt._cli.errors import CommandError

#: The variable in which `mgpu-rt run` stores its option --hook. Messages about the runtime name
#: this option.
GIVEN = "MGPU_RT_RUN_OPTIONS"

#: For each hook: its class, and the setting that NAME=VALUE changes (mgpu_rt/hooks.py).
HOOKS: dict[str, tuple[str, str | None]] = {
    "trace": ("Trace", None),
    "nan": ("NanCheck", "dtype"),
    "time": ("Time", None),
}


def environment(hooks: tuple[str, ...], kernel: str | None, nth: int | None) -> dict[str, str]:
    """Returns the variables that select the hooks, which are names of hooks, or classes as
    MODULE:CLASS.

    Raises CommandError for an unknown hook, and for --kernel or --nth without a hook."""
    names, settings = [], {}
    own = []
    for hook in hooks:
        name, _, words = hook.partition("?") if ":" in hook.partition("=")[0] else (hook, "", "")
        own.append(words)
        name, _, value = name.partition("=")
        if name not in HOOKS and ":" not in name:
            known = ", ".join(HOOKS)
            raise CommandError(f"there is no hook '{name}': name one of {known}, or a MODULE:CLASS")
        kind, setting = HOOKS.get(name, (name, None))
        names.append(kind if ":" in kind else f"mgpu_rt.hooks:{kind}")
        if value and setting is None:
            raise CommandError(f"the hook '{name}' takes no value")
        if value and setting:
            settings[setting] = value
    for name, given in (("kernel", kernel), ("nth", nth)):
        if given is not None and not hooks:
            raise CommandError(f"--{name} is for hooks: add --hook NAME")
        if given is not None:
            settings[name] = str(given)
    if not names:
        return {}
    given = " ".join(f"--hook {hook}" for hook in hooks)
    return {"MGPU_RT_RUNTIME": variable(names, settings, *own), GIVEN: given}


def must_be_unset(environ: Mapping[str, str], calls: str) -> None:
    """Raises CommandError if MGPU_RT_RUNTIME names a runtime. It would answer the `calls` of a
    command, such as "the calls that check examines"."""
    if named := environ.get("MGPU_RT_RUNTIME"):
        raise CommandError(f"MGPU_RT_RUNTIME={named} answers {calls}: unset MGPU_RT_RUNTIME")


def variable(names: Sequence[str], settings: Mapping[str, object], *words: str) -> str:
    """Returns the value of MGPU_RT_RUNTIME that selects the classes `names` and contains
    `settings`. `words` are further settings as text."""
    assigned = [shlex.quote(f"{name}={value}") for name, value in settings.items()]
    wanted = " ".join(filter(None, (*assigned, *words)))
    return f"{','.join(names)}?{wanted}" if wanted else ",".join(names)
