"""Fuzzes `mgpu-rt inspect` with changed bytes in real images: the command prints either a
description or an error message."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mgpu_rt._cli.main import main
from tests.runtime.images import corpus
from tests.support import lower
from tests.support.images import code_object
from tests.support.programs import STOCK, build
from tests.support.sources import SOURCES


@functools.cache
def files() -> list[bytes]:
    """Returns images of each kind, and files in which images are embedded."""
    with tempfile.TemporaryDirectory() as scratch:
        holder = corpus.holder(Path(scratch), code_object("globals")).read_bytes()
    unoptimised = lower.code_object(SOURCES["vecadd"], corpus.AMD, opt_level=0)
    return [*corpus.kinds(), unoptimised, holder, build("forum", 22, 1, STOCK).read_bytes()]


#: Most of the bytes that `inspect` reads are headers and tables, which lie at the start and at the
#: end of an image.
_NEAR = st.integers(0, 700)
_PLACES = st.one_of(_NEAR, _NEAR.map(lambda at: -1 - at), st.integers(0, 40_000))
_BYTES = st.one_of(
    st.binary(min_size=1, max_size=8),
    st.sampled_from(
        [bytes(8), b"\xff" * 8, b"\xff" * 4, b"\x7f" + bytes(7), b"\xdf" + b"\xff" * 7]
    ),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Returns a damaged file: some bytes are overwritten, and the file may be truncated."""
    content = bytearray(draw(st.sampled_from(files())))
    for at, change in draw(st.lists(st.tuples(_PLACES, _BYTES), min_size=1, max_size=12)):
        at %= len(content)
        content[at : at + len(change)] = change[: len(content) - at]
    cut = draw(st.one_of(st.none(), st.integers(0, len(content))))
    return bytes(content[:cut])


@settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(content=damaged())
def test_damage_is_described_or_named(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        words = ["inspect", "--no-device", file.name]
        result = CliRunner().invoke(main, words, catch_exceptions=False)
    if result.exit_code == 2:
        assert result.stderr.startswith("mgpu-rt: ")
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""
    else:
        assert result.exit_code == 0
