"""NVIDIA's cubins and PTX: targets, kernels and their arguments, variables in global memory."""

from __future__ import annotations

import itertools
import math
import re
import struct
from collections.abc import Iterator, Sequence

from mgpu_rt._images.elf import Elf, globals_of
from mgpu_rt._images.model import Argument, Global, ImageDescription, KernelDescription

_KERNEL = ".text."
_CONSTANTS = ".nv.constant3"  # the section of __constant__ variables
_NEW_ABI = 8  # since this one, of CUDA 13, e_flags have the target one byte higher

_VERSION = re.compile(rb"\.version\s+(\d+\.\d+)")
_TARGET = re.compile(rb"\.target\s+(\w+)")
_ENTRY = re.compile(rb"(?:^|[\s;}])\.entry\s+([^\s(;{]+)")
_PARAMETERS = re.compile(rb"\s*\(([^)]*)\)")
_PARAMETER = re.compile(
    rb"\.param\s+(?:\.align\s+(\d{1,9})\s+)?\.[busf](\d{1,9})(\s+\.ptr\b)?"
    rb"[^,\[]*(?:\[(\d{1,9})\])?"
)
#: A directive that limits or fixes the number of threads in a block. PTX has this directive between
#: a kernel's parameters and body.
_THREADS = re.compile(rb"\.(reqntid|maxntid)\s+(\d{1,9})(?:\s*,\s*(\d{1,9}))?(?:\s*,\s*(\d{1,9}))?")
_CONSTANT = re.compile(rb"\.const(?![\w$%])")
#: The pattern allows at most 200 characters between .global and the variable's type, so that a
#: failed match takes little time.
_VARIABLE = re.compile(
    rb"\.global(?![\w$%])[^;(]{0,200}?\.[busf](\d{1,9})\s+"
    rb"([A-Za-z_$%][\w$%]{0,4000})((?:\[\d{0,9}\]){0,9})\s*[;=]"
)


def describe_cubin(image: ImageDescription, elf: Elf) -> None:
    new = elf.abi_version >= _NEW_ABI
    image.target = f"sm_{elf.flags >> (8 if new else 0) & 0xFF}"
    names = [s.name.removeprefix(_KERNEL) for s in elf.sections if s.name.startswith(_KERNEL)]
    attributes = {s.name: s for s in reversed(elf.sections) if s.name.startswith(_INFORMATION)}
    for name in names:
        section = attributes.get(_INFORMATION + name)
        content = image.content[section.offset : section.offset + section.size] if section else b""
        image.kernels.append(_cubins_kernel(name, content))
    image.globals = globals_of(elf)
    constants = (s for s in elf.sections if s.size and s.name.startswith(_CONSTANTS))
    image.settable = [section.name for section in constants]


def describe_ptx(image: ImageDescription) -> None:
    text = image.content
    version, target = _VERSION.search(text), _TARGET.search(text)
    image.version = _decoded(version[1]) if version else None
    image.target = _decoded(target[1]) if target else None
    kernels: dict[str, KernelDescription] = {}
    for name, parameters, directives in _entries(text):
        threads = {_THREADS_ARE[d[0]]: _sizes(d[1:]) for d in _THREADS.findall(directives)}
        kernel = _kernel(_decoded(name), _declared(parameters), threads)
        kernels.setdefault(kernel.name, kernel)  # the first kernel of a name counts
    image.kernels = [*kernels.values()]
    image.settable = [".const"] if _CONSTANT.search(text) else []
    image.globals = [
        Global(_decoded(name), _bytes(bits, dimensions))
        for bits, name, dimensions in _VARIABLE.findall(text)
    ]


