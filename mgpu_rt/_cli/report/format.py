"""Formats the page's numbers, and builds HTML and SVG as trees of elements, so that no text from a
file can become markup."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from mgpu_rt._cli import files
from mgpu_rt._cli.stats.statistics import Cache, Counter
from mgpu_rt._cli.stats.tables import NONE
from mgpu_rt._text import printable, shortened
from mgpu_rt._text import size as text_size

# ---- numbers ----


def count(number: int | None) -> str:
    return NONE if number is None else f"{number:,}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Formats a count with its noun: 1 call, 2 calls."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def duration(ns: float | None) -> str:
    """Formats a time with three significant digits: 2.51 s, 446 ms, 9.8 µs."""
    if ns is None:
        return NONE
    if ns < 999.5:
        return f"{ns:.0f} ns"
    for unit in ("µs", "ms", "s"):
        ns /= 1000
        if ns < 999.5 or unit == "s":
            break
    return f"{ns:.{2 if ns < 9.995 else 1 if ns < 99.95 else 0}f} {unit}"


def per_call(counter: Counter | None) -> float | None:
    """Nanoseconds."""
    return counter.ns / counter.calls if counter and counter.calls else None


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else NONE


def hit_rate(cache: Cache) -> str:
    """Formats the share of hits."""
    return NONE if cache.rate is None else f"{100 * cache.rate:.1f} %"


def size(number: float | None) -> str:
    return NONE if number is None else text_size(number)


# ---- elements ----

Element = ElementTree.Element
Content = Element | str | None

SENTENCE = 600  # letters of a sentence with names in it

#: The page loads no resources and runs no scripts, even if it contains a hostile text.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def element(tag: str, *content: Content, **attributes: object) -> Element:
    """Creates an element. The attribute `class_` becomes class, and `stroke_width` becomes
    stroke-width; attributes with the value None are omitted."""
    made = Element(tag)
    for name, value in attributes.items():
        if value is not None:
            made.set(name.rstrip("_").replace("_", "-"), printable(str(value)))
    for part in content:
        if isinstance(part, str):
            _append_text(made, shortened(printable(part), SENTENCE))
        elif part is not None:
            made.append(part)
    return made


def _append_text(parent: Element, text: str) -> None:
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text


def code(name: str) -> Element:
    """Formats a name as code."""
    return element("code", shortened(name))


def document(title: str, body: list[Element]) -> str:
    """The page."""
    style = element("style")
    style.text = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        style,
    )
    html = element("html", head, element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{ElementTree.tostring(html, encoding='unicode', method='html')}\n"


def write(path: str, text: str) -> None:
    """Writes the page. Raises CommandError."""
    files.write(path, text.encode())
