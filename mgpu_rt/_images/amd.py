"""AMD's code objects: their ELF header, notes and symbols."""

from __future__ import annotations

from typing import Any

from mgpu_rt._images.elf import Elf, globals_of
from mgpu_rt._images.model import Argument, ImageDescription, KernelDescription

METADATA = 32  # the type of the note
_LONGEST = 1 << 16  # longest list of the metadata: msgpack reserves the length that the file states
_DESCRIPTOR = ".kd"  # the names of kernels' descriptors end so
HSA, RELOCATABLE = 64, 1
ABI_TO_VERSION = 2  # EI_ABIVERSION 2 is version 4

#: _FEATURES contains each feature's bit position in e_flags, for code object version 4 and later.
#: _SETTINGS contains the meanings of a feature's values.
_FEATURES = {"xnack": 8, "sramecc": 10}
_SETTINGS = ("unsupported", "any", "off", "on")


def describe(image: ImageDescription, elf: Elf) -> None:
    """Adds the properties that the code object's header, metadata and symbols describe."""
    if elf.osabi == HSA:
        image.version = elf.abi_version + ABI_TO_VERSION
        image.features = _features(elf.flags) if image.version >= 4 else {}
    metadata = _metadata(elf)
    target = _get(metadata, "amdhsa.target", str)
    image.target = target.partition("--")[2] or target if target else None
    image.kernels = [_kernel(kernel) for kernel in _maps(metadata, "amdhsa.kernels")]
    image.globals = globals_of(elf)
    written = {variable.name for variable in image.globals}
    image.settable = [
        name for name in elf.exports if not name.endswith(_DESCRIPTOR) and name not in written
    ]
    image.undefined = elf.undefined
    if elf.type == RELOCATABLE:
        image.unread = "it is not linked yet: HIP takes what ld.lld makes of it"
    elif not metadata:
        image.unread = "it has no metadata of version 3 or later, which say what its kernels need"


def _features(flags: int) -> dict[str, str]:
    settings = {name: _SETTINGS[flags >> shift & 3] for name, shift in _FEATURES.items()}
    return {name: setting for name, setting in settings.items() if setting != "unsupported"}


# ---- the metadata: a file may be damaged, so each value is checked ----


def _metadata(elf: Elf) -> dict[Any, Any]:
    import msgpack  # without msgpack an image's size and bytes are still known

    for kind, content in elf.notes:
        if kind != METADATA:
            continue
        try:
            metadata = msgpack.unpackb(
                content,
                strict_map_key=False,
                unicode_errors="replace",
                max_array_len=_LONGEST,
                max_map_len=_LONGEST,
            )
        except (ValueError, TypeError, msgpack.UnpackException):
            continue
        if isinstance(metadata, dict):
            return metadata
    return {}


def _get(values: dict[Any, Any], key: str, kind: type) -> Any:
    """Returns the value if it has the given type, otherwise None."""
    value = values.get(key)
    return value if isinstance(value, kind) else None


def _maps(values: dict[Any, Any], key: str) -> list[dict[Any, Any]]:
    return [value for value in _get(values, key, list) or [] if isinstance(value, dict)]


def _argument(values: dict[Any, Any]) -> Argument:
    return Argument(
        offset=_get(values, ".offset", int),
        size=_get(values, ".size", int),
        kind=_get(values, ".value_kind", str),
        name=_get(values, ".name", str),
    )


def _sizes(values: dict[Any, Any], key: str) -> tuple[int, int, int] | None:
    sizes = _get(values, key, list) or []
    if len(sizes) != 3 or not all(isinstance(size, int) and size > 0 for size in sizes):
        return None
    return sizes[0], sizes[1], sizes[2]


def _kernel(values: dict[Any, Any]) -> KernelDescription:
    return KernelDescription(
        name=_get(values, ".name", str) or "?",
        arguments=tuple(_argument(argument) for argument in _maps(values, ".args")),
        argument_bytes=_get(values, ".kernarg_segment_size", int),
        sgprs=_get(values, ".sgpr_count", int),
        vgprs=_get(values, ".vgpr_count", int),
        agprs=_get(values, ".agpr_count", int),
        spilled_sgprs=_get(values, ".sgpr_spill_count", int),
        spilled_vgprs=_get(values, ".vgpr_spill_count", int),
        workgroup_memory=_get(values, ".group_segment_fixed_size", int),
        scratch=_get(values, ".private_segment_fixed_size", int),
        max_flat_workgroup_size=_get(values, ".max_flat_workgroup_size", int),
        required_workgroup_size=_sizes(values, ".reqd_workgroup_size"),
        wavefront=_get(values, ".wavefront_size", int),
    )
