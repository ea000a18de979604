"""A guard, and the modules of the tests that notice its loss."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support import variants
from tests.support.variants import Change


@dataclass(frozen=True)
class Guard(variants.Guard):
    """In a file of csrc/runtime; the test is module:function."""

    also: tuple[str, str] | None = None  # a second change, where one alone leaves another guard
    also_file: str = ""  # where that is; "": in the same file
    exclusive: bool = False  # where others may call HIP, its answer is a second guard

    @property
    def name(self) -> str:
        return self.test.partition(":test_")[2]

    @property
    def changes(self) -> list[Change]:
        changes = [Change(f"csrc/runtime/{self.file}", self.guard, self.without)]
        if self.also:
            changes.append(Change(f"csrc/runtime/{self.also_file or self.file}", *self.also))
        return changes


TRAPS = "tests.runtime.test_traps"
EVENTS = "tests.runtime.test_events"
MODULES = "tests.runtime.test_modules"
CONSTANTS = "tests.runtime.test_constants"
MEMORY = "tests.runtime.test_memory"
NO_MEMORY = "tests.runtime.test_no_memory"
CANCELLED = "tests.runtime.test_cancelled"
COPIES = "tests.runtime.test_copies"
COUNTED = "tests.runtime.test_counted"
HOSTILE = "tests.runtime.test_hostile_calls"
NAMES = "tests.runtime.test_kernel_names"
PLACES = "tests.runtime.test_record_places"
SYNC = "tests.runtime.test_sync"
KNOWN = "tests.runtime.test_known"
LIMITS = "tests.runtime.test_known_limits"
ADVICE = "tests.runtime.test_advice"
LAZY_LOAD = "tests.runtime.test_lazy_load"
OPTIONS = "tests.runtime.test_options"
LAST_ERROR = "tests.runtime.test_last_error"
HITS = "tests.runtime.test_hits"
GPU_TIMES = "tests.runtime.test_gpu_times"
TRACE = "tests.runtime.test_trace"
LOCAL_RANK = "tests.runtime.test_local_rank"
RESET = "tests.runtime.test_reset"
FREED = "tests.runtime.test_freed"
CAPTURE = "tests.graphs.test_capture"
GRAPHS = "tests.graphs.test_graph"
FUNCTIONS = "tests.graphs.test_function"
OVERRIDES = "tests.graphs.test_overrides"
