"""Translates the statements and expressions of AMD's instruction pseudocode to Python.

Each statement, such as `if S0.u32[i] == 1'1U then D0.i32 = S1.i32 endif`, becomes Python text that
computes with objects of values.Value. If the pseudocode assigns only a part of a variable, the
caller must first define the variable, as a value of width 0."""

from __future__ import annotations

import re
from collections.abc import Iterator

TOKEN = re.compile(
    r"\s*(?:(?P<sized>\d+'(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)(?:ULL|LL|U|F)?)"
    r"|(?P<cast>\d+'[UIFB])"
    r"|(?P<hex>0x[0-9a-fA-F]+)(?:ULL|LL|U)?"
    r"|(?P<float>\d+\.\d+)F?"
    r"|(?P<int>\d+)(?:ULL|LL|U)?"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\*\*|\+:|\+=|-=|&&|\|\||<<|>>|<>|[=!<>]=|[-+*/%&|^~!<>?:=.,()\[\]{}]))"
)
LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!=", "<>"),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
    ("**",),
)
PYTHON = {"||": "or", "&&": "and"}


class NotUnderstood(ValueError):
    """Raised for pseudocode that this translator does not support."""


def tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while text[at:].strip():
        found = TOKEN.match(text, at)
        if not found:
            raise NotUnderstood(text[at : at + 30])
        kind = found.lastgroup or ""
        yield kind, found.group(kind)
        at = found.end()


class Expression:
    """Parses the tokens of a line by precedence climbing, and produces Python text."""

    def __init__(self, text: str) -> None:
        self.tokens = [*tokens(text), ("end", "")]
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at][1] if self.tokens[self.at][0] == "sign" else ""

    def take(self, sign: str) -> None:
        if self.next != sign:
            raise NotUnderstood(f"{sign} expected, {self.tokens[self.at][1]!r} found")
        self.at += 1

    def ternary(self) -> str:
        condition = self.binary(0)
        if self.next != "?":
            return condition
        self.take("?")
        yes = self.ternary()
        self.take(":")
        return f"({yes} if {condition} else {self.ternary()})"

    def binary(self, level: int) -> str:
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.next in LEVELS[level] and self.next:
            sign = self.next
            self.at += 1
            if sign == "<>":  # less or greater: false for a NaN
                left = f"apart({left}, {self.binary(level + 1)})"
                continue
            left = f"({left} {PYTHON.get(sign, sign)} {self.binary(level + 1)})"
        return left

    def unary(self) -> str:
        if self.next in ("-", "~", "+", "!"):
            sign = self.next
            self.at += 1
            operand = self.unary()
            return {"+": operand, "!": f"(not {operand})"}.get(sign, f"({sign}{operand})")
        return self.postfix(self.primary())

    def primary(self) -> str:
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "sized":
            width, number = text.split("'")
            return (
                f"sized({width}, {number.rstrip('UL') if 'x' in number else number.rstrip('ULF')})"
            )
        if kind == "cast":
            width, to = text.split("'")
            return f"cast({width}, {to.lower()!r}, {self.parenthesis()})"
        if kind == "hex":
            return f"literal({text})"
        if kind == "int":
            return f"literal({int(text)})"
        if kind == "float":
            return f"decimal({text})"
        if kind == "name":
            return text if text not in ("in", "lambda") else text + "_"
        if text == "(":
            self.at -= 1
            return self.parenthesis()
        if text == "{":
            parts = self.list("}")
            return f"concatenated({', '.join(parts)})"
        raise NotUnderstood(f"{text!r} in an expression")

    def parenthesis(self) -> str:
        self.take("(")
        inner = self.ternary()
        self.take(")")
        return f"({inner})"

    def list(self, end: str) -> list[str]:
        parts = []
        while self.next != end:
            parts.append(self.ternary())
            if self.next == ",":
                self.take(",")
        self.take(end)
        return parts

    def postfix(self, text: str) -> str:
        while self.next in (".", "[", "("):
            sign = self.next
            self.at += 1
            if sign == ".":
                text += "." + self.tokens[self.at][1]
                self.at += 1
            elif sign == "(":
                text += f"({', '.join(self.list(')'))})"
            else:
                text += f"[{self.index()}]"
        return text

    def index(self) -> str:
        first = self.ternary()
        if self.next == ":":
            self.take(":")
            first = f"{first}:{self.ternary()}"
        elif self.next == "+:":
            self.take("+:")
            first = f"{first} + {self.ternary()} - literal(1):{first}"
        self.take("]")
        return first

    def statement(self) -> tuple[str, set[str]]:
        """Translates an assignment or a call. Returns the Python text, and the variables that the
        statement changes only in part."""
        targets, pieces, sign = [], set(), ""
        while True:
            text = self.ternary()
            if self.next not in ("=", "+=", "-="):
                break
            sign = self.next
            self.at += 1
            targets.append(text)
            if not re.fullmatch(r"\w+", text):
                pieces.add(re.match(r"\w+", text).group())  # type: ignore[union-attr]
        if self.tokens[self.at][0] != "end":
            raise NotUnderstood(f"{self.tokens[self.at][1]!r} behind a statement")
        if not targets:
            return text, pieces
        if targets[0].startswith("concatenated("):
            return f"spread({text}, {targets[0][13:-1]})", pieces - {"concatenated"}
        if sign != "=":
            return f"{targets[0]} = {targets[0]} {sign[0]} ({text})", pieces
        whole = [t for t in targets if re.fullmatch(r"\w+", t)]
        value = f"plain({text})" if whole else text
        return f"{' = '.join(targets)} = {value}", pieces


def python(source: str) -> tuple[str, set[str]]:
    """Returns Python text, and the variables that the text assigns only in part. The caller must
    define the partly assigned variables before the text runs."""
    lines: list[str] = []
    names: set[str] = set()
    depth = 0
    text = re.sub(r"//[^\n]*", "", source)
    text = re.sub(
        r"\b(ABSDIFF|SAT8|BYTE_PERMUTE) = lambda\(.*?\n?\s*(endif\)|\));", "", text, flags=re.S
    )
    for raw in re.split(r"[;\n]", text):
        line = raw.strip()
        if not line:
            continue
        if line in ("endif", "endfor"):
            depth -= 1
            continue
        if found := re.fullmatch(r"(if|elsif)\b(.*)\bthen", line, re.S):
            depth -= found[1] == "elsif"
            word = "if" if found[1] == "if" else "elif"
            lines.append("  " * depth + f"{word} {Expression(found[2]).ternary()}:")
            depth += 1
        elif line == "else":
            lines.append("  " * (depth - 1) + "else:")
        elif found := re.fullmatch(r"for (\w+) in (.*?) : (.*) do", line):
            low, high = (Expression(found[n]).ternary() for n in (2, 3))
            lines.append("  " * depth + f"for {found[1]} in counted({low}, {high}):")
            depth += 1
        elif found := re.fullmatch(r"declare (\w+) : (\d+)'\w(\[.*\])?", line):
            if found[1] == "CVT_OFF_TABLE":  # the pseudocode describes the table only in prose
                continue
            made = "Array()" if found[3] else f"unset({found[2]})"
            lines.append("  " * depth + f"{found[1]} = {made}")
            names.discard(found[1])
        elif line == "break":
            lines.append("  " * depth + "break")
        else:
            statement, pieces = Expression(line).statement()
            lines.append("  " * depth + statement)
            names |= pieces
    return "\n".join([*lines, "pass"]), names
