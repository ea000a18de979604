"""Tables that stay readable on a phone: there each row becomes a block, its cells with their heads.

The roles say what a browser would no longer know once the rows are laid out as blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mgpu_rt.cli.report.markup import Content, Element, element

ROWS = 40  # the rest is counted in one line; what matters comes first


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Content]],
    *,
    total: Sequence[Content] | None = None,
    words: Iterable[str] = (),
    pairs: bool = False,
) -> Element:
    """The first cell of a row names it. `words` are the heads of columns that hold words; with
    `pairs` each column is one before or the same after, but for the last."""
    columns = [(head, "words" if head in words else None) for head in heads]
    top = [
        element("th", head, scope="col", role="columnheader", class_=kind) for head, kind in columns
    ]
    every = list(rows)
    shown = [_row(row, columns) for row in every[:ROWS]]
    if len(every) > ROWS:
        rest = element("td", f"and {len(every) - ROWS:,} more", colspan=len(heads), role="cell")
        shown.append(element("tr", rest, role="row", class_="rest"))
    if total:
        shown.append(_row(total, columns, "total"))
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *top, role="row"), role="rowgroup"),
        element("tbody", *shown, role="rowgroup"),
        role="table",
        class_="pairs" if pairs else None,
    )


def _row(
    cells: Sequence[Content], columns: Sequence[tuple[str, str | None]], kind: str | None = None
) -> Element:
    made = []
    for number, (cell, (head, words)) in enumerate(zip(cells, columns, strict=True)):
        if number == 0:
            made.append(element("th", cell, scope="row", role="rowheader"))
        else:
            made.append(element("td", cell, role="cell", class_=words, data_head=head))
    return element("tr", *made, role="row", class_=kind)
