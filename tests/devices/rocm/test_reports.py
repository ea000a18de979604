"""Tests which functions of HIP are missing from HIP's reports of calls (driver/witness.h), and what
the library knows from the reports."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.devices.rocm.surroundings import Popen, Surroundings
from tests.runtime.driver import foreign, test_word
from tests.support import recordings
from tests.support.compiled import compile_c
from tests.support.patience import HANG

pytestmark = pytest.mark.check  # a newer release of HIP, which is downloaded

#: A child process calls each function. The process ends at HIP's report, before the function runs.
#: The program prints the functions of which HIP reported nothing. If the first word is "unnamed",
#: the program leaves out the functions for which HIP has an operation of a report.
SILENT = """
#include "program.h"
enum { HIP_API = 3, REPORTED = 42, OPERATIONS = 1024 };
static const char *(*name_of)(unsigned operation);
static int has_operation(const char *name) {
    for (unsigned i = 0; i < OPERATIONS; i++)
        if (strcmp(name_of(i), name) == 0)
            return 1;
    return 0;
}
static int hear(int domain, unsigned operation, void *data) {
    if (domain == HIP_API)
        _exit(REPORTED);
    return 1;
}
int main(int count, char **names) {
    void *hip = dlopen(getenv("MGPU_RT_HIP"), RTLD_NOW);
    void (*tracer)(int (*)(int, unsigned, void *));
    long (*call)(long, long, long, long, long, long, long, long);
    *(void **)&tracer = dlsym(hip, "hipRegisterTracerCallback");
    *(void **)&name_of = dlsym(hip, "hipApiName");
    for (int i = 2; i < count; i++) {
        int status = 0;
        *(void **)&call = dlsym(hip, names[i]);
        if (strcmp(names[1], "unnamed") == 0 && has_operation(names[i]))
            continue;
        if (fork() == 0) {
            dup2(open("/dev/null", O_WRONLY), 2); /* the call may end with a message */
            tracer(hear);
            call(0, 0, 0, 0, 0, 0, 0, 0);
            _exit(0);
        }
        wait(&status);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != REPORTED)
            puts(names[i]);
    }
    fflush(stdout);
    _Exit(0);
}
"""

#: The functions of which HIP reports nothing, and why the library need not know of their calls.
JUDGED = {
    "return a fact": (
        "hipApiName hipCreateChannelDesc hipDrvGetErrorName hipDrvGetErrorString hipGetCmdName "
        "hipGetErrorName hipGetErrorString hipGetStreamDeviceId hipKernelNameRef "
        "hipKernelNameRefByPtr hipDeviceGetTexture1DLinearMaxWidth"
    ),
    "register the program's own kernels, which run only by a launch that HIP reports": (
        "__hipRegisterFatBinary __hipRegisterFunction __hipRegisterManagedVar "
        "__hipRegisterSurface __hipRegisterTexture __hipRegisterVar __hipUnregisterFatBinary"
    ),
    "replace the library's function, which the probe detects": "hipRegisterTracerCallback",
    "describe textures over memory; they submit no work, and free no memory of the library": (
        "hipBindTexture hipBindTexture2D hipBindTextureToArray hipBindTextureToMipmappedArray "
        "hipCreateTextureObject hipDestroyTextureObject hipGetTextureAlignmentOffset "
        "hipGetTextureObjectResourceDesc hipGetTextureObjectResourceViewDesc "
        "hipGetTextureObjectTextureDesc hipGetTextureReference hipTexObjectCreate "
        "hipTexObjectDestroy hipTexObjectGetResourceDesc hipTexObjectGetResourceViewDesc "
        "hipTexObjectGetTextureDesc hipTexRefGetAddressMode hipTexRefGetFilterMode "
        "hipTexRefGetMipmapFilterMode hipTexRefSetAddressMode hipTexRefSetFilterMode "
        "hipTexRefSetMipmapFilterMode hipUnbindTexture"
    ),
    "describe a graph, which runs only by a launch that HIP reports": (
        "hipGraphAddExternalSemaphoresSignalNode hipGraphAddExternalSemaphoresWaitNode "
        "hipGraphExecExternalSemaphoresSignalNodeSetParams "
        "hipGraphExecExternalSemaphoresWaitNodeSetParams "
        "hipGraphExternalSemaphoresSignalNodeGetParams "
        "hipGraphExternalSemaphoresSignalNodeSetParams "
        "hipGraphExternalSemaphoresWaitNodeGetParams hipGraphExternalSemaphoresWaitNodeSetParams"
    ),
    "compile on the host": (
        "hiprtcAddNameExpression hiprtcCompileProgram hiprtcCreateProgram hiprtcDestroyProgram "
        "hiprtcGetBitcode hiprtcGetBitcodeSize hiprtcGetCode hiprtcGetCodeSize "
        "hiprtcGetErrorString hiprtcGetLoweredName hiprtcGetProgramLog hiprtcGetProgramLogSize "
        "hiprtcLinkAddData hiprtcLinkAddFile hiprtcLinkComplete hiprtcLinkCreate "
        "hiprtcLinkDestroy hiprtcVersion"
    ),
}


def exported(here: Surroundings) -> list[str]:
    """Returns the names of HIP's exported functions, without the names of its versions."""
    command = ["nm", "--dynamic", "--defined-only", here.hip]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    names = {line.split()[-1].partition("@")[0] for line in lines if line.split()[-2] in "TW"}
    return sorted(name for name in names if name.startswith(("hip", "__hip")))


