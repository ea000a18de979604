"""For bad input, the library prints stock's line and one helpful line, and the program continues.

Each test runs over the recording stub and over AMD's HIP 5.2.3 on the emulated device, with both
policies. With -m gpu each test also runs on NVIDIA's GPU. Each test ends with a good launch,
because bad input must not break later calls.
"""

from __future__ import annotations

from tests.support.child import BACKENDS_WITH_GPU, Mgpu, in_child
from tests.support.edge import at_the_edge
from tests.support.images import code_object

KERNEL = "test_func"


def _forum(mgpu: Mgpu):
    return mgpu.load(mgpu.image(code_object("forum")))


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


@in_child(backends=BACKENDS_WITH_GPU)
def test_a_null_module_is_refused(mgpu: Mgpu) -> None:
    assert not mgpu.function(mgpu.null, KERNEL)
    _expect(mgpu, "hipModuleGetFunction(&function, module, name)", "null module", "initialize()")
    mgpu.ModuleUnload(mgpu.null)
    _expect(mgpu, "hipModuleUnload(module)", "no mgpuModuleLoad returned")
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_a_null_function_is_refused(mgpu: Mgpu) -> None:
    _forum(mgpu)
    mgpu.launch(mgpu.null, mgpu.null)
    _expect(
        mgpu,
        "hipModuleLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, smem, "
        "stream, params, extra)",
        "null function",
    )
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_the_null_stream_serves_everywhere_but_for_destroying(mgpu: Mgpu) -> None:
    """NULL is HIP's null stream, which is valid everywhere except in mgpuStreamDestroy."""
    function = mgpu.function(_forum(mgpu), KERNEL)
    mgpu.launch(function, mgpu.null)
    mgpu.StreamSynchronize(mgpu.null)
    event = mgpu.EventCreate()
    mgpu.EventRecord(event, mgpu.null)
    mgpu.EventSynchronize(event)
    mgpu.StreamWaitEvent(mgpu.null, event)
    mgpu.EventDestroy(event)
    assert mgpu.stderr() == ""
    mgpu.StreamDestroy(mgpu.null)
    _expect(mgpu, "hipStreamDestroy(stream)", "null stream")
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_an_unknown_kernel_name_is_refused(mgpu: Mgpu) -> None:
    module = _forum(mgpu)
    for wrong in ("no_such_kernel", ""):
        assert not mgpu.function(module, wrong)
        said = mgpu.stderr()
        assert "'hipModuleGetFunction(&function, module, name)' failed with 'hipErrorNot" in said
        if wrong:
            assert f"no kernel '{wrong}': `mgpu-rt inspect PROGRAM` lists" in said
    _still_works(mgpu)


