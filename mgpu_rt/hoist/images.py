"""Whether loads of an image may be one, as the library decides it."""

from __future__ import annotations

import functools
import subprocess

from mgpu_rt import rocm
from mgpu_rt.hoist.tools import Refused


@functools.cache
def why_not_shared(image: bytes) -> str | None:
    """Why each load has to be one of its own. Raises Refused where the library was not built."""
    from mgpu_rt import layout

    try:
        done = subprocess.run(
            [rocm.probe(), "--image"], input=image, capture_output=True, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(
            f"{rocm.probe()} cannot be run ({error}): {layout.how_to_get('it')}"
        ) from None
    return done.stdout.decode().strip() or None
