"""Takes out one guard at a time and sees that the tests of the traps notice.

Each mutant is the library with one line of its source changed. A mutant that passes its test would
mean that the test proves nothing.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from mgpu_rt import abi
from tests.child import BUILD, ROOT, environment, run_child

RUNTIME = ROOT / "csrc" / "runtime"


@dataclass(frozen=True)
class Guard:
    """What is changed, and the test (module:function) that must then fail."""

    file: str
    guard: str
    without: str
    test: str
    also: tuple[str, str] = ("", "")  # a second change, where one alone leaves another guard

    @property
    def name(self) -> str:
        return self.test.partition(":test_")[2]


TRAPS = "tests.test_traps"
CONSTANTS = "tests.test_constants"
GUARDS = [
    Guard(
        "module.c",
        "image_lies_at(&module->image, image)",
        "true",
        f"{TRAPS}:test_01_address_reused_for_another_image",
    ),
    Guard(
        "image.h",
        "image->size - image->head) == 0",
        "image->size - image->head) <= 1 << 30",
        f"{TRAPS}:test_01_one_byte_differs",
    ),
    Guard(
        "module.c",
        "image.bytes = bytes;\n    return enter",
        "image.bytes = data;\n    return enter",
        f"{TRAPS}:test_01_the_callers_copy_may_go_away",
    ),
    Guard(
        "function.c",
        "slot->module == module && slot->name == name",
        "slot->name == name",
        f"{TRAPS}:test_02_same_kernel_name_in_two_modules",
        also=("(uintptr_t)module * 31 + (uintptr_t)name", "(uintptr_t)name"),
    ),
    Guard(
        "function.c",
        "strcmp(slot->function->name, name) == 0",
        "true",
        f"{TRAPS}:test_02_address_of_a_name_reused",
    ),
    Guard(
        "image.c",
        "            image->writable = true;\n    }\n}",
        "            image->writable = false;\n    }\n}",
        f"{TRAPS}:test_03_reload_sees_fresh_globals",
    ),
    Guard(
        "image.c",
        "image->writable |= member.writable || member.size == 0",
        "image->writable |= member.size == 0",
        f"{TRAPS}:test_03_globals_in_a_bundle",
    ),
    Guard(
        "stream.c",
        "busy ? STREAM_RETIRED : STREAM_FREE",
        "busy ? STREAM_FREE : STREAM_FREE",
        f"{TRAPS}:test_04_busy_stream_is_not_handed_out",
    ),
    Guard(
        "stream.h",
        "__atomic_store_n(&stream->busy, 1, __ATOMIC_RELEASE)",
        "(void)0",
        f"{TRAPS}:test_04_two_kernels_that_wait_for_each_other",
    ),
    Guard(
        "event.c",
        "event->recorded = false;\n    return",
        "return",
        f"{TRAPS}:test_08_reused_event_was_never_recorded",
    ),
    Guard(
        "event.c",
        "    report_once(&stream_served, (void *)handle);\n    return true;",
        "    report_once(&stream_served, (void *)handle);\n    return false;",
        f"{TRAPS}:test_09_stream_passed_to_event_synchronize",
    ),
    Guard(
        "function.c",
        "if (!handle && options.cache_on)",
        "if (false)",
        f"{TRAPS}:test_11_null_module_is_explained_once",
    ),
    Guard(
        "stream.c",
        "        (void)hip.GetLastError();",
        "        (void)0;",
        f"{TRAPS}:test_12_last_error_is_left_alone",
    ),
    Guard(
        "stream.c",
        "if (hip.PeekAtLastError() != hipSuccess)",
        "if (false)",
        f"{TRAPS}:test_12_pending_error_survives",
    ),
    Guard(
        "module.c",
        "module->device == hip_current_device() &&",
        "true &&",
        f"{TRAPS}:test_16_device_chosen_through_hip",
    ),
    Guard(
        "stream.c",
        "stream->device == device && !thread->chosen",
        "!thread->chosen",
        f"{TRAPS}:test_16_device_chosen_through_hip",
    ),
    Guard(
        "registry.c",
        "module->device == device &&",
        "true &&",
        f"{TRAPS}:test_16_each_thread_has_its_device",
    ),
    Guard(
        "thread.c",
        "if (options.device_number >= 0)",
        "if (false)",
        f"{TRAPS}:test_16_device_before_main",
    ),
    Guard(
        "module.c",
        "slot->constant = mapped_for_good(data, image.size)",
        "slot->constant = true",
        f"{TRAPS}:test_01_one_byte_differs",
    ),
    Guard(
        "function.c",
        "const bool constant = mapped_for_good(name, strlen(name) + 1)",
        "const bool constant = true",
        f"{TRAPS}:test_02_address_of_a_name_reused",
    ),
    Guard(
        "mapped.c",
        "!(segment->p_flags & PF_W)",
        "true",
        f"{CONSTANTS}:test_writable_data_of_the_program_are_compared",
    ),
    Guard(
        "mapped.c",
        "(program || promises.never_unloaded)",
        "true",
        f"{CONSTANTS}:test_a_library_that_was_closed_is_compared",
    ),
    Guard(
        "mapped.c",
        "!promises.text_relocations",
        "true",
        f"{CONSTANTS}:test_constants_that_the_loader_relocated_are_compared",
    ),
]


def _build(guard: Guard, number: int) -> Path:
    """The library without a guard. In a directory beside build/lib, so that it finds mgpu_rt."""
    out = BUILD / f"mutant-{number}"
    sources = out / "csrc"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ROOT / "csrc", sources, ignore=shutil.ignore_patterns("softgpu", "cuhip"))
    mutated = sources / "runtime" / guard.file
    text = mutated.read_text()
    assert text.count(guard.guard) == 1, f"{guard.file} holds the guard once: {guard.guard}"
    assert guard.also[0] in text
    mutated.write_text(text.replace(guard.guard, guard.without).replace(*guard.also, 1))
    exports = out / "exports.map"
    exports.write_text(abi.export_map())
    library = out / "libmlir_rocm_runtime.so"
    subprocess.run(
        ["cc", "-shared", "-std=c11", "-D_GNU_SOURCE", "-O0", "-fPIC", "-fvisibility=hidden", "-w"]
        + [f'-DMGPU_RT_{name}=""' for name in ("VERSION", "DEFAULT_PYTHON", "DEFAULT_LIBPYTHON")]
        + ['-DMGPU_RT_DEFAULT_PACKAGES=""', f"-I{sources / 'include'}"]
        + [str(path) for path in sorted((sources / "runtime").glob("*.c"))]
        + [f"-Wl,--version-script={exports}", "-Wl,-z,nodelete", "-lpthread", "-ldl"]
        + ["-o", str(library)],
        check=True,
    )
    return library


@pytest.mark.parametrize("number", range(len(GUARDS)), ids=lambda i: GUARDS[i].name)
def test_trap_is_noticed_without_its_guard(number: int) -> None:
    guard = GUARDS[number]
    library = _build(guard, number)
    module, _, name = guard.test.partition(":")
    test = getattr(importlib.import_module(module), name)
    env = environment(**test.env, MGPU_RT_TEST_LIBRARY=str(library), MGPU_RT_PYTHON="off")
    with pytest.raises(AssertionError, match="exit status"):
        run_child(module, name, env)
