"""One short piece of code for each function of HIP that the stub serves.

The snippets run one after the other in this process, with the stub or with AMD's HIP (MGPU_RT_HIP
names the library). Each snippet asserts what a caller would observe. The return codes go to stdout,
as one line of JSON for each snippet.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable

from tests.python.snippets import memory, work
from tests.python.snippets.library import Hip, functions


def snippet(function: str) -> Callable[[Hip], None]:
    """Returns the snippet of a HIP function: the Python function of that name."""
    for module in (work, memory):
        if hasattr(module, function):
            return getattr(module, function)
    return work.calls_snippet(function) if function in work.CALLS else memory.fill_snippet(function)


def main() -> None:
    hip = Hip(os.environ["MGPU_RT_HIP"])
    for name in functions():
        hip.codes, problem = [], ""
        try:
            snippet(name)(hip)
        except AttributeError as absent:
            problem = f"absent: {absent}"
        except AssertionError:
            problem = traceback.format_exc()
        hip.lib.hipGetLastError()
        print(json.dumps({"name": name, "codes": hip.codes, "problem": problem}), flush=True)


if __name__ == "__main__":
    main()
