"""Imports the package mgpu_rt to which a library belongs. csrc/python/host.c runs this file by its
path, because the interpreter may find another package mgpu_rt, or none."""

from __future__ import annotations

import sys


def begin(home: str, wanted: str, owned: str, version: str, library: str) -> None:
    """Starts the runtime that MGPU_RT_RUNTIME names (`wanted`).

    While Python imports mgpu_rt, the package's folder `home` is the first in sys.path. While Python
    imports mgpu_rt.runtime, the folder is the last, unless sys.path contained the folder before.
    Afterwards sys.path is unchanged."""
    sys.path.insert(0, home)
    try:
        import mgpu_rt  # noqa: F401
    finally:
        sys.path.remove(home)
    known = home in sys.path
    if not known:
        sys.path.append(home)
    try:
        from mgpu_rt.runtime import _host
    finally:
        if not known:
            sys.path.remove(home)
    _host.start(wanted, bool(owned), version, library)
