"""Asks the library whether several loads of an image may share one module."""

from __future__ import annotations

import functools
import subprocess

from mgpu_rt import _hip_search, _layout


class NotBuilt(RuntimeError):
    """Raised if the library is missing; the message says how to install it."""


@functools.cache
def why_not_shared(image: bytes) -> str | None:
    """Returns the reason why each load needs its own module, or None. Raises NotBuilt."""
    probe = _hip_search.probe()
    try:
        done = subprocess.run([probe, "--image"], input=image, capture_output=True, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotBuilt(f"{probe} cannot be run ({error}): {_layout.how_to_get('it')}") from None
    return done.stdout.decode().strip() or None
