"""Tests the functions that compilers other than LLVM call: clusters on AMD's GPUs, occupancy,
globals, and trace buffers."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.child import BACKENDS, Mgpu, in_cases, in_child
from tests.support.images import code_object, exports_a_constant
from tests.support.known import forum

GLOBAL = b"launches"  # a global of the image "globals"


# ---- clusters ----

HIP_7 = {"HIPSTUB_VERSION": "70200000"}
#: Launches of clusters: the GPU, the cluster's first size, the function of HIP that gets the
#: launch, if any, and words of the library. GPUs have clusters from gfx1250 on.
CLUSTERS = {
    "gfx1250": ("125", 2, "hipDrvLaunchKernelEx", ""),
    "an indivisible grid": (
        "125",
        3,
        "hipDrvLaunchKernelEx",
        "clusters of 3 x 1 x 1 in a grid of 4 x 1 x 1",
    ),
    "an older GPU": ("120", 2, "", "from gfx1250 on"),
    "one workgroup": ("90", 1, "hipModuleLaunchKernel", ""),
}


@in_cases({name: {"HIPSTUB_CAPABILITY": row[0]} for name, row in CLUSTERS.items()}, **HIP_7)
def test_launches_in_clusters(mgpu: Mgpu, name: str) -> None:
    """The launches are as AMD's fork lowers them, with the number of parameters as the last
    argument, and cooperative ones."""
    _, size, called, said = CLUSTERS[name]
    function, null, clusters = forum(mgpu), mgpu.null, (size, 1, 1, 4, 1, 1)
    mgpu.LaunchClusterKernel(function, *clusters, 64, 1, 1, 0, null, null, null, 3)
    if size > 1:
        mgpu.LaunchKernelCooperative(
            function, 4, 1, 1, *clusters[:3], 64, 1, 1, 0, null, null, null
        )
    mgpu.StreamSynchronize(null)
    for function in ("hipDrvLaunchKernelEx", "hipModuleLaunchKernel"):
        assert mgpu.count(function) == (function == called) * min(size, 2)
    text = mgpu.stderr()
    assert text.count("failed with") == (2 if said else 0)
    assert text.count(said) == (1 if said else len(text) + 1)


# ---- occupancy ----


@in_child(backends=BACKENDS)
def test_occupancy_loads_an_image_once(mgpu: Mgpu) -> None:
    """HIP 5.2.3 divides by 0 for a kernel without vector registers, so this kernel uses vector
    registers."""
    image = mgpu.image(code_object("vecadd"))
    answers = {mgpu.ModuleOccupancyMaxActiveBlocks(image, b"vecadd", 256, 0) for _ in range(10)}
    assert len(answers) == 1 and answers.pop() > 0
    if mgpu.on_stub:
        assert mgpu.count("hipModuleLoadData") == 1
    assert mgpu.stderr() == ""


@in_child(backends=BACKENDS)
def test_occupancy_of_an_unknown_kernel_is_0(mgpu: Mgpu) -> None:
    image = mgpu.image(code_object("vecadd"))
    assert mgpu.ModuleOccupancyMaxActiveBlocks(image, b"absent", 256, 0) == 0
    assert "absent" in mgpu.stderr()


# ---- globals ----


def _global(mgpu: Mgpu, module, name: bytes = GLOBAL) -> tuple:
    address, size = mgpu.ffi.new("void **"), mgpu.ffi.new("size_t *")
    mgpu.ModuleGetGlobal(address, size, module, name)
    return address[0], size[0]


@in_child(backends=BACKENDS)
def test_a_global_has_an_address_of_its_own_in_each_module(mgpu: Mgpu) -> None:
    first, second = (mgpu.load(mgpu.image(code_object("globals"))) for _ in range(2))
    addresses = {_global(mgpu, module) for module in (first, second)}
    assert len(addresses) == 2 and {size for _, size in addresses} == {4}
    assert mgpu.stderr() == ""


@in_child(backends=BACKENDS)
def test_an_absent_global_is_named(mgpu: Mgpu) -> None:
    module = mgpu.load(mgpu.image(code_object("globals")))
    assert _global(mgpu, module, b"absent") == (mgpu.null, 0)
    text = mgpu.stderr()
    assert "'hipModuleGetGlobal(devPtr, bytes, module, name)' failed" in text
    assert "no global 'absent'" in text


@in_child(MGPU_RT_EXCLUSIVE="on")
def test_a_global_may_lie_where_the_host_had_memory(mgpu: Mgpu) -> None:
    """HIP may load the module where the program has unmapped its memory, so the library asks HIP
    about the address again. HIP 7 loads a module at the first look-up. A kernel may then have told
    the program the address of a global."""
    stream, source = mgpu.StreamCreate(), mgpu.ffi.new("char[1024]")
    block = mgpu.MemAlloc(1024, stream, False)

    def questions() -> int:
        mgpu.Memcpy(block, source, 1024, stream)
        return mgpu.count("hipPointerGetAttributes")

    def asks_again(call: Callable[[], object]) -> bool:
        before = questions()
        assert before > 0 and questions() == before
        call()
        return questions() > before

    image = mgpu.image(code_object("globals"))
    modules = [mgpu.load(image)]
    assert asks_again(lambda: modules.append(mgpu.load(image)))
    assert asks_again(lambda: mgpu.function(modules[1], "count"))
    assert asks_again(lambda: _global(mgpu, modules[1]))
    mgpu.ModuleUnload(modules[0])
    assert not asks_again(lambda: mgpu.function(modules[1], "count"))


@in_child()
def test_a_global_of_an_unloaded_module_is_refused(mgpu: Mgpu) -> None:
    module = mgpu.load(mgpu.image(code_object("forum")))
    mgpu.ModuleUnload(module)
    asked = mgpu.count("hipModuleGetGlobal")
    assert _global(mgpu, module) == (mgpu.null, 0)
    assert mgpu.count("hipModuleGetGlobal") == asked
    assert "was unloaded before" in mgpu.stderr()


# ---- modules that the program hands to HIP, as FlyDSL's processors do after a load ----


def _hips_function(mgpu: Mgpu, module, name: bytes):
    """Returns the kernel that HIP itself finds in a module of the library."""
    found = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipModuleGetFunction(found, mgpu.for_stub(module), name) == 0
    return mgpu.from_stub(found[0])


@in_child(backends=BACKENDS)
def test_hip_finds_the_kernels_of_a_module_that_is_shared(mgpu: Mgpu) -> None:
    """The test calls HIP after a miss, after a hit, and with two modules loaded."""
    image = mgpu.image(code_object("forum"))
    for _ in range(3):
        module = mgpu.load(image)
        assert _hips_function(mgpu, module, b"test_func") == mgpu.function(module, "test_func")
        second = mgpu.load(image)
        mgpu.launch(_hips_function(mgpu, second, b"test_func"))
        mgpu.ModuleUnload(second)
        mgpu.ModuleUnload(module)
    mgpu.StreamSynchronize(mgpu.null)
    if mgpu.on_stub:
        assert mgpu.counts("hipModuleLoadData", "hipModuleUnload") == {
            "hipModuleLoadData": 2,
            "hipModuleUnload": 0,
        }
    assert mgpu.stderr() == ""


@in_child(backends=BACKENDS)
def test_hip_finds_no_constant_that_is_the_images_own(mgpu: Mgpu) -> None:
    """The library shares images whose constants HIP cannot find by name."""
    module = mgpu.load(mgpu.image(exports_a_constant()))
    address, size = mgpu.stub_ffi.new("void **"), mgpu.stub_ffi.new("size_t *")
    for name, found in ((b"factor", True), (b"own", False)):
        error = mgpu.stub.hipModuleGetGlobal(address, size, mgpu.for_stub(module), name)
        assert (error == 0) == found


def _set(mgpu: Mgpu, module, name: bytes, value: int) -> None:
    """Sets a global by calling HIP, as FlyDSL's programs do; the library does not see these
    calls."""
    address, size = mgpu.stub_ffi.new("void **"), mgpu.stub_ffi.new("size_t *")
    assert mgpu.stub.hipModuleGetGlobal(address, size, mgpu.for_stub(module), name) == 0
    assert size[0] == 4
    assert mgpu.stub.hipMemcpy(address[0], mgpu.stub_ffi.new("int *", value), 4, 1) == 0


def _result(mgpu: Mgpu, module, kernel: str) -> int:
    """Launches a kernel with one memref<1xi32>; returns the int that the kernel stores in the
    memref."""
    out, found = mgpu.MemAlloc(4, mgpu.null, False), mgpu.ffi.new("int *")
    pointer = mgpu.ffi.new("void **", out)
    words = [mgpu.ffi.new("int64_t *", word) for word in (0, 1, 1)]
    params = mgpu.ffi.new("void *[]", [pointer, pointer, *words])
    mgpu.launch(mgpu.function(module, kernel), params=params)
    mgpu.Memcpy(found, out, 4, mgpu.null)
    mgpu.StreamSynchronize(mgpu.null)
    mgpu.MemFree(out, mgpu.null)
    return found[0]


@in_child(backends=("softgpu",))
def test_a_global_that_was_set_by_hip_is_seen_by_launches_of_its_module_only(mgpu: Mgpu) -> None:
    """One image has a constant, and another image has a variable in which the kernel counts."""
    for image, name, kernel, fresh, after in (
        (exports_a_constant(), b"factor", "read", 1, 7),
        (code_object("globals"), GLOBAL, "count", 1, 8),
    ):
        buffer = mgpu.image(image)
        for _ in range(2):  # a later load does not see it either
            module, second = mgpu.load(buffer), mgpu.load(buffer)
            _set(mgpu, module, name, 7)
            assert (_result(mgpu, module, kernel), _result(mgpu, second, kernel)) == (after, fresh)
            mgpu.ModuleUnload(module)
            mgpu.ModuleUnload(second)
    assert mgpu.stderr() == ""


# ---- FlyDSL's trace buffer ----


@in_child(backends=BACKENDS)
def test_a_trace_buffer_is_cleared_and_read(mgpu: Mgpu) -> None:
    """The buffer may have any number of bytes, and the library writes no byte beyond the buffer's
    end."""
    buffer = mgpu.MemAlloc(64, mgpu.null, False)
    sent, got = mgpu.ffi.new("char[]", b"x" * 64), mgpu.ffi.new("char[]", 64)
    mgpu.Memcpy(buffer, sent, 64, mgpu.null)
    assert mgpu.TraceBufferClear(buffer, 35) == 0
    assert mgpu.TraceBufferRead(got, buffer, 64) == 0
    assert bytes(mgpu.ffi.buffer(got)) == bytes(35) + b"x" * 29
    assert mgpu.TraceBufferRead(got, mgpu.null, 64) != 0
    assert mgpu.stderr() == ""
