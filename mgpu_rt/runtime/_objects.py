"""The arguments of a runtime's methods: images, kernels, launches, device memory."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from mgpu_rt import _runtime
from mgpu_rt._images.kernel_names import full_name, joined, label_of, modules_at
from mgpu_rt._runtime import ffi, lib
from mgpu_rt._text import printable
from mgpu_rt.runtime import _library
from mgpu_rt.runtime._hip import Hip

if TYPE_CHECKING:
    from mgpu_rt._images.model import Argument, ImageDescription, KernelDescription
    from mgpu_rt.runtime._base import Runtime

Sizes = tuple[int, int, int]


lib.add_launches()
#: A launch as C makes it (csrc/python/launches.h), with its attribute `number`.
Call: Any = _runtime.Call  # type: ignore[attr-defined]
_ARGUMENTS = ffi.typeof("struct launch *")


class Image:
    """Loaded device code. Loads of equal bytes share one Image, at any address and at any time.

    `address` is the program's current address of the bytes. If the size of the bytes is unknown,
    `content` is empty, and each load gets its own Image.
    """

    #: `_last` maps an address to its last image, which is verified before use. `_known` maps
    #: contents to images.
    _last: ClassVar[dict[int, Image]] = {}
    _known: ClassVar[dict[bytes, Image]] = {}

    def __init__(self, content: bytes, address: int = 0) -> None:
        self.content, self.address = content, address

    @classmethod
    def at(cls, address: int) -> Image:
        if not address:
            return cls(b"")
        last = cls._last.get(address)
        if last is not None and last._lies_at(address):
            return last
        from mgpu_rt._images.image import size_of

        room = ffi.buffer(ffi.cast("char *", address), 1 << 46)
        size = size_of(room) or _size_of_ptx(address)
        if not size:
            return cls(b"", address)
        content = room[:size]
        image = cls._known.setdefault(content, cls(content))
        cls._last[address] = image
        image.address = address
        return image

    def _lies_at(self, address: int) -> bool:
        self.address = address
        return bool(lib.lies_at(address, self.content, len(self.content)))

    @functools.cached_property
    def description(self) -> ImageDescription | None:
        """Returns the description that the image contains, as `mgpu-rt inspect` shows it."""
        from mgpu_rt._images import image

        return image.at(self.content) or (image.ptx(self.content) if self.content else None)

    @functools.cached_property
    def kernels(self) -> dict[str, KernelDescription]:
        return self.description.kernels_by_name if self.description else {}

    @functools.cached_property
    def _origin(self) -> tuple[tuple[str, ...], str]:
        """The image's gpu.modules, and the digits of its hash. The image must be at its address."""
        file, place, image_hash = _library.image_place(self.address) if self.content else ("", 0, 0)
        return modules_at(file, place), f"{image_hash >> 32:08x}" if image_hash else ""

    @property
    def modules(self) -> tuple[str, ...]:
        """Returns the gpu.modules whose images have these bytes, in the program's order; () if the
        program's symbols do not name them."""
        return self._origin[0]

    @property
    def label(self) -> tuple[str, str]:
        """Returns the name to show for the image's gpu.modules, "" if they are not known, and the
        digits of the image's hash that statistics show."""
        return joined(self.modules), self._origin[1]

    @functools.cached_property
    def is_constant(self) -> bool:
        """Returns True if no kernel can write to the module's memory, and the program cannot set
        the module's constants by name. All loads of such an image may share one module."""
        parts = [self.description, *self.description.entries] if self.description else []
        return bool(parts) and not any(
            p.globals or p.settable or p.damage or p.unread for p in parts
        )


def _size_of_ptx(address: int) -> int:
    """Returns the size of PTX, with the terminating 0 that NVIDIA's driver needs; 0 if the bytes
    are no PTX."""
    start = ffi.cast("char *", address)
    if not ffi.buffer(start, 8)[:].startswith((b"//", b".version")):
        return 0
    text = ffi.string(start)
    return len(text) + 1 if b".version" in text else 0


