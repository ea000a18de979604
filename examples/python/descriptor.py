"""Defines a memref in the layout that a function with llvm.emit_c_interface expects."""

import ctypes


class Memref(ctypes.Structure):
    """A memref<?xf32> of `size` contiguous elements."""

    _fields_ = (
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("stride", ctypes.c_int64),
    )

    def __init__(self, address: int, size: int) -> None:
        super().__init__(address, address, 0, size, 1)