@in_child()
def test_a_truncated_image_is_refused(mgpu: Mgpu) -> None:
    """The test truncates the image at many places. Unreadable memory follows each truncated image.
    AMD's HIP and NVIDIA's driver read that memory, and crash."""
    image = code_object("forum")
    for kept in (0, 4, 63, 64, 100, 1000, len(image) // 2, len(image) - 64, len(image) - 1):
        assert not mgpu.load(at_the_edge(mgpu, image[:kept])), kept
        said = mgpu.stderr()
        assert said.startswith("'hipModuleLoadData(&module, data)' failed with 'hipError"), said
    _still_works(mgpu)


@in_child()
def test_an_image_overwritten_behind_its_header_is_refused(mgpu: Mgpu) -> None:
    image = bytearray(code_object("forum"))
    image[64 : len(image)] = b"\xa5" * (len(image) - 64)
    assert not mgpu.load(mgpu.image(bytes(image)))
    _expect(mgpu, "hipModuleLoadData(&module, data)")
    _still_works(mgpu)


@in_child()
def test_a_program_is_refused_as_an_image(mgpu: Mgpu) -> None:
    """HIP 6 and older crash on some programs."""
    with open("/proc/self/exe", "rb") as file:
        program = file.read()
    assert not mgpu.load(mgpu.image(program))
    _expect(mgpu, "hipModuleLoadData(&module, data)", "an ELF for another machine")
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_foreign_images_are_refused(mgpu: Mgpu) -> None:
    assert not mgpu.load(mgpu.image(b".version 8.0\n.target sm_90\nnonsense\n\0"))
    assert "failed with 'hipError" in mgpu.stderr()
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
            "AMDGPU code object",
            "mgpu-rt inspect PROGRAM" if mgpu.on_cuda else "Compile the image for this GPU",
        )
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_empty_and_null_images_are_refused(mgpu: Mgpu) -> None:
    for image in (mgpu.null, mgpu.image(bytes(4096))):
        assert not mgpu.load(image)
        assert "'hipModuleLoadData(&module, data)' failed with 'hipError" in mgpu.stderr()
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_a_grid_of_zero_is_refused(mgpu: Mgpu) -> None:
    function = mgpu.function(_forum(mgpu), KERNEL)
    stream = mgpu.StreamCreate()
    mgpu.launch(function, stream, grid=(0, 1, 1))
    _expect(
        mgpu,
        "hipModuleLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, smem, "
        "stream, params, extra)",
        "grid 0 x 1 x 1",
    )
    mgpu.StreamDestroy(stream)
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_a_stream_passed_as_an_event_is_explained(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    event = mgpu.ffi.cast("hipEvent_t", stream)
    mgpu.EventRecord(event, stream)
    _expect(mgpu, "hipEventRecord(event, stream)", "passed as an event")
    mgpu.StreamWaitEvent(stream, event)
    assert "'hipStreamWaitEvent(stream, event, 0)' failed with" in mgpu.stderr()
    mgpu.StreamDestroy(stream)
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_a_stream_used_after_destroy_is_refused(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    function = mgpu.function(_forum(mgpu), KERNEL)
    mgpu.StreamDestroy(stream)
    mgpu.StreamSynchronize(stream)
    _expect(mgpu, "hipStreamSynchronize(stream)", "after mgpuStreamDestroy")
    mgpu.launch(function, stream)
    assert "stream, params, extra)' failed with 'hipErrorContextIsDestroyed'" in mgpu.stderr()
    mgpu.StreamDestroy(stream)
    _expect(mgpu, "hipStreamDestroy(stream)", "destroyed before")
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU, MGPU_RT_EXCLUSIVE="on")
def test_an_event_used_after_destroy_is_refused(mgpu: Mgpu) -> None:
    """Some releases of HIP crash in a call with a destroyed event. If other code calls HIP, the
    library passes the call on, as HIP may have given the handle to another event."""
    stream, event = mgpu.StreamCreate(), mgpu.EventCreate()
    mgpu.EventDestroy(event)
    mgpu.EventRecord(event, stream)
    _expect(mgpu, "hipEventRecord(event, stream)", "destroyed before")
    mgpu.EventDestroy(event)
    assert "'hipEventDestroy(event)' failed with" in mgpu.stderr()
    mgpu.StreamDestroy(stream)
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_a_module_used_after_unload_is_refused(mgpu: Mgpu) -> None:
    module = _forum(mgpu)
    assert mgpu.function(module, KERNEL)
    mgpu.ModuleUnload(module)
    assert not mgpu.function(module, KERNEL)
    _expect(mgpu, "hipModuleGetFunction(&function, module, name)", "after mgpuModuleUnload")
    mgpu.ModuleUnload(module)
    _expect(mgpu, "hipModuleUnload(module)", "unloaded it before")
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_an_unload_of_an_unknown_module_is_refused(mgpu: Mgpu) -> None:
    mgpu.ModuleUnload(mgpu.ffi.cast("hipModule_t", mgpu.image(bytes(256))))
    _expect(mgpu, "hipModuleUnload(module)", "no mgpuModuleLoad returned")
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_an_unknown_device_is_refused(mgpu: Mgpu) -> None:
    mgpu.SetDefaultDevice(77)
    _expect(mgpu, "hipSetDevice(device)", "device 77", "HIP has 1")
    _still_works(mgpu)


@in_child(backends=BACKENDS_WITH_GPU)
def test_impossible_sizes_and_foreign_addresses_are_refused(mgpu: Mgpu) -> None:
    assert not mgpu.MemAlloc(1 << 50, mgpu.null, False)
    _expect(mgpu, "hipMalloc(&ptr, sizeBytes)", str(1 << 50))
    mgpu.MemFree(mgpu.image(bytes(64)), mgpu.null)
    _expect(mgpu, "hipFree(ptr)", "not the start of a device allocation")
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


@in_child(MGPU_RT_HIP="/nowhere/libamdhip64.so", backends=("stub",))
def test_calls_without_hip_fail_and_one_line_says_what_to_do(mgpu: Mgpu) -> None:
    """Every call fails as on a machine without a device; one line says what to do."""
    assert not mgpu.lib.mgpuStreamCreate()
    said = mgpu.stderr()
    assert "'hipStreamCreate(&stream)' failed with 'hipErrorSharedObjectInitFailed'" in said
    assert said.count("no HIP library") == 1
    assert "/nowhere/libamdhip64.so" in said
    assert "MGPU_RT_HIP" in said
    assert not mgpu.load(mgpu.image(code_object("forum")))
    assert "no HIP library" not in mgpu.stderr()


@in_child(
    MGPU_RT_CACHE="sometimes",
    MGPU_RT_MODULE_LIMIT="many",
    MGPU_RT_STREAM_LIMIT="-1",
    MGPU_RT_DEVICE="first",
)
def test_invalid_options_are_named_with_what_is_done_instead(mgpu: Mgpu) -> None:
    """The message names each wrong option, and the value that is used instead."""
    mgpu.StreamCreate()
    said = mgpu.stderr()
    for option in (
        "CACHE='sometimes'",
        "MODULE_LIMIT='many'",
        "STREAM_LIMIT='-1'",
        "DEVICE='first'",
    ):
        assert f"MGPU_RT_{option}" in said
    _still_works(mgpu)
