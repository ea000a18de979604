"""Tests that a process ends although the program has cancelled a thread (pthread_cancel)."""

from __future__ import annotations

from pathlib import Path

from tests.support import recordings
from tests.support.known import program, run_program

#: A thread with a pending cancellation calls exit(), and so ends the process.
EXITING = """
#include "program.h"
static void *last(void *unused) {
    pthread_cancel(pthread_self());
    exit(0);
    return unused;
}
int main(void) {
    pthread_t thread;
    mgpuStreamCreate();
    pthread_create(&thread, NULL, last, NULL);
    pthread_join(thread, NULL);
    return 1;
}
"""


def test_an_exit_cannot_be_cancelled(tmp_path: Path) -> None:
    """The recording is complete."""
    trace = tmp_path / "trace"
    done = run_program(program(tmp_path, EXITING), MGPU_RT_TRACE=str(trace), MGPU_RT_MANAGER="off")
    assert done.returncode == 0
    assert recordings.stats(trace)["process"]["ended"] == "exit"
