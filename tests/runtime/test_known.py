"""A cache acts on what is known only: what other code did to HIP meanwhile changes no result.

"Not in a table", "not seen so far" and "was mine once" prove nothing. Each test here is of a
program that stock's runtime survives.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bench.measure import instructions
from tests.support.child import ROOT, Mgpu, environment, in_child, library
from tests.support.compiled import compile_c
from tests.support.images import code_object

KIB, MIB = 1 << 10, 1 << 20
SLOW = "20000"  # microseconds that each operation of a stream is late
KERNEL = "test_func"
STOCK = ROOT / "build" / "stock" / "libmlir_rocm_runtime.so"


def forum(mgpu: Mgpu):
    return mgpu.function(mgpu.load(mgpu.image(code_object("forum"))), KERNEL)


def distinct(number: int) -> bytes:
    """An image that no other number has: the same code with other padding behind it."""
    image = bytearray(code_object("forum"))
    at = image.index(b"AMDGPU\0") - 12  # the note that names the metadata; HIP's stub ignores it
    image[8:16] = number.to_bytes(8, "little")  # e_ident's padding, which says nothing
    assert at > 0
    return bytes(image)


def program(directory: Path, source: str, *flags: str, runtime: Path | None = None) -> Path:
    at = runtime or library()
    linked = (str(at), f"-Wl,-rpath,{at.parent}", "-Wl,--allow-shlib-undefined", "-pthread", "-ldl")
    return compile_c(directory / "program", source, *linked, *flags)


def run_program(path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = environment(**variables)
    env["LD_LIBRARY_PATH"] = str(Path(env["MGPU_RT_HIP"]).parent)
    return subprocess.run([str(path)], env=env, capture_output=True, text=True, timeout=60)


# ---- 1: addresses that no table has --------------------------------------------------------------


@in_child(MGPU_RT_EXCLUSIVE="on", HIPSTUB_ASYNC=SLOW)
def test_01_device_memory_of_others_is_not_host_memory(mgpu: Mgpu) -> None:
    """Such as a module's global: read by the CPU, it would be read before the kernel has run."""
    own = mgpu.stub_ffi.new("void **")
    mgpu.stub.hipMalloc(own, KIB)
    foreign = mgpu.ffi.cast("void *", int(mgpu.stub_ffi.cast("uintptr_t", own[0])))
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(KIB, stream, False)
    out = mgpu.ffi.new("char[]", KIB)
    mgpu.Memset32(foreign, 0x07070707, KIB // 4, stream)
    mgpu.Memcpy(block, foreign, KIB, stream)
    mgpu.Memcpy(out, block, KIB, stream)
    mgpu.StreamSynchronize(stream)
    assert bytes(mgpu.ffi.buffer(out)) == b"\7" * KIB


@in_child(HIPSTUB_ASYNC=SLOW)
def test_01_a_modules_global_is_not_host_memory(mgpu: Mgpu) -> None:
    """AMD's 5.2.3 calls its address an invalid pointer, just as it does one of pageable memory."""
    function, module = forum(mgpu), mgpu.load(mgpu.image(code_object("globals")))
    found, size = mgpu.stub_ffi.new("void **"), mgpu.stub_ffi.new("size_t *")
    assert mgpu.stub.hipModuleGetGlobal(found, size, mgpu.for_stub(module), b"launches") == 0
    address = int(mgpu.stub_ffi.cast("uintptr_t", found[0]))
    body = mgpu.ffi.callback(
        "void(void **)", lambda _: mgpu.ffi.memmove(address_of, b"\7\0\0\0", 4)
    )
    address_of = mgpu.ffi.cast("char *", address)
    mgpu.set_kernel(KERNEL, body)
    stream = mgpu.StreamCreate()
    block, out = mgpu.MemAlloc(KIB, stream, False), mgpu.ffi.new("char[]", 4)
    mgpu.launch(function, stream)
    mgpu.Memcpy(block, mgpu.ffi.cast("void *", address), 4, stream)
    mgpu.Memcpy(out, block, 4, stream)
    mgpu.StreamSynchronize(stream)
    assert bytes(mgpu.ffi.buffer(out)) == b"\7\0\0\0"


# ---- 2: others who call HIP unseen ---------------------------------------------------------------

PLUG_IN = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
void *mgpuStreamCreate(void);
void mgpuStreamSynchronize(void *);
void *mgpuMemAlloc(unsigned long, void *, _Bool);
void mgpuMemcpy(void *, void *, unsigned long, void *);
int main(void) {
    void *stream = mgpuStreamCreate();
    void *hip = dlopen(getenv("MGPU_RT_HIP"), RTLD_NOW);
    int (*allocate)(void **, unsigned long), (*fill)(void *, int, unsigned long, void *);
    *(void **)&allocate = dlsym(hip, "hipMalloc");
    *(void **)&fill = dlsym(hip, "hipMemsetD32Async");
    mgpuStreamSynchronize(stream);
    void *foreign, *block = mgpuMemAlloc(4096, stream, 0);
    allocate(&foreign, 4096);
    fill(foreign, 7, 1024, stream);
    mgpuMemcpy(block, foreign, 4096, stream);
    fill(block, 9, 1, stream);
    mgpuStreamSynchronize(stream);
    int out[1024];
    mgpuMemcpy(out, block, 4096, stream);
    mgpuStreamSynchronize(stream);
    printf("%d %d\\n", out[0], out[1023]);
}
"""


def test_02_a_plug_in_that_opens_hip_later(tmp_path: Path) -> None:
    done = run_program(program(tmp_path, PLUG_IN), HIPSTUB_ASYNC=SLOW, MGPU_RT_PYTHON="off")
    assert (done.stdout, done.stderr) == ("9 7\n", "")


FILL_UNSEEN = """
#include <stdio.h>
extern int hipMemsetD32Async(void *, int, unsigned long, void *);
extern int hipHostMalloc(void **, unsigned long, unsigned);
void *mgpuStreamCreate(void);
void mgpuStreamSynchronize(void *);
int main(void) {
    volatile int *pinned;
    void *stream = mgpuStreamCreate();
    hipHostMalloc((void **)&pinned, 4096, 0);
    pinned[0] = 1;
    mgpuStreamSynchronize(stream);
    hipMemsetD32Async((void *)pinned, 7, 1024, stream);
    mgpuStreamSynchronize(stream);
    printf("%d\\n", pinned[0]);
}
"""


def test_02_work_of_the_programs_own_is_waited_for(tmp_path: Path) -> None:
    stub = environment()["MGPU_RT_HIP"]
    path = program(tmp_path, FILL_UNSEEN, stub, f"-Wl,-rpath,{Path(stub).parent}")
    done = run_program(path, HIPSTUB_ASYNC=SLOW, MGPU_RT_PYTHON="off")
    assert (done.stdout, done.stderr) == ("7\n", "")


@in_child(HIPSTUB_ASYNC=SLOW)
def test_02_a_stream_that_others_left_busy_is_not_handed_out(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    mgpu.StreamSynchronize(stream)
    own = mgpu.stub_ffi.new("void **")
    mgpu.stub.hipMalloc(own, KIB)
    mgpu.stub.hipMemsetAsync(own[0], 1, KIB, mgpu.for_stub(stream))
    mgpu.StreamDestroy(stream)
    assert mgpu.StreamCreate() != stream


# ---- 3: calls after the exit handler -------------------------------------------------------------

LATE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void *mgpuModuleLoad(void *, unsigned long);
void *mgpuModuleGetFunction(void *, const char *);
void mgpuLaunchKernel(void *, long, long, long, long, long, long, int, void *, void **, void **,
                      unsigned long);
void *mgpuStreamCreate(void);
void mgpuStreamSynchronize(void *);
void mgpuStreamDestroy(void *);
void *mgpuMemAlloc(unsigned long, void *, _Bool);
void mgpuMemFree(void *, void *);
void mgpuMemcpy(void *, void *, unsigned long, void *);
void mgpuMemset32(void *, int, unsigned long, void *);
static void *stream, *block;
static char image[1 << 16];
static void read_back(void) { /* as the destructor of a global object does */
    int out[1024] = {0};
    if (!block)
        return;
    mgpuMemcpy(out, block, 4096, stream);
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    printf("%d\\n", out[1023]);
}
static void load_and_launch(void) {
    void *module = mgpuModuleLoad(image, sizeof image);
    void *own = mgpuStreamCreate();
    mgpuLaunchKernel(mgpuModuleGetFunction(module, "test_func"), 1, 1, 1, 1, 1, 1, 0, own, 0, 0, 0);
    mgpuStreamSynchronize(own);
    mgpuStreamDestroy(own);
    puts(module ? "launched" : "refused");
}
__attribute__((constructor)) static void construct(void) { atexit(read_back); }
int main(int count, char **words) {
    FILE *file = fopen(getenv("IMAGE"), "rb");
    if (fread(image, 1, sizeof image, file) == 0)
        return 1;
    setvbuf(stdout, 0, _IONBF, 0);
    atexit(load_and_launch);
    stream = mgpuStreamCreate();
    block = mgpuMemAlloc(4096, stream, 0);
    mgpuMemset32(block, 7, 1024, stream);
    int warm[1024];
    mgpuMemcpy(warm, block, 4096, stream);
    return 0;
}
"""


@pytest.mark.parametrize("backend", ["stub", "softgpu"])
@pytest.mark.parametrize("runtime", ["ours", "stock"])
def test_03_exit_handlers_and_destructors_use_the_device(
    tmp_path: Path, backend: str, runtime: str
) -> None:
    """HIP is opened when a program that imports mgpu* is loaded, so it ends after all of these."""
    image = tmp_path / "image"
    image.write_bytes(code_object("forum"))
    at = STOCK if runtime == "stock" else library()
    path = program(tmp_path, LATE, runtime=at)
    env = environment(backend, IMAGE=str(image), MGPU_RT_PYTHON="off")
    env["LD_LIBRARY_PATH"] = ":".join(
        [env.get("LD_LIBRARY_PATH", ""), str(Path(env["MGPU_RT_HIP"]).parent)]
    )
    done = subprocess.run([str(path)], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "launched\n7\n", "")


# ---- 4: what the cache holds is given back to whoever wants memory -------------------------------


def _fails_once(mgpu: Mgpu, function: str) -> None:
    stream = mgpu.StreamCreate()
    mgpu.MemFree(mgpu.MemAlloc(KIB, stream, False), stream)
    mgpu.lib.mgpuMemAlloc(KIB, stream, False)
    mgpu.MemFree(mgpu.MemAlloc(2 * KIB, stream, False), stream)
    nth = mgpu.count(function) + 1
    assert mgpu.stub.hipstub_set_fault(f"{function}:{nth}:2".encode()) == 0


@in_child()
def test_04_a_module_that_needs_the_memory(mgpu: Mgpu) -> None:
    _fails_once(mgpu, "hipModuleLoadData")
    assert mgpu.load(mgpu.image(code_object("forum")))
    assert mgpu.stderr() == ""


@in_child()
def test_04_shared_memory(mgpu: Mgpu) -> None:
    _fails_once(mgpu, "hipMallocManaged")
    assert mgpu.MemAlloc(KIB, mgpu.null, True)
    assert mgpu.stderr() == ""


@in_child()
def test_04_an_event(mgpu: Mgpu) -> None:
    _fails_once(mgpu, "hipEventCreateWithFlags")
    assert mgpu.EventCreate()
    assert mgpu.stderr() == ""


@in_child()
def test_04_a_stream(mgpu: Mgpu) -> None:
    _fails_once(mgpu, "hipStreamCreate")
    assert mgpu.StreamCreate()
    assert mgpu.stderr() == ""


@in_child()
def test_04_a_launch(mgpu: Mgpu) -> None:
    function = forum(mgpu)
    _fails_once(mgpu, "hipModuleLaunchKernel")
    mgpu.launch(function)
    assert mgpu.stderr() == ""


# ---- 5: streams ----------------------------------------------------------------------------------


@in_child(MGPU_RT_STREAM_LIMIT="8")
def test_05_streams_that_nobody_holds_are_bounded(mgpu: Mgpu) -> None:
    for _ in range(5):
        streams = [mgpu.StreamCreate() for _ in range(100)]
        for stream in streams:
            mgpu.StreamDestroy(stream)
        assert mgpu.stub.hipstub_live(b"streams") <= 8
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(MGPU_RT_STREAM_LIMIT="8", HIPSTUB_ASYNC="1000")
def test_05_so_are_those_destroyed_with_work_pending(mgpu: Mgpu) -> None:
    function = forum(mgpu)
    for _ in range(200):
        stream = mgpu.StreamCreate()
        mgpu.launch(function, stream)
        mgpu.StreamDestroy(stream)
        assert mgpu.stub.hipstub_live(b"streams") <= 9


@in_child(HIPSTUB_VERSION="70253211", HIPSTUB_ASYNC="0")
def test_05_an_error_that_is_pending_changes_nothing(mgpu: Mgpu) -> None:
    """HIP 7 keeps an error until the program reads it: no reason to take no stream again."""
    function = forum(mgpu)
    mgpu.stub.hipSetDevice(99)
    for _ in range(50):
        stream = mgpu.StreamCreate()
        mgpu.launch(function, stream)
        mgpu.StreamDestroy(stream)
        mgpu.stub.hipDeviceSynchronize()
    assert mgpu.count("hipStreamCreate") <= 3


@in_child()
def test_05_finding_an_idle_stream_asks_about_two_at_most(mgpu: Mgpu) -> None:
    streams = [mgpu.StreamCreate() for _ in range(2000)]
    mgpu.StreamDestroy(streams.pop())
    before = mgpu.count("hipStreamQuery")
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert mgpu.count("hipStreamQuery") - before <= 2


# ---- 6: handles that come back -------------------------------------------------------------------


@in_child(HIPSTUB_REUSE="1")
def test_06_a_stream_of_the_programs_own_at_an_address_of_ours(mgpu: Mgpu) -> None:
    function = forum(mgpu)
    ours = mgpu.StreamCreate()
    mgpu.StreamDestroy(ours)
    mgpu.lib.mgpu_rt_empty_cache()
    own = mgpu.stub_ffi.new("void **")
    mgpu.stub.hipStreamCreate(own)
    again = mgpu.ffi.cast("void *", int(mgpu.stub_ffi.cast("uintptr_t", own[0])))
    assert again == ours
    mgpu.launch(function, again)
    mgpu.StreamSynchronize(again)
    mgpu.StreamDestroy(again)
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipstub_live(b"streams") == 0


@in_child(HIPSTUB_REUSE="1")
def test_06_a_module_of_the_programs_own_at_an_address_of_ours(mgpu: Mgpu) -> None:
    image = mgpu.image(code_object("forum"))
    ours = mgpu.load(image)
    mgpu.ModuleUnload(ours)
    mgpu.lib.mgpu_rt_empty_cache()
    own = mgpu.stub_ffi.new("void **")
    mgpu.stub.hipModuleLoadData(own, mgpu.for_stub(image))
    again = mgpu.ffi.cast("void *", int(mgpu.stub_ffi.cast("uintptr_t", own[0])))
    assert again == ours
    assert mgpu.function(again, KERNEL)
    mgpu.ModuleUnload(again)
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipstub_live(b"modules") == 0


@in_child(HIPSTUB_REUSE="1")
def test_06_a_stream_of_another_kind_at_an_address_of_ours(mgpu: Mgpu) -> None:
    """One that does not wait for the null stream is not to be handed out as one that does."""
    non_blocking = 1
    for held in (1, 2):  # it is the thread's last stream, or another one
        ours = mgpu.StreamCreate()
        others = [mgpu.StreamCreate() for _ in range(1, held)]
        assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(ours)) == 0
        own = mgpu.stub_ffi.new("void **")
        mgpu.stub.hipStreamCreateWithFlags(own, non_blocking)
        again = mgpu.ffi.cast("void *", int(mgpu.stub_ffi.cast("uintptr_t", own[0])))
        assert again == ours
        before = mgpu.stub.hipstub_live(b"streams")
        mgpu.StreamDestroy(again)
        assert mgpu.stub.hipstub_live(b"streams") == before - 1
        for stream in others:
            mgpu.StreamDestroy(stream)
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_VERSION="70200000")
def test_06_a_stream_that_the_program_destroyed_by_hip(mgpu: Mgpu) -> None:
    """And then by mgpuStreamDestroy too, which stock survives. HIP 7 has flags for any address."""
    ours = mgpu.StreamCreate()
    assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(ours)) == 0
    mgpu.StreamDestroy(ours)
    assert mgpu.count("hipStreamDestroy") == 2
    assert mgpu.stub.hipGetLastError() == 709  # of the destroy, not of a question before it
    stream = mgpu.StreamCreate()
    assert stream != ours
    mgpu.launch(forum(mgpu), stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.stub.hipstub_pending(mgpu.for_stub(stream)) == 0


@in_child(HIPSTUB_REUSE="2", HIPSTUB_VERSION="70200000")
def test_06_an_event_of_the_programs_own_at_an_address_of_our_stream_on_hip_7(mgpu: Mgpu) -> None:
    an_event_at_an_address_of_our_stream(mgpu)


@in_child(HIPSTUB_REUSE="2")
def test_06_an_event_of_the_programs_own_at_an_address_of_our_stream(mgpu: Mgpu) -> None:
    """Not a stream that LLVM 22 passes as an event: the program has destroyed that one by HIP."""
    an_event_at_an_address_of_our_stream(mgpu)


def an_event_at_an_address_of_our_stream(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    ours = mgpu.StreamCreate()
    assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(ours)) == 0
    own = mgpu.stub_ffi.new("void **")
    mgpu.stub.hipEventCreateWithFlags(own, 2)
    event = mgpu.ffi.cast("void *", int(mgpu.stub_ffi.cast("uintptr_t", own[0])))
    assert event == ours
    mgpu.EventSynchronize(event)
    mgpu.EventRecord(event, stream)
    mgpu.StreamWaitEvent(stream, event)
    mgpu.EventSynchronize(event)
    mgpu.EventDestroy(event)
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stub.hipstub_live(b"events") == 0


# ---- 7: hipDeviceReset ---------------------------------------------------------------------------


@in_child(backends=("stub", "softgpu"))
def test_07_reset(mgpu: Mgpu) -> None:
    """What was cached is gone with it; what is asked for afterwards is new, and no line is said."""
    for byte in range(3):
        stream = mgpu.StreamCreate()
        block = mgpu.MemAlloc(KIB, stream, False)
        out = mgpu.ffi.new("char[]", KIB)
        mgpu.Memcpy(block, mgpu.image(bytes([byte]) * KIB), KIB, stream)
        mgpu.Memcpy(out, block, KIB, stream)
        mgpu.StreamSynchronize(stream)
        assert bytes(mgpu.ffi.buffer(out)) == bytes([byte]) * KIB
        mgpu.MemFree(block, stream)
        mgpu.EventDestroy(mgpu.EventCreate())
        mgpu.StreamDestroy(stream)
        assert mgpu.stub.hipDeviceReset() == 0
    assert mgpu.MemAlloc(KIB, mgpu.null, False)
    mgpu.lib.mgpu_rt_empty_cache()
    assert mgpu.stderr() == ""


# ---- 8: modules ----------------------------------------------------------------------------------


@in_child(MGPU_RT_MODULE_LIMIT="64K", HIPSTUB_ASYNC="10000000")
def test_08_one_leaked_stream_does_not_stop_eviction(mgpu: Mgpu) -> None:
    mgpu.launch(forum(mgpu), mgpu.StreamCreate())
    for number in range(300):
        mgpu.ModuleUnload(mgpu.load(mgpu.image(distinct(number))))
    assert mgpu.stub.hipstub_live(b"modules") * len(distinct(0)) < 192 * KIB
    os._exit(0)  # the kernel would be waited for


# ---- 9: pinned memory ----------------------------------------------------------------------------


@in_child()
def test_09_pinned_memory_has_one_bound_for_the_process(mgpu: Mgpu) -> None:
    out = mgpu.ffi.new("char[]", 64 * KIB)
    for _ in range(100):
        stream = mgpu.StreamCreate()  # leaked
        block = mgpu.MemAlloc(64 * KIB, stream, False)
        mgpu.Memcpy(block, out, 64 * KIB, stream)
        mgpu.Memcpy(out, block, 64 * KIB, stream)
    assert mgpu.count("hipHostMalloc") <= 33  # and the one that watches the device
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_ASYNC=SLOW)
def test_09_pinned_memory_in_use_is_not_taken(mgpu: Mgpu) -> None:
    """More streams copy at once than there is pinned memory for: the others go HIP's way."""
    size, count = 64 * KIB, 24
    streams = [mgpu.StreamCreate() for _ in range(count)]
    blocks = [mgpu.MemAlloc(size, stream, False) for stream in streams]
    for number, (block, stream) in enumerate(zip(blocks, streams, strict=True)):
        mgpu.Memcpy(block, mgpu.image(bytes([number + 1]) * size), size, stream)
    out = mgpu.ffi.new("char[]", size)
    for number, (block, stream) in enumerate(zip(blocks, streams, strict=True)):
        mgpu.Memcpy(out, block, size, stream)
        mgpu.StreamSynchronize(stream)
        assert bytes(mgpu.ffi.buffer(out)) == bytes([number + 1]) * size


