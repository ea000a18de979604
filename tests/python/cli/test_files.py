"""Tests commands that read or write unusual files, such as FIFOs, devices, and files on full
disks."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mgpu_rt import _hip_search
from tests.support import recorded
from tests.support.child import environment
from tests.support.command import COMMAND, assert_sentence
from tests.support.images import code_object
from tests.support.patience import HANG, run_process
from tests.support.recorded import call
from tests.support.sources import SOURCES

FORUM = str(SOURCES["forum"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates files of each kind, and a FIFO that no process has opened."""
    (tmp_path / "stats").write_text(json.dumps(recorded.stock()))
    (tmp_path / "trace").write_text(json.dumps(recorded.trace(call("mgpuLaunchKernel", 0))))
    (tmp_path / "image").write_bytes(code_object("forum"))
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("stats",), "stats"),
        (("compare", "stats"), "stats"),
        (("compare", "--report", "-"), "stats"),
        (("inspect", "--no-device"), "image"),
        (("lower", "--emit", "mlir", "-o", "-"), FORUM),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_a_pipe_is_read_once_to_its_end(place: Path, words: tuple[str, ...], file: str) -> None:
    """If a command's argument is <(command), the shell passes a pipe, which stays empty until the
    inner command writes."""
    read, write = os.pipe()
    writer = threading.Thread(target=_write_late, args=(write, Path(file).read_bytes()))
    with subprocess.Popen(
        [COMMAND, *words, f"/dev/fd/{read}"],
        env=environment(),
        pass_fds=[read],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(read)
        writer.start()
        out, err = process.communicate(timeout=HANG)
    writer.join()
    assert (process.returncode, err) == (0, b"")
    assert out


def _write_late(pipe: int, content: bytes) -> None:
    """Writes to a pipe after a delay, and in two parts."""
    with open(pipe, "wb", buffering=0) as file:
        file.write(content[:100])
        file.write(content[100:])


def test_a_fifo_is_no_rocm_runtime(place: Path) -> None:
    """The package searches HIP's folder for HSA's library, and finds a FIFO under this name."""
    os.rename("fifo", _hip_search.HSA)
    code = f"from mgpu_rt import _hip_search; _hip_search.seams({str(place / 'libamdhip64.so')!r})"
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True, timeout=HANG)


# ---- full disks ----


@pytest.mark.parametrize(
    "words",
    [
        ("stats", "stats"),
        ("stats", "--json", "stats"),
        ("compare", "stats", "stats"),
        ("compare", "stats", "--report", "-"),
        ("inspect", "--no-device", "image"),
        ("lower", FORUM, "--emit", "mlir", "-o", "-"),
        ("config",),
        ("config", "--path"),
        ("--help",),
        ("--version",),
        ("check", "--help"),
    ],
    ids=lambda words: words[0],
)
def test_a_full_disk_behind_stdout_is_reported(place: Path, words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        command_line = [COMMAND, *words]
        done = subprocess.run(
            command_line, env=environment(), stdout=full, stderr=subprocess.PIPE, timeout=HANG
        )
    said = "No space left on device"
    assert_sentence(done.returncode, done.stderr.decode(), said)


@pytest.mark.parametrize(
    "words",
    [
        ("stats", "stats", "1>&-"),
        ("compare", "stats", "stats", "1>&-"),
        ("config", "1>&-"),
        ("--help", "1>&-"),
        ("lower", FORUM, "--emit", "mlir", "-o", "-", "1>&-"),
        ("lower", "-", "-o", "out", "0<&-"),
        ("stats", "missing", "0<&-", "1>&-"),
    ],
    ids=" ".join,
)
def test_a_closed_stream_is_reported(place: Path, words: tuple[str, ...]) -> None:
    done = run_process(["bash", "-c", " ".join(map(str, (COMMAND, *words)))], environment())
    cause = "No such file" if "missing" in words else "Bad file descriptor"
    assert_sentence(done.returncode, done.stderr, cause)


def test_a_program_gets_a_stream_closed_as_the_command_does(place: Path) -> None:
    closed = "import os\ntry: os.fstat(1)\nexcept OSError: raise SystemExit(7)"
    line = f'{COMMAND} run -- {sys.executable} -c "{closed}" >&-'
    assert run_process(["bash", "-c", line], environment()).returncode == 7


def test_a_partial_file_is_removed(place: Path) -> None:
    words = (COMMAND, "compare", "stats", "--report", "out")
    Path("out").write_text("of before")
    done = subprocess.run(
        words,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=HANG,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert_sentence(done.returncode, done.stderr, "cannot be written: File too large")
    assert not Path("out").exists()
