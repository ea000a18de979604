"""Other code calls HIP where only programs in C can: in a signal handler and after it, in
constructors, at exit, from a profiler. Or it calls while another thread registers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.runtime.driver import foreign
from tests.runtime.driver.test_witness import TELLS
from tests.runtime.driver.test_word import LAZY
from tests.support.child import ROOT, STUB
from tests.support.compiled import compile_c
from tests.support.known import program, run_program
from tests.support.patience import run_process

JUMP = r"""
#include "program.h"
static sigjmp_buf back;
static pthread_t first;
static void jump(int number) { (void)number, siglongjmp(back, 1); }
static void *interrupt(void *data) {
    (void)data;
    while (!hipstub_count("hipStreamSynchronize"))
        usleep(1000);
    pthread_kill(first, SIGUSR1);
    return NULL;
}
int main(void) {
    pthread_t other;
    first = pthread_self();
    signal(SIGUSR1, jump);
    void *stream = mgpuStreamCreate();
    mgpuStreamDestroy(stream);
    stream = mgpuStreamCreate();
    pthread_create(&other, NULL, interrupt, NULL);
    if (sigsetjmp(back, 1) == 0)
        mgpuStreamSynchronize(stream); /* lasts until the signal */
    pthread_join(other, NULL);
    mgpuStreamDestroy(stream);
    hipDeviceReset(); /* a call of other code, though the thread has never left the library's */
    mgpuStreamDestroy(mgpuStreamCreate()); /* not the stream that the reset has destroyed */
    printf("%d streams, %d misuses\n", (int)hipstub_count("hipStreamCreate"),
           (int)hipstub_misuse());
    return 0;
}
"""


def test_a_call_that_a_signal_has_ended_covers_no_call_of_other_code(tmp_path: Path) -> None:
    """The program leaves a call of HIP by siglongjmp, and then calls HIP itself."""
    built = program(tmp_path, JUMP, str(STUB))
    done = run_program(built, **TELLS, HIPSTUB_DELAY="hipStreamSynchronize:600000000")
    assert done.stdout == "2 streams, 0 misuses\n", done.stderr


#: A call of other code ends the user's word, and makes the postponed wait. The program leaves that
#: wait by siglongjmp.
JUMP_FROM_END = r"""
#include "program.h"
int hipMalloc(void **memory, size_t bytes);
static sigjmp_buf back;
static pthread_t first;
static void jump(int number) { (void)number, siglongjmp(back, 1); }
static void *interrupt(void *data) {
    while (!hipstub_count("hipStreamSynchronize"))
        usleep(1000);
    pthread_kill(first, SIGUSR1);
    return data;
}
int main(void) {
    pthread_t other;
    void *memory, *stream = mgpuStreamCreate();
    first = pthread_self();
    signal(SIGUSR1, jump);
    mgpuMemset32(mgpuMemAlloc(64, stream, false), 7, 16, stream);
    mgpuStreamSynchronize(stream);
    printf("%d pending\n", (int)hipstub_pending(stream));
    pthread_create(&other, NULL, interrupt, NULL);
    if (sigsetjmp(back, 1) == 0)
        hipMalloc(&memory, 64);
    pthread_join(other, NULL);
    printf("%d pending, %d calls\n", (int)hipstub_pending(stream), (int)hipstub_count("hipMalloc"));
    hipMalloc(&memory, 64);
    printf("%d pending\n", (int)hipstub_pending(stream));
    return 0;
}
"""


def test_a_call_after_a_wait_that_a_signal_has_ended_makes_this_wait(tmp_path: Path) -> None:
    built = program(tmp_path, JUMP_FROM_END, str(STUB))
    done = run_program(built, **LAZY, HIPSTUB_DELAY="hipStreamSynchronize:300000")
    assert done.stdout.splitlines() == ["1 pending", "1 pending, 1 calls", "0 pending"], done.stderr


# ---- what changes nothing, and what ends the sole use ----


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("foreign"), foreign.SOURCE)


def test_each_harmless_function_leaves_the_library_the_sole_user(calls: Path) -> None:
    assert sorted(foreign.HARMLESS) == sorted(foreign.listed())
    done = run_program(calls, **TELLS, MGPU_RT_VERBOSE="1")
    called = done.stdout.split()
    assert set(called) <= set(foreign.HARMLESS) and len(called) > 15, called
    assert "was the first" not in done.stderr


@pytest.mark.parametrize("name", foreign.OTHERS)
def test_a_function_that_is_not_harmless_ends_the_sole_use(calls: Path, name: str) -> None:
    done = run_program(calls, name, **TELLS, MGPU_RT_VERBOSE="1")
    assert "wrong" not in done.stdout
    assert f"calls of HIP by other code: {name} was the first" in done.stderr


#: The file that hears HIP's reports, over a HIP of two functions: the library's probe, and one that
#: other code calls. The processor stops after each instruction of a probe. In each round, a signal
#: handler calls HIP at one instruction: the first, the second, and so on.
INTERRUPTED = r"""
#include "driver/witness.c"
#include "trap_flag.h"
#include <signal.h>
enum { PEEK = 1, FOREIGN = 2 };
struct hip_functions hip;
const struct hip_functions hip_missing;
struct counts counts;
struct options options;
unsigned runtime_mode;
bool runtime_forked;
int hip_device_count;
void (*other_code_allocates)(void);
int hip_version = HIP_7;
void report_verbose(const char *format, ...) { (void)format; }
void report_once(struct advice *advice, ...) { (void)advice; }
const char *options_path_variable(const char *name) { return name; }
bool mapped_find(const char *name, const char *other, char *path, size_t size) {
    return name && other && path && size;
}
static hipError_t peek(void) { return hear(HIP_API, PEEK, NULL), hipSuccess; }
static const char *name(uint32_t operation) { return operation == FOREIGN ? "hipFree" : ""; }
static int steps, wanted;
static void interrupt(int number) {
    (void)number;
    if (++steps == wanted)
        hear(HIP_API, FOREIGN, NULL);
}
int main(void) {
    signal(SIGTRAP, interrupt);
    operation_name = name;
    describe_operation(PEEK, "hipPeekAtLastError");
    hip.PeekAtLastError = peek;
    mark_own_calls();
    for (wanted = 1, steps = 1; steps >= wanted || wanted == 1; wanted++) {
        steps = 0;
        ended_by = 0;
        witness_users = WITNESS_SOLE_USER;
        set_trap_flag(true);
        (void)witness_confirms();
        set_trap_flag(false);
        if (steps >= wanted && witness_users != WITNESS_OTHERS)
            return 1;
    }
    printf("%d\n", wanted);
    return 0;
}
"""


def test_a_call_of_a_signal_handler_within_a_probe_ends_the_sole_use(tmp_path: Path) -> None:
    flags = ("-D_GNU_SOURCE", "-O1", f"-I{ROOT / 'csrc/runtime'}", f"-I{ROOT / 'csrc/include'}")
    built = compile_c(tmp_path / "program", INTERRUPTED, *flags, "-pthread")
    done = run_process([str(built)])
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 30


#: Other code calls HIP at a place that the first word names. Prints the calls of hipStreamQuery
#: that the library has then made for ten streams which it hands out again.
PLACES = r"""
#include "program.h"
typedef void callback(void *, int, void *);
int hipMalloc(void **memory, size_t bytes);
int hipModuleLoadData(void **module, const void *image);
int hipStreamCreate(void **stream);
int hipStreamAddCallback(void *stream, callback *call, void *data, unsigned flags);
int hipStreamSynchronize(void *stream);
static const char *place = "";
static sem_t waits, go_on;
static void call_hip(void) {
    void *memory;
    hipMalloc(&memory, 64);
}
static void hand_out(const char *when) {
    const uint64_t before = hipstub_count("hipStreamQuery");
    for (int i = 0; i < 10; i++)
        mgpuStreamDestroy(mgpuStreamCreate());
    printf("%s %d\n", when, (int)(hipstub_count("hipStreamQuery") - before));
    fflush(stdout);
}
static void from_stream(void *stream, int error, void *data) {
    (void)stream, (void)error, (void)data;
    call_hip();
}
static void at_end(void) {
    hand_out("before");
    call_hip();
    hand_out("after");
}
__attribute__((constructor)) static void begin(void) {
    place = getenv("PLACE");
    if (strcmp(place, "constructor") == 0)
        call_hip();
    else if (strcmp(place, "constructor, later") == 0)
        mgpuStreamDestroy(mgpuStreamCreate()), call_hip();
}
static void hold_stream(void *stream, int error, void *data) {
    (void)stream, (void)error, (void)data;
    sem_post(&waits);
    sem_wait(&go_on);
}
/* Waits for a host function that ends only with the program. */
static void *wait_for_stream(void *data) {
    void *stream;
    hipStreamCreate(&stream);
    hipStreamAddCallback(stream, hold_stream, NULL, 0);
    hipStreamSynchronize(stream);
    return data;
}
/* Other code calls HIP before the program's first call of the library. */
static void call_before(void) {
    pthread_t other;
    void *object;
    if (strcmp(place, "module before") == 0)
        hipModuleLoadData(&object, "an image");
    if (strcmp(place, "blocked call before") == 0) {
        pthread_create(&other, NULL, wait_for_stream, NULL);
        sem_wait(&waits);
    }
    if (strcmp(place, "host function before") == 0) {
        hipStreamCreate(&object);
        hipStreamAddCallback(object, from_stream, NULL, 0);
    }
}
/* The child of a fork calls HIP and the library. */
static void fork_and_call(void) {
    if (fork() == 0) {
        mgpuStreamDestroy(mgpuStreamCreate());
        call_hip();
        mgpuStreamDestroy(mgpuStreamCreate());
        _exit(0);
    }
    int status = 0;
    wait(&status);
    if (status)
        puts("the child has failed");
}
int main(void) {
    call_before();
    void *stream = mgpuStreamCreate();
    if (strcmp(place, "exit") == 0)
        atexit(at_end);
    if (strcmp(place, "host function") == 0)
        hipStreamAddCallback(stream, from_stream, NULL, 0);
    mgpuStreamSynchronize(stream);
    mgpuStreamDestroy(stream);
    if (strcmp(place, "closed library") == 0)
        dlclose(dlopen(getenv("LIBRARY"), RTLD_NOW));
    if (strcmp(place, "forked child") == 0)
        fork_and_call();
    if (strcmp(place, "exit") != 0)
        hand_out("after");
    return 0;
}
"""
CALLS_HIP = """
int hipMalloc(void **memory, unsigned long bytes);
__attribute__((constructor)) static void call_hip(void) { void *memory; hipMalloc(&memory, 64); }
"""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("places"), PLACES, str(STUB))


#: Maps each place to what the program prints; no code calls HIP at the first.
SEEN = {
    "": "after 0\n",
    **dict.fromkeys(("constructor", "constructor, later"), "after 10\n"),
    **dict.fromkeys(("host function", "closed library"), "after 10\n"),
    **dict.fromkeys(("module before", "blocked call before", "host function before"), "after 10\n"),
    "forked child": "after 0\n",
    "exit": "before 0\nafter 10\n",
}


@pytest.mark.parametrize("place", SEEN)
def test_a_call_of_other_code_is_seen_where_it_is_made(
    places: Path, tmp_path: Path, place: str
) -> None:
    library = compile_c(tmp_path / "calls_hip.so", CALLS_HIP, "-shared", "-fPIC")
    done = run_program(places, **TELLS, PLACE=place, LIBRARY=str(library))
    assert (done.stdout, done.stderr) == (SEEN[place], "")


@pytest.mark.parametrize("name", ("libroctracer64.so.4", "librocprofiler64.so.2"))
def test_a_profiler_that_is_mapped_keeps_the_reports(
    places: Path, tmp_path: Path, name: str
) -> None:
    """roctracer sets its function when the profiling begins."""
    profiler = compile_c(tmp_path / name, "", "-shared", "-fPIC")
    done = run_program(places, **TELLS, PLACE="", LD_PRELOAD=str(profiler))
    assert (done.stdout, done.stderr) == ("after 10\n", "")


# ---- the first calls of two threads ----

#: A HIP that forwards to the stub, and stops one thread in a function until the program lets the
#: thread go on.
FRONT = r"""
#include "program.h"
sem_t front_reached, front_go;
const char *_Atomic front_stop = "hipApiName";
static void *enter(const char *function) {
    const char *stop = front_stop;
    if (stop && strcmp(stop, function) == 0) {
        front_stop = NULL;
        sem_post(&front_reached);
        sem_wait(&front_go);
    }
    return dlsym(RTLD_NEXT, function);
}
const char *hipApiName(uint32_t operation) {
    return ((const char *(*)(uint32_t))enter("hipApiName"))(operation);
}
void hipRegisterTracerCallback(void *tracer) {
    ((void (*)(void *))enter("hipRegisterTracerCallback"))(tracer);
}
int hsa_system_get_info(int attribute, void *value) {
    return ((int (*)(int, void *))enter("hsa_system_get_info"))(attribute, value);
}
"""

#: The first thread stops in its first call while it registers. Before HIP reports, other code
#: allocates. Then the second thread makes its first call. Prints the calls of hipStreamQuery that
#: the library makes for ten streams which it hands out again, before and after the first thread's
#: call ends. With a second word, other code allocates once more in between.
OVERLAP = r"""
#include "program.h"
int hipMalloc(void **memory, size_t bytes);
extern sem_t front_reached, front_go;
extern const char *_Atomic front_stop;
static const char *const stops[] = {"hipApiName", "hipRegisterTracerCallback",
                                    "hsa_system_get_info", NULL};
