"""Checks sentences of pages, comments, docstrings and names of tests by the rules of english.py.

`python -m tests.release.docs.style`, which `make lint` runs, prints a line for each fault.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tests.release.docs import english
from tests.support.child import ROOT

#: Matches a string, a character or a comment; a string or a character may look like a comment.
TOKEN = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|/\*(.*?)\*/", re.DOTALL)
#: Matches lines that are no sentences: table columns, lists, code and headings.
NO_SENTENCES = re.compile(r"\S {2,}\S|^(?:\s{4}|\s*[-*] |----)", re.MULTILINE)
#: A comment above a function, and the function's name.
FUNCTION = re.compile(
    r"^/\*((?:(?!\*/).)*)\*/\n"
    r"(?!typedef)[A-Za-z_][\w \t*]*?[\s*](?!__)(\w+)\s*\([^;{}#=]*?\)[^;{}()]*[;{]",
    re.DOTALL | re.MULTILINE,
)
#: Matches a comment above a function that returns nothing; the comment may begin with "Returns
#: once".
NOTHING = re.compile(
    r"^/\*((?:(?!\*/).)*)\*/\n(?:static |inline |extern )*void (\w+)\(", re.DOTALL | re.MULTILINE
)
#: A capitalised word that ends like a verb in the third person, except nouns of the code.
NOUNS = "This|Its|As|Bytes|Threads|Streams|Blocks|Events|Modules"
VERB = re.compile(rf"(?!(?:{NOUNS})\b)[A-Z][a-z]+s\b(?!')")
#: A line that contains only a comment of Python.
COMMENT = re.compile(r"\s*#:? (?!type:|noqa)(.*)")
#: Matches the name of a test, without the number of the test's trap.
NAME = re.compile(r"^def test_(?:\d\d_)?(\w+)\(", re.MULTILINE)
#: The folders whose C comments are sentences.
C_FOLDERS = ("csrc/", "softgpu/src/")


def tracked(*patterns: str) -> list[str]:
    """Returns the files of the checkout that match one of git's patterns."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


# ---- pages ----


def of_page(text: str) -> Iterator[str]:
    """Yields the faults of a page."""
    paragraphs = list(english.of_page(text))
    for part in paragraphs:
        yield from english.faults(part)
        yield from english.unclear(part)
    for said in (*paragraphs, *english.cells(text)):
        if english.AVOIDED.search(said) or english.STILTED.search(said):
            yield said


def repeated(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yields each sentence that stands on pages twice, and its second page. In place of a repeated
    sentence, a page links to the other page. Sentences of up to five words may be repeated."""
    first: set[str] = set()
    for page, text in texts.items():
        for paragraph in english.of_page(text):
            for sentence in english.sentences(paragraph):
                if sentence in first and len(sentence.split()) > 5:
                    yield page, f"stands twice: {sentence}"
                first.add(sentence)


# ---- C ----


def comments_of_c(source: str) -> Iterator[str]:
    """Yields the plain paragraphs of a source's comments, without tables, lists and code."""
    for found in TOKEN.finditer(source):
        text = re.sub(r"^[ \t]*\*? ?", "", found[1] or "", flags=re.MULTILINE)
        for paragraph in re.split(r"\n\s*\n", text.strip()):
            if paragraph and not NO_SENTENCES.search(paragraph):
                yield paragraph


def of_c(source: str) -> Iterator[str]:
    """Yields the faults of a C source's comments."""
    for paragraph in comments_of_c(source):
        yield from of_paragraph(paragraph)
    for text, name in NOTHING.findall(source):
        if re.match(r"\s*Returns (?!once|at once|after)", text):
            yield f"{name} returns nothing"


def of_header(source: str) -> Iterator[str]:
    """Yields the functions of a header whose comment does not begin with a verb in the third
    person: returns, adds, drops."""
    for text, name in FUNCTION.findall(source):
        if "----" not in text and not VERB.match(text.strip()):
            yield f"the comment on {name} does not begin with a verb"


# ---- Python ----


def of_python(source: str) -> Iterator[str]:
    """Yields the faults of a module's docstrings and comments."""
    for node in _documented(ast.parse(source)):
        text = ast.get_docstring(node) or ""
        for paragraph in english.of_docstring(text):
            yield from of_paragraph(paragraph)
        if text.startswith(("Returns", "Yields")) and _returns_nothing(node):
            yield f"{getattr(node, 'name', 'the module')} returns nothing"
    lines = map(COMMENT.match, source.splitlines())
    for is_comment, block in groupby(lines, bool):
        if is_comment:
            yield from of_paragraph(" ".join(line[1] for line in block if line))


def _documented(node: ast.AST) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef]:
    """Yields a module with its classes and functions, which are never within an expression."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield from _documented(child)


def _returns_nothing(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.returns is not None and ast.unparse(node.returns) == "None"
    return isinstance(node, ast.ClassDef)


def of_names(source: str) -> Iterator[str]:
    """Yields the names of tests that hide who acts."""
    for name in NAME.findall(source):
        if english.HIDES.match(name.replace("_", " ").capitalize()):
            yield f"test_{name}"


def of_paragraph(paragraph: str) -> Iterator[str]:
    yield from english.faults(paragraph)
    yield from english.unclear(paragraph)
    yield from (said for said in english.sentences(paragraph) if english.AVOIDED.search(said))


def faults() -> Iterator[tuple[str, str]]:
    """Yields the faults of all files, with the file's name."""
    pages = {name: (ROOT / name).read_text(encoding="utf-8") for name in tracked("*.md")}
    yield from repeated(pages)
    for name, text in pages.items():
        yield from ((name, fault) for fault in of_page(text))
    for name in tracked("*.c", "*.h", "*.def", "*.py"):
        text = (ROOT / name).read_text(encoding="utf-8")
        found: list[str] = []
        if name.endswith(".py"):
            found += of_python(text)
        elif name.startswith(C_FOLDERS):
            found += of_c(text)
        if name.endswith(".h"):
            found += of_header(text)
        if Path(name).name.startswith("test_"):
            found += of_names(text)
        yield from ((name, fault) for fault in found)


def main() -> int:
    found = list(dict.fromkeys(faults()))
    for name, fault in found:
        print(f"{name}: {fault}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
