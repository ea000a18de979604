"""Tests of the traps of the mgpu* ABI: if the library lacks the proof for a trap, a test of that
trap fails.

The tests have the trap numbers of tests/proofs/README.md. tests/proofs/mutants removes one proof at
a time, and checks that these tests fail.
"""

from __future__ import annotations

import threading
import time

from mgpu_rt._images import elf
from tests.support.child import Mgpu, in_cases, in_child
from tests.support.images import bundle, code_object, elf_of, exports_a_constant
from tests.support.known import KERNEL, forum
from tests.support.patience import HANG


def busy_stream(mgpu: Mgpu):
    """Returns a stream on which a kernel was launched. The launch is pending if the stub holds its
    streams."""
    stream = mgpu.StreamCreate()
    mgpu.launch(forum(mgpu), stream)
    return stream


# ---- 1: identity is the bytes, not the address ---------------------------------------------------


@in_child()
def test_01_another_image_at_the_same_address_is_loaded(mgpu: Mgpu) -> None:
    """A JIT frees an image and loads another image at the same address."""
    first, second = code_object("samename", "first"), code_object("forum")
    buffer = mgpu.image(first, room=len(second))
    module = mgpu.load(buffer)
    mgpu.ModuleUnload(module)
    mgpu.ffi.memmove(buffer, second, len(second))
    other = mgpu.load(buffer)
    assert other != module
    assert mgpu.function(other, KERNEL)
    assert mgpu.count("hipModuleLoadData") == 2


