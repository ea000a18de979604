"""The runtime in readable Python, over HIP: as LLVM's own, and with the caches of mgpu_rt.

For reading, and to change: the C library does the same faster, with shortcuts. Each cache is a few
lines of two methods, one that hands out and one that takes back; the rule is the library's: a cache
acts on what is known only, and what is not known is asked of HIP.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, ClassVar

from mgpu_rt.runtime.base import Runtime
from mgpu_rt.runtime.hip import DISABLE_TIMING, OUT_OF_MEMORY, Hip, HipError
from mgpu_rt.runtime.objects import Image, Launch


class PlainRuntime(Runtime):
    """What LLVM's own runtime does: HIP is asked at each call."""

    knows_kernels: ClassVar[bool] = False

    def __init__(self, hip: Hip | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.hip = hip or Hip.of_process()

    def module_load(self, image: Image) -> int:
        return self.hip.ModuleLoadData(image.address)

    def module_unload(self, module: int) -> None:
        self.hip.ModuleUnload(module)

    def module_get_function(self, module: int, name: str) -> int:
        return self.hip.ModuleGetFunction(module, name.encode())

    def launch_kernel(self, launch: Launch) -> None:
        if launch.symbol or launch.cluster:  # kernels of host symbols, clusters of NVIDIA's
            super().launch_kernel(launch)
            return
        given = (*launch.grid, *launch.block, launch.shared, launch.stream, launch.params)
        if launch.cooperative:
            self.hip.ModuleLaunchCooperativeKernel(launch.function, *given)
        else:
            self.hip.ModuleLaunchKernel(launch.function, *given, launch.extra)

    def stream_create(self) -> int:
        return self.hip.StreamCreate()

    def stream_destroy(self, stream: int) -> None:
        self.hip.StreamDestroy(stream)

    def stream_synchronize(self, stream: int) -> None:
        self.hip.StreamSynchronize(stream)

    def stream_wait_event(self, stream: int, event: int) -> None:
        self.hip.StreamWaitEvent(stream, event, 0)

    def event_create(self) -> int:
        return self.hip.EventCreateWithFlags(DISABLE_TIMING)

    def event_destroy(self, event: int) -> None:
        self.hip.EventDestroy(event)

    def event_synchronize(self, event: int) -> None:
        self.hip.EventSynchronize(event)

    def event_record(self, event: int, stream: int) -> None:
        self.hip.EventRecord(event, stream)

    def mem_alloc(self, size: int, stream: int, host_shared: bool) -> int:
        return self.hip.Malloc(size)

    def mem_free(self, address: int, stream: int) -> None:
        self.hip.Free(address)

    def memcpy(self, to: int, source: int, size: int, stream: int) -> None:
        self.hip.MemcpyAsync(to, source, size, self.hip.copy_default, stream)

    def memset32(self, address: int, value: int, count: int, stream: int) -> None:
        self.hip.MemsetD32Async(address, value, count, stream)

    def memset16(self, address: int, value: int, count: int, stream: int) -> None:
        self.hip.MemsetD16Async(address, value, count, stream)

    def mem_host_register(self, address: int, size: int) -> None:
        self.hip.HostRegister(address, size, 0)

    def mem_host_unregister(self, address: int) -> None:
        self.hip.HostUnregister(address)

    def set_default_device(self, device: int) -> None:
        self.hip.SetDevice(device)


def _take(kept: list[int], free: Callable[[int], bool] = lambda _: True) -> int | None:
    """One that is free. It is taken before HIP is asked: a call of HIP's lets other threads in, and
    between a test and a pop one of them would have it."""
    for _ in range(len(kept)):
        try:
            found = kept.pop(0)
        except IndexError:
            break
        if free(found):
            return found
        kept.append(found)
    return None


class _Kept:
    """What is kept on one device."""

    def __init__(self) -> None:
        self.modules: dict[Image, list[int]] = defaultdict(list)  # that nobody holds
        self.streams: list[int] = []
        self.events: list[int] = []
        self.blocks: dict[tuple[int, int], list[int]] = defaultdict(list)  # by stream and size
        self.watch: tuple[int, int | None] | None = None  # memory, and its number


class CachedRuntime(PlainRuntime):
    """The same, with what is got from HIP kept: modules, functions, streams, events, memory."""

    def __init__(self, hip: Hip | None = None, **settings: Any) -> None:
        super().__init__(hip, **settings)
        self._forget()

    def _forget(self) -> None:
        """Starts anew: nothing that HIP has handed out is known any more."""
        self._kept: dict[int, _Kept] = defaultdict(_Kept)  # by device
        self._shared: dict[int, Image] = {}  # modules that may be handed out again
        self._functions: dict[tuple[int, str], int] = {}
        self._made: dict[int, int] = {}  # streams and events of ours, and their device
        self._sizes: dict[int, tuple[int, int]] = {}  # of blocks, with their device

    @property
    def _here(self) -> _Kept:
        """What is kept on the thread's device. Somebody may have reset that: then memory that was
        put there for a watch is gone, and all that we know of is forgotten."""
        here = self._kept[self.hip.device()]
        if here.watch is None:
            memory = self.hip.pinned(64)
            here.watch = memory, self.hip.buffer_id(memory) if memory else None
        memory, number = here.watch
        if number is not None and self.hip.buffer_id(memory) != number:
            self._forget()
            return self._here
        return here

    # An image is known by its bytes. One that kernels can write into is loaded anew each time.

    def module_load(self, image: Image) -> int:
        module = _take(self._here.modules[image])
        if module is None:
            module = self._got(super().module_load, image)
            if image.is_constant:
                self._shared[module] = image
        return module

    def module_unload(self, module: int) -> None:
        here, image = self._here, self._shared.get(module)
        if image is not None:
            here.modules[image].append(module)
        else:
            self._functions = {k: f for k, f in self._functions.items() if k[0] != module}
            super().module_unload(module)

    def module_get_function(self, module: int, name: str) -> int:
        function = self._functions.get((module, name)) if self._here else None
        if function is None:
            function = self._functions[module, name] = super().module_get_function(module, name)
        return function

    # A stream is handed out again only idle: new work never waits behind another owner's.

    def stream_create(self) -> int:
        stream = _take(self._here.streams, self.hip.stream_idle)
        if stream is None:
            stream = self._got(super().stream_create)
            self._made[stream] = self.hip.device()
        return stream

    def stream_destroy(self, stream: int) -> None:
        if self._here and stream in self._made:
            self._kept[self._made[stream]].streams.append(stream)
        else:
            super().stream_destroy(stream)  # the program has made it by HIP, perhaps another kind

    def event_create(self) -> int:
        event = _take(self._here.events, self.hip.event_done)
        if event is None:
            event = self._got(super().event_create)
            self._made[event] = self.hip.device()
        return event

    def event_destroy(self, event: int) -> None:
        if self._here and event in self._made:
            self._kept[self._made[event]].events.append(event)
        else:
            super().event_destroy(event)

    # A freed block is for its own stream at once: the stream's order keeps its uses apart.

    def mem_alloc(self, size: int, stream: int, host_shared: bool) -> int:
        address = _take(self._here.blocks[stream, size])
        if address is None:
            address = self._got(super().mem_alloc, size, stream, host_shared)
        if address:
            self._sizes[address] = size, self.hip.device()
        return address

    def mem_free(self, address: int, stream: int) -> None:
        here = self._here
        size, device = self._sizes.pop(address, (0, -1))
        if stream and size and self._kept[device] is here:
            here.blocks[stream, size].append(address)
        else:
            super().mem_free(address, stream)  # which waits for the device

    # What is kept goes back to HIP where memory is short, and at the end.

    def _got(self, get: Callable[..., int], *arguments: Any) -> int:
        try:
            return get(*arguments)
        except HipError as error:
            if error.code != OUT_OF_MEMORY or not self.give_back():
                raise
            self.hip.forget_error()
            return get(*arguments)

    def give_back(self) -> int:
        """Gives HIP what nobody holds; returns how many things that were."""
        here, count = self._here, 0
        lists: list[tuple[list[int], Callable[[int], None]]] = [
            *((modules, self._unload) for modules in list(here.modules.values())),
            *((blocks, self.hip.Free) for blocks in list(here.blocks.values())),
            (here.streams, self._destroy(self.hip.StreamDestroy)),
            (here.events, self._destroy(self.hip.EventDestroy)),
        ]
        for kept, back in lists:
            while (thing := _take(kept)) is not None:
                back(thing)
                count += 1
        return count

    def _unload(self, module: int) -> None:
        self._shared.pop(module, None)
        self.module_unload(module)

    def _destroy(self, back: Callable[[int], None]) -> Callable[[int], None]:
        def destroy(thing: int) -> None:
            self._made.pop(thing, None)
            back(thing)

        return destroy

    def end(self) -> None:
        self.give_back()
        super().end()


class Singleton(CachedRuntime):
    """One stream for the whole program, made at its first use: the simplest cache of streams. It
    gives up the overlap of a program that has several."""

    def _forget(self) -> None:
        super()._forget()
        self._only: int | None = None

    def stream_create(self) -> int:
        if self._here and self._only is None:
            self._only = super().stream_create()
        return self._only or 0

    def stream_destroy(self, stream: int) -> None:
        if not self._here or stream != self._only:
            super().stream_destroy(stream)