# ---- 10: memory above the limit ------------------------------------------------------------------

ABOVE = """
#include <stdlib.h>
void *mgpuStreamCreate(void);
void *mgpuMemAlloc(unsigned long, void *, _Bool);
void mgpuMemFree(void *, void *);
int main(int count, char **words) {
    void *stream = mgpuStreamCreate();
    for (int i = 0; i < 3000; i++)
        mgpuMemAlloc(4096, stream, 0);
    for (int i = atoi(words[1]); i > 0; i--)
        mgpuMemFree(mgpuMemAlloc(4096, stream, 0), stream);
}
"""


@pytest.mark.skipif(not instructions.available(), reason="valgrind is missing")
def test_10_no_allocation_looks_at_all_blocks(tmp_path: Path) -> None:
    path = program(tmp_path, ABOVE)
    env = environment(MGPU_RT_PYTHON="off", MGPU_RT_MEMORY_LIMIT="4M", HIPSTUB_MODE="fast")
    counts = []
    for steps in ("100", "400"):
        command = ["valgrind", "--tool=none", "--log-file=/dev/null", str(path), steps]
        command[1:3] = ["--tool=callgrind", f"--callgrind-out-file={tmp_path / steps}"]
        subprocess.run(command, env=env, check=True, capture_output=True, timeout=110)
        text = (tmp_path / steps).read_text()
        counts.append(int(text.rpartition("totals: ")[2].split()[0]))
    assert (counts[1] - counts[0]) / 300 < 3000


