"""MGPU_RT_DEVICE: a process among several finds its device by the variable of its launcher."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.child import ROOT, STUB, environment, library
from tests.support.compiled import compile_c
from tests.support.patience import run_process

#: The rows of csrc/runtime/process/launchers.def, with the innermost launcher first. The variables
#: of a row contain the rank, and the rank on the machine.
LISTED = (ROOT / "csrc" / "runtime" / "process" / "launchers.def").read_text(encoding="utf-8")
ROWS = re.findall(r'^LAUNCHER\("(.+)", "(\w*)", "(\w*)"\)$', LISTED, re.MULTILINE)
LAUNCHERS = {local: launcher for launcher, _, local in ROWS if local}

#: The program prints the device of its first stream. If the program has an argument, the program
#: first chooses the device that the argument names.
PROGRAM = """
#include "program.h"
int main(int argc, char **argv) {
    int device = -1;
    if (argc > 1)
        hipSetDevice(atoi(argv[1]));
    mgpuStreamCreate();
    hipGetDevice(&device);
    printf("%d\\n", device);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("local_rank") / "program"
    flags = [f"-Wl,-rpath,{path.parent}" for path in (library(), STUB)]
    return compile_c(out, PROGRAM, str(library()), str(STUB), *flags)


def run(program: Path, *arguments: int, devices: int = 2, **env: str) -> tuple[int, str]:
    """Returns the device of the program's first stream, and the printed lines."""
    clean = {name: value for name, value in environment().items() if name not in LAUNCHERS}
    changes = {"HIPSTUB_DEVICES": str(devices), "MGPU_RT_MANAGER": "off", **env}
    result = run_process(
        [program, *map(str, arguments)], {**clean, "MGPU_RT_DEVICE": "local-rank", **changes}
    )
    assert result.returncode == 0, result.stderr
    return int(result.stdout), result.stderr


# ---- each launcher -------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", LAUNCHERS)
def test_a_launchers_rank_is_the_device(variable: str, program: Path) -> None:
    assert run(program, **{variable: "0"}) == (0, "")
    assert run(program, **{variable: "1"}) == (1, "")


def test_the_innermost_of_nested_launchers_counts(program: Path) -> None:
    """mpirun runs in a batch job of Slurm, where SLURM_LOCALID is 0 for every rank."""
    outer = {"SLURM_LOCALID": "0", "FLUX_TASK_LOCAL_ID": "0"}
    assert run(program, **outer, OMPI_COMM_WORLD_LOCAL_RANK="1") == (1, "")
    assert run(program, **outer, LOCAL_RANK="1") == (1, "")
    assert run(program, OMPI_COMM_WORLD_LOCAL_RANK="", SLURM_LOCALID="1") == (1, "")


# ---- invalid ranks -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["first", "-1", "1.5", "99999999999999999999"])
def test_an_invalid_rank_is_named_in_one_sentence(value: str, program: Path) -> None:
    problem = "is not a number from 0 on: HIP's default device is used"
    said = f"mgpu_rt: SLURM_LOCALID='{value}' {problem}\n"
    assert run(program, SLURM_LOCALID=value) == (0, said)


def test_a_missing_launcher_is_named_in_one_sentence(program: Path) -> None:
    device, said = run(program)
    assert device == 0
    assert said.startswith("mgpu_rt: MGPU_RT_DEVICE='local-rank' but no launcher has set a rank")
    assert said.count("\n") == 1
    for variable in LAUNCHERS:
        assert f" {variable}" in said


# ---- more ranks than devices ---------------------------------------------------------------------


@pytest.mark.parametrize("cache", ["on", "off"])
def test_more_ranks_than_devices_share_them(cache: str, program: Path) -> None:
    """The rank modulo the number of devices gives the device. On each machine only one rank prints
    the line: the first rank that shares a device with an earlier rank."""
    spoken = []
    for rank in range(6):
        device, said = run(program, OMPI_COMM_WORLD_LOCAL_RANK=str(rank), MGPU_RT_CACHE=cache)
        assert device == rank % 2
        spoken.append(said)
    (line,) = filter(None, spoken)
    assert spoken.index(line) == 2
    assert line == (
        "mgpu_rt: local rank 2 uses device 0 of the 2 that it sees, and shares it with another "
        "rank, unless each rank sees devices of its own\n"
    )


def test_a_device_that_is_named_by_number_must_exist(program: Path) -> None:
    """A named device must exist."""
    device, said = run(program, MGPU_RT_DEVICE="2")
    assert device == 0
    assert "'hipSetDevice(MGPU_RT_DEVICE)' failed with 'hipErrorInvalidDevice'" in said
    assert "mgpu_rt: MGPU_RT_DEVICE names device 2; HIP has 2, counted from 0" in said


# ---- devices that the program chose --------------------------------------------------------------


@pytest.mark.parametrize("wish", ["local-rank", "2"])
def test_a_device_chosen_before_stays_chosen(wish: str, program: Path) -> None:
    env = {"SLURM_LOCALID": "2", "MGPU_RT_DEVICE": wish}
    assert run(program, devices=3, **env) == (2, "")
    assert run(program, 1, devices=3, **env) == (1, "")
