"""Opens the page of `mgpu-rt compare --report` in a real browser. The page loads nothing, causes no
error, fits the screen, and is readable."""

from __future__ import annotations

from typing import Any

import pytest

from tests.python.cli.test_report import files
from tests.support import browser, recorded
from tests.support.command import invoke

pytestmark = [
    pytest.mark.check,
    pytest.mark.skipif(
        browser.find() is None, reason=f"none of {', '.join(browser.NAMES)} is in PATH"
    ),
]

#: for each tested screen: the width, and whether the browser uses dark mode
SCREENS = [(390, False), (1100, False), (1100, True)]

#: Describes the page, with the roles that a screen reader gets. An element may extend beyond the
#: screen even if the screen clips the element.
DESCRIBE = """({
    loaded: performance.getEntriesByType('resource').map(e => e.name),
    width: document.documentElement.scrollWidth,
    sections: document.querySelectorAll('section').length,
    colour: getComputedStyle(document.body).backgroundColor,
    wide: [...document.querySelectorAll('main *')]
        .filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest('thead'))
        .map(e => e.outerHTML.slice(0, 80)),
    roles: [...document.querySelectorAll('main *')].map(e => [e.computedRole, e.computedName]),
})"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Describes a page that contains every section, as each of SCREENS shows the page."""
    folder = tmp_path_factory.mktemp("page")
    whole = recorded.statistics(
        process=recorded.process(),
        kernels={"count": {"launches": 100, "ns": 9000}},
        copies={"to_device": {"calls": 2, "bytes": 1 << 20}},
        modules=[recorded.module(driver_loads=100, why="writable globals")],
    )
    page, runs = folder / "page.html", files(folder, before=recorded.stock(), after=whole)
    assert invoke("compare", "--report", str(page), *runs).exit_code == 0
    flag = "--enable-blink-features=ComputedAccessibilityInfo"
    scheme = "--blink-settings=preferredColorScheme={}"
    return [
        browser.value(page.as_uri(), DESCRIBE, flag, scheme.format(0 if dark else 1), width=width)
        for width, dark in SCREENS
    ]


def test_a_page_stands_alone_and_fits(shown: list[dict[str, Any]]) -> None:
    for (width, _), page in zip(SCREENS, shown, strict=True):
        assert page["loaded"] == page["wide"] == []
        assert (page["width"], page["sections"]) == (width, 5)


def test_a_page_follows_the_readers_colour_scheme(shown: list[dict[str, Any]]) -> None:
    assert shown[1]["colour"] != shown[2]["colour"]


def test_a_screen_reader_knows_tables_and_charts(shown: list[dict[str, Any]]) -> None:
    """Table cells keep their accessibility roles on a phone, although the style sheet displays rows
    as blocks."""
    named: dict[str, list[str]] = {}
    for role, name in shown[0]["roles"]:
        named.setdefault(role, []).append(name)
    assert "Calls of the program" in named["table"]
    assert {"mgpuLaunchKernel", "total"} <= set(named["rowheader"])
    assert {"name", "calls before", "ratio"} <= set(named["columnheader"])
    charts = named["image"]
    assert charts[0].startswith("before: 5.00 ms. modules 2.00 ms, launches 1.00 ms")
    assert all(charts)