def test_each_function_that_hip_does_not_report_is_judged(
    here: Surroundings, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    Popen.here = here
    some = "all" if request.config.getoption("--rocm", None) else "unnamed"
    program = compile_c(tmp_path / "silent", SILENT, "-ldl")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words, env = [str(program), some, *exported(here)], here.environment()
    with Popen(words, env=env, text=True, **pipes) as process:
        silent, errors = process.communicate(timeout=HANG)
    judged = {name for names in JUDGED.values() for name in names.split()}
    assert {*silent.split()} - judged == set(), errors
    assert len(silent.split()) > 30, errors


#: In each round a second stream works on a block and frees it. The first stream waits for an event
#: of the second stream, then allocates as much, works on the block and frees it. The host never
#: waits.
JOINS = """
#include "program.h"
enum { ROUNDS = 50, SIZE = 4 << 20 };
static void follow(void *later, void *stream) {
    void *event = mgpuEventCreate();
    mgpuEventRecord(event, stream);
    mgpuStreamWaitEvent(later, event);
    mgpuEventDestroy(event);
}
static void work(void *stream) {
    void *block = mgpuMemAlloc(SIZE, stream, false);
    mgpuMemset32(block, 7, SIZE / 4, stream);
    mgpuMemFree(block, stream);
}
int main(void) {
    void *stream = mgpuStreamCreate(), *forked = mgpuStreamCreate();
    for (int i = 0; i < ROUNDS; i++) {
        work(forked);
        follow(stream, forked);
        work(stream);
        follow(forked, stream);
    }
}
"""


def test_forks_and_joins_by_events_reuse_memory_without_a_question(
    here: Surroundings, tmp_path: Path
) -> None:
    Popen.here = here
    library = softgpu.BUILD / "lib" / "libmlir_rocm_runtime.so"
    program = compile_c(tmp_path / "joins", JOINS, str(library), f"-Wl,-rpath,{library.parent}")
    out = tmp_path / "stats"
    env = here.environment({"MGPU_RT_STATS": str(out)})
    with Popen([str(program)], env=env, stderr=subprocess.PIPE, text=True) as process:
        _, errors = process.communicate(timeout=HANG)
    assert process.returncode == 0, errors
    calls = {name: row["calls"] for name, row in recordings.stats(out)["hip"].items()}
    assert calls["hipMalloc"] <= 6, calls
    assert "hipStreamQuery" not in calls and "hipEventQuery" not in calls, calls


# ---- what other code calls ----


def run(here: Surroundings, program: Path, *words: str, **env: str) -> tuple[str, str]:
    """Returns what a program prints to stdout and stderr."""
    Popen.here = here
    command, pipes = [str(program), *words], {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(command, env=here.environment({**os.environ, **env}), text=True, **pipes) as process:
        said, errors = process.communicate(timeout=HANG)
    assert process.returncode == 0, errors
    return said, errors


def linked(folder: Path, source: str) -> Path:
    library = softgpu.BUILD / "lib" / "libmlir_rocm_runtime.so"
    return compile_c(folder / "program", source, str(library), f"-Wl,-rpath,{library.parent}")


def test_each_harmless_function_leaves_the_library_the_sole_user(
    here: Surroundings, tmp_path: Path
) -> None:
    """The list of harmless functions has no function that the newest release lacks."""
    program = linked(tmp_path, foreign.SOURCE)
    said, errors = run(here, program, MGPU_RT_VERBOSE="1")
    assert set(said.split()) <= set(foreign.HARMLESS) and len(said.split()) > 30, said
    assert "was the first" not in errors
    for name in foreign.OTHERS:
        said, errors = run(here, program, name, MGPU_RT_VERBOSE="1")
        assert "wrong" not in said
        assert f"calls of HIP by other code: {name} was the first" in errors


#: The device has 64 MB, of which the program frees 40. Three times other code then asks for the
#: free memory, and allocates 48 MB. Prints whether it lacks memory.
ROOM = """
#include "program.h"
static void *stream;
static void use(void) {
    void *block = mgpuMemAlloc(40 << 20, stream, false);
    mgpuMemset32(block, 7, 1024, stream);
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
}
int main(void) {
    void *place;
    size_t available, total;
    stream = mgpuStreamCreate();
    for (int i = 0; i < 3; i++) {
        use();
        HIP(hipMemGetInfo, size_t *, size_t *)(&available, &total);
        printf("%d ", available < 48 << 20);
        use();
        printf("%d ", HIP(hipMalloc, void **, size_t)(&place, 48 << 20));
        HIP(hipFree, void *)(place);
    }
    return 0;
}
"""


@pytest.mark.parametrize("cache", ("on", "off"))
def test_other_code_finds_the_memory_that_stock_leaves(
    here: Surroundings, tmp_path: Path, cache: str
) -> None:
    chip = here.release.chips[0]
    env = {"MGPU_RT_SOFTGPU": f"{chip},memory=64M", "MGPU_RT_MEMORY_LIMIT": "1"}
    said, errors = run(here, linked(tmp_path, ROOM), MGPU_RT_CACHE=cache, **env)
    assert said == "0 " * 6, errors


#: In front of HIP: the host cannot access the emulated device's memory, so waits can be postponed.
FRONT = """
#define _GNU_SOURCE
#include "../../../csrc/hip_abi.h"
#include <dlfcn.h>
int hipDeviceGetAttribute(int *value, int attribute, int device);
int hipDeviceGetAttribute(int *value, int attribute, int device) {
    int (*next)(int *, int, int);
    *(void **)&next = dlsym(RTLD_NEXT, "hipDeviceGetAttribute");
    const int error = next(value, attribute, device);
    if (attribute == hipDeviceAttributeIsLargeBar)
        *value = 0;
    return error;
}
"""

#: The program keeps memory registered and, with MGPU_RT_SYNC=lazy, postpones waits. Then other code
#: calls the function that the first word names, twice. The program then does the same work again.
#: The program prints what other code gets, and what its own copies show. With a second word, an
#: override of mgpuEventCreate is the other code.
WORD = """
#include "program.h"
enum { BYTES = 1 << 16, WORDS = BYTES / 4, ROUNDS = 5, TO_HOST = 2 };
static void *stream, *block;
static uint32_t host[WORDS], *lent;
static void work(int value) {
    for (int i = 0; i < ROUNDS; i++) {
        mgpuMemHostRegister(lent, BYTES);
        mgpuMemHostUnregister(lent);
        mgpuMemset32(block, value + i, WORDS, stream);
        mgpuStreamSynchronize(stream);
    }
}
static void show(void) {
    mgpuMemcpy(host, block, BYTES, stream);
    mgpuStreamSynchronize(stream);
    printf("%u %u ", host[0], host[WORDS - 1]);
}
static int call_hip(const char *name) {
    static struct { int kind; char rest[256]; } found;
    if (strcmp(name, "hipPointerGetAttributes") == 0) {
        const int error = HIP(hipPointerGetAttributes, void *, const void *)(&found, lent);
        return error ? error : found.kind;
    }
    if (strcmp(name, "hipStreamQuery") == 0)
        return HIP(hipStreamQuery, void *)(stream);
    if (HIP(hipMemcpy, void *, const void *, size_t, int)(lent, block, BYTES, TO_HOST))
        return -1;
    return (int)lent[WORDS - 1];
}
typedef void (*function)(void);
function mgpu_rt_native(const char *name);
int mgpu_rt_intercept(const char *name, function instead);
static const char *wanted;
static bool overridden;
static int got;
static void *answer(void) {
    got = call_hip(wanted);
    return ((void *(*)(void))mgpu_rt_native("mgpuEventCreate"))();
}
static int call(void) {
    if (!overridden)
        return call_hip(wanted);
    mgpuEventDestroy(mgpuEventCreate());
    return got;
}
int main(int count, char **words) {
    wanted = words[1];
    overridden = count > 2;
    if (overridden)
        mgpu_rt_intercept("mgpuEventCreate", (function)answer);
    stream = mgpuStreamCreate();
    block = mgpuMemAlloc(BYTES, stream, false);
    lent = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    work(10);
    for (int i = 0; i < 2; i++)
        printf("%d ", call());
    show();
    work(20);
    printf("%d ", call());
    show();
    return 0;
}
"""


@pytest.mark.parametrize("wait", ("strict", "lazy"))
@pytest.mark.parametrize("name", ("hipPointerGetAttributes", "hipStreamQuery", "hipMemcpy"))
def test_a_call_of_other_code_ends_the_users_word(
    here: Surroundings, tmp_path: Path, name: str, wait: str
) -> None:
    assert_the_word_ends(here, tmp_path, wait, name)


def test_a_call_of_an_override_ends_the_users_word(here: Surroundings, tmp_path: Path) -> None:
    assert_the_word_ends(here, tmp_path, "lazy", "hipMemcpy", "override")


def assert_the_word_ends(
    here: Surroundings, tmp_path: Path, wait: str, name: str, *by: str
) -> None:
    needs_hip = ("-Wl,--no-as-needed", str(here.hip), "-ldl")
    front = compile_c(tmp_path / "front.so", FRONT, "-shared", "-fPIC", *needs_hip)
    words, out = here.command([str(linked(tmp_path, WORD)), name, *by]), tmp_path / "stats"
    on = {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_SYNC": wait, "MGPU_RT_STATS": str(out)}
    said = []
    for options in ({"MGPU_RT_CACHE": "off"}, on):
        env = {**here.environment(), "MGPU_RT_HIP": str(front), **options}
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=HANG)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
    assert done.stderr.count(test_word.LINE.format(name)) == done.stderr.count("has ended") == 1
    found = recordings.stats(out)
    calls = {called: row["calls"] for called, row in found["hip"].items()}
    postponed = wait == "lazy" and not here.release.hip.startswith("5.")  # FRONT serves HIP 6 and 7
    waits = (calls["hipStreamSynchronize"], calls.get("hipDeviceSynchronize", 0))
    assert waits == ((8, 4) if postponed else (12, 0)), calls  # each registration waits, if it must
    assert (calls["hipHostRegister"], calls["hipHostUnregister"]) == (6, 6), calls
    assert found["other_calls"] == f"{name} {test_word.ENDED}"
