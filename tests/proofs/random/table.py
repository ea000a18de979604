"""Makes the table of tests/proofs/README.md from the results of a soak."""

from __future__ import annotations

from pathlib import Path

from bench import records

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "tests" / "proofs" / "README.md"
BEGIN, END = "<!-- table soak {} -->", "<!-- end -->"


def render(results: Path) -> str:
    """Returns the table between two marks; the first mark names the results file."""
    read = records.load(results)
    lines = [
        BEGIN.format(results.relative_to(ROOT)),
        f"{read['date']}, {read['programs']:,} programs in {round(read['seconds'] / 60)} minutes "
        f"on {read['cores']} core{'s' * (read['cores'] > 1)}, "
        f"seeds {read['seeds'][0]} to {read['seeds'][1]}:",
        *(f"(Without the action {action}.)" for action in read["without"]),
        "",
        "| device | processes | programs | failures |",
        "|---|---:|---:|---:|",
    ]
    for name, counts in read["devices"].items():
        row = (counts.get("cases", 0), counts.get("programs", 0), counts.get("failures", 0))
        lines.append(f"| {name} | " + " | ".join(f"{number:,}" for number in row) + " |")
    for name, counts in read["devices"].items():
        if counts.get("undecided"):
            lines += [
                "",
                f"Not counted on {name}: {counts['undecided']}, in which",
                "the plain runtime was not as the model has it.",
            ]
    return "\n".join([*lines, END])


def held(page: str) -> tuple[Path, str]:
    """Returns the path of the results file that a page names, and the page's current table."""
    begin = page.index("<!-- table soak ")
    end = page.index(END, begin) + len(END)
    text = page[begin:end]
    return ROOT / text.split(" ", 4)[3], text


def write(results: Path) -> None:
    """Replaces the table in the page with a table of the new results."""
    page = PAGE.read_text()
    _, old = held(page)
    PAGE.write_text(page.replace(old, render(results)))
