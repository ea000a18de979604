"""Two runtimes in readable Python over HIP: PlainRuntime works like LLVM's own library, and
CachedRuntime has the caches of mgpu_rt.

The code is for reading and for experiments: the C library does this work faster. Each cache
consists of two short methods: the first returns an object, and the second takes the object back. As
in the C library, a cache reuses an object only if the reuse is proven safe; otherwise the call goes
to HIP.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Literal

from mgpu_rt.runtime._base import Runtime
from mgpu_rt.runtime._hip import (
    COPY_DEFAULT,
    DESTROYED,
    DISABLE_TIMING,
    INVALID_VALUE,
    NOT_FOUND,
    OUT_OF_MEMORY,
    Hip,
    HipError,
)
from mgpu_rt.runtime._objects import Image, Launch


class PlainRuntime(Runtime):
    """The runtime with stock's behaviour: each call goes to HIP."""

    def __init__(self, hip: Hip | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.hip = hip or Hip.of_process()

    def module_load(self, image: Image) -> int:
        return self.hip.ModuleLoadData(image.address)

    def module_unload(self, module: int) -> None:
        self.hip.ModuleUnload(module)

    def module_get_function(self, module: int, name: str) -> int:
        return self.hip.ModuleGetFunction(module, name.encode(errors="surrogateescape"))

    def launch_kernel(self, launch: Launch) -> None:
        if launch.symbol or launch.cluster:  # kernels of host symbols, clusters on NVIDIA's GPUs
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
        self.hip.MemcpyAsync(to, source, size, COPY_DEFAULT, stream)

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
    """Removes an object from the list, asks HIP whether the object is idle, and returns an idle
    object. Puts busy objects back into the list; returns None if no object is idle. The object is
    removed first, because a call to HIP lets other threads run, and another thread could take the
    object."""
    for _ in range(len(kept)):
        try:
            # proof: one_thread_takes_it, else `found = kept[0]`
            found = kept.pop(0)
        except IndexError:
            break
        if free(found):
            return found
        kept.append(found)
    return None


_Kind = Literal["module", "stream", "block"]


class _Kept:
    """The objects that are cached for one device. `known` contains the handles that this runtime
    created; all other handles belong to the program. `held` contains the known handles that the
    program holds."""

    def __init__(self) -> None:
        self.known: dict[int, _Kind] = {}
        self.held: set[int] = set()
        self.modules: dict[Image, list[int]] = defaultdict(list)  # idle ones
        self.images: dict[int, Image] = {}
        self.functions: dict[int, dict[str, int]] = defaultdict(dict)  # by module
        self.streams: list[int] = []  # idle ones
        self.made: set[int] = set()  # all streams that were made here
        self.blocks: dict[tuple[int, int], list[int]] = defaultdict(list)  # by stream and size
        self.lent: dict[int, tuple[int, int | None]] = {}  # of held blocks: size, and HIP's number
        self.watch: tuple[int, int | None] | None = None  # memory of ours, and HIP's number of it


class CachedRuntime(PlainRuntime):
    """A PlainRuntime that caches objects of HIP: modules, functions, streams, memory."""

    def __init__(self, hip: Hip | None = None, **settings: Any) -> None:
        super().__init__(hip, **settings)
        self._devices: dict[int, _Kept] = {}
        self._home: dict[int, int] = {}  # the device of each handle
        self._others = False  # work was submitted to a stream that was not made here

    def _of(self, device: int) -> _Kept:
        """Returns a device's cached objects. After a reset of the device, drops all cached objects,
        because a reset invalidates the device's memory."""
        kept = self._devices.get(device)
        if kept is None:
            # With `setdefault`, threads that call at the same time get the same `_Kept` object.
            kept = self._devices.setdefault(device, _Kept())
        memory, number = kept.watch or (0, None)
        # proof: device_has_the_watched_memory, else `if False:`
        if number is not None and self.hip.buffer_id(memory) != number:
            kept = self._devices[device] = _Kept()
        return kept

    @property
    def _here(self) -> _Kept:
        # proof: objects_are_of_the_device, else `kept = self._of(0)`
        kept = self._of(self.hip.device())
        if kept.watch is None:
            memory = self.hip.watch_memory()
            kept.watch = memory, self.hip.buffer_id(memory) if memory else None
        return kept

    def _owner(self, handle: int, kind: _Kind) -> _Kept | None:
        """Returns the cache that contains a handle; None if this runtime created no object of this
        kind with the handle."""
        device = self._home.get(handle)
        kept = self._of(device) if device is not None else None
        # proof: handle_was_made_here, else `return kept or self._here`
        # proof: handle_has_this_kind, else `return kept if kept and handle in kept.known else None`
        return kept if kept and kept.known.get(handle) == kind else None

    def _enter(self, here: _Kept, handle: int, kind: _Kind) -> int:
        if handle:
            self._home[handle] = self.hip.device()
            here.known[handle] = kind
            here.held.add(handle)
        return handle

    @staticmethod
    def _lend(here: _Kept, handle: int) -> int:
        here.held.add(handle)
        return handle

    def _returned(self, owner: _Kept, handle: int, function: str, refusal: int) -> None:
        """Records that the program releases an object. Raises HipError, as HIP would, if the
        program has already released the object, because another caller may use the object now."""
        try:
            owner.held.remove(handle)  # one call, so that only one of two threads gets it
        except KeyError:
            # proof: program_holds_the_handle, else `pass`
            raise self.hip.failed(function, refusal) from None

    @staticmethod
    def _forget(owner: _Kept, handle: int) -> None:
        # proof: functions_are_of_this_module, else `for entries in (owner.known, owner.images):`
        for entries in (owner.known, owner.images, owner.functions):
            entries.pop(handle, None)
        for handles in (owner.held, owner.made):
            handles.discard(handle)

    # Images with equal bytes count as the same image. A module is never cached if kernels can write
    # to the image, or if the program can set the image's constants by name.

    def module_load(self, image: Image) -> int:
        here = self._here
        # proof: module_has_no_holder, else `module = [*here.images, None][0]`
        module = _take(here.modules[image])
        if module is not None:
            return self._lend(here, module)
        module = self._got(super().module_load, image)
        # proof: image_has_no_globals, else `if True:`
        if image.is_constant:
            here.images[module] = image
            self._enter(here, module, "module")
        return module

    def module_unload(self, module: int) -> None:
        owner = self._owner(module, "module")
        if owner:
            self._returned(owner, module, "hipModuleUnload", NOT_FOUND)
            owner.modules[owner.images[module]].append(module)
        else:
            super().module_unload(module)

    def module_get_function(self, module: int, name: str) -> int:
        owner = self._owner(module, "module")
        if not owner:
            return super().module_get_function(module, name)
        functions = owner.functions[module]
        function = functions.get(name)
        if function is None:
            function = super().module_get_function(module, name)
            # proof: function_was_found_before
            functions[name] = function
        return function

    # A stream is reused only when the stream is idle, so new work never waits for an earlier
    # owner's work.

    def stream_create(self) -> int:
        here = self._here
        # proof: stream_has_no_work, else `stream = _take(here.streams)`
        stream = _take(here.streams, self.hip.stream_idle)
        if stream is not None:
            return self._lend(here, stream)
        stream = self._enter(here, self._got(super().stream_create), "stream")
        here.made.add(stream)
        return stream

    def stream_destroy(self, stream: int) -> None:
        owner = self._owner(stream, "stream")
        if owner and self._is_ours(stream):
            self._returned(owner, stream, "hipStreamDestroy", DESTROYED)
            owner.streams.append(stream)
            return
        if owner:
            self._forget(owner, stream)
        super().stream_destroy(stream)  # the program has made it by HIP, perhaps another kind

    def _is_ours(self, stream: int) -> bool:
        """Returns True if the handle denotes a stream with this runtime's flags, on the device of
        this runtime's stream. Otherwise the program has destroyed that stream by calling HIP."""
        # proof: stream_has_our_flags, else `flags = 0`
        flags = self.hip.stream_flags(stream)
        # proof: stream_has_our_device, else `device = None`
        device = self.hip.stream_device(stream)
        return flags == 0 and device in (None, self._home[stream])

    # A freed block may be reused at once on the same stream, because the stream runs the new work
    # after the old work. A block that another stream's pending work may use goes to hipFree, which
    # waits for the device. This runtime did not create the null stream. Once the program submits
    # work to such a stream, all freed blocks go to hipFree. A question to AMD's HIP
    # about the null stream would make all streams wait for each other (docs/questions.md).

    def mem_alloc(self, size: int, stream: int, host_shared: bool) -> int:
        here = self._here
        # proof: block_was_freed_on_the_stream, else `address = _take(here.blocks[0, size])`
        address = _take(here.blocks[stream, size])
        if address is not None:
            self._lend(here, address)
        else:
            address = self._got(super().mem_alloc, size, stream, host_shared)
            self._enter(here, address, "block")
        if address:
            here.lent[address] = size, self.hip.buffer_id(address)
        return address

    def mem_free(self, address: int, stream: int) -> None:
        owner = self._owner(address, "block")
        if owner:
            self._returned(owner, address, "hipFree", INVALID_VALUE)
            size, number = owner.lent.pop(address)
            # The program may have freed the block by calling HIP, and HIP may have given the
            # block's address to another allocation.
            # proof: block_has_its_number, else `is_ours = True`
            is_ours = number is not None and number == self.hip.buffer_id(address)
            # proof: stream_is_ours, else `if is_ours and self._alone_at_work(stream):`
            # proof: no_other_stream_is_at_work, else `if stream in owner.made and is_ours:`
            if stream in owner.made and is_ours and self._alone_at_work(stream):
                owner.blocks[stream, size].append(address)
                return
            self._forget(owner, address)
        super().mem_free(address, stream)  # this waits for the device

    def _alone_at_work(self, stream: int) -> bool:
        """Returns True if no other stream is at work. Asks about the streams of all devices: the
        program may have made a stream of this device under the handle of another device's."""
        if self._others:
            return False
        # proof: stream_may_be_of_another_device, else `made = self._here.made`
        made = [one for kept in list(self._devices.values()) for one in list(kept.made)]
        return not any(self.hip.stream_busy(one) for one in made if one != stream)

    def _submits(self, stream: int) -> None:
        if stream not in self._home:
            # proof: all_work_is_on_streams_of_ours
            self._others = True

    def launch_kernel(self, launch: Launch) -> None:
        self._submits(launch.stream)
        super().launch_kernel(launch)

    def memcpy(self, to: int, source: int, size: int, stream: int) -> None:
        self._submits(stream)
        super().memcpy(to, source, size, stream)

    def memset32(self, address: int, value: int, count: int, stream: int) -> None:
        self._submits(stream)
        super().memset32(address, value, count, stream)

    def memset16(self, address: int, value: int, count: int, stream: int) -> None:
        self._submits(stream)
        super().memset16(address, value, count, stream)

    # Cached objects are returned to HIP when memory is short, and when the program ends.

    def _got(self, get: Callable[..., int], *arguments: Any) -> int:
        """Returns a new object from HIP. If memory is short, releases idle objects to HIP and
        repeats the request. If HIP returns a known handle, the program has destroyed the handle's
        earlier object by calling HIP. The earlier object's entry is then removed."""
        try:
            handle = get(*arguments)
        except HipError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            # proof: hip_may_have_memory_then
            self.give_back()
            handle = get(*arguments)
        device = self._home.pop(handle, None)
        if device is not None:
            # proof: handle_is_of_this_life
            self._forget(self._of(device), handle)
        return handle

    def give_back(self) -> int:
        """Releases this device's idle objects to HIP; returns the number of objects."""
        here, count, unload = self._here, 0, super().module_unload
        lists: list[tuple[list[int], Callable[[int], None]]] = [
            *((modules, unload) for modules in list(here.modules.values())),
            *((blocks, self.hip.Free) for blocks in list(here.blocks.values())),
            (here.streams, super().stream_destroy),
        ]
        for kept, back in lists:
            while (handle := _take(kept)) is not None:
                self._forget(here, handle)
                back(handle)
                count += 1
        return count

    def end(self) -> None:
        self.give_back()
        super().end()


class Singleton(CachedRuntime):
    """Creates one stream for each device, at the first use: the simplest cache of streams. The
    kernels of a program therefore never run concurrently, even if the program creates several
    streams. A program that destroys streams by calling HIP, or after its exit handlers have run,
    must not use this runtime."""

    def __init__(self, hip: Hip | None = None, **settings: Any) -> None:
        super().__init__(hip, **settings)
        self._only: dict[_Kept, int] = {}
        self._making = threading.Lock()

    def stream_create(self) -> int:
        here = self._here
        with self._making:  # otherwise threads that begin at once would get a stream each
            only = self._only.get(here)
            # proof: hip_has_the_only_stream, else `if only is None:`
            if only is None or self.hip.stream_flags(only) is None:
                only = self._only[here] = super().stream_create()
        return only

    def stream_destroy(self, stream: int) -> None:
        owner = self._owner(stream, "stream")
        if owner is None or self._only.get(owner) != stream:
            super().stream_destroy(stream)
