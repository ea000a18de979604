"""The end of a program: nothing waits for a stream that waits for the program."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.child import BACKENDS, STUB, Mgpu, in_child
from tests.support.compiled import compile_c
from tests.support.known import program, run_program

HEAD = """
#include "program.h"
static sem_t gate;
static void wait_at_gate(void *stream, int error, void *data) {
    sem_wait(&gate);
}
/* The stream does nothing more until the gate is opened. */
static void hold(void *stream) {
    if (HIP(hipStreamAddCallback, void *, void *, void *, unsigned)(stream, wait_at_gate, 0, 0))
        exit(3);
}
/* One of the program's own, which the null stream does not wait for either. */
static void *own_stream(void) {
    void *stream;
    return HIP(hipStreamCreateWithFlags, void **, unsigned)(&stream, 1) ? NULL : stream;
}
static void use(unsigned long bytes, void *stream) {
    void *block = mgpuMemAlloc(bytes, stream, 0);
    mgpuMemset32(block, 1, bytes / 4, stream);
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
}
"""


def run(
    folder: Path, source: str, backend: str, *words: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Plays a program; raises TimeoutExpired if the program hangs."""
    env = {"HIPSTUB_ASYNC": "0", "MGPU_RT_MANAGER": "off", **more}
    return run_program(program(folder, HEAD + source), *words, backend=backend, **env)


EXIT = """
int main(int count, char **words) {
    void *idle[8]; /* more than HIP 5.2.3 has queues for, so that one shares the held one's */
    for (int i = 0; i < 8; i++)
        use(4096, idle[i] = mgpuStreamCreate());
    for (int i = 0; i < 8; i++)
        mgpuStreamDestroy(idle[i]);
    void *held = strcmp(words[1], "ours") ? own_stream() : mgpuStreamCreate();
    hold(held);
    puts("main returns");
    return 0;
}
"""


@pytest.mark.parametrize("whose", ["ours", "own"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_main_returns_while_a_stream_is_held(tmp_path: Path, backend: str, whose: str) -> None:
    done = run(tmp_path, EXIT, backend, whose)
    assert (done.returncode, done.stdout, done.stderr) == (0, "main returns\n", "")


NOTHING_HELD = """
int main(void) {
    void *stream = mgpuStreamCreate();
    use(4096, stream);
    mgpuStreamDestroy(stream);
}
"""


@in_child(policies=["builtin"])
def test_nothing_goes_back_at_exit(_mgpu: Mgpu) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.json")
        done = run(Path(folder), NOTHING_HELD, "stub", HIPSTUB_LOG=str(log))
        assert done.stderr == ""
        counts = json.loads(log.read_text())["counts"]
        assert counts["hipStreamCreate"] == 1
        assert not counts.keys() & {"hipFree", "hipStreamDestroy"}


HIP_6, HIP_7 = "60443483", "70253211"

PUT_OFF = """
int main(void) {
    void *stream = mgpuStreamCreate(), *block = mgpuMemAlloc(4096, stream, 0);
    for (int i = 0; i < 3; i++) {
        mgpuMemset32(block, 1, 1024, stream);
        mgpuStreamSynchronize(stream);
    }
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
    return 0;
}
"""


#: A stand-in for the ROCr on which HIP depends: its thread calls the handler of a signal late.
ROCR = """
#include <stdbool.h>
#include <stdint.h>
#include <pthread.h>
#include <unistd.h>
struct signal { uint64_t handle; };
static bool (*handler)(int64_t, void *);
int hsa_signal_create(int64_t value, uint32_t count, const void *agents, struct signal *signal) {
    signal->handle = 1;
    return value != 0 || count != 0 || agents != NULL;
}
int hsa_signal_destroy(struct signal signal) { return signal.handle != 1; }
static void *call(void *argument) {
    usleep(20000);
    write(2, "called\\n", 7);
    handler(0, argument);
    return NULL;
}
int hsa_amd_signal_async_handler(struct signal signal, int condition, int64_t value,
                                 bool (*given)(int64_t, void *), void *argument) {
    pthread_t thread;
    handler = given;
    return signal.handle != 1 || condition != 0 || value != 0 ||
           pthread_create(&thread, NULL, call, argument) != 0;
}
"""


@pytest.mark.parametrize(
    ("program", "version", "calls"),
    [
        (PUT_OFF, HIP_7, 2),
        (PUT_OFF, HIP_6, 0),
        ("int main(void) { mgpuMemAlloc(8, 0, 0); }", HIP_7, 0),
    ],
    ids=["HIP 7", "HIP 6", "no stream"],
)
def test_the_exit_waits_until_hip_7_has_let_go_of_the_streams(
    tmp_path: Path, program: str, version: str, calls: int
) -> None:
    """Before the library waited at exit, ROCr's threads still freed modules while HIP's libraries
    ended, and 1 of 30 programs crashed. ROCr's thread may run a new handler before older
    handlers. So the library passes two handlers to the thread, one after the other, and waits for
    each handler."""
    linked = ("-pthread", "-Wl,--no-as-needed", str(STUB), f"-Wl,-rpath,{STUB.parent}")
    hip = compile_c(tmp_path / "libamdhip64.so", ROCR, "-shared", "-fPIC", *linked)
    options = {"MGPU_RT_SYNC": "lazy", "MGPU_RT_EXCLUSIVE": "on", "HIPSTUB_VERSION": version}
    done = run(tmp_path, program, "stub", MGPU_RT_HIP=str(hip), **options)
    assert (done.returncode, done.stderr.count("called\n")) == (0, calls)
