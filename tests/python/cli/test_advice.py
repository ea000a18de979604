"""The advice of commands and of the library works when it is followed: input, advice, command,
result.

Advice on what a person must install, plug in or own is not here. A missing wait that `mgpu-rt
check` names is added in tests/python/cli/check/mutants: the programs there are right with it. The
pytest plugin's advice is followed in tests/python/testing/session.py.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.python.cli.advice.commands import DOCTOR, GIVEN, INSPECTIONS, REPORT, RUNS
from tests.python.cli.advice.library import LIBRARY
from tests.python.cli.advice.lowerings import LOWERINGS
from tests.python.cli.advice.programs import PROGRAMS
from tests.support.child import environment
from tests.support.command import COMMAND
from tests.support.patience import run_process
from tests.support.suites import sampled

#: A row has the first command, a pattern of its advice, the second command, its exit status and a
#: part of its output. The pattern's groups are words {0}, {1} ... of the second command.
TABLES = (RUNS, LOWERINGS, INSPECTIONS, DOCTOR, LIBRARY, GIVEN, REPORT)
ADVICE = {case: row for table in TABLES for case, row in table.items()}


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = environment("stub", MGPU_RT_HIP=str(softgpu.hip({})))
    env["PATH"] = f"{COMMAND.parent}:{env['PATH']}"
    return run_process(["bash", "-c", line], env, cwd=folder)


@pytest.mark.check
def test_no_case_hides_another() -> None:
    assert len(ADVICE) == sum(map(len, TABLES))


@pytest.mark.parametrize("case", sampled(ADVICE, list(ADVICE)[::4]))
def test_advice_works_when_it_is_followed(case: str, tmp_path: Path) -> None:
    first, advice, second, (status, printed) = ADVICE[case]
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    before = shell(first, tmp_path)
    said = re.search(advice, before.stdout + before.stderr, re.MULTILINE)
    assert said, before.stdout + before.stderr
    after = shell(second.format(*said.groups()), tmp_path)
    assert after.returncode in (status, 128 - status), after.stderr
    assert printed in after.stdout + after.stderr
