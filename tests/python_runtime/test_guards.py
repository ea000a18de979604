"""Takes out one check of the caches in Python at a time, and sees that a test notices."""

from __future__ import annotations

import pytest

from tests.python_runtime import test_caches
from tests.support import nursery
from tests.support.child import environment
from tests.support.variants import Guard

CACHED = "mgpu_rt/runtime/cached.py"


def guard(old: str, new: str, test: str) -> Guard:
    return Guard(CACHED, old, new, test)


GUARDS = [
    guard("if image.is_constant:", "if True:", "an_image_that_kernels_write_into_is_loaded_anew"),
    guard("_take(here.modules[image])", "[*here.images, None][0]", "a_module_has_one_holder"),
    guard("            functions[name] = function\n", "", "an_image_is_loaded_once"),
    guard(", owner.functions)", ")", "functions_of_a_module_that_hip_has_back_are_forgotten"),
    guard("self._forget(self._of(device), handle)", "pass", "a_handle_that_hip_hands_out_anew"),
    guard("_take(here.streams, self.hip.stream_idle)", "_take(here.streams)", "a_stream_at_work"),
    guard("self.hip.stream_flags(stream) == 0", "True", "a_stream_of_another_kind_is_not_kept"),
    guard(
        "return kept if kept and kept.known.get(handle) == kind else None",
        "return kept or self._here",
        "a_stream_that_the_program_made_goes_back_to_hip",
    ),
    guard("kept.known.get(handle) == kind", "handle in kept.known", "an_event_is_not_kept_under"),
    guard("self._of(self.hip.device())", "self._of(0)", "each_device_has_its_own_streams"),
    guard("_take(here.events, self.hip.event_done)", "_take(here.events)", "an_event_at_work"),
    guard("if stream in owner.made and", "if", "a_free_without_a_stream_goes_to_hip"),
    guard(
        "is_ours and self._alone_at_work(owner, stream)",
        "is_ours",
        "a_free_waits_while_another_stream_is_at_work",
    ),
    guard("(0, *owner.made)", "list(owner.made)", "a_free_waits_while_another_stream_is_at_work"),
    guard(" or owner is not self._here", "", "a_free_waits_for_the_null_stream_of_the_block"),
    guard("            self._others = True", "pass", "memory_that_a_stream_of_the_program"),
    guard(
        "number is not None and number == self.hip.buffer_id(address)",
        "True",
        "memory_that_hip_handed_out_anew",
    ),
    guard("here.blocks[stream, size])\n", "here.blocks[0, size])\n", "a_block_serves_its_stream"),
    guard("            self.give_back()\n", "", "kept_blocks_go_back"),
    guard("raise self.hip.failed(function, refusal) from None", "pass", "a_handle_given_up_twice"),
    guard("self.hip.buffer_id(memory) != number", "False", "handles_from_before_a_reset"),
    guard(
        "            found = kept.pop(0)\n",
        "            found = kept[0]\n",
        "threads_share_one_runtime",
    ),
    guard(" or self.hip.stream_flags(only) is None", "", "a_singleton_that_hip_destroyed"),
]


def _test(begin: str) -> str:
    (name,) = [name for name in dir(test_caches) if name.startswith(f"test_{begin}")]
    return name


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.guard.strip())
def test_a_test_notices_the_missing_check(guard: Guard) -> None:
    name = _test(guard.test)
    test = getattr(test_caches, name)
    words = ["tests.python_runtime.mutant", guard.guard, guard.without, test.__module__, name]
    ran = nursery.run(words, environment(**test.env, MGPU_RT_PYTHON="off"))
    assert ran.returncode == 1, ran.stdout