@dataclass(eq=False)
class LoadedKernel:
    """A kernel of a loaded module, identified by HIP's handle. `image` is None if the runtime
    has not seen the look-up of the kernel."""

    handle: int
    name: str
    image: Image | None = None
    alike: set[Image] = field(default_factory=set)  # images that have a kernel of this name, so far
    #: The pattern with which a LaunchHook has compared the name, and what counts the launches, if
    #: the pattern matches.
    _judged: tuple[str | None, Iterator[int] | None] = field(
        default=(None, None), init=False, repr=False
    )

    @property
    def label(self) -> str:
        """Returns the name to show, with control characters as escapes. If another kernel has an
        equal name, the kernel's module or hash precedes the name."""
        if self.image is None:
            return printable(self.name)
        others = [image.label[0] for image in self.alike if image is not self.image]
        return printable(label_of(self.name, *self.image.label, others))

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Returns all names of the kernel, the plain name first. With several gpu.modules, each
        precedes the name in one of them."""
        image = self.image
        known = dict.fromkeys(filter(None, (*image.label, *image.modules))) if image else ()
        return (self.name, *(full_name(label, self.name) for label in known))

    @functools.cached_property
    def description(self) -> KernelDescription | None:
        return self.image.kernels.get(self.name) if self.image else None

    @functools.cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """Returns the offset, size and kind of each argument, according to the image. The result is
        empty if the image does not describe the arguments."""
        return (self.description.parameters or ()) if self.description else ()


def _sizes_of(name: str) -> Any:
    return property(lambda launch: tuple(getattr(launch._c, name)))


def _member(name: str) -> Any:
    return property(operator.attrgetter(f"_c.{name}"))


class Launch(Call):
    """A launch of a kernel, which C creates. A method may pass the launch on, also several times,
    or omit it. A method launches other arguments by `self.native.mgpuLaunchKernel`.

    `grid`, `block` and `cluster` are three sizes each; `cluster` may be None. `shared` is a
    number of bytes. `stream`, `function`, `params` and `extra` are handles and addresses, as the
    ABI defines them. `symbol` is True if `function` is a host symbol (mgpuLaunchKernelRT). A
    LaunchHook sets `number`, which counts the launches of this kernel from 1.
    """

    runtime: Runtime
    __slots__ = ("runtime",)

    @property
    def _c(self) -> Any:
        """Returns the arguments of the call, as C passes them. Python converts an argument when a
        method reads it."""
        return ffi.cast(_ARGUMENTS, self._address())[0]

    grid: ClassVar[Any] = _sizes_of("grid")
    block: ClassVar[Any] = _sizes_of("block")
    function: ClassVar[Any] = _member("function")
    stream: ClassVar[Any] = _member("stream")
    params: ClassVar[Any] = _member("params")
    extra: ClassVar[Any] = _member("extra")
    cooperative: ClassVar[Any] = _member("cooperative")
    symbol: ClassVar[Any] = _member("symbol")
    shared: ClassVar[Any] = _member("shared")

    @property
    def cluster(self) -> Sizes | None:
        return tuple(self._c.cluster) if self._c.clustered else None

    @property
    def kernel(self) -> LoadedKernel:
        """Returns the kernel, with its name and image if they are known."""
        return self.runtime.kernel_of(self._c.function)

    @property
    def is_described(self) -> bool:
        """Returns True if the kernel's arguments are known from its image and from `params`."""
        known = self.kernel.description
        described = known is not None and known.argument_bytes is not None
        return described and bool(self.params or not self.kernel.arguments)

    @property
    def raw(self) -> list[bytes]:
        """Returns the bytes of each argument, or an empty list if the launch passes the arguments
        in `extra`. If the image is unknown, the list is empty, and the runtime prints a message."""
        if self.kernel.image is None:
            self.runtime._lacks_image(self.kernel)
        params = ffi.cast("char **", self.params)
        return [
            ffi.buffer(params[i], argument.size or 0)[:]
            for i, argument in enumerate(self.kernel.arguments if params else ())
        ]

    @property
    def values(self) -> list[int | bytes]:
        """Returns the arguments: pointers and values up to 8 bytes as ints, all others as bytes."""
        return [
            int.from_bytes(content, "little", signed=argument.kind == "by_value")
            if len(content) <= 8
            else content
            for argument, content in zip(self.kernel.arguments, self.raw, strict=False)
        ]

    def buffers(self) -> Iterator[tuple[int, Buffer]]:
        """Yields each block of device memory to which arguments point, with the number of the first
        such argument, from 0."""
        seen = set()
        given = zip(self.kernel.arguments, self.values, strict=False)
        for number, (argument, value) in enumerate(given):
            is_address = argument.may_point and isinstance(value, int)
            buffer = self.runtime.buffer_at(value) if is_address else None
            if buffer and buffer.address not in seen:
                seen.add(buffer.address)
                yield number, buffer

    def finish(self) -> None:
        """Waits until the launch and all earlier work of the launch's stream are done."""
        self.runtime.native.mgpuStreamSynchronize(self.stream)

    def __str__(self) -> str:
        given = ", ".join(map(shown, self.values))
        if self.kernel.image is None and not given:
            given = "?"  # its module was loaded before the runtime
        return f"{self.kernel.label}<{_sizes(self.grid)}, {_sizes(self.block)}>({given})"


def _sizes(sizes: Sizes) -> str:
    """Returns three sizes as text without trailing sizes of 1: 8x4x1 becomes 8x4."""
    x, y, z = sizes
    return f"{x}x{y}x{z}" if z != 1 else f"{x}x{y}" if y != 1 else f"{x}"


def shown(value: object) -> str:
    """Returns an argument of a call as text; numbers above 32 bits may be addresses."""
    if isinstance(value, Image):
        return f"an image of {len(value.content)} bytes"
    return hex(value) if isinstance(value, int) and value >= 1 << 32 else repr(value)


@dataclass(frozen=True)
class Buffer:
    """A block of device memory, as HIP describes it."""

    address: int
    size: int

    def content(self, stream: int = 0) -> bytes:
        """Waits for the work on `stream`, and returns the block's bytes. Raises CopyFailed if HIP
        refuses the copy."""
        held = ffi.new("char[]", self.size)
        to = int(ffi.cast("uintptr_t", held))
        Hip.of_process().copy(to, self.address, self.size, stream)
        return bytes(ffi.buffer(held))

    def __str__(self) -> str:
        return f"the {self.size} bytes at {self.address:#x}"
