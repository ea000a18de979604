"""Replaces the number of iterations in a program's text."""

from __future__ import annotations

import re

_NAMED = re.compile(r"(%iterations\s*=\s*arith\.constant\s+)\d+")
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//.*')
_LOOP = re.compile(r"(?P<indent>\s*)(?P<head>.*\bscf\.for %\w+ = %[\w#]+ to )%[\w#]+(?P<rest> .*)")
_TYPE = re.compile(r" : (i\d+) \{\s*$")
_OURS = "%mgpu_rt_iterations"


def with_iterations(text: str, iterations: int | None) -> str:
    """Returns the program with `iterations` as the number in ``%iterations = arith.constant``.

    If the program lacks the name %iterations, this function replaces the upper bound of the host
    code's only outermost ``scf.for``. Raises ValueError if the program defines %iterations more
    than once. Also raises ValueError if the program lacks %iterations, and the host code has no
    outermost loop or several.
    """
    if iterations is None:
        return text
    replaced, count = _NAMED.subn(rf"\g<1>{iterations}", text)
    if count == 1:
        return replaced
    lines = text.splitlines(keepends=True)
    loops = [] if count else _outermost_loops(lines)
    if len(loops) != 1:
        raise ValueError(
            f"the program defines %iterations {count} times instead of once, and the host code "
            f"has {len(loops)} outermost loops (scf.for): define one `%iterations = "
            f"arith.constant N : index`"
        )
    number, loop = loops[0]
    kind = _TYPE.search(loop["rest"])
    constant = f"{_OURS} = arith.constant {iterations} : {kind[1] if kind else 'index'}"
    # The replacement is a single line, so that the line numbers in MLIR's messages stay correct.
    lines[number] = f"{loop['indent']}{constant} {loop['head']}{_OURS}{loop['rest']}\n"
    return "".join(lines)


def _outermost_loops(lines: list[str]) -> list[tuple[int, re.Match[str]]]:
    """Returns the outermost loops of the host code; mlir-opt prints one operation per line."""
    loops, depth = [], 0
    within: int | None = None  # the depth of the present loop or gpu.module
    for number, line in enumerate(lines):
        plain = _STRING_OR_COMMENT.sub("", line)
        loop = _LOOP.match(plain.rstrip("\n"))
        if within is None and (loop or "gpu.module " in plain):
            within = depth
            if loop:
                loops.append((number, loop))
        depth += plain.count("{") - plain.count("}")
        if within is not None and depth <= within:
            within = None
    return loops
