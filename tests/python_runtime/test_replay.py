"""Launches that were recorded and are made again: real kernels on softgpu."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mgpu_rt import files
from mgpu_rt.runtime import Recording
from tests.python_runtime.hooked import hip, program, replay
from tests.support.child import environment
from tests.support.command import assert_sentence, command


def test_a_replay_of_several_launches_says_which_it_makes(tmp_path: Path) -> None:
    out = tmp_path / "recording"
    words = ("record", "--device", "softgpu", "--nth", 0, "--kernel", "halve", "-o", out)
    assert command(*words, "--", program(), **hip()).returncode == 0
    first, second = replay(out), replay(out, "--launch", 2)
    assert first.stderr == "mgpu-rt: launch 1 of 2 in this recording; --launch chooses\n"
    assert (first.returncode, second.returncode, second.stderr) == (0, 0, "")


def test_a_missing_image_is_named(recorded: Path, tmp_path: Path) -> None:
    done = replay(recorded, "--image", tmp_path / "none")
    assert_sentence(done.returncode, done.stderr, "was not found: name a file that holds an image")


def test_a_replay_leaves_the_same_memory(recorded: Path) -> None:
    done = replay(recorded)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("halve: same, ")


def test_a_replay_with_another_block_size_leaves_the_same(recorded: Path) -> None:
    done = replay(recorded, "--grid", 4, "--block", 16, "--iterations", 3)
    assert done.stdout.startswith("halve: same, median ")


def test_a_replay_that_writes_less_says_where(recorded: Path) -> None:
    done = replay(recorded, "--grid", 1, "--tolerance", 0.5)
    assert done.returncode == 1
    assert "memory block 0: 32 elements (f4) differ, the first [32], largest error 2" in done.stdout
    assert replay(recorded, "--grid", 1, "--tolerance", 3).returncode == 0


def test_a_write_outside_an_argument_is_named(recorded: Path) -> None:
    done = replay(recorded, "--grid", 33, "--tolerance", 100)
    assert done.returncode == 1
    assert "bytes behind memory block 0 were written" in done.stdout


def test_a_replay_takes_another_image(recorded: Path, tmp_path: Path) -> None:
    manifest = json.loads((recorded / "manifest.json").read_text())
    image = tmp_path / "image"
    image.write_bytes((recorded / "blobs" / manifest["launches"][0]["image"]).read_bytes())
    assert replay(recorded, "--image", image).returncode == 0
    image.write_bytes(b"nothing")
    assert replay(recorded, "--image", image).returncode == 2


def test_a_script_can_replay(recorded: Path, tmp_path: Path) -> None:
    script = tmp_path / "replay.py"
    assert replay(recorded, "--script", script).returncode == 0
    env = environment("softgpu", MGPU_RT_PYTHON="off")
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True)
    assert done.stdout.startswith("halve: same, "), done.stderr


def test_a_recording_that_was_changed_is_refused(recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", recorded, copy], check=True)
    manifest = json.loads((copy / "manifest.json").read_text())
    blob = copy / "blobs" / manifest["launches"][0]["blocks"][0]["before"]
    blob.write_bytes(b"\1" + blob.read_bytes()[1:])
    done = replay(copy)
    assert (done.returncode, "is not what was recorded" in done.stderr) == (2, True)


def test_a_recording_with_other_results_differs(recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", recorded, copy], check=True)
    manifest = json.loads((copy / "manifest.json").read_text())
    block = manifest["launches"][0]["blocks"][0]
    block["after"] = block["before"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    assert replay(copy).returncode == 1


def test_an_unknown_type_is_named(recorded: Path) -> None:
    done = replay(recorded, "--tolerance", 1, "--dtype", "f33")
    assert_sentence(done.returncode, done.stderr, "'f33' is no type of numbers: name one of f16")


def test_a_folder_that_is_no_recording_is_named(tmp_path: Path) -> None:
    done = replay(tmp_path / "nothing")
    assert_sentence(done.returncode, done.stderr, "is no folder")
    done = replay(tmp_path)
    assert_sentence(done.returncode, done.stderr, "holds no launch: none was recorded to its end")
    (tmp_path / "manifest.json").write_text("{}")
    done = replay(tmp_path)
    assert_sentence(done.returncode, done.stderr, "is no recording's manifest")


LAUNCH = {"kernel": "k", "image": "x", "grid": [1, 1, 1], "block": [1, 1, 1], "shared": 0}
LAUNCH |= {"arguments": [], "blocks": []}


@pytest.mark.parametrize(
    "launch",
    [
        5,
        {},
        {**LAUNCH, "kernel": 5},
        {**LAUNCH, "grid": ["x"]},
        {**LAUNCH, "shared": 1 << 32},
        {**LAUNCH, "blocks": [5]},
        {**LAUNCH, "arguments": 5},
        {**LAUNCH, "arguments": [{"bytes": "no hex"}]},
        {**LAUNCH, "arguments": [{"bytes": "", "block": 1}]},
        {**LAUNCH, "arguments": [{"bytes": "", "offset": -1}]},
    ],
)
def test_a_damaged_launch_is_named(launch: object, tmp_path: Path) -> None:
    manifest = {"format": 1, "launches": [launch]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="launch 1 is damaged"):
        Recording(tmp_path)


def test_a_recording_of_fifos_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "WAIT", 0.1)
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(OSError, match="nobody has written to this FIFO"):
        Recording(tmp_path)
