"""`mgpu-rt stats FILE -o OUT`: the recording of a killed program as a Chrome trace."""

from __future__ import annotations

from mgpu_rt._cli import files
from mgpu_rt._cli.errors import CommandError

HOW_TO_GET = "`mgpu-rt run --trace PATH -- PROGRAM` makes one"


def write(file: str, out: str) -> None:
    """Raises CommandError; then nothing was written."""
    files.write(out, _json(file))


def _json(file: str) -> bytes:
    from mgpu_rt._cli.stats import recordings
    from mgpu_rt._files import read

    try:
        content = read(file)
    except OSError as error:
        raise files.unreadable(file, error, HOW_TO_GET) from None
    kind = recordings.kind(content)
    if kind == recordings.STATISTICS:
        raise CommandError(
            f"'{file}' is a recording of statistics: `mgpu-rt stats {file}` shows it"
        )
    if kind is None and b"traceEvents" in content[:64]:
        raise CommandError(f"'{file}' is a Chrome trace already: open it in ui.perfetto.dev")
    if kind is None:
        raise CommandError(f"'{file}' is no recording of a trace: {HOW_TO_GET}")
    return recordings.as_json(file, content)
