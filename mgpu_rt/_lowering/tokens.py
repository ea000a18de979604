"""Finds the uses of tokens that MLIR lowers wrongly, in a program's text."""

from __future__ import annotations

import re

from mgpu_rt._lowering import host_memory
from mgpu_rt._lowering.text import line_of

#: Operations that pass a token on. A gpu.wait for it is lowered as for an event, not a stream.
_PASSES_ON = re.compile(
    r"\b(?P<name>func\.func|scf\.(?!yield)\w+|cf\.\w+|(?:func\.)?call)\b"
    r"(?:[^\n{}]|(?<=[,(])\n)*?(?<!async\.value<)!gpu\.async\.token\b"
)
_LOOP = re.compile(r"\b(?:scf\.(?:for|while|parallel|forall)|affine\.(?:for|parallel))\b")
_DO = re.compile(r"\s*do\s*(?=\{)")
#: An operation that waits: its name and its tokens. One without async begins by a wait for them.
_WAITS = re.compile(
    r"\b(gpu\.(?:wait(?:\s+async)?|(?:alloc|dealloc|memcpy|memset|launch_func)))\s*\[([^\]]*)\]"
)
_NAME = re.compile(r"%[\w$.-]+")
#: The results of an operation, or a token among the arguments of a block.
_RESULTS = re.compile(
    r"(?:%[\w$.-]+(?::\d+)?\s*,\s*)*%[\w$.-]+(?::\d+)?\s*=|%[\w$.-]+\s*:\s*!gpu\.async\.token\b"
)


def told(text: str) -> list[str]:
    """Returns sentences about the first wrong use of each kind."""
    said = []
    if found := _PASSES_ON.search(text):
        said.append(
            f"{found['name']} ({line_of(text, found)}) passes a token on, and MLIR lowers a "
            "gpu.wait for it wrongly, as for an event: use the token from before, inside and "
            "after, or wait before, and begin and end a chain of tokens "
            "inside (docs/commands.md, Tokens)"
        )
    if awaited := _awaited_in_loop(text):
        wait, token = awaited
        said.append(
            f"{' '.join(wait[1].split())} ({line_of(text, wait)}) in a loop takes {token} from "
            "before the loop, and MLIR's code is right only the first time: wait for it by a "
            "gpu.wait before the loop, and begin and end a chain of tokens "
            "inside (docs/commands.md, Tokens)"
        )
    return said


def _awaited_in_loop(text: str) -> tuple[re.Match[str], str] | None:
    """Returns the first operation in a loop that waits for a token from before the loop, and the
    token. MLIR creates the token's stream or event once, and destroys it at each wait."""
    for loop in _LOOP.finditer(text):
        end = loop.end() + len(_body(text, loop.end()))
        results = _RESULTS.finditer(text, loop.start(), end)
        inside = {name for found in results for name in _NAME.findall(found[0])}
        for wait in _WAITS.finditer(text, loop.start(), end):
            for token in re.findall(r"%[\w$.#-]+", wait[2]):
                if token.partition("#")[0] not in inside:
                    return wait, token
    return None


def _body(text: str, start: int) -> str:
    """Returns the text of a loop from a position in its header on."""
    body = host_memory.block(text, start)
    if do := _DO.match(text, start + len(body)):
        body += do[0] + host_memory.block(text, do.end())
    return body
