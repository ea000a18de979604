"""Opens the page of `mgpu-rt compare --report` in a real browser. The page loads nothing, causes no
error, fits the screen, and is readable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgpu_rt._cli.report import document
from mgpu_rt._cli.stats import statistics
from mgpu_rt._cli.stats.tables import Side
from tests.support import browser, recorded
from tests.support.browser import Page

pytestmark = [
    pytest.mark.check,
    pytest.mark.skipif(
        browser.find() is None, reason=f"none of {', '.join(browser.NAMES)} is in PATH"
    ),
]

#: for each tested screen: the width, and whether the browser uses dark mode
SCREENS = [(390, False), (1100, False), (1100, True)]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser.page() as shown:
        yield shown


def written(folder: Path, **contents: object) -> Path:
    """Returns the path of a report page for files with these contents."""
    paths = []
    for name, content in contents.items():
        paths.append(str(folder / name))
        Path(paths[-1]).write_text(json.dumps(content))
    names = ("before", "after") if len(paths) == 2 else ("this run",)
    sides = [Side(n, statistics.read(p), p) for n, p in zip(names, paths, strict=True)]
    path = folder / "page.html"
    path.write_text(document(sides), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the path of a page that contains every section."""
    details = {
        "process": recorded.process(),
        "kernels": {"count": {"launches": 100, "ns": 9000}},
        "copies": {"to_device": {"calls": 2, "bytes": 1 << 20}},
        "modules": [recorded.module(driver_loads=100, why="writable globals")],
    }
    return written(
        tmp_path_factory.mktemp("page"),
        before=recorded.stock(),
        after=recorded.statistics(**details),
    )


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_a_page_stands_alone_and_fits(page: Page, whole: Path, width: int, dark: bool) -> None:
    page.events.clear()
    page.show(whole, width=width, dark=dark)
    assert page.value("document.documentElement.scrollWidth") == width
    assert page.value("document.querySelectorAll('section').length") == 5
    assert page.value(TOO_WIDE) == []
    told = [event["params"] for event in page.events]
    assert [event["request"]["url"] for event in told] == [whole.as_uri()]


#: Finds elements that extend beyond the screen, even if the screen clips the elements.
TOO_WIDE = """[...document.querySelectorAll('main *')]
    .filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest('thead'))
    .map(e => e.outerHTML.slice(0, 80))"""


def test_a_page_follows_the_readers_colour_scheme(page: Page, whole: Path) -> None:
    colours = []
    for dark in (False, True):
        page.show(whole, width=1100, dark=dark)
        colours.append(page.value("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]


def test_a_screen_reader_knows_tables_and_charts(page: Page, whole: Path) -> None:
    """Table cells keep their accessibility roles on a phone, although the style sheet displays rows
    as blocks."""
    page.show(whole, width=390)
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    named: dict[str, list[str]] = {}
    for node in nodes:
        role = node.get("role", {}).get("value", "")
        named.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    assert "Calls of the program" in named["table"]
    assert {"mgpuLaunchKernel", "total"} <= set(named["rowheader"])
    assert {"name", "calls before", "ratio"} <= set(named["columnheader"])
    charts = named["image"]
    assert charts[0].startswith("before: 5.00 ms. modules 2.00 ms, launches 1.00 ms")
    assert all(charts)
