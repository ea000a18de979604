"""Takes out one rule of hosting at a time, and sees that a test notices."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass

import pytest

from tests.support.hosting import managers
from tests.support.variants import Change, build, run_tests

RUNTIME = "csrc/runtime/"
HOSTING, SANDBOXES, MANAGER, POLICY = (
    "test_hosting",
    "test_sandboxes",
    "test_manager",
    "test_policy",
)


@dataclass(frozen=True)
class Rule:
    """A change, and the test that must then fail."""

    change: Change
    module: str
    test: str


def rule(file: str, old: str, new: str, module: str, test: str) -> Rule:
    return Rule(Change(file, old, new), module, test)


RULES = [
    rule(  # the first process's end would be signalled
        RUNTIME + "manager/spawn.c",
        "clone(prepare, stacks->first + STACK, CLONE_VM | CLONE_VFORK, &work)",
        "clone(prepare, stacks->first + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, &work)",
        HOSTING,
        "test_the_program_notices_nothing",
    ),
    rule(  # one process less: it would be the program's child
        RUNTIME + "manager/spawn.c",
        "spawn->pid = clone(become, work->stacks->second + STACK, CLONE_VM | CLONE_VFORK, spawn);",
        "spawn->pid = getpid(), become(spawn);",
        HOSTING,
        "test_the_program_notices_nothing",
    ),
    rule(
        RUNTIME + "manager/spawn.c",
        "    if (adopts_orphans()) {",
        "    if (0) {",
        HOSTING,
        "test_a_program_that_adopts_orphans_has_no_manager",
    ),
    rule(
        RUNTIME + "manager/spawn.c",
        "    if (!adopter_waits()) {",
        "    if (0) {",
        SANDBOXES,
        "test_no_zombie_where_process_1_waits_for_its_own_children_only[selfish]",
    ),
    rule(
        RUNTIME + "manager/adopter.c",
        " && has(first->blocked, SIGTERM)",
        "",
        SANDBOXES,
        "test_no_zombie_where_process_1_waits_for_its_own_children_only[system]",
    ),
    rule(
        RUNTIME + "manager/manager.c",
        "    sigfillset(&all);",
        "    sigemptyset(&all);",
        HOSTING,
        "test_signals_are_the_programs",
    ),
    rule(
        RUNTIME + "manager/manager.c",
        "while (!is_stopping() && !alone())",
        "while (!is_stopping())",
        HOSTING,
        "test_main_may_end_before_other_threads",
    ),
    rule(
        RUNTIME + "manager/manager.c",
        "pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);",
        "",
        HOSTING,
        "test_manager_ends_with_the_program[kill]",
    ),
    rule(
        RUNTIME + "manager/manager.c",
        "        if (!lives(from)) {",
        "        if (false) {",
        MANAGER,
        "test_the_library_goes_on_without_its_manager[kill]",
    ),
    rule(
        RUNTIME + "lifecycle.c",
        "        manager_stop();\n",
        "",
        MANAGER,
        "test_the_manager_calls_no_hip_after_its_end",
    ),
    rule(
        RUNTIME + "manager/manager.c",
        "    observe_listen(NULL);\n    store_release(&state, MANAGER_NONE);",
        "    store_release(&state, MANAGER_NONE);",
        MANAGER,
        "test_a_childs_calls_are_not_the_parents",
    ),
    rule(
        RUNTIME + "base/observe.c",
        "fetch_add_seq_cst(&channel->unsaid[what], 1);",
        "",
        MANAGER,
        "test_lost_events_are_reported_to_the_policy",
    ),
    rule(
        RUNTIME + "manager/services.c",
        "        cache_limits.streams = value;",
        "        (void)value;",
        MANAGER,
        "test_a_policy_may_set_limits",
    ),
    rule(
        RUNTIME + "manager/manager.c",
        '        {"LC_ALL", "C.UTF-8"},',
        '        {"LD_PRELOAD", getenv("LD_PRELOAD")},',
        HOSTING,
        "test_the_manager_is_not_preloaded",
    ),
    rule(
        RUNTIME + "manager/interpreter.c",
        "out->foreign = now >= VENV;",
        "out->foreign = false;",
        HOSTING,
        "test_interpreters_are_tried_in_order",
    ),
    rule(
        RUNTIME + "manager/interpreter.c",
        "const int end = is_named() ? OPTION + 1 : STEPS;",
        "const int end = STEPS;",
        HOSTING,
        "test_a_wrong_python_is_named_once",
    ),
    rule(
        "mgpu_rt/manager/manager.py",
        "    manage(channel, Shipped(channel))",
        "    raise SystemExit(1)",
        MANAGER,
        "test_a_failed_policy_is_replaced",
    ),
    rule(
        "mgpu_rt/manager/manager.py",
        "        site.addsitedir(site.getusersitepackages())",
        "        pass",
        HOSTING,
        "test_cffi_may_be_among_the_users_own_packages",
    ),
]


@pytest.mark.parametrize("number", range(len(RULES)), ids=lambda i: f"{i}-{RULES[i].test}")
def test_a_test_notices_the_missing_rule(number: int) -> None:
    missing = RULES[number]
    library = build(f"rule-{number}", missing.change)
    try:
        done = run_tests(library, f"tests/manager/{missing.module}.py::{missing.test}")
    finally:
        for process in managers(library.parent.parent.parent):
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(process, signal.SIGKILL)
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout
