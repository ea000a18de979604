"""The transformer block of bench/models, a whole model, runs on softgpu with a hook, and is
recorded."""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.models import program
from bench.models.program import CHAIN
from bench.models.zoo import MODELS
from bench.setup import build, device, models, sides
from tests.python.runtime.hooked import folders_of, launches_of, replay, write_launches
from tests.support import lower
from tests.support.command import COMMAND
from tests.support.folders import folder
from tests.support.patience import run_process

pytestmark = pytest.mark.check  # a whole model with hooks

BLOCK = next(model for model in MODELS if model.name == "block")
#: The two normalisations in the model add this constant before the square root, so the argument is
#: positive.
SMALL = "%small = arith.constant 1.000000e-05 : f32"
BELOW_ZERO = "%small = arith.constant -1.000000e+06 : f32"


@functools.cache
def block(text: str) -> Path:
    """Builds the model's program from the given source text."""
    source = folder("block") / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.mlir"
    source.write_text(text)
    compiled = lower.lower(source, llvm=22, chip="gfx90a", first=CHAIN.passes)
    expected = f'-DEXPECTED_FILE="{models._expected(BLOCK)}"'
    out = source.with_suffix("")
    build.link(compiled, out, [expected, models.FRAME[0]])
    return out


def run(text: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Runs one forward pass, with options of mgpu-rt."""
    side = next(s for s in sides.all_sides(device.find("softgpu"), None) if s.name == sides.OURS)
    return run_process(
        [str(word) for word in (COMMAND, *words, "--", block(text))],
        {**side.environment, "MGPU_RT_MANAGER": "off"},
        input="1\n",
    )


def test_a_nan_in_one_kernel_is_named() -> None:
    """One kernel computes NaNs. Earlier kernels write no NaNs, and the program ends before later
    kernels run."""
    text = program.source(BLOCK, CHAIN)
    assert text.count(SMALL) == 2
    first, between, last = text.split(SMALL)
    done = run(f"{first}{SMALL}{between}{BELOW_ZERO}{last}", "run", "--hook", "nan=f32")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    said = done.stderr.splitlines()[-1]
    assert "wrote 2048 NaNs, first [0] of argument" in said
    assert "the 8192 bytes at" in said


# ---- a recording of the model's first matrix product ----

SIZES = [4 * 32 * 64, 4 * 64 * 64, 4 * 32 * 64]  # bytes of the model's blocks


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("block") / "recording"
    done = run(program.source(BLOCK, CHAIN), "run", "--record", out)
    assert done.returncode == 0, done.stderr
    for path, launch in zip(folders_of(out), launches_of(out), strict=True):
        if [block["size"] for block in launch["blocks"]] != SIZES:
            shutil.rmtree(path)
    for path in folders_of(out)[1:]:
        shutil.rmtree(path)
    return out


def test_a_matrix_product_replays_with_the_same_result(recording: Path) -> None:
    """The recording contains one launch. The kernel multiplies a 32x64 matrix by a 64x64 matrix,
    and changes only the block with the result."""
    (launch,) = launches_of(recording)
    assert launch["not_recorded"] == []
    changed = [block["before"] != block["after"] for block in launch["blocks"]]
    assert changed == [False, False, True]
    done = replay(recording)
    assert (done.returncode, ": same, " in done.stdout) == (0, True), done.stdout + done.stderr


def test_a_matrix_product_with_another_input_differs(recording: Path, tmp_path: Path) -> None:
    """One element of the first matrix changes, and therefore one row of the result."""
    copy = tmp_path / "copy"
    shutil.copytree(recording, copy)
    launches = launches_of(copy)
    first = launches[0]["blocks"][0]
    content = bytearray((folders_of(copy)[0] / first["before"]).read_bytes())
    content[3] ^= 0x80  # its sign
    first["before"] = hashlib.sha256(content).hexdigest()
    (folders_of(copy)[0] / first["before"]).write_bytes(content)
    write_launches(copy, launches)
    done = replay(copy, "--tolerance", "1e-6")
    assert done.returncode == 1
    assert "block 2: 64 elements (f32) differ, the first is element 0, largest error" in done.stdout
