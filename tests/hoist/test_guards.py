"""Takes out one guard of mgpu_rt/hoist at a time and sees that a test notices."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.child import ROOT
from tests.support.variants import Change, Guard

STREAM = "test_decisions.py::test_a_stream_is_left"
LOAD = "test_decisions.py::test_a_load_is_left"
LOOK_UP = "test_decisions.py::test_a_look_up_is_left"
OTHERS = f"{LOOK_UP}_where_others_may_change_the_module"
NOTHING = "test_decisions.py::test_nothing_is_moved"
GUARDS = [
    Guard(
        "stream_creations.py",
        "if value == stream] == [position]",
        "if value == stream] != []",
        STREAM,
    ),
    Guard("stream_creations.py", "if not destructions:", "if False:", STREAM),
    Guard("stream_creations.py", "before[-1].callee == WAIT", "True", STREAM),
    Guard("stream_creations.py", "u.block == destruction.block and ", "", STREAM),
    Guard("module_loads.py", "and self._name(function, use) is not None", "", LOAD),
    Guard("module_loads.py", "return self.why_not_shared(image.value)", "return None", LOAD),
    Guard("module_loads.py", "if not all(_is_constant", "if False and all(_is_constant", LOAD),
    Guard("module_loads.py", "private and self._is_only_read", "self._is_only_read", OTHERS),
    Guard("module_loads.py", "return stored and writes", "return stored", LOOK_UP),
    Guard("module_loads.py", "and use.operands[0] != address.result", "", LOOK_UP),
    Guard("module_loads.py", "return seen == program.references[name]", "return True", LOOK_UP),
    Guard("ir.py", "found and found.constant and", "found and", LOAD),
    Guard("ir.py", "found.private and found.value", "found.value", LOAD),
    Guard("ir.py", "if self.references[name] == 1", "", LOOK_UP),
    Guard("ir.py", "if _is_private(line):", "if True:", OTHERS),
    Guard("rewrite.py", "    if own:", "    if False:", NOTHING),
    Guard("rewrite.py", "if _CHOOSES_DEVICE in called:", "if False:", NOTHING),
    Guard(
        "rewrite.py",
        "if any(name.startswith(templates.PREFIX) for",
        "if None in (name for",
        "test_decisions.py::test_a_hoisted_program_that_was_changed_is_refused",
    ),
    Guard(
        "plan.py",
        "if not function.name.startswith(PREFIX)",
        "",
        "test_programs.py::test_hoisting_twice_is_hoisting_once",
    ),
    Guard(
        "tools.py",
        "return _with_own_target(text, ",
        "return (lambda *read: text)(",
        "test_programs.py::test_the_jit_takes_it",
    ),
    Guard(
        "templates.py",
        "%idle = llvm.atomicrmw xchg %slot, %none acq_rel : !llvm.ptr, !llvm.ptr",
        "%idle = llvm.load %slot : !llvm.ptr -> !llvm.ptr",
        "test_added.py::test_recursion_has_a_stream_at_each_depth",
    ),
    Guard(
        "templates.py",
        "llvm.cond_br %first, ^done($module : !llvm.ptr), ^second",
        "llvm.cond_br %first, ^done($module : !llvm.ptr), ^done($module : !llvm.ptr)",
        "test_added.py::test_concurrent_loads_keep_one_module",
    ),
    Guard(
        "templates.py",
        "llvm.cond_br %ours, ^release, ^done",
        "llvm.br ^release",
        "test_added.py::test_a_child_of_fork_leaves_the_objects_of_its_parent",
    ),
    Guard(
        "templates.py",
        "release.append(_FORGET",
        "str(_FORGET",
        "test_added.py::test_a_launch_from_another_exit_handler_still_works",
    ),
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout again, with a mgpu_rt that may be changed."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("bench", "build", "csrc", "docs", "tests", "pyproject.toml"):
        (copy / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "mgpu_rt", copy / "mgpu_rt")
    return copy


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: f"{guard.file} {guard.guard}")
def test_a_test_notices_the_missing_guard(guard: Guard, checkout: Path) -> None:
    path = checkout / "mgpu_rt" / "hoist" / guard.file
    whole = path.read_text()
    Change(f"mgpu_rt/hoist/{guard.file}", guard.guard, guard.without).make_in(checkout)
    try:
        test = ["-q", "-x", "-p", "no:cacheprovider", f"tests/hoist/{guard.test}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *test], cwd=checkout, capture_output=True, text=True
        )
    finally:
        path.write_text(whole)
    assert (done.returncode, "1 failed" in done.stdout) == (1, True), done.stdout
