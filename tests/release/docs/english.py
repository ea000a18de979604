"""Rules about sentences that a program can check, for docstrings and pages."""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_WORDS = 25
#: Words that hide the actor if a sentence begins with them; a question may begin with them.
HIDES = re.compile(r"[*(\"]*(What|Who|Whoever|Of|But for|Where|That)\b(?!.*\?)")
#: Instead of these words, pages say: only, of the program, stock, LLVM's own library, the library
#: prints.
AVOIDED = re.compile(
    r"(?<!leave )(?<!leaves )(?<!left )\balone\b"
    r"|\bthe program's own\b"
    r"|\bstock's (runtime|library)\b|\b(baseline|upstream|vanilla)\b"
    r"|\bLLVM's ((ROCm|CUDA) runtime|library)\b"
    r"|\b(is|are|was|were) said\b|\bto be had\b",
    re.IGNORECASE,
)
#: Instead of these stilted words, use: again, then, too, any, even if, the one that.
STILTED = re.compile(r"\b(whoever|whatever|whichever|meanwhile|anew|likewise)\b", re.IGNORECASE)
#: Finds "the same" without its noun. The pattern accepts "they are the same" and "the same stream".
SAME = re.compile(
    r"(?<!\bis )(?<!\bare )(?<!\bbe )(?<!\bwas )(?<!\bwere )(?<!\bstay )(?<!\bstays )(?<!\blooks )"
    r"\bthe same(?=[.,;:)]|$|\s+(?:a[st]|but|by|each|for|from|has|have|here|if|in|is|of|there|to"
    r"|under|until|when|where|with|without)\b)",
    re.IGNORECASE,
)
#: Matches a paragraph that begins with a pronoun instead of a noun.
PRONOUN = re.compile(
    r"[*(\"]*(It|Its|They|Them|Theirs?|Those|The same|The others?|And|Or|So|Else|Likewise)\b"
    r"|[*(\"]*These (?!\w+s\b)"
)
#: The end of a sentence, even within a bracket; three points mark an omission.
END = re.compile(r"(?<=[.!?])(?<!\.\.\.)[\")*]*\s+")


def sentences(paragraph: str) -> list[str]:
    """Returns the sentences of a paragraph, with a piece of code as one word."""
    return END.split(re.sub(r"`[^`]*`", "`code`", " ".join(paragraph.split())))


def faults(paragraph: str) -> list[str]:
    """Returns the sentences that are too long or hide who acts."""
    return [
        sentence
        for sentence in sentences(paragraph)
        if HIDES.match(sentence) or len(sentence.split()) > MOST_WORDS
    ]


def unclear(paragraph: str) -> list[str]:
    """Returns the sentences with a stilted word, or with a pronoun in place of a noun."""
    first, *others = sentences(paragraph)
    found = [said for said in (first, *others) if STILTED.search(said) or SAME.search(said)]
    return [*found, first] if PRONOUN.match(first) else found


def of_docstring(text: str) -> Iterator[str]:
    """Yields the plain paragraphs of a docstring, without code and lists."""
    for paragraph in re.split(r"\n\s*\n", text):
        if not re.match(r"\s{4}|\s*[-*]\s", paragraph):
            yield paragraph


def of_page(text: str) -> Iterator[str]:
    """Yields the paragraphs and items of a page, without tables, headings, code, pictures,
    addresses."""
    text = re.sub(r"<!--.*?-->|^```.*?^```|!\[[^\]]*\]\([^)]*\)", "", text, flags=re.S | re.M)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        code = line.startswith("    ") and not paragraph
        item = re.match(r"\s{0,3}(?:[-*]|\d+\.)\s+", line)
        if paragraph and (item or not line.strip() or line.startswith(("|", "#"))):
            yield " ".join(paragraph)
            paragraph = []
        if line.strip() and not code and not line.startswith(("|", "#")):
            paragraph.append(line[item.end() :] if item else line)


def cells(text: str) -> Iterator[str]:
    """Yields the cells of a page's tables, which are no sentences, but must use the permitted
    words."""
    for row in re.findall(r"^\|(.*)\|$", text, re.MULTILINE):
        yield from row.split("|")