@in_child()
def test_01_an_image_that_differs_in_one_byte_is_loaded(mgpu: Mgpu) -> None:
    """The test changes a byte in the middle of the image."""
    image = bytearray(code_object("forum"))
    buffer = mgpu.image(bytes(image))
    module = mgpu.load(buffer)
    mgpu.ModuleUnload(module)
    buffer[len(image) // 2] = bytes([image[len(image) // 2] ^ 1])
    assert mgpu.load(buffer) != module


@in_child()
def test_01_the_caller_may_free_its_copy_of_an_image(mgpu: Mgpu) -> None:
    """A JIT frees its copy of the image before the module ends, but HIP and the cache still read
    the image."""
    image = code_object("forum")
    buffer = mgpu.image(image)
    module = mgpu.load(buffer)
    mgpu.ffi.memmove(buffer, bytes(len(image)), len(image))
    assert mgpu.function(module, KERNEL)
    mgpu.ModuleUnload(module)
    assert mgpu.load(mgpu.image(image)) == module


# ---- 2: a kernel is named by its module and its name ---------------------------------------------


@in_child()
def test_02_one_name_in_two_modules_gives_two_functions(mgpu: Mgpu) -> None:
    first = mgpu.load(mgpu.image(code_object("samename", "first")))
    second = mgpu.load(mgpu.image(code_object("samename", "second")))
    name = "mark"
    for _ in range(3):
        assert mgpu.function(first, name) != mgpu.function(second, name)
    assert mgpu.count("hipModuleGetFunction") == 2
    image = mgpu.image(code_object("samename", "first"))
    modules = [mgpu.load(image) for _ in range(60)]  # so many that some share their slots
    assert len({mgpu.function(module, name) for module in modules}) == 60


@in_child()
def test_02_another_name_at_the_same_address_gives_another_function(mgpu: Mgpu) -> None:
    """The cache compares the name's bytes, not its address."""
    module = mgpu.load(mgpu.image(code_object("many", "part0")))
    name = mgpu.ffi.new("char[]", b"kernel00")
    first = mgpu.ModuleGetFunction(module, name)
    mgpu.ffi.memmove(name, b"kernel01", 8)
    assert mgpu.ModuleGetFunction(module, name) != first


# ---- 3: writable globals -------------------------------------------------------------------------


@in_child()
def test_03_a_reload_sees_fresh_globals(mgpu: Mgpu) -> None:
    """LLVM 20 and older load a module at each launch, so each launch starts with fresh globals. The
    second image has a writable section and no symbols."""
    unnamed = elf_of(elf.AMDGPU, [(0, 0, 0, 0), (1, 3, 64, 8)], content=bytes(8))
    for image in (code_object("globals"), unnamed):
        buffer = mgpu.image(image)
        for _ in range(3):
            mgpu.ModuleUnload(mgpu.load(buffer))
    assert mgpu.count("hipModuleLoadData") == mgpu.count("hipModuleUnload") == 6


def set_constant(mgpu: Mgpu, module) -> None:
    """Sets the image's constant by calling HIP; no kernel can set a constant."""
    address, size = mgpu.stub_ffi.new("void **"), mgpu.stub_ffi.new("size_t *")
    assert mgpu.stub.hipModuleGetGlobal(address, size, mgpu.for_stub(module), b"factor") == 0
    assert size[0] == 4
    assert mgpu.stub.hipMemcpy(address[0], mgpu.stub_ffi.new("int *", 7), 4, 1) == 0


@in_cases(("ELF", "bundle"))
def test_03_a_reload_sees_fresh_constants(mgpu: Mgpu, case: str) -> None:
    image = exports_a_constant()
    buffer = mgpu.image(bundle(image) if case == "bundle" else image)
    module = mgpu.load(buffer)
    set_constant(mgpu, module)
    mgpu.ModuleUnload(module)
    mgpu.ModuleUnload(mgpu.load(buffer))
    assert mgpu.count("hipModuleLoadData") == mgpu.count("hipModuleUnload") == 2


@in_child()
def test_03_a_bundle_with_globals_is_loaded_anew(mgpu: Mgpu) -> None:
    buffer = mgpu.image(bundle(code_object("globals")))
    assert mgpu.load(buffer) != mgpu.load(buffer)
    mgpu.ModuleUnload(mgpu.load(buffer))
    assert mgpu.count("hipModuleUnload") == 1  # the next load must have fresh ones


# ---- 4: no other caller gets a busy stream -------------------------------------------------------


def assert_busy_until(ending: threading.Event, stream, mgpu: Mgpu) -> None:
    """Asserts that no other caller gets the stream while a kernel of the stream runs."""
    mgpu.StreamDestroy(stream)
    second = mgpu.StreamCreate()
    ending.set()
    mgpu.stub.hipDeviceSynchronize()
    assert second != stream


@in_child(HIPSTUB_ASYNC="0")
def test_04_a_wait_does_not_cover_a_launch_that_comes_meanwhile(mgpu: Mgpu) -> None:
    """The wait does not cover work that another thread submits to the stream during the wait."""
    meeting, ending = threading.Event(), threading.Event()
    events = [meeting, ending]

    @mgpu.ffi.callback("void(void **)")
    def body(_params) -> None:
        events.pop(0).wait(HANG)

    mgpu.set_kernel(KERNEL, body)
    function, stream = forum(mgpu), mgpu.StreamCreate()
    mgpu.launch(function, stream)

    def submit() -> None:
        while mgpu.stub.hipstub_waiters(mgpu.for_stub(stream)) == 0:
            time.sleep(0.001)
        mgpu.launch(function, stream)
        meeting.set()

    other = threading.Thread(target=submit)
    other.start()
    mgpu.StreamSynchronize(stream)
    other.join(HANG)
    assert_busy_until(ending, stream, mgpu)


# ---- 7: streams keep their order with the null stream --------------------------------------------


@in_child()
def test_07_streams_have_the_default_flag(mgpu: Mgpu) -> None:
    mgpu.StreamCreate()
    assert mgpu.count("hipStreamCreate") == 1
    assert mgpu.count("hipStreamCreateWithFlags") == 0


# ---- 8: a handle that HIP reuses for another object ----------------------------------------------


@in_child(MGPU_RT_STREAM_LIMIT="0")
def test_08_a_stream_beyond_the_limit_is_forgotten(mgpu: Mgpu) -> None:
    """A stream that HIP has destroyed is unknown to the library, even if HIP reuses the stream's
    handle."""
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    mgpu.StreamDestroy(first)
    assert mgpu.count("hipStreamDestroy") == 1
    mgpu.StreamDestroy(first)
    assert "'hipStreamDestroy(stream)' failed with" in mgpu.stderr()
    mgpu.StreamDestroy(second)


# ---- 9: a stream in place of an event ------------------------------------------------------------


@in_child(HIPSTUB_ASYNC="held")
def test_09_a_stream_passed_to_event_synchronize_is_waited_for(mgpu: Mgpu) -> None:
    stream = busy_stream(mgpu)
    as_event = mgpu.ffi.cast("hipEvent_t", stream)
    mgpu.EventSynchronize(as_event)
    assert mgpu.pending(stream) == 0
    mgpu.EventDestroy(as_event)
    assert mgpu.StreamCreate() == stream
    assert mgpu.stub.hipstub_misuse() == 0
    assert "170833" in mgpu.stderr()


# ---- 11: constructors that never ran -------------------------------------------------------------


@in_child()
def test_11_null_module_is_explained_once(mgpu: Mgpu) -> None:
    """In LLVM 22 and later, Python's ExecutionEngine runs a program's constructors only in
    initialize()."""
    for _ in range(3):
        assert not mgpu.function(mgpu.null, KERNEL)
    said = mgpu.stderr()
    line = "'hipModuleGetFunction(&function, module, name)' failed with 'hipError"
    assert said.count(line) == 3
    assert said.count("initialize()") == 1


# ---- 12: the thread's last error -----------------------------------------------------------------


@in_child(HIPSTUB_ASYNC="held", MGPU_RT_MODULE_LIMIT="60K")  # room for one module
def test_12_an_eviction_leaves_no_error(mgpu: Mgpu) -> None:
    """The eviction queries busy streams, and each query returns hipErrorNotReady. No successful
    call follows that would clear this error."""
    image = mgpu.image(code_object("forum"))
    module, stream = mgpu.load(image), mgpu.StreamCreate()
    mgpu.launch(mgpu.function(module, KERNEL), stream)
    mgpu.StreamDestroy(stream)
    mgpu.ModuleUnload(module)
    assert mgpu.load(mgpu.image(code_object("samename", "first")))
    assert mgpu.count("hipStreamQuery") > 0
    assert mgpu.stub.hipGetLastError() == 0


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_VERSION="70253211")
def test_12_a_pending_error_survives(mgpu: Mgpu) -> None:
    """Since HIP 7, an error remains until it is read, even after successful calls."""
    first = busy_stream(mgpu)
    mgpu.StreamDestroy(first)
    pending = mgpu.stub.hipSetDevice(77)
    assert pending != 0
    second = mgpu.StreamCreate()
    assert second != first or not mgpu.on_stub  # the work may be done by now on a device
    assert mgpu.stub.hipGetLastError() == pending


# ---- 16: each thread has its own device ----------------------------------------------------------


@in_child(HIPSTUB_DEVICES="2", MGPU_RT_DEVICE="1")
def test_16_the_device_named_by_the_option_counts_before_main(mgpu: Mgpu) -> None:
    """LLVM 21 and later load modules before main, and thus before any call of
    mgpuSetDefaultDevice."""
    buffer = mgpu.image(code_object("forum"))
    module = mgpu.load(buffer)
    mgpu.ModuleUnload(module)
    mgpu.SetDefaultDevice(1)
    assert mgpu.load(buffer) == module
    mgpu.ModuleUnload(module)
    mgpu.SetDefaultDevice(0)
    assert mgpu.load(buffer) != module
