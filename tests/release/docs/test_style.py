"""Each rule of style.py reports a text that breaks the rule, and accepts a better text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.release.docs import style

LONG = "A thread " + "that waits for another thread " * 5 + "waits."


def of_two_pages(text: str) -> Iterator[str]:
    return (fault for _, fault in style.repeated({"first": text, "second": text}))


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (style.of_page, LONG, "A thread waits."),
        (style.of_page, "It waits.", "The thread waits."),
        (style.of_page, "| the vanilla library |", "| LLVM's own library |"),
        (style.of_page, "The thread waits anew.", "The thread waits again."),
        (of_two_pages, "The thread waits for the other thread.", "The thread waits."),
        (style.of_c, f"/* {LONG} */", f'char *text = "/* {LONG} */";'),
        (style.of_c, "/* Who waits is the thread. */", "/* The thread waits. */"),
        (style.of_c, "/* Returns 1. */\nvoid f(void);", "/* Returns 1. */\nint f(void);"),
        (style.of_header, "/* The end of f. */\nint f(void);", "/* Ends f. */\nint f(void);"),
        (style.of_python, f'"""{LONG}"""', f'text = """{LONG}"""'),
        (style.of_python, "# Whoever waits.", "# The thread waits."),
        (style.of_python, 'class C:\n    """Returns."""', 'class C:\n    """A class."""'),
        (style.of_names, "def test_what_waits() -> None:", "def test_a_thread_waits() -> None:"),
    ],
)
def test_a_rule_reports_a_fault(rule: Callable[[str], Iterator[str]], bad: str, good: str) -> None:
    assert list(rule(bad))
    assert list(rule(good)) == []
