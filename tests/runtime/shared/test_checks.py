"""The library passes its tests if it is built with the assertions about the tables of
shared/types.h."""

from __future__ import annotations

import pytest

from tests.support.child import ROOT
from tests.support.variants import NAME, PLAIN, build, checkout, make, run_tests

pytestmark = pytest.mark.check

FLAGS = (*PLAIN, "-DMGPU_RT_CHECK")
SUITE = ("memory", "freed", "forkjoin", "events", "modules", "copies", "reset")

#: A row contains a file, a text in the file, and a replacement for the text. With the replacement,
#: an assertion ends the process of the row's test.
BROKEN = [
    ("block_table.c", "account->reserved - block->size", "account->reserved", "test_memory.py"),
    ("modules.c", "    module_cost_all -= module_cost(module);\n", "", "test_modules.py"),
    (
        "streams_pool.c",
        "    return stream_change(stream, from, STREAM_TAKEN);",
        "    return stream_change(stream, from, STREAM_GONE);",
        "test_memory.py",
    ),
    (
        "staging.c",
        "        if (staging->used > STAGING_UP)\n            staging->used = STAGING_UP;\n",
        "        staging->used += STAGING_UP;\n",
        "test_copies.py",
    ),
]


def _suite(name: str) -> str:
    (path,) = (ROOT / "tests" / "runtime").rglob(name)
    return str(path.relative_to(ROOT))


def test_the_tables_hold_in_place() -> None:
    library = checkout(FLAGS) / "build" / "lib" / NAME
    files = (_suite(f"test_{name}.py") for name in SUITE)
    done = run_tests(library, *files, "-k", "not softgpu and not cuda")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case[0].partition(".")[0])
def test_an_assertion_ends_a_process_that_breaks_a_table(case: tuple[str, ...]) -> None:
    file, old, new, tests = case
    library = build(f"broken-{file}", flags=FLAGS)
    home = library.parents[2]
    (path,) = (home / "csrc" / "runtime").rglob(file)
    text = path.read_text()
    assert text.count(old) == 1
    path.unlink()  # the unchanged checkout has the file, too
    path.write_text(text.replace(old, new))
    make(home, FLAGS)
    done = run_tests(library, _suite(tests), "-k", "not softgpu and not cuda")
    assert "exit status -6" in done.stdout  # by abort()
