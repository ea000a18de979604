"""Recordings: the files that MGPU_RT_STATS and MGPU_RT_TRACE leave if a program does not exit."""

from __future__ import annotations

import errno
from pathlib import Path

from mgpu_rt._cli.errors import CommandError

STATISTICS, TRACE = "statistics", "a trace"
_BEGIN, _OF = b"mgpu_rt ", b" recording of "


def kind(content: bytes) -> str | None:
    """STATISTICS or TRACE; None if it is no recording."""
    version, found, what = content[:256].partition(_OF)
    if not found or not version.startswith(_BEGIN):
        return None
    return TRACE if what.startswith(TRACE.encode()) else STATISTICS


def as_json(path: str | Path, content: bytes) -> bytes:
    """A recording, which holds these bytes, as the JSON that the program would have written. Raises
    CommandError."""
    import mgpu_rt

    try:
        library = mgpu_rt.load()
    except (ImportError, OSError) as error:
        raise CommandError(
            f"'{path}' is a recording; to read it takes the library: {error}"
        ) from None
    try:
        return library.recording_json(path)
    except OSError as error:
        why = _what_is_wrong(content) if error.errno == errno.EBADMSG else error.strerror
        raise CommandError(f"'{path}' cannot be read: {why}") from None


def _what_is_wrong(content: bytes) -> str:
    import mgpu_rt

    version = content[:64].removeprefix(_BEGIN).partition(_OF)[0].decode(errors="replace")
    if version != mgpu_rt.__version__:
        return f"mgpu_rt {version} has recorded it, and this is {mgpu_rt.__version__}: use that one"
    return "the recording is damaged or truncated: record the program again"
