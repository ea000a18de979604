"""Guards of csrc/runtime/image: what an image says of itself."""

from __future__ import annotations

from tests.runtime.guards.guard import ADVICE, IMAGES, LAST_ERROR, TRAPS, Guard

IMAGE = [
    Guard(
        "image/image.h",
        "image->size - image->head) == 0",
        "image->size - image->head) <= 1 << 30",
        f"{TRAPS}:test_01_an_image_that_differs_in_one_byte_is_loaded",
    ),
    Guard(
        "image/image_elf.c",
        "if (is_writable(&section, &names))",
        "if (false)",
        f"{TRAPS}:test_03_a_reload_sees_fresh_globals",
    ),
    Guard(
        "image/image_bundle.c",
        "contents->writable |= image.writable || image.size == 0",
        "contents->writable |= image.size == 0",
        f"{TRAPS}:test_03_a_bundle_with_globals_is_loaded_anew",
    ),
    Guard(
        "image/view.c",
        "errno != EFAULT",
        "true",
        f"{IMAGES}:test_unreadable_memory_is_not_read",
    ),
    Guard(
        "image/image_elf.c",
        "    if (!has_segments || !view_holds(view, 0, size)) {",
        "    if (!has_segments) {",
        f"{IMAGES}:test_images_with_a_false_size_of_a_section_are_not_shared",
    ),
    Guard(
        "image/image_bundle.c",
        "    if (size == 0)",
        "    if (false)",
        f"{IMAGES}:test_an_empty_bundle_entrys_offset_is_ignored",
    ),
    Guard(
        "image/image_bundle.c",
        "entry.header_size < sizeof entry || !view_holds(view, from, entry.size)",
        "entry.header_size < sizeof entry",
        f"{IMAGES}:test_a_fatbin_entrys_wrong_header_size_is_not_followed",
    ),
    Guard(
        "image/metadata.c",
        "release > 0 && release < HIP_5_3 && ",
        "(void)release, ",
        f"{ADVICE}:test_later_hip_gets_the_image_as_it_is",
    ),
    Guard(
        "image/image_describe.c",
        "enum { LOOK = 24,",
        "enum { LOOK = 8,",
        f"{LAST_ERROR}:test_an_image_of_a_few_bytes_is_not_read_beyond_its_end",
    ),
    Guard(
        "image/image_elf.c",
        "(header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shnum == 0)",
        "false",
        f"{LAST_ERROR}:test_an_elf_of_32_bits_is_refused",
    ),
]
