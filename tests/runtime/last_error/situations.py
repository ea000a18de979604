"""The situations, as scripts for the player (csrc/selftest/player).

A row has a name, the steps before the call, the call, and the steps after the call. Object 9 is an
address that is neither a handle nor device memory; object 8 is NULL. Image 0 has kernels, and image
1 has a global too.
"""

from __future__ import annotations

from tests.runtime.last_error import images

#: A block of 1 KiB, or one on stream 1, and their ends.
BLOCK, FREE = "malloc 0 1 1024 0 0", "free 0 1 0"
ON_STREAM, RELEASE = "stream 0 1; malloc 0 1 1024 1 0", "free 0 1 1; unstream 0 1"
#: Function 1, and its work on stream 1.
KERNEL, WORK = "load 0 7 0 0; function 0 1 7 0 0", "grid 1 1 1 0 1"
#: Stream 3 and event 3 are destroyed.
DEAD_STREAM = "stream 0 2; name 1 3 1 2 0; unstream 0 2"
DEAD_EVENT = "event 0 2; name 2 3 2 2 0; unevent 0 2"
UNKNOWN = "pages 9 1 0; name 1 9 0 9 0; name 2 9 0 9 0; name 3 9 0 9 0"
PAGES, REGISTERED = "pages 1 1 0", "pages 1 1 0; register 1 4096"
RECORDED = f"stream 0 1; stream 0 2; event 0 1; {KERNEL}; {WORK}; record 0 1 1"
HUGE = 1 << 50

