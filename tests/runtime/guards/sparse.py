"""Guards of what serves sparse matrices, in each layer."""

from __future__ import annotations

from tests.runtime.guards.guard import Guard

STUB = "tests.sparse.test_stub"

SPARSE = [
    Guard(
        "cache/environments.c",
        "found->taken || ",
        "",
        f"{STUB}:test_concurrent_threads_do_not_share_an_environment",
    ),
    Guard(
        "cache/environments.c",
        " || found->stream != stream",
        "",
        f"{STUB}:test_work_goes_to_the_stream_that_is_passed",
    ),
    Guard(
        "cache/environments.c",
        "device_kept(device) ? environment_take_known(device, stream) : NULL",
        "environment_take_known(device, stream)",
        f"{STUB}:test_a_reset_device_leaves_no_environment",
    ),
    Guard(
        "cache/environments.c",
        "    (void)sparse.SetStream(environment->handle, NULL);\n",
        "",
        f"{STUB}:test_environments_are_kept_from_program_to_program",
    ),
    Guard(
        "calls/sparse.c",
        "    stream_launched(work->thread, work->stream);\n",
        "",
        f"{STUB}:test_a_stream_with_sparse_work_is_not_taken_for_idle",
        exclusive=True,
    ),
]
