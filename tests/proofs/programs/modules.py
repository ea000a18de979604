"""Modules and functions: a launch must run the kernel of the right image. Each kernel adds a number
that identifies its image."""

from __future__ import annotations

from mgpu_rt._selftest.bundle import ENDLESS, OFFLOAD
from tests.proofs.programs import images
from tests.proofs.programs.script import (
    HIP,
    MODULE,
    NULL,
    Group,
    Script,
    content,
    filled,
    mixed,
    pattern,
)

modules = Group("modules", alone=True, host=True)
bundles = Group("modules-bundles", alone=True, amd=True, host=True)
others = Group("modules-others", host=True)
#: The limit permits one module, including the memory that HIP and the library use for a module.
limited = Group("modules-limited", ("library",), {"MGPU_RT_MODULE_LIMIT": "60K"}, host=True)
overridden = Group("modules-overridden", ("exclusive",), known=True, host=True)
handles = Group("modules-handles", alone=True, known=True, host=True)

#: Memory from which a program loads an image: one address for all images, or new memory for each
#: load. The image may also be a constant of a library that stays open, or of a library that may be
#: closed.
FIRST, MAPPED, CONSTANT, CLOSABLE, RELOCATED = 1, 3, 4, 5, 6


def run(p: Script, function: int, image: str, kernel: str = "mix") -> None:
    """Launches a kernel of the image on known words, and checks the result."""
    stream = p.stream()
    block = p.alloc(stream)
    p.up(block, 5, stream)
    if kernel == "copy":
        out = p.alloc(stream)
        p.launch(function, stream, out, block, "copy")
        p.read(out, stream, content([w + images_number(image) for w in pattern(5)]))
        p.free(out, stream)
    else:
        p.launch(function, stream, block, 2)
        p.read(block, stream, content(mixed(pattern(5), image, 2)))
    p.free(block, stream)
    p.unstream(stream)


def images_number(image: str) -> int:
    return mixed([0], image, 0)[0]


@modules
def the_bytes_of_an_image_count(p: Script) -> None:
    for place in (FIRST, MAPPED, RELOCATED, 0):
        for image in ("plain0", "plain1", "plain0", "plain2"):
            module = p.load(image, place)
            run(p, p.function(module), image)
            p.unload(module)


@modules
def an_image_may_go_before_its_kernel_is_asked_for(p: Script) -> None:
    for place in (FIRST, MAPPED):
        first = p.load("plain0", place)
        second = p.load("plain1", place)
        run(p, p.function(first), "plain0")
        run(p, p.function(second), "plain1")
        p.unload(first)
        p.unload(second)


@modules
def a_name_counts_in_its_module(p: Script) -> None:
    """All these modules have a function of the same name. The program passes the same pointer to
    this name in each call."""
    held = [(p.load(image), image) for image in (*images.PLAIN, *images.CELLS) * 3]
    for _ in range(2):
        for module, image in held:
            run(p, p.function(module), image)
    for module, _ in held:
        p.unload(module)


@modules
def the_letters_of_a_name_count(p: Script) -> None:
    """All names lie at one address, so the library must compare the letters of the names."""
    module = p.load("plain0")
    for kernel in ("mix", "copy", "mix"):
        run(p, p.function(module, kernel, place=1), "plain0", kernel)
    p.unload(module)


def globals_are_each_loads(p: Script, image: str, *places: int) -> None:
    stream = p.stream()
    out = p.alloc(stream)

    def bump(function: int, value: int) -> None:
        p.launch(function, stream, out, kernel="bump")
        p.read(out, stream, content([value]), 1)

    number = images_number("cell0")
    for place in places:
        first, second = p.load(image, place), p.load(image, place)
        functions = [p.function(module, "bump") for module in (first, second)]
        bump(functions[0], number)
        bump(functions[0], 4 * number)
        bump(functions[1], number)
        p.unload(first)
        bump(functions[1], 4 * number)
        third = p.load(image, place)
        bump(p.function(third, "bump"), number)
        p.unload(second)
        p.unload(third)
    p.free(out, stream)


@modules
def each_load_has_globals_of_its_own(p: Script) -> None:
    globals_are_each_loads(p, "cell0", 0, FIRST, CONSTANT)


