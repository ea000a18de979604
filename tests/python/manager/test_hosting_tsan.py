"""Runs the library's thread, the ring buffer and the services under ThreadSanitizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.manager.test_manager import HOSTS
from tests.support.folders import folder
from tests.support.hosting import KERNEL, host, image, promptly, run_program
from tests.support.variants import build

pytestmark = pytest.mark.check  # builds the library with a sanitizer

SANITIZE = "-fsanitize=thread"


@pytest.fixture(scope="module")
def library() -> Path:
    return build("tsan", flags=("-O1", SANITIZE))


@pytest.mark.parametrize("policy", ["", "policies:EvictAll", "policies:PinAll"])
@pytest.mark.parametrize("mode", ["served", "threads", "misses"])
def test_threads_do_not_race(mode: str, policy: str, library: Path, tmp_path: Path) -> None:
    """Threads make calls that miss the caches, while a manager lists, evicts and pins objects."""
    (tmp_path / "policies.py").write_text((HOSTS / "policies.py").read_text())
    env = promptly(
        PYTHONPATH=str(tmp_path),
        MGPU_RT_POLICY=policy,
        MGPU_RT_MODULE_LIMIT="20K",
        HIPSTUB_MODE="fast",
        TSAN_OPTIONS=f"exitcode=66 suppressions={suppressions()}",
    )
    command = [str(host(SANITIZE)), str(library), str(image()), KERNEL, mode]
    result = run_program(command, env)
    assert "ThreadSanitizer" not in result.stderr, result.stderr
    assert (result.returncode, result.stdout) == (0, "ok\n"), result.stderr


def suppressions() -> Path:
    """Writes a file that suppresses reports of races in the stub. The accesses of the stub are
    invisible, because the stub is built without ThreadSanitizer."""
    out = folder("hosting") / "tsan.suppressions"
    # read_path reads the list of the loader. ThreadSanitizer does not see the loader's locks,
    # because the loader is built without ThreadSanitizer.
    out.write_text("called_from_lib:libamdhip64.so.5\nrace:libamdhip64.so\nrace:read_path\n")
    return out