def _entries(text: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yields the name, the parameters and the directives of each kernel. The directives are the
    text between the kernel's parameters and the kernel's body."""
    found = list(_ENTRY.finditer(text))
    for entry, following in itertools.zip_longest(found, found[1:]):
        end = following.start() if following else len(text)
        parameters = _PARAMETERS.match(text, entry.end(), end)
        begin = parameters.end() if parameters else entry.end()
        body = text.find(b"{", begin, end)
        directives = text[begin : body if body >= 0 else end]
        yield entry[1], parameters[1] if parameters else b"", directives


# ---- arguments ----

_INFORMATION = ".nv.info."  # the names of kernels' attribute sections begin so
_VALUE, _PAYLOAD = 3, 4  # formats of attributes
_MOST_THREADS, _THREADS_EXACTLY = 0x05, 0x10  # their numbers
_ARGUMENT, _ARGUMENT_BYTES = 0x17, 0x19
_THREADS_ARE = {b"maxntid": _MOST_THREADS, b"reqntid": _THREADS_EXACTLY}  # PTX's names
_POINTER = "pointer"  # if the image says so; other arguments may be pointers, too


Threads = dict[int, tuple[int, int, int]]  # the most threads of a block, or all, by number


def _kernel(name: str, arguments: list[Argument] | None, threads: Threads) -> KernelDescription:
    """Returns the description of a kernel. `arguments` is None if the image does not state the
    kernel's arguments."""
    known = {number: sizes for number, sizes in threads.items() if all(sizes)}
    required = known.get(_THREADS_EXACTLY)
    most = required or known.get(_MOST_THREADS)
    return KernelDescription(
        name,
        arguments=tuple(arguments or ()),
        argument_bytes=None if arguments is None else _end(arguments),
        max_flat_workgroup_size=math.prod(most) if most else None,
        required_workgroup_size=required,
    )


def _end(arguments: list[Argument]) -> int:
    return max(((a.offset or 0) + (a.size or 0) for a in arguments), default=0)


def _cubins_kernel(name: str, attributes: bytes) -> KernelDescription:
    """Returns the description of a kernel from its attributes. An attribute consists of a format, a
    number and a 2-byte field. The field contains a value, or the length of the payload that follows
    the field. An argument's payload contains an index, an ordinal, an offset and packed bits. In
    the packed bits, bits 8 to 11 are a pointer's address space, and the bits from 18 on are the
    argument's size. The payload of a thread limit contains three sizes."""
    found, total, at = {}, None, 0
    threads: Threads = {}
    while at + 4 <= len(attributes):
        form, number, value = struct.unpack_from("<BBH", attributes, at)
        at += 4
        if form == _VALUE and number == _ARGUMENT_BYTES:
            total = value
        if form != _PAYLOAD:
            continue
        payload, at = attributes[at : at + value], at + value
        if number == _ARGUMENT and len(payload) == 12:
            _, ordinal, offset, bits = struct.unpack("<IHHI", payload)
            found[ordinal] = Argument(offset, bits >> 18, _POINTER if bits >> 8 & 0xF else None)
        if number in (_MOST_THREADS, _THREADS_EXACTLY) and len(payload) == 12:
            threads[number] = struct.unpack("<III", payload)
    arguments = [found[ordinal] for ordinal in sorted(found)]
    whole = _end(arguments) == (total or 0) and attributes  # if not, some are missing
    return _kernel(name, arguments if whole else None, threads)


def _sizes(words: Sequence[bytes]) -> tuple[int, int, int]:
    """Returns the three sizes of a PTX directive; an omitted size is 1."""
    x, y, z = (int(word or 1) for word in words)
    return x, y, z


def _declared(parameters: bytes) -> list[Argument]:
    """Returns the arguments that PTX declares. An argument's offset is a multiple of the alignment;
    the default alignment is the size of one element."""
    found, end = [], 0
    for align, bits, pointer, count in _PARAMETER.findall(parameters):
        size = int(bits) // 8 * int(count or 1)
        step = max(1, int(align or int(bits) // 8))
        offset = -(-end // step) * step
        found.append(Argument(offset, size, _POINTER if pointer else None))
        end = offset + size
    return found


def _bytes(bits: bytes, dimensions: bytes) -> int | None:
    """Returns the size of a variable, or None if the declaration omits the size."""
    size = int(bits) // 8
    for dimension in re.findall(rb"\[(\d*)\]", dimensions):
        if not dimension:
            return None
        size *= int(dimension)
    return size


def _decoded(text: bytes) -> str:
    return text.decode(errors="replace")