@bundles
def each_load_of_a_bundle_has_globals_of_its_own(p: Script) -> None:
    globals_are_each_loads(p, OFFLOAD, 0, FIRST)


@bundles
def an_image_that_claims_to_have_no_end_is_loaded_each_time(p: Script) -> None:
    """HIP does not read the section that claims to be endless, but some releases may refuse the
    image."""
    for _ in range(2):
        module = p.load(ENDLESS, says=None)
        p.unload(module)


@limited
def a_question_leaves_no_error(p: Script) -> None:
    """When the modules exceed their limit, the library queries HIP whether the destroyed stream is
    idle. The result of this query must not become the last error."""
    stream, block = p.stream(), p.alloc(NULL)
    module = p.load("plain0")
    held = p.hold(stream)
    p.launch(p.function(module), stream, block, 2)
    p.unstream(stream)
    p.unload(module)
    for image in ("plain1", "plain2", "plain3"):
        module = p.load(image)
        p.step("lasterror", 2, says="no error")
        p.unload(module)
    p.let(held)


@others
def a_module_that_is_held_is_nobody_elses(p: Script) -> None:
    """A program may call hipModuleUnload for a module that it holds."""
    first, second = p.load("plain0"), p.load("plain0")
    p.unload(first, HIP)
    third = p.load("plain0")
    for module in (second, third):
        run(p, p.function(module), "plain0")
    p.unload(second)
    p.unload(third)


@others
def a_module_at_an_old_address_is_another_one(p: Script) -> None:
    ours = p.load("plain0")
    run(p, p.function(ours), "plain0")
    gone = p.name(MODULE, ours)
    p.unload(ours)
    p.step("empty")
    foreign = p.again(MODULE, gone, 1)
    run(p, p.function(foreign), "plain1")
    p.unload(foreign)
    module = p.load("plain0")
    run(p, p.function(module), "plain0")
    p.unload(module)


@others
def a_modules_global_is_device_memory(p: Script) -> None:
    module, stream = p.load("cell0"), p.stream()
    out = p.alloc(stream)
    p.launch(p.function(module, "where"), stream, out, kernel="where")
    cell = p.new("buffer")
    p.step("learn", cell, out, 0, stream, says="ok")
    bump = p.function(module, "bump")
    held = p.hold(stream)
    p.launch(bump, stream, out, kernel="bump")
    p.copy(out, cell, stream, 1)
    p.let(held)
    p.read(out, stream, content([images_number("cell0")]), 1)
    p.unload(module)


@modules
def a_modules_global_is_copied_after_the_kernel(p: Script) -> None:
    """The copy runs after the kernel, even if the program records an event between the launch and
    the copy. The kernel may also run on the null stream."""
    for waits in (False, True):
        module, stream = p.load("cell0"), p.stream()
        out, other, cell = p.alloc(stream), p.alloc(stream), p.new("buffer")
        p.launch(p.function(module, "where"), stream, out, kernel="where")
        p.step("learn", cell, out, 0, stream, says="ok")
        p.sync(stream)
        bump, at = p.function(module, "bump"), NULL if waits else stream
        held = p.hold(at)
        p.launch(bump, at, out, kernel="bump")
        if not waits:
            p.unevent(p.recorded(stream))
        p.copy(other, cell, stream, 1)
        p.let(held)
        p.read(other, stream, content([images_number("cell0")]), 1)
        p.sync(NULL, 3)
        p.unload(module)
        p.unstream(stream)


@modules
def constants_are_told_from_what_changes(p: Script) -> None:
    """A library that is opened later may have its image at the address of a closed library's
    image."""
    for library in (0, 1, 0):
        p.step("library", library)
        module = p.load("plain0", CLOSABLE)
        run(p, p.function(module), f"plain{library}")
        p.unload(module)
    for _ in range(2):
        module = p.load("plain2", CONSTANT)
        run(p, p.function(module), "plain2")
        p.unload(module)


@modules
def a_constant_is_no_module_that_has_its_handle(p: Script) -> None:
    """HIP has unloaded the constant's module. HIP may give the module's handle to one of the
    modules that the program loads next."""
    first = p.load("plain0", CONSTANT)
    p.unload(first)
    p.step("empty")
    held = [(p.load(image), image) for image in [*images.PLAIN][1:]]
    for module, _ in held:
        p.unload(module)
    module = p.load("plain0", CONSTANT)
    run(p, p.function(module), "plain0")
    p.unload(module)