@in_child(MGPU_RT_MEMORY_LIMIT="1M")
def test_10_above_the_limit_costs_what_stock_costs(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    held = [mgpu.MemAlloc(64 * KIB, stream, False) for _ in range(20)]
    before = mgpu.counts("hipMalloc", "hipFree")
    for _ in range(10):
        mgpu.MemFree(mgpu.MemAlloc(64 * KIB, stream, False), stream)
    after = mgpu.counts("hipMalloc", "hipFree")
    assert {name: after[name] - before[name] for name in after} == {"hipMalloc": 10, "hipFree": 10}
    for block in held:
        mgpu.MemFree(block, stream)
    before = mgpu.count("hipMalloc")
    for _ in range(10):
        mgpu.MemFree(mgpu.MemAlloc(KIB, stream, False), stream)
    assert mgpu.count("hipMalloc") == before + 1


# ---- 11: blocks that the program gave to hipFree -------------------------------------------------


@in_child(HIPSTUB_REUSE="1")
def test_11_a_block_whose_address_came_back_smaller(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(4 * KIB, stream, False)
    assert mgpu.stub.hipFree(mgpu.for_stub(block)) == 0
    own = mgpu.stub_ffi.new("void **")
    for size in range(4 * KIB - 256, 0, -256):  # until malloc has found the place again
        mgpu.stub.hipMalloc(own, size)
        again = mgpu.ffi.cast("void *", int(mgpu.stub_ffi.cast("uintptr_t", own[0])))
        if again == block:
            break
    assert again == block
    mgpu.MemFree(again, stream)
    large = mgpu.MemAlloc(4 * KIB, stream, False)
    mgpu.Memset32(large, 1, KIB, stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipstub_misuse() == 0


# ---- 14: frees without a stream ------------------------------------------------------------------

TWO_FREES = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
extern int hipStreamQuery(void *);
void *mgpuStreamCreate(void);
void *mgpuMemAlloc(unsigned long, void *, _Bool);
void mgpuMemFree(void *, void *);
void mgpuMemset32(void *, int, unsigned long, void *);
static void *first, *second;
static int busy;
static void *free_first(void *unused) {
    mgpuMemFree(first, 0);
    return unused;
}
int main(void) {
    pthread_t thread;
    first = mgpuMemAlloc(4096, 0, 0);
    second = mgpuMemAlloc(4096, 0, 0);
    mgpuMemset32(first, 1, 1024, 0);
    pthread_create(&thread, 0, free_first, 0);
    usleep(50000);
    mgpuMemFree(second, 0);
    busy = hipStreamQuery(0);
    pthread_join(thread, 0);
    printf("%d\\n", busy);
}
"""


@pytest.mark.parametrize("exclusive", ["on", "off"])
def test_14_each_free_waits_by_itself(tmp_path: Path, exclusive: str) -> None:
    stub = environment()["MGPU_RT_HIP"]
    path = program(tmp_path, TWO_FREES, stub, f"-Wl,-rpath,{Path(stub).parent}")
    done = run_program(
        path, HIPSTUB_ASYNC="300000", MGPU_RT_PYTHON="off", MGPU_RT_EXCLUSIVE=exclusive
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


# ---- 15: another namespace -----------------------------------------------------------------------

NAMESPACE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    void *library = dlmopen(LM_ID_NEWLM, getenv("RUNTIME"), RTLD_NOW);
    void *(*create)(void) = 0;
    if (library)
        *(void **)&create = dlsym(library, "mgpuStreamCreate");
    else
        puts(dlerror());
    puts(create && create() ? "created" : "failed");
}
"""


@pytest.mark.parametrize("python", ["off", ""])
def test_15_dlmopen(tmp_path: Path, python: str) -> None:
    path = compile_c(tmp_path / "program", NAMESPACE, "-ldl")
    done = run_program(path, RUNTIME=str(library()), MGPU_RT_PYTHON=python)
    assert (done.returncode, done.stdout, done.stderr) == (0, "created\n", "")


# ---- 16: two runtimes in a process ---------------------------------------------------------------

TWO_RUNTIMES = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
void *mgpuModuleLoad(void *, unsigned long);
void *mgpuModuleGetFunction(void *, const char *);
static char image[1 << 16];
int main(void) {
    void *other = dlopen(getenv("OTHER"), RTLD_NOW | RTLD_LOCAL);
    void (*unload)(void *);
    *(void **)&unload = dlsym(other, "mgpuModuleUnload");
    FILE *file = fopen(getenv("IMAGE"), "rb");
    if (fread(image, 1, sizeof image, file) == 0)
        return 1;
    for (int i = 0; i < 10; i++) {
        void *module = mgpuModuleLoad(image, sizeof image);
        if (!mgpuModuleGetFunction(module, "test_func"))
            puts("no function");
        unload(module);
    }
    puts("done");
}
"""


def test_16_another_runtime_unloads(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(code_object("forum"))
    path = program(tmp_path, TWO_RUNTIMES)
    done = run_program(path, IMAGE=str(image), OTHER=str(STOCK), MGPU_RT_PYTHON="off")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


# ---- 17: found by reading ------------------------------------------------------------------------


@in_child()
def test_17_a_stream_of_ours_that_is_lent(mgpu: Mgpu) -> None:
    """The lowered destroy leaves it alone, on any thread."""
    ours = mgpu.StreamCreate()
    assert mgpu.lib.mgpu_rt_use_stream(mgpu.ffi.cast("hipStream_t", ours)) == 0
    assert mgpu.StreamCreate() == ours
    mgpu.StreamDestroy(ours)
    mgpu.StreamDestroy(ours)
    mgpu.launch(forum(mgpu), ours)
    mgpu.StreamSynchronize(ours)
    mgpu.lib.mgpu_rt_use_stream(mgpu.null)
    mgpu.StreamDestroy(ours)
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_REUSE="1", MGPU_RT_EXCLUSIVE="on")
def test_17_stale_ranges_give_way(mgpu: Mgpu) -> None:
    """Memory that HIP hands out anew was given back, whoever did it: one slip is not for good."""
    stream = mgpu.StreamCreate()
    small = [mgpu.MemAlloc(KIB, stream, False) for _ in range(8)]
    for block in small:
        mgpu.stub.hipFree(mgpu.for_stub(block))
    for _ in range(8):
        mgpu.MemAlloc(KIB, stream, False)
    out, block = mgpu.ffi.new("char[]", KIB), mgpu.MemAlloc(KIB, stream, False)
    mgpu.Memcpy(block, out, KIB, stream)
    asked = mgpu.count("hipPointerGetAttributes")
    for _ in range(10):
        mgpu.Memcpy(block, out, KIB, stream)
    assert mgpu.count("hipPointerGetAttributes") == asked


# ---- 18: limits ----------------------------------------------------------------------------------


@in_child(MGPU_RT_MODULE_LIMIT="64K")
def test_18_a_limit_that_costs_loads_gives_way(mgpu: Mgpu) -> None:
    """300 images in turn, as a network of 100 layers has: at last each load is a hit."""
    images = [mgpu.image(distinct(number)) for number in range(300)]
    for _ in range(40):
        before = mgpu.count("hipModuleLoadData")
        for image in images:
            mgpu.ModuleUnload(mgpu.load(image))
    assert mgpu.count("hipModuleLoadData") == before
    assert mgpu.stderr().count("It gives way") == 1


@in_child()
def test_18_the_default_limit_holds_a_network(mgpu: Mgpu) -> None:
    images = [mgpu.image(distinct(number)) for number in range(600)]
    for _ in range(3):
        for image in images:
            mgpu.ModuleUnload(mgpu.load(image))
    assert mgpu.count("hipModuleLoadData") == len(images)
    assert mgpu.stats()["cache"]["modules"]["evictions"] == 0
