"""Memory, copies and fills."""

from __future__ import annotations

from collections.abc import Callable

from tests.python.snippets.library import DEFAULT, HOST_TO_DEVICE, Hip


def hipMalloc(hip: Hip) -> None:
    first = hip.memory(100)
    assert first and hip.memory(100) != first
    assert not hip.made("hipMalloc", "void *", 0)
    hip.hipMalloc(hip.new("void **"), 1 << 50)
    hip.hipMalloc(hip.null, 100)


def hipExtMallocWithFlags(hip: Hip) -> None:
    address = hip.made("hipExtMallocWithFlags", "void *", 100, 0)
    hip.hipMemsetD32(address, 1, 25)
    hip.hipFree(address)


def hipMallocManaged(hip: Hip) -> None:
    address = hip.made("hipMallocManaged", "void *", 100, 1)
    hip.ffi.memmove(address, b"of both", 7)
    assert hip.read(address, 7) == b"of both"
    hip.hipFree(address)
    hip.hipMallocManaged(hip.new("void **"), 0, 1)


def hipHostMalloc(hip: Hip) -> None:
    address = hip.made("hipHostMalloc", "void *", 100, 0)
    hip.ffi.memmove(address, b"pinned", 6)
    assert hip.read(address, 6) == b"pinned"
    assert not hip.made("hipHostMalloc", "void *", 0, 0)


def hipMemGetInfo(hip: Hip) -> None:
    available, total = hip.new("size_t *"), hip.new("size_t *")
    hip.hipMemGetInfo(available, total)
    assert 0 < available[0] <= total[0]
    before = available[0]
    address = hip.memory(1 << 20)
    hip.hipMemGetInfo(available, total)
    assert available[0] <= before - (1 << 20)
    hip.hipFree(address)


def hipMemGetAddressRange(hip: Hip) -> None:
    address = hip.memory(1000)
    base, size = hip.new("void **"), hip.new("size_t *")
    hip.hipMemGetAddressRange(base, size, address + 10)
    assert base[0] == address
    assert size[0] == 1000
    hip.hipFree(address)
    hip.hipMemGetAddressRange(base, size, address)


def hipPointerGetAttribute(hip: Hip) -> None:
    first, second = hip.memory(100), hip.memory(100)
    one, other = hip.new("uint64_t *"), hip.new("uint64_t *")
    hip.hipPointerGetAttribute(one, 7, first)
    hip.hipPointerGetAttribute(other, 7, second)
    assert one[0] != other[0]
    hip.hipFree(first)
    hip.hipPointerGetAttribute(one, 7, first)


def hipPointerGetAttributes(hip: Hip) -> None:
    address = hip.memory(100)
    found = hip.made("hipPointerGetAttributes", "hipPointerAttribute_t", address)
    assert (found.memory_type, found.device, found.is_managed) == (1, 0, 0)
    assert found.device_pointer == address
    hip.hipPointerGetAttributes(hip.new("hipPointerAttribute_t *"), hip.new("char[]", 8))


def hipHostRegister(hip: Hip) -> None:
    buffer = hip.new("char[]", 8192)
    hip.hipHostRegister(buffer, 8192, 0)
    hip.hipHostRegister(buffer, 0, 0)
    hip.hipHostRegister(hip.null, 8192, 0)
    hip.hipHostUnregister(buffer)


def hipHostUnregister(hip: Hip) -> None:
    buffer = hip.new("char[]", 8192)
    hip.hipHostRegister(buffer, 8192, 0)
    hip.hipHostUnregister(buffer)
    hip.hipHostUnregister(buffer)


def hipHostGetDevicePointer(hip: Hip) -> None:
    buffer = hip.new("char[]", 8192)
    hip.hipHostRegister(buffer, 8192, 0)
    assert hip.made("hipHostGetDevicePointer", "void *", buffer, 0)
    hip.hipHostUnregister(buffer)
    hip.hipHostGetDevicePointer(hip.new("void **"), buffer, 0)


def hipMemcpy(hip: Hip) -> None:
    address = hip.memory(16)
    text = hip.new("char[]", b"sixteen letters!")
    hip.hipMemcpy(address, text, 16, HOST_TO_DEVICE)
    assert hip.read(address, 16) == b"sixteen letters!"
    hip.hipMemcpy(hip.offset(address, 8), address, 8, DEFAULT)
    assert hip.read(address, 16) == b"sixteen sixteen "
    hip.hipMemcpy(address, text, 0, DEFAULT)
    hip.hipMemcpy(hip.null, text, 8, DEFAULT)
    hip.hipMemcpy(address, hip.null, 8, DEFAULT)


def hipMemcpyAsync(hip: Hip) -> None:
    address, back, stream = hip.memory(16), hip.new("char[]", 16), hip.stream()
    text = hip.new("char[]", b"sixteen letters!")
    hip.hipMemcpyAsync(address, text, 16, DEFAULT, stream)
    hip.hipMemcpyAsync(back, address, 16, DEFAULT, stream)
    hip.hipStreamSynchronize(stream)
    assert hip.ffi.buffer(back, 16)[:] == b"sixteen letters!"
    hip.hipMemcpyAsync(hip.null, address, 0, DEFAULT, stream)
    hip.hipMemcpyAsync(hip.null, address, 8, DEFAULT, stream)


def _fill(hip: Hip, function: str, value: int, count: int, expected: bytes) -> None:
    """Fills the first bytes of a block of zeros, and checks that the other bytes stay unchanged."""
    address = hip.memory(32)
    hip.hipMemcpy(address, hip.new("char[]", bytes(32)), 32, HOST_TO_DEVICE)
    late = [hip.stream()] if function.endswith("Async") else []
    getattr(hip, function)(address, value, count, *late)
    hip.hipDeviceSynchronize()
    assert hip.read(address, 32) == expected.ljust(32, b"\0")
    getattr(hip, function)(address, value, 0, *late)
    getattr(hip, function)(hip.null, value, count, *late)


_FILLS = {
    "hipMemset": (0x41, 3, b"AAA"),
    "hipMemsetD16": (0x4142, 3, b"BABABA"),
    "hipMemsetD32": (0x41424344, 3, b"DCBADCBADCBA"),
}


def fill_snippet(function: str) -> Callable[[Hip], None]:
    return lambda hip: _fill(hip, function, *_FILLS[function.removesuffix("Async")])