static void use_stream(void) {
    mgpuStreamDestroy(mgpuStreamCreate());
}
static void *make_first_call(void *unused) {
    use_stream();
    return unused;
}
static int hand_out(void) {
    use_stream();
    const uint64_t before = hipstub_count("hipStreamQuery");
    for (int i = 0; i < 10; i++)
        use_stream();
    return (int)(hipstub_count("hipStreamQuery") - before);
}
int main(int count, char **words) {
    pthread_t first;
    void *memory;
    pthread_create(&first, NULL, make_first_call, NULL);
    for (int i = 0; stops[i]; i++) {
        sem_wait(&front_reached);
        if (i == 1)
            hipMalloc(&memory, 64);
        if (strcmp(words[1], stops[i]) == 0)
            break;
        front_stop = stops[i + 1];
        sem_post(&front_go);
    }
    const int during = hand_out();
    if (count > 2)
        hipMalloc(&memory, 64);
    sem_post(&front_go);
    pthread_join(first, NULL);
    printf("%d %d\n", during, hand_out());
    return 0;
}
"""
STOPS = ("hipApiName", "hipRegisterTracerCallback", "hsa_system_get_info")


def overlap(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    linked = ("-Wl,--no-as-needed", str(STUB), f"-Wl,-rpath,{STUB.parent}")
    front = compile_c(folder / "front.so", FRONT, "-shared", "-fPIC", *linked, "-ldl")
    built = program(folder, OVERLAP, str(front), *linked, f"-Wl,-rpath,{folder}")
    return run_program(built, *words, **TELLS, MGPU_RT_HIP=str(front), **env)


@pytest.mark.parametrize("stop", STOPS)
def test_a_thread_that_starts_during_the_registration_relies_on_no_report(
    tmp_path: Path, stop: str
) -> None:
    done = overlap(tmp_path, stop, MGPU_RT_VERBOSE="1")
    assert done.stdout == "10 10\n", done.stderr
    assert "another thread started the library during the registration" in done.stderr


@pytest.mark.parametrize("stop", STOPS)
def test_a_call_of_other_code_ends_the_word_while_another_thread_registers(
    tmp_path: Path, stop: str
) -> None:
    done = overlap(tmp_path, stop, "allocates", MGPU_RT_EXCLUSIVE="on")
    assert "called hipMalloc, so MGPU_RT_EXCLUSIVE=on has ended" in done.stderr


#: A signal handler calls HIP while its thread gives registered memory back.
GIVES_BACK = r"""
#include "program.h"
int hipMalloc(void **memory, size_t bytes);
static pthread_t first;
static void call_hip(int number) {
    void *block;
    (void)number, hipMalloc(&block, 64);
}
static void *interrupt(void *data) {
    while (!hipstub_count("hipHostUnregister"))
        usleep(1000);
    pthread_kill(first, SIGUSR1);
    return data;
}
int main(void) {
    pthread_t other;
    first = pthread_self();
    signal(SIGUSR1, call_hip);
    char *memory = calloc(4096, 1); /* the library keeps no pages of files registered */
    mgpuMemHostRegister(memory, 4096);
    mgpuMemHostUnregister(memory);
    pthread_create(&other, NULL, interrupt, NULL);
    mgpu_rt_empty_cache();
    pthread_join(other, NULL);
    printf("%d calls\n", (int)hipstub_count("hipMalloc"));
    return 0;
}
"""


def test_a_signal_handler_never_waits_for_the_registration_that_it_interrupts(
    tmp_path: Path,
) -> None:
    built = program(tmp_path, GIVES_BACK, str(STUB))
    variables = {**TELLS, "HIPSTUB_DELAY": "hipHostUnregister:300000", "MGPU_RT_EXCLUSIVE": "on"}
    done = run_program(built, **variables)
    assert done.stdout == "1 calls\n", done.stderr
    assert "called hipMalloc, so MGPU_RT_EXCLUSIVE=on has ended" in done.stderr
