"""For bad input, the library prints stock's line and one helpful line, and the program continues.

Each test runs over the recording stub and over AMD's HIP 5.2.3 on the emulated device, and with -m
gpu on NVIDIA's GPU. Each bad call is followed by a good launch, because bad input must not break
later calls. tests/runtime/last_error compares the errors of these calls with stock's.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.support.child import BACKENDS_WITH_GPU, Mgpu, in_child
from tests.support.images import code_object

KERNEL = "test_func"
LAUNCH = (
    "hipModuleLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, smem, stream, "
    "params, extra)"
)
LOOK_UP, UNLOAD = "hipModuleGetFunction(&function, module, name)", "hipModuleUnload(module)"
RECORD, DESTROY = "hipEventRecord(event, stream)", "hipStreamDestroy(stream)"


def _forum(mgpu: Mgpu):
    return mgpu.load(mgpu.image(code_object("forum")))


def _unloaded(mgpu: Mgpu):
    module = _forum(mgpu)
    mgpu.ModuleUnload(module)
    return module


def _destroyed_stream(mgpu: Mgpu):
    stream = mgpu.StreamCreate()
    mgpu.StreamDestroy(stream)
    return stream


def _freed(mgpu: Mgpu):
    block = mgpu.MemAlloc(64, mgpu.null, False)
    mgpu.MemFree(block, mgpu.null)
    return block


def _destroyed_event(mgpu: Mgpu):
    event = mgpu.EventCreate()
    mgpu.EventDestroy(event)
    return event


def _expect(mgpu: Mgpu, expression: str, *helpful: str) -> None:
    """Asserts that the last call printed two lines. The first line is stock's line for
    `expression`, and the second line contains the words in `helpful`."""
    said = mgpu.stderr().splitlines()
    assert len(said) == 2, said
    assert said[0].startswith(f"'{expression}' failed with 'hipError"), said
    assert said[1].startswith("mgpu_rt: "), said
    for words in helpful:
        assert words in said[1], said


def _still_works(mgpu: Mgpu) -> None:
    """Makes a good launch, which must print no line."""
    function = mgpu.function(_forum(mgpu), KERNEL)
    stream = mgpu.StreamCreate()
    mgpu.launch(function, stream)
    mgpu.StreamSynchronize(stream)
    mgpu.StreamDestroy(stream)
    assert function
    assert mgpu.stderr() == ""


def _stream_as_event(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    mgpu.EventRecord(mgpu.ffi.cast("hipEvent_t", stream), stream)


Bad = tuple[Callable[[Mgpu], object], str, str]

#: Bad calls, the call of HIP that stock's line names, and words of the helpful line.
BAD: list[Bad] = [
    (lambda m: m.launch(m.null, m.null), LAUNCH, "null function"),
    (lambda m: m.function(m.null, KERNEL), LOOK_UP, "null module"),
    (lambda m: m.function(_forum(m), "no_kernel"), LOOK_UP, "no kernel 'no_kernel': `mgpu-rt insp"),
    (lambda m: m.function(_unloaded(m), KERNEL), LOOK_UP, "after mgpuModuleUnload"),
    (lambda m: m.ModuleUnload(m.null), UNLOAD, "no mgpuModuleLoad returned"),
    (lambda m: m.StreamDestroy(m.null), DESTROY, "null stream"),
    (lambda m: m.StreamSynchronize(_destroyed_stream(m)), "hipStreamSynchronize(stream)",
     "after mgpuStreamDestroy"),
    (_stream_as_event, RECORD, "passed as an event"),
    (lambda m: m.SetDefaultDevice(77), "hipSetDevice(device)", "device 77"),
    (lambda m: m.MemAlloc(1 << 50, m.null, False), "hipMalloc(&ptr, sizeBytes)", str(1 << 50)),
    (lambda m: m.MemFree(m.image(bytes(64)), m.null), "hipFree(ptr)",
     "not the start of a device allocation"),
]  # fmt: skip
#: The process explains an error of a call of HIP once, so another process makes these calls.
MORE: list[Bad] = [
    (lambda m: m.ModuleUnload(_unloaded(m)), UNLOAD, "unloaded it before"),
    (lambda m: m.launch(m.function(_forum(m), KERNEL), m.null, grid=(0, 1, 1)), LAUNCH,
     "grid 0 x 1 x 1"),
    (lambda m: m.StreamDestroy(_destroyed_stream(m)), DESTROY, "destroyed before"),
    (lambda m: m.MemFree(_freed(m), m.null), "hipFree(ptr)", "was freed before"),
]  # fmt: skip


def _explained(mgpu: Mgpu, calls: list[Bad]) -> None:
    for call, expression, helpful in calls:
        call(mgpu)
        _expect(mgpu, expression, helpful)
        _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_bad_calls_are_explained(mgpu: Mgpu) -> None:
    _explained(mgpu, BAD)


@in_child(backends=BACKENDS_WITH_GPU)
def test_more_bad_calls_are_explained(mgpu: Mgpu) -> None:
    _explained(mgpu, MORE)


@in_child(backends=BACKENDS_WITH_GPU, MGPU_RT_EXCLUSIVE="on")
def test_an_event_used_after_destroy_is_refused(mgpu: Mgpu) -> None:
    """Some releases of HIP crash in a call with a destroyed event. If other code calls HIP, the
    library passes the call on, as HIP may have given the handle to another event."""
    mgpu.EventRecord(_destroyed_event(mgpu), mgpu.null)
    _expect(mgpu, RECORD, "destroyed before")
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_an_image_for_another_gpu_harms_nothing(mgpu: Mgpu) -> None:
    """AMD's HIP and NVIDIA's driver refuse the launch; the stub accepts it."""
    module = mgpu.load(mgpu.image(code_object("forum", None, "gfx1100")))
    if not mgpu.on_stub:
        assert not module
        _expect(
            mgpu,
            "hipModuleLoadData(&module, data)",
            "refused the image",
            "mgpu-rt inspect PROGRAM" if mgpu.on_cuda else "Compile the image for this GPU",
        )
    _still_works(mgpu)


@in_child(backends=("softgpu",), policies=("builtin",), MGPU_RT_SOFTGPU="gfx90a,gfx908")
def test_an_image_for_another_gpu_of_the_machine_is_explained(mgpu: Mgpu) -> None:
    assert not mgpu.load(mgpu.image(code_object("forum", None, "gfx908")))
    _expect(mgpu, "hipModuleLoadData(&module, data)", ", for gfx908, on gfx90a:sramecc+:xnack-.")
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_missing_clusters_are_named(mgpu: Mgpu) -> None:
    """If the GPU has no clusters, a line says so; test_inquiry.py tests the clusters of gfx1250."""
    function = mgpu.function(_forum(mgpu), KERNEL)
    null = mgpu.null
    mgpu.LaunchClusterKernel(function, 2, 1, 1, 2, 1, 1, 1, 1, 1, 0, null, null, null, 0xBAD0)
    mgpu.LaunchKernelCooperative(function, 2, 1, 1, 2, 1, 1, 1, 1, 1, 0, null, null, null)
    said = mgpu.stderr()
    assert said.count("failed with 'hipErrorNotSupported'") == (0 if mgpu.on_cuda else 2)
    assert ("clusters" in said) != mgpu.on_cuda
    mgpu.LaunchClusterKernel(function, 2, 1, 1, 3, 1, 1, 1, 1, 1, 0, null, null, null, 0xBAD0)
    assert "failed with" in mgpu.stderr()
    mgpu.LaunchClusterKernel(function, 1, 1, 1, 2, 1, 1, 1, 1, 1, 0, null, null, null, 0xBAD0)
    if mgpu.on_stub or mgpu.on_cuda:  # HIP 5.2.3 has no hipModuleLaunchCooperativeKernel
        mgpu.LaunchKernelCooperative(function, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, null, null, null)
    mgpu.StreamSynchronize(null)
    _still_works(mgpu)