@others
def each_load_has_constants_of_its_own(p: Script) -> None:
    """The program sets a constant through HIP."""
    for _ in range(2):
        module, cell = p.load(images.EXPORTS), p.new("buffer")
        run(p, p.function(module), images.EXPORTS)
        p.step("global", cell, module)
        p.fill(cell, 5, NULL, 1, who=HIP)
        p.sync(NULL, 3)
        p.unload(module)


@overridden
def an_override_may_set_constants(p: Script) -> None:
    """Once an override exists, each load of an image whose constants can be set gets its own
    module, even if the image was loaded before."""
    p.unload(p.load(images.EXPORTS))
    p.step("override", 2, 1, says="0")
    each_load_has_constants_of_its_own(p)
    p.step("override", 2, 0, says="0")


@handles
def a_module_is_unloaded_once(p: Script) -> None:
    for place in (0, CONSTANT):
        for asks in (True, False):
            module = p.load("plain0", place)
            gone = p.name(MODULE, module)
            if asks:
                p.function(module)
            p.unload(module)
            p.unload(p.name(MODULE, gone))
            p.fails("hipModuleUnload(module)")
            p.step("function", 0, p.new("function"), gone, 2, 0, says="null")
            p.fails("hipModuleGetFunction(&function, module, name)")


BAD_NAME, BAD_NULL_IMAGE = 1, 12


@handles
def a_null_image_and_an_unknown_name_are_refused(p: Script) -> None:
    p.step("bad", BAD_NULL_IMAGE, 0, says="null")
    p.fails("hipModuleLoadData(&module, data)")
    module = p.load("plain0")
    run(p, p.function(module), "plain0")
    p.step("bad", BAD_NAME, module, says="null")
    p.fails("hipModuleGetFunction(&function, module, name)")
    p.unload(module)


# ---- copies ----

copies = Group("copies", alone=True)


@copies
def a_copy_back_waits_for_earlier_work(p: Script) -> None:
    stream = p.stream()
    block = p.alloc(stream)
    p.hold(stream, 30)
    p.fill(block, 7, stream)
    p.read(block, stream, filled(7))
    p.up(block, 3, stream)
    p.read(block, stream, content(pattern(3)))


@copies
def copies_to_the_device_read_at_once(p: Script) -> None:
    """While the stream is held, the program copies far more than pinned memory can hold, and
    overwrites the source after each call."""
    stream, count = p.stream(), 100 << 10
    blocks = [p.alloc(stream, count) for _ in range(6)]
    held = p.hold(stream)
    for seed, block in enumerate(blocks):
        p.up(block, seed, stream, count)
    p.let(held)
    for seed, block in enumerate(blocks):
        p.read(block, stream, content(pattern(seed, count)), count)
        p.free(block, stream)


@copies
def pinned_memory_in_use_is_not_taken(p: Script) -> None:
    """Copies run on more streams than there are pinned buffers."""
    streams, count = p.streams(24), 16 << 10
    blocks = [p.alloc(stream, count) for stream in streams]
    held = p.hold(streams[0])
    for seed, (block, stream) in enumerate(zip(blocks, streams, strict=True)):
        p.up(block, seed, stream, count)
    p.let(held)
    for seed, (block, stream) in enumerate(zip(blocks, streams, strict=True)):
        p.read(block, stream, content(pattern(seed, count)), count)
        p.free(block, stream)
        p.unstream(stream)


@copies
def copies_of_every_size(p: Script) -> None:
    """The program does not copy the largest buffer to the device, because HIP 7 reads a large
    source after the program has overwritten the source."""
    stream = p.stream()
    for count in (1, 1000, (128 << 10) + 1):
        block = p.alloc(stream, count)
        p.up(block, 3, stream, count)
        p.read(block, stream, content(pattern(3, count)), count)
        p.free(block, stream)
    count = (768 << 10) + 1
    block = p.alloc(stream, count)
    p.fill(block, 3, stream, count)
    p.read(block, stream, filled(3, count), count)
    p.free(block, stream)


@copies
def the_null_stream_copies_too(p: Script) -> None:
    block = p.alloc(NULL)
    p.up(block, 3, NULL)
    p.read(block, NULL, content(pattern(3)))
    p.free(block, NULL)
