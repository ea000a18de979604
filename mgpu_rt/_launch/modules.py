"""Modules and kernels: device code that Python loads and launches through the library."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mgpu_rt._images import find, kernel_names
from mgpu_rt._images.model import ImageDescription
from mgpu_rt._launch.arguments import Passed, three
from mgpu_rt._library import RuntimeLibrary, load
from mgpu_rt._packages import need_readers
from mgpu_rt._streams import stream_for

Sizes = int | Sequence[int]


class Module:
    """Device code, loaded through the library's caches, and its kernels by name.

        module = mgpu_rt.Module("program.o")
        module["vecadd"](grid, block, *arguments)

    `image` is a code object, an offload bundle, a fatbin, a cubin or PTX, as bytes or another
    buffer. `image` may also be the path of an image, or of an object file, library or program that
    contains an image. If a file contains several images, `holding` is the name of a kernel in the
    wanted image. If several images have a kernel of that name, give the full name that `mgpu-rt
    inspect` shows: "main_kernel_0::main_kernel".

    The caller may reuse the buffer of `image` once the module exists. The module is unloaded at
    exit, and when no reference to the module or its kernels is left. The work of the module's
    kernels must be complete before the module is unloaded.

    Raises ValueError, TypeError or OSError if there is no image, and HipError if HIP refuses the
    image.
    """

    def __init__(self, image: Any, *, holding: str | None = None) -> None:
        self._library = load()
        self.name, chosen = choose(image, holding)
        self.kernels = chosen.kernels_by_name
        self._full = {kernel_names.full_name(chosen.module, name): name for name in self.kernels}
        self._functions: dict[str, Any] = {}
        # With MGPU_RT_CACHE=off, HIP may read the image until the module is unloaded.
        content = self._library.ffi.from_buffer(chosen.loaded)
        given = self._library.address_of(content), len(content)
        failure, load_module = f"{self.name} was not loaded", self._library.mgpuModuleLoad
        self._handle = self._library.checked(failure, load_module, *given)
        weakref.finalize(
            *(self, self._library.give_back, self._library.life()),
            *(_unload, self._library, self._handle, content),
        )

    def __getitem__(self, name: str) -> Kernel:
        """Returns a kernel, by its name or by the full name. Raises KeyError if the image lacks the
        kernel, or HipError if only HIP can detect that the kernel is missing."""
        name = self._full.get(name, name)
        self._function(name)
        return Kernel(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def __repr__(self) -> str:
        return f"<mgpu_rt.Module {self.name}: {', '.join(self.kernels) or 'kernels unknown'}>"

    def _function(self, name: str) -> Any:
        if function := self._functions.get(name):
            return function
        if self.kernels and name not in self.kernels:
            raise KeyError(f"{self.name} has no kernel '{name}'; it has {', '.join(self.kernels)}")
        failure, look_up = (
            f"{self.name} has no kernel '{name}'",
            self._library.mgpuModuleGetFunction,
        )
        text = name.encode(errors="surrogateescape")
        self._functions[name] = self._library.checked(failure, look_up, self._handle, text)
        return self._functions[name]


def _unload(library: RuntimeLibrary, handle: Any, _content: Any) -> None:
    """Unloads the module. The finalizer holds the image's content, so that the content exists until
    the module is unloaded."""
    library.mgpuModuleUnload(handle)


# ---- the image ----


def choose(image: Any, holding: str | None) -> tuple[str, ImageDescription]:
    """Returns the image in a file or in bytes, and the image's name for messages. Raises ValueError
    or OSError."""
    need_readers()
    is_path = isinstance(image, (str, os.PathLike))
    name = f"'{os.fspath(image)}'" if is_path else "the image"
    if is_path:
        data = Path(image).read_bytes()
    else:
        data = image if isinstance(image, bytes) else bytes(memoryview(image))
    try:
        images = find.contents(data, name).images
    except find.NothingFound as nothing:
        raise ValueError(str(nothing)) from None
    wanted = [i for i in images if holding is None or holding in (*i.kernels_by_name, *_full(i))]
    if not wanted:
        raise ValueError(f"{name} has no kernel '{holding}'; it has {_all(images)}")
    if len(wanted) > 1:
        nameless = holding and not all(image.module for image in wanted)
        way = "give one as bytes" if nameless else "say which by holding='a kernel of it'"
        kernels = f"with the kernels {_all(wanted)}"
        raise ValueError(f"{name} holds {len(wanted)} images, {kernels}: {way}")
    return name, wanted[0]


def _full(image: ImageDescription) -> list[str]:
    return [kernel_names.full_name(image.module, name) for name in image.kernels_by_name]


def _all(images: list[ImageDescription]) -> str:
    return ", ".join(kernel_names.shown(images).values()) or "none that are known"


# ---- launches ----


class Kernel:
    """A kernel of a module. A call of this object with the grid, the block and the kernel's
    arguments launches the kernel."""

    def __init__(self, module: Module, name: str) -> None:
        self.module, self.name = module, name
        description = module.kernels.get(name)
        self._description = description
        self._parameters = description.parameters if description else None

    def __repr__(self) -> str:
        count = "?" if self._parameters is None else len(self._parameters)
        return f"<kernel '{self.name}' of {self.module.name}, {count} arguments>"

    def __call__(
        self, grid: Sizes, block: Sizes, /, *arguments: Any, shared: int = 0, stream: Any = None
    ) -> None:
        """Launches the kernel with `grid` blocks of `block` threads. `grid` and `block` consist of
        one to three sizes each.

        An argument is one of:

        - a number, which gets the size of the kernel's parameter;
        - an array on the device, by __cuda_array_interface__; `In` of an array that the
          kernel only reads;
        - an array as a MemRef; an address as int, or None;
        - bytes, or a value of NumPy's or ctypes', passed unchanged.

        `shared` is the number of bytes of dynamic workgroup memory. With `stream`, or an external
        stream (use_stream), the call does not wait. Without a stream the kernel runs on one of the
        library's streams, and is complete on return.

        Raises ValueError or TypeError for arguments that do not fit, and HipError if HIP refuses
        the launch.
        """
        library, sizes = self.module._library, self._sizes(grid, block)
        if self._parameters is None:
            raise TypeError(f"the image does not describe the arguments of kernel '{self.name}'")
        function = self.module._function(self.name)
        with stream_for(library, stream) as (on, wait):
            passed = Passed(self.name, self._parameters, arguments)
            kept = [library.ffi.from_buffer(value) for value in passed.values]
            params = library.ffi.new("void *[]", kept)
            passed.uses.precede(on)
            library.mgpuLaunchKernel(
                function, *sizes, shared, on, library.address_of(params), 0, len(kept)
            )
            library.check(f"kernel '{self.name}' was not launched")
            passed.uses.finish(on, wait)
        library.check(f"kernel '{self.name}' failed")

    def _sizes(self, grid: Sizes, block: Sizes) -> tuple[int, ...]:
        try:
            blocks, threads = three("grid", grid), three("block", block)
        except ValueError as error:
            raise ValueError(f"kernel '{self.name}': {error}") from None
        if self._description and (limit := self._description.limit_on(threads)):
            raise ValueError(f"the block is {block}: kernel '{self.name}' {limit}")
        return *blocks, *threads
