"""The advice of commands and of the library works when it is followed: input, advice, command,
result."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.python.cli.test_fault import FAR
from tests.support.child import ROOT, environment
from tests.support.command import COMMAND
from tests.support.patience import HANG

pytestmark = pytest.mark.check

EXAMPLES = ROOT / "examples"
PRINTS = EXAMPLES / "steps.mlir"

#: For each case: the first command, a pattern of its advice, the second command, its exit status,
#: and a part of its output. The pattern's groups are words {0}, {1} ... of the second command.
ADVICE = {
    "no main": (
        f"mgpu-rt run --device softgpu {EXAMPLES / 'reduction.mlir'}",
        r"the program has no function main: name one of (\w+) with (--entry)",
        f"mgpu-rt run --device softgpu {{1}} {{0}} {EXAMPLES / 'reduction.mlir'}",
        (0, "32640"),
    ),
    "another chip": (
        f"mgpu-rt run --device gfx906 --chip gfx90a {PRINTS}",
        r"mgpu-rt lower (--chip gfx906)",
        f"mgpu-rt run --device gfx906 {{0}} {PRINTS}",
        (0, "1000"),
    ),
    "a library is missing": (
        f"mgpu-rt lower --emit executable {PRINTS} -o steps",
        r"add (--link mlir_c_runner_utils)",
        f"mgpu-rt lower --emit executable {{0}} {PRINTS} -o steps && "
        "mgpu-rt run --device softgpu ./steps",
        (0, "1000"),
    ),
    "an object file": (
        "mgpu-rt lower far.mlir -o far.o && mgpu-rt check far.o",
        r"is not a program yet: link it by (cc 'far.o' \$\(mgpu-rt config --libs\) -o )PROGRAM",
        "{0} program && mgpu-rt check ./program",
        (1, "1 fault"),
    ),
    "a fault": (
        "mgpu-rt run --device softgpu --stats-json s.json far.mlir",
        r"mgpu-rt (run --trace )FILE records what lies there",
        "mgpu-rt {0} t.json --device softgpu far.mlir",
        (-6, "past the end of a block of 1,024 bytes"),
    ),
    "a trace in place of statistics": (
        "mgpu-rt run --device softgpu --trace t.json far.mlir; mgpu-rt stats t.json",
        r"or look for a block with (--address)",
        "mgpu-rt stats t.json {0} 7f0000000000",
        (0, "a block of 1,024 bytes"),
    ),
    "an option after the program": (
        "mgpu-rt run echo --stats",
        r"(--stats) after 'echo' is an argument of the program: mgpu-rt's options stand before",
        f"mgpu-rt run {{0}} --device softgpu {PRINTS}",
        (0, "hipModuleLaunchKernel"),
    ),
}


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = environment("stub", MGPU_RT_HIP=str(softgpu.hip({})))
    env["PATH"] = f"{COMMAND.parent}:{env['PATH']}"
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, timeout=HANG
    )


@pytest.mark.parametrize("case", ADVICE)
def test_advice_works_when_it_is_followed(case: str, tmp_path: Path) -> None:
    first, advice, second, (status, printed) = ADVICE[case]
    (tmp_path / "far.mlir").write_text(FAR.replace("STEP", str(2**38 + 5)))
    before = shell(first, tmp_path)
    said = re.search(advice, before.stderr)
    assert said, before.stderr
    after = shell(second.format(*said.groups()), tmp_path)
    assert after.returncode in (status, 128 - status), after.stderr
    assert printed in after.stdout + after.stderr
