"""Which streams exist: the policy behind mgpuStreamCreate and mgpuStreamDestroy.

One shared stream serves a program that holds one at a time. The C library hands it out again and
again by itself and comes here only when every stream it has is held or busy.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs 3 ms of the first launch
if TYPE_CHECKING:
    from collections.abc import Callable


class StreamPool:
    """The streams that exist. `create` and `destroy` are HIP's (mgpu_rt.hip.Hip).

    A stream comes back only idle, so no work ever waits behind work of somebody else; whether it is
    idle the library knows. How many idle ones are kept is MGPU_RT_STREAM_LIMIT.
    """

    def __init__(self, create: Callable[[object], int], destroy: Callable[[int], int]) -> None:
        self._create = create
        self._destroy = destroy
        self._devices: dict[int, int] = {}  # handle -> device, oldest first

    def __len__(self) -> int:
        return len(self._devices)

    def shared(self, device: int) -> int | None:
        """The stream that serves a program with one at a time: the device's first one."""
        return next((h for h, d in self._devices.items() if d == device), None)

    def create(self, stream: object) -> int:
        """Creates a stream; its handle goes to *stream. Returns hipError_t."""
        return self._create(stream)

    def add(self, handle: int, device: int) -> None:
        """Takes note of a stream that was just created."""
        self._devices[handle] = device

    def destroy(self, handle: int) -> int:
        """Destroys a stream that the library has taken out of its table. Returns hipError_t."""
        self._devices.pop(handle, None)
        return self._destroy(handle)
