"""Rules about sentences in docstrings and pages; a program can check these rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_WORDS = 25
#: Words that hide the actor if a sentence begins with them; a question may begin with them.
HIDES = re.compile(r"[*(\"]*(What|Who|Whoever|Of|But for|Where|That)\b(?!.*\?)")
#: Matches words that pages avoid. Pages instead say "only", "of the program", "stock", "LLVM's own
#: library" or "the library prints".
AVOIDED = re.compile(
    r"(?<!leave )(?<!leaves )(?<!left )\balone\b"
    r"|\bthe program's own\b"
    r"|\bstock's (runtime|library)\b|\b(baseline|upstream|vanilla)\b"
    r"|\bLLVM's ((ROCm|CUDA) runtime|library)\b"
    r"|\b(is|are|was|were) said\b|\bto be had\b",
    re.IGNORECASE,
)
#: Matches stilted words. Better words are "again", "then", "too", "any", "even if" and "the one
#: that".
STILTED = re.compile(r"\b(whoever|whatever|whichever|meanwhile|anew|likewise)\b", re.IGNORECASE)
#: Matches "the same" if its noun does not follow. The pattern accepts "they are the same" and "the
#: same stream".
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
#: Matches the space after a sentence, even if a bracket closes the sentence. Three points do not
#: end a sentence.
END = re.compile(r"(?<=[.!?])(?<!\.\.\.)[\")*]*\s+")


def sentences(paragraph: str) -> list[str]:
    """Returns the sentences of a paragraph, in which each piece of code counts as one word."""
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
    """Yields the paragraphs and items of a page, without tables, headings, code, pictures and
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
    """Yields the cells of a page's tables. Cells are no sentences, but must use only permitted
    words."""
    for row in re.findall(r"^\|(.*)\|$", text, re.MULTILINE):
        yield from row.split("|")
