"""Images of 2 MB with many repetitions, which the library must read in bounded time.

An unbounded reader takes minutes to hours, and the test then kills the child process.
"""

from __future__ import annotations

import struct

from mgpu_rt._images import elf
from tests.support.child import Mgpu, in_child
from tests.support.images import STRTAB, elf_of

SIZE = 1 << 20
WORDS = b"\xab.value_kind\xabhidden_none"


@in_child(policies=("builtin",))
def test_repeated_words_are_read_in_bounded_time(mgpu: Mgpu) -> None:
    """Without a bound, the library would compare each word of the image with all words before that
    word."""
    words = b".version 8.0 x" + b".global" * (SIZE // 7) + b"\0"
    mgpu.load(mgpu.image(words))


@in_child(policies=("builtin",), HIPSTUB_FAULT="hipModuleLoadData:*:209")
def test_shared_notes_are_read_in_bounded_time(mgpu: Mgpu) -> None:
    """Many segments share one note. The library reads the note because HIP refuses the image."""
    text = WORDS * (SIZE // 2 // len(WORDS) // 4 * 4)
    note = struct.pack("<III", 0, len(text), 32) + text
    mgpu.load(mgpu.image(elf_of(elf.AMDGPU, [(STRTAB, 0, 0, 1)], 30_000, note)))


@in_child(policies=("builtin",))
def test_repeated_names_are_listed_in_bounded_time(mgpu: Mgpu) -> None:
    """The library lists the available names if a name is missing."""
    image = mgpu.image(elf_of(elf.AMDGPU, [(STRTAB, 0, 0, 1)], content=b".kd" * (SIZE // 3)))
    module = mgpu.load(image)
    mgpu.function(module, "none")