ROWS = f"""
copy_up                     | {ON_STREAM} | up 0 1 0 256 1 5 1 | sync 0 1; {RELEASE}
copy_up_after_work          | {ON_STREAM}; {KERNEL}; {WORK} | up 0 1 0 256 1 5 1 | sync 0 1; {RELEASE}
copy_down                   | {ON_STREAM}; fill 0 1 0 256 1 1; sync 0 1 | down 0 1 0 256 1 1 | sync 0 1; {RELEASE}
copy_between_blocks         | {ON_STREAM}; malloc 0 2 1024 1 0 | copy 0 2 0 1 0 256 1 | free 0 2 1; {RELEASE}
copy_without_a_stream       | {BLOCK} | up 0 1 0 256 0 5 1 | sync 0 0; {FREE}
copy_from_pinned_memory     | {ON_STREAM}; malloc 3 2 1024 0 0 | copy 0 1 0 2 0 256 1 | sync 0 1; {RELEASE}
copy_nothing                | {BLOCK} | up 0 1 0 0 0 5 1 | {FREE}
copy_null_and_nothing       | | copy 0 8 0 8 0 0 0 |
copy_to_null                | {ON_STREAM} | copy 0 8 0 1 0 256 1 | {RELEASE}
copy_beyond_a_block         | {ON_STREAM} | up 0 1 0 16384 1 5 1 | {RELEASE}
copy_on_a_destroyed_stream  | {BLOCK}; {DEAD_STREAM} | up 0 1 0 256 3 5 1 | {FREE}
copy_nothing_on_a_destroyed_stream | {DEAD_STREAM} | copy 0 8 0 8 0 0 3 |
copy_on_an_unknown_stream   | {BLOCK}; {UNKNOWN} | up 0 1 0 256 9 5 1 | {FREE}
fill32                      | {BLOCK} | fill 0 1 0 256 1 0 | {FREE}
fill32_nothing              | {BLOCK} | fill 0 1 0 0 1 0 | {FREE}
fill32_null                 | | fill 0 8 0 4 1 0 |
fill32_of_nobodys_memory    | name 0 1 0 8 4096 | fill 0 1 0 4 1 0 |
fill32_on_a_destroyed_stream | {BLOCK}; {DEAD_STREAM} | fill 0 1 0 256 1 3 | {FREE}
fill16                      | {ON_STREAM} | fill 4 1 0 256 1 1 | sync 0 1; {RELEASE}
fill16_null                 | | fill 4 8 0 2 1 0 |
fill16_on_a_destroyed_stream | {BLOCK}; {DEAD_STREAM} | fill 4 1 0 256 1 3 | {FREE}

event_create_miss           | event 0 1 | event 0 2 | unevent 0 1; unevent 0 2
event_destroy               | event 0 1 | unevent 0 1 |
event_destroy_null          | | unevent 0 8 |
event_destroy_twice         | {DEAD_EVENT} | unevent 0 3 |
event_destroy_unknown       | {UNKNOWN} | unevent 0 9 |
event_destroy_a_stream      | stream 0 1; name 2 1 1 1 0 | unevent 0 1 |
event_synchronize           | {RECORDED} | eventsync 0 1 | unevent 0 1; unstream 0 1; unstream 0 2
event_synchronize_never_recorded | event 0 1 | eventsync 0 1 | unevent 0 1
event_synchronize_null      | | eventsync 0 8 |
event_synchronize_destroyed | {DEAD_EVENT} | eventsync 0 3 |
event_synchronize_unknown   | {UNKNOWN} | eventsync 0 9 |
event_synchronize_a_stream  | stream 0 1; name 2 1 1 1 0 | eventsync 0 1 | unstream 0 1
record                      | stream 0 1; event 0 1 | record 0 1 1 | unevent 0 1; unstream 0 1
record_without_a_stream     | event 0 1 | record 0 1 0 | unevent 0 1
record_null                 | stream 0 1 | record 0 8 1 | unstream 0 1
record_destroyed            | stream 0 1; {DEAD_EVENT} | record 0 3 1 | unstream 0 1
record_a_stream             | stream 0 1; name 2 1 1 1 0 | record 0 1 1 | unstream 0 1
record_on_a_destroyed_stream | event 0 1; {DEAD_STREAM} | record 0 1 3 | unevent 0 1

host_register               | {PAGES} | register 1 4096 | unregister 1
host_register_null          | | register 8 4096 |
host_register_nothing       | {PAGES} | register 1 0 |
host_register_twice         | {REGISTERED} | register 1 4096 | unregister 1
host_register_memref        | {PAGES} | memref 0 1 | unregister 1
host_unregister             | {REGISTERED} | unregister 1 |
host_unregister_memref      | {REGISTERED} | memref 1 1 |
host_unregister_null        | | unregister 8 |
host_unregister_unknown     | {PAGES} | unregister 1 |
device_memref               | {REGISTERED} | memref 2 1 | unregister 1
device_memref_unregistered  | {PAGES} | memref 2 1 |
device_memref_of_int32      | {REGISTERED} | memref 3 1 | unregister 1
device_memref_of_int32_unregistered | | memref 3 8 |
set_device                  | | device 0 0 |
set_device_too_large        | | device 0 99 |
set_device_negative         | | device 0 -1 |

launch_good                 | {KERNEL}; stream 0 1 | {WORK} | unstream 0 1
launch_without_a_stream     | {KERNEL} | grid 1 1 1 0 0 |
launch_null                 | | grid 8 1 1 0 0 |
launch_no_blocks            | {KERNEL} | grid 1 0 1 0 0 |
launch_no_threads           | {KERNEL} | grid 1 1 0 0 0 |
launch_block_beyond_the_kernels | {KERNEL} | grid 1 1 512 0 0 |
launch_block_beyond_the_devices | {KERNEL} | grid 1 1 4096 0 0 |
launch_grid_too_large       | {KERNEL} | grid 1 {1 << 31} 256 0 0 |
launch_shared_memory_too_large | {KERNEL} | grid 1 1 1 {1 << 20} 0 |
launch_on_a_destroyed_stream | {KERNEL}; {DEAD_STREAM} | grid 1 1 1 0 3 |
launch_on_an_unknown_stream | {KERNEL}; {UNKNOWN} | grid 1 1 1 0 9 |
cooperative_good            | {KERNEL} | cooperate 1 1 0 1 0 |
cooperative_null            | | cooperate 8 1 0 1 0 |
cooperative_no_blocks       | {KERNEL} | cooperate 1 0 0 1 0 |
cooperative_too_large       | {KERNEL} | cooperate 1 {1 << 20} 0 256 0 |
cooperative_on_a_destroyed_stream | {KERNEL}; {DEAD_STREAM} | cooperate 1 1 0 1 3 |
cooperative_in_clusters     | {KERNEL} | cooperate 1 2 2 1 0 |
symbol_unknown              | {UNKNOWN} | symbol 9 |
symbol_null                 | | symbol 8 |

alloc_miss                  | | malloc 0 1 12345 0 0 | {FREE}
alloc_hit                   | {BLOCK}; {FREE} | {BLOCK} | {FREE}
alloc_hit_on_a_stream       | {ON_STREAM}; free 0 1 1 | malloc 0 1 1024 1 0 | {RELEASE}
alloc_on_a_destroyed_stream | {DEAD_STREAM} | malloc 0 1 2048 3 0 | {FREE}
alloc_nothing               | | malloc 0 1 0 0 0 |
alloc_too_much              | | malloc 0 1 {HUGE} 0 0 |
alloc_absurd                | | malloc 0 1 -1 0 0 |
alloc_almost_absurd         | | malloc 0 1 -301 0 0 |
alloc_shared                | | malloc 0 1 1024 0 1 | {FREE}
alloc_shared_too_much       | | malloc 0 1 {HUGE} 0 1 |
alloc_shared_nothing        | | malloc 0 1 0 0 1 |
free_on_a_stream            | {ON_STREAM} | free 0 1 1 | unstream 0 1
free_without_a_stream       | {BLOCK} | free 0 1 0 |
free_on_a_destroyed_stream  | {BLOCK}; {DEAD_STREAM} | free 0 1 3 |
free_on_an_unknown_stream   | {BLOCK}; {UNKNOWN} | free 0 1 9 |
free_null                   | | free 0 8 0 |
free_unknown                | {UNKNOWN} | free 0 9 0 |
free_twice                  | {BLOCK}; name 0 2 0 1 0; {FREE} | free 0 2 0 |
free_twice_on_a_stream      | {ON_STREAM}; name 0 2 0 1 0; free 0 1 1 | free 0 2 1 | unstream 0 1
free_inside_a_block         | {BLOCK}; name 0 2 0 1 64 | free 0 2 0 |
free_inside_a_freed_block   | {BLOCK}; name 0 2 0 1 64; {FREE} | free 0 2 0 |
free_shared                 | malloc 0 1 1024 0 1 | free 0 1 0 |
free_of_the_programs_own    | malloc 1 1 1024 0 0 | free 0 1 0 |
free_after_hips             | {BLOCK}; name 0 2 0 1 0; free 1 1 0 | free 0 2 0 |

load_miss                   | | load 0 1 0 0 | unload 0 1
load_hit                    | load 0 1 0 0; unload 0 1 | load 0 1 0 0 | unload 0 1
load_of_a_copy              | load 0 1 0 1; unload 0 1 | load 0 1 0 2 | unload 0 1
load_again_while_held       | load 0 1 0 0 | load 0 2 0 0 | unload 0 1; unload 0 2
load_with_globals           | load 0 1 1 0; unload 0 1 | load 0 1 1 0 | unload 0 1
load_null                   | | place 1 0 3 |
load_unreadable             | | place 1 0 2 |
load_jit                    | | place 1 0 4 |
load_jit_text               | | place 1 TEXT 4 |
unload                      | load 0 1 0 0 | unload 0 1 |
unload_with_globals         | load 0 1 1 0 | unload 0 1 |
unload_null                 | | unload 0 8 |
unload_unknown              | {UNKNOWN} | unload 0 9 |
unload_twice                | load 0 1 0 0; name 3 2 3 1 0; unload 0 1 | unload 0 2 |
function_miss               | load 0 1 0 0 | function 0 1 1 0 0 | unload 0 1
function_hit                | load 0 1 0 0; function 0 1 1 0 0 | function 0 2 1 0 0 | unload 0 1
function_by_a_copy_of_its_name | load 0 1 0 0; function 0 1 1 0 0 | function 0 2 1 0 1 | unload 0 1
function_unknown            | load 0 1 0 0 | lookup 1 1 0 | unload 0 1
function_without_a_name     | load 0 1 0 0 | lookup 1 1 1 | unload 0 1
function_null_name          | load 0 1 0 0 | lookup 1 1 2 | unload 0 1
function_of_a_null_module   | | function 0 1 8 0 0 |
function_of_a_null_module_without_a_name | | lookup 1 8 2 |
function_of_an_unknown_module | {UNKNOWN} | function 0 1 9 0 0 |
function_of_an_unloaded_module | load 0 1 0 0; name 3 2 3 1 0; unload 0 1 | function 0 1 2 0 0 |

stream_create_miss          | stream 0 1 | stream 0 2 | unstream 0 1; unstream 0 2
stream_create_hit           | {DEAD_STREAM} | stream 0 1 | unstream 0 1
stream_create_after_work    | stream 0 1; {KERNEL}; {WORK}; unstream 0 1 | stream 0 1 | unstream 0 1
stream_destroy              | stream 0 1 | unstream 0 1 |
stream_destroy_not_the_last | stream 0 1; stream 0 2 | unstream 0 1 | unstream 0 2
stream_destroy_after_work   | stream 0 1; {KERNEL}; {WORK} | unstream 0 1 |
stream_destroy_null         | | unstream 0 8 |
stream_destroy_unknown      | {UNKNOWN} | unstream 0 9 |
stream_destroy_twice        | {DEAD_STREAM} | unstream 0 3 |
stream_destroy_after_hips   | stream 0 2; name 1 3 1 2 0; unstream 1 2 | unstream 0 3 |
stream_destroy_of_the_programs_own | stream 1 1 | unstream 0 1 |
synchronize_idle            | stream 0 1 | sync 0 1 | unstream 0 1
synchronize_after_work      | stream 0 1; {KERNEL}; {WORK} | sync 0 1 | unstream 0 1
synchronize_null            | | sync 0 8 |
synchronize_destroyed       | {DEAD_STREAM} | sync 0 3 |
synchronize_unknown         | {UNKNOWN} | sync 0 9 |
wait_event                  | {RECORDED} | waitevent 0 1 2 | sync 0 2; unevent 0 1; unstream 0 1; unstream 0 2
wait_event_without_a_stream | {RECORDED} | waitevent 0 1 0 | unevent 0 1; unstream 0 1; unstream 0 2
wait_event_never_recorded   | stream 0 1; event 0 1 | waitevent 0 1 1 | unevent 0 1; unstream 0 1
wait_event_null             | stream 0 1 | waitevent 0 8 1 | unstream 0 1
wait_event_destroyed        | stream 0 1; {DEAD_EVENT} | waitevent 0 3 1 | unstream 0 1
wait_event_that_is_a_stream | stream 0 1; name 2 1 1 1 0 | waitevent 0 1 1 | unstream 0 1
wait_event_on_a_destroyed_stream | event 0 1; {DEAD_STREAM} | waitevent 0 1 3 | unevent 0 1
"""  # noqa: E501


def _steps(text: str) -> list[str]:
    return [f"0 {step.strip()}" for step in text.split(";") if step.strip()]


def scripts(pending: int) -> dict[str, list[str]]:
    """Returns the script of each situation, by name. Each begins with empty caches, and leaves an
    error before the call."""
    names = list(images.images())
    text = ROWS.replace("TEXT", str(names.index("text")))
    rows = [[cell.strip() for cell in row.split("|")] for row in text.splitlines() if row]
    for number, name in enumerate(names[2:], 2):
        rows.append([f"load_{name}", "", f"place 1 {number} 0", ""])
        rows.append([f"load_{name}_at_the_end", "", f"place 1 {number} 1", ""])
    return {
        name: [
            *_steps(f"empty; {before}; pending {pending}"),
            *_steps(f"{call}; errors"),
            *_steps(f"{after}; sync 3 0" + "; unload 0 7" * (KERNEL in before)),
        ]
        for name, before, call, after in rows
    }
