"""Calls the functions of mgpu_rt.h with arguments that no caller should pass."""

from __future__ import annotations

from tests.support.child import Mgpu, in_child
from tests.support.folders import in_folder
from tests.support.images import code_object


@in_child(policies=("builtin",))
def test_unknown_names_give_no_functions(mgpu: Mgpu) -> None:
    lib, null = mgpu.lib, mgpu.ffi.NULL
    for name in (null, b"", b"mgpuNothing", b"x" * 100_000, b"\xff\x1b[31m"):
        assert lib.mgpu_rt_native(name) == null
        assert lib.mgpu_rt_intercept(name, null) == -1
    assert lib.mgpu_rt_intercept(b"end", null) == 0


@in_child(policies=("builtin",))
def test_a_missing_image_has_no_place(mgpu: Mgpu) -> None:
    lib, ffi = mgpu.lib, mgpu.ffi
    file, found = ffi.new("char[]", b"untouched"), ffi.new("unsigned long long *", 1)
    for address in (0, 8, 1 << 47, (1 << 64) - 8):
        image = ffi.cast("void *", address)
        assert lib.mgpu_rt_image_place(image, file, len(file), found) == address
        assert ffi.string(file) == b"" and found[0] == 0
    text = mgpu.image(b"no image at all, and long enough to be looked at")
    lib.mgpu_rt_image_place(text, file, len(file), found)
    assert ffi.string(file) == b"" and found[0] == 0


@in_child(policies=("builtin",))
def test_an_error_with_an_unknown_number_is_reported(mgpu: Mgpu) -> None:
    for error in (-1, 123456, 1 << 30):
        mgpu.lib.mgpu_rt_report(b"mine()", error)
    assert mgpu.lib.mgpu_rt_take_error() != mgpu.ffi.NULL
    assert mgpu.lib.mgpu_rt_take_error() == mgpu.ffi.NULL
    assert mgpu.stderr().count("'mine()' failed with '") == 3


#: Names that a kernel may have, because HIP accepts any bytes except 0. Each name is as long as the
#: kernel's original name.
HOSTILE_NAMES = [b'k"]; \\\n\x1bx', b"\xff\xfe\xe2\x82\x80<&>'"]


@in_child(policies=("builtin",), MGPU_RT_STATS="/dev/null", MGPU_RT_TRACE="trace")
@in_folder
def test_any_name_of_a_kernel_is_one_label(mgpu: Mgpu) -> None:
    """The statistics and the trace show the kernel's name."""
    for name in HOSTILE_NAMES:
        module = mgpu.load(mgpu.image(code_object("forum").replace(b"test_func", name)))
        mgpu.launch(mgpu.lib.mgpuModuleGetFunction(module, name))
    assert list(mgpu.stats()["kernels"]) == ['k"]; \\\n\x1bx', "??₀<&>'"]
