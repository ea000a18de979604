"""Copies between the host and the device, and a launch that several groups use."""

from __future__ import annotations

from tests.proofs.programs.script import NULL, Group, Script, content, filled, mixed, pattern

copies = Group("copies", alone=True)


def run(p: Script, function: int, image: str) -> None:
    """Launches a kernel of the image on known words, and checks the result."""
    stream = p.stream()
    block = p.alloc(stream)
    p.up(block, 5, stream)
    p.launch(function, stream, block, 2)
    p.read(block, stream, content(mixed(pattern(5), image, 2)))
    p.free(block, stream)
    p.unstream(stream)


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
